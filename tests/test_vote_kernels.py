"""Compiled passes over votes give what plain numpy gives, whatever the blocks and threads."""

import numpy as np
import pytest

from tagweave import vote_kernels
from tagweave.vote_kernels import as_shares, count, first_of_the_best, gather, speaks_anyone, speaks_in, vote_outside

SOURCES, PATTERNS, LABELS = 3, 4, 3


@pytest.fixture(params=[(1 << 16, 1), (7, 2)], autouse=True)
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    block, threads = request.param
    monkeypatch.setattr(vote_kernels, "BLOCK", block)
    monkeypatch.setattr(vote_kernels, "thread_limit", lambda: threads)


def votes(tokens: int = 100) -> np.ndarray:
    """Random votes, with runs of tokens that have the same ones."""
    chance = np.random.default_rng(tokens)
    drawn = chance.integers(-1, PATTERNS, (tokens, SOURCES)).astype(np.int8)
    return drawn[np.sort(chance.integers(0, tokens, tokens))] if tokens else drawn


@pytest.mark.parametrize("tokens", [0, 1, 100])
def test_sums_and_counts(tokens: int) -> None:
    given, chance = votes(tokens), np.random.default_rng(1)
    tables, weights = chance.random((SOURCES, PATTERNS, LABELS)), chance.random((tokens, LABELS))
    sums, counts = np.zeros((tokens, LABELS)), np.zeros((SOURCES, LABELS, PATTERNS))
    for token, source in np.argwhere(given >= 0):
        sums[token] += tables[source, given[token, source]]
        counts[source, :, given[token, source]] += weights[token]
    np.testing.assert_allclose(gather(given, tables), sums)
    np.testing.assert_allclose(count(given, weights, PATTERNS), counts)
    np.testing.assert_allclose(count(given, weights.astype(np.float32), PATTERNS), counts, rtol=1e-5)


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    given, weights = votes(), np.random.default_rng(1).random((100, LABELS))
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(vote_kernels, "thread_limit", lambda threads=threads: threads)
        found.append(count(given, weights, PATTERNS))
    np.testing.assert_array_equal(*found)


def test_who_speaks_where() -> None:
    given, document = votes(), np.sort(np.random.default_rng(2).integers(0, 9, 100))
    np.testing.assert_array_equal(speaks_anyone(given), (given > 0).any(axis=1))
    expected = [[(given[document == d, k] > 0).any() for k in range(SOURCES)] for d in range(10)]
    np.testing.assert_array_equal(speaks_in(given, document, 10), expected)


@pytest.mark.parametrize("skips", [False, True])
def test_silence_becomes_votes_for_outside_where_it_may(skips: bool) -> None:
    given, document = votes(), np.sort(np.random.default_rng(2).integers(0, 9, 100))
    may = np.random.default_rng(3).random((10, SOURCES)) < 0.5
    spoken_for = speaks_anyone(given) if skips else None
    silent = (given < 0) & may[document] & (~spoken_for[:, None] if spoken_for is not None else True)
    expected = np.where(silent, 0, given)
    vote_outside(given, document, may, spoken_for)
    np.testing.assert_array_equal(given, expected)


def test_shares_and_the_first_of_the_best() -> None:
    counts = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0], [2.0, 2.0, 0.0]])
    shares = as_shares(counts)
    np.testing.assert_allclose(shares, [[0.25, 0.5, 0.25], [1, 0, 0], [0.5, 0.5, 0]])
    assert first_of_the_best(shares, np.array([2, 1, 0])).tolist() == [1, 0, 1]
    nearly = np.array([[0.3, 0.3 + 1e-9, 0.4 - 1e-9]])
    assert first_of_the_best(nearly, np.array([0, 1, 2])).tolist() == [2]
