"""Best sets and marginals of spans, against the enumeration of every set of spans that share no token."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tagweave.label_models.intervals import best_spans, label_probabilities, span_marginals

TOKENS, TYPES = 5, 2
Spans = list[tuple[int, int]]


def legal_sets(spans: Spans, types: int) -> list[tuple[int, ...]]:
    """For each legal set the type of every span, 0 where the set lacks it."""
    found = []
    for choice in product(range(types + 1), repeat=len(spans)):
        taken = [token for (start, end), kind in zip(spans, choice, strict=True) if kind for token in range(start, end)]
        if len(taken) == len(set(taken)):
            found.append(choice)
    return found


def case(seed: int) -> tuple[Spans, NDArray[np.float64]]:
    chance = np.random.default_rng(seed)
    every = [(start, end) for start in range(TOKENS) for end in range(start + 1, TOKENS + 1)]
    chosen = sorted(chance.choice(len(every), size=int(chance.integers(0, 7)), replace=False).tolist())
    return [every[row] for row in chosen], chance.normal(0, 3, (len(chosen), TYPES))


def columns(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows = np.array(spans, np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@given(st.integers(0, 10_000))
def test_the_best_set_has_the_largest_sum(seed: int) -> None:
    spans, logs = case(seed)
    gains = logs[:, 0]
    chosen = best_spans(*columns(spans), gains, TOKENS)
    assert tuple(chosen.astype(int)) in legal_sets(spans, 1)
    sums = [sum(g for g, taken in zip(gains, choice, strict=True) if taken) for choice in legal_sets(spans, 1)]
    assert gains[chosen].sum() == pytest.approx(max(sums))


def test_spans_that_add_nothing_stay_out() -> None:
    assert not best_spans(np.array([0, 1]), np.array([1, 2]), np.array([0.0, -1.0]), 2).any()


@given(st.integers(0, 10_000))
def test_marginals_are_shares_of_the_weight_of_all_sets(seed: int) -> None:
    spans, logs = case(seed)
    expected, total = np.zeros((len(spans), TYPES)), 0.0
    labels = np.zeros((TOKENS, 1 + 2 * TYPES))
    for choice in legal_sets(spans, TYPES):
        weight = np.exp(sum(logs[row, kind - 1] for row, kind in enumerate(choice) if kind))
        total += weight
        numbers = np.zeros(TOKENS, int)
        for row, kind in enumerate(choice):
            if kind:
                start, end = spans[row]
                expected[row, kind - 1] += weight
                numbers[start:end] = 2 * kind
                numbers[start] = 2 * kind - 1
        labels[np.arange(TOKENS), numbers] += weight
    marginals = span_marginals(*columns(spans), logs, TOKENS)
    np.testing.assert_allclose(marginals, expected / total, atol=1e-9)
    found = label_probabilities(*columns(spans), marginals, TOKENS)
    np.testing.assert_allclose(found, labels / total, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_documents_end_to_end_do_not_touch_each_other() -> None:
    logs = np.array([[1.0], [2.0], [0.5]])
    both = span_marginals(np.array([0, 0, 3]), np.array([2, 3, 4]), logs, 5)
    first = span_marginals(np.array([0, 0]), np.array([2, 3]), logs[:2], 3)
    second = span_marginals(np.array([0]), np.array([1]), logs[2:], 2)
    np.testing.assert_allclose(both, np.vstack([first, second]))


def test_impossible_and_certain_spans_are_finite() -> None:
    logs = np.array([[-np.inf], [800.0]])
    marginals = span_marginals(np.array([0, 1]), np.array([2, 3]), logs, 3)
    np.testing.assert_allclose(marginals, [[0], [1]])


def test_nothing_at_all() -> None:
    none = np.zeros(0, np.int64)
    assert best_spans(none, none, np.zeros(0), 0).shape == (0,)
    marginals = span_marginals(none, none, np.zeros((0, 2)), 3)
    assert label_probabilities(none, none, marginals, 3).tolist() == [[1, 0, 0, 0, 0]] * 3
