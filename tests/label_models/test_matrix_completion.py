from pathlib import Path
from typing import Any

import numpy as np
import pytest

from label_models.simulated_votes import Simulated, simulate
from tagweave.annotations import Annotations
from tagweave.errors import DataError, UsageError
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import MajorityVote, MatrixCompletion
from tagweave.label_models.matrix_completion import Moments, count_moments, first_values, in_order, loss
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")
BALANCE, ACCURACIES, PROPENSITIES = (0.5, 0.3, 0.2), (0.9, 0.8, 0.7, 0.6, 0.85), (0.9, 0.6, 0.8, 0.7, 0.5)
PLAIN: dict[str, Any] = {"silence": "always", "pull": 0.0, "precision": 0.7, "tolerance": 1e-10}


def votes(balance: tuple[float, ...] = BALANCE, tokens: int = 6000) -> Simulated:
    return simulate(balance, ACCURACIES, PROPENSITIES, tokens)


def given(balance: tuple[float, ...], types: tuple[str, ...]) -> dict[str, float]:
    return dict(zip(types, balance[1:], strict=True))


@pytest.mark.parametrize(("balance", "types"), [((0.7, 0.3), ("LOC",)), (BALANCE, TYPES)])
def test_known_confusions_are_recovered(balance: tuple[float, ...], types: tuple[str, ...]) -> None:
    simulated = votes(balance, 20_000)
    model = MatrixCompletion(class_balance=given(balance, types), **PLAIN).fit(simulated.corpus(types))
    size = len(balance)
    accuracies, propensities = (np.array(values)[:, None, None] for values in (ACCURACIES, PROPENSITIES))
    true = propensities * np.where(np.eye(size, dtype=bool), accuracies, (1 - accuracies) / (size - 1))
    np.testing.assert_allclose(model.learned()[1], true, atol=0.03)


def test_moments_are_means_over_tokens_also_of_spread_votes_and_across_batches() -> None:
    corpus = votes(tokens=24_000).corpus(TYPES)
    rows = np.random.default_rng(1).dirichlet(np.ones(5), size=24_000).astype(np.float32)
    observations = observe(corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, rows)), "io", "always")
    said = np.hstack([observations.source(k) for k in (0, 2, 5)])
    found = count_moments([*observations.batches(7000)], np.array([0, 2, 5]), 3)
    np.testing.assert_allclose(found.first, said.mean(axis=0))
    np.testing.assert_allclose(found.second, said.T @ said / 24_000)


def test_first_values_explain_how_often_each_vote_is_given() -> None:
    first, balance = np.array([0.3, 0.1, 0.05, 0.4, 0.2, 0.1]), np.array(BALANCE)
    point = first_values(first, balance, 0.8)
    np.testing.assert_allclose(point @ balance, first)
    np.testing.assert_allclose([point[j, j % 3] * balance[j % 3] / first[j] for j in range(6)], 0.8)


def test_the_loss_is_its_definition_and_the_gradient_its_slope() -> None:
    chance = np.random.default_rng(0)
    balance, pull, size = np.array(BALANCE), 0.3, 3
    point, start = chance.random((2, 12, size))
    root = chance.random((12, 12))
    seen = Moments(chance.random(12), root @ root.T, 100)
    expected = pull * sum((point[i, y] - start[i, y]) ** 2 for i in range(12) for y in range(size))
    for i in range(12):
        expected += (sum(point[i, y] * balance[y] for y in range(size)) - seen.first[i]) ** 2
        for j in range(12):
            if i // size != j // size:
                product = sum(point[i, y] * balance[y] * point[j, y] for y in range(size))
                expected += (seen.second[i, j] - product) ** 2
    value, gradient = loss(point, seen, balance, start, pull)
    assert value == pytest.approx(expected)
    for i, y in ((0, 0), (4, 2), (11, 1)):
        step = np.zeros_like(point)
        step[i, y] = 1e-6
        slope = (
            loss(point + step, seen, balance, start, pull)[0] - loss(point - step, seen, balance, start, pull)[0]
        ) / 2e-6
        assert gradient[i, y] == pytest.approx(slope, rel=1e-5)


def test_only_labels_of_equal_balance_change_places() -> None:
    wrong = np.tile(np.eye(4)[:, [1, 2, 0, 3]] + 0.01, (3, 1))
    np.testing.assert_allclose(in_order(wrong, np.full(4, 0.25)), np.tile(np.eye(4) + 0.01, (3, 1)))
    np.testing.assert_array_equal(in_order(wrong, np.array([0.1, 0.2, 0.3, 0.4])), wrong)
    part = in_order(wrong, np.array([0.3, 0.2, 0.3, 0.2]))
    np.testing.assert_array_equal(np.sort(part[:, [0, 2]]), np.sort(wrong[:, [0, 2]]))


def test_posteriors_multiply_what_the_votes_on_a_token_say() -> None:
    corpus = votes(tokens=300).corpus(TYPES)
    model = MatrixCompletion().fit(corpus)
    balance, emissions = model.learned()
    observations = observe(corpus)
    expected = np.tile(balance, (300, 1))
    for token in range(300):
        for k in range(5):
            vote = observations.votes[token, k]
            if vote >= 0:
                expected[token] *= emissions[k, :, vote]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(corpus).io(), expected, atol=1e-5)


def test_the_loss_never_rises_and_convergence_is_told() -> None:
    model = MatrixCompletion(pull=0.001).fit(votes().corpus(TYPES))
    values = [record["loss"] for record in model.history_]
    assert len(values) > 5
    assert all(later < earlier for earlier, later in zip(values, values[1:], strict=False))
    assert model.converged
    assert not MatrixCompletion(pull=0.001, iterations=3).fit(votes().corpus(TYPES)).converged


def test_a_strong_pull_leaves_the_first_values() -> None:
    corpus = votes().corpus(TYPES)
    model = MatrixCompletion(silence="always", pull=1e6, precision=0.8).fit(corpus)
    balance, emissions = model.learned()
    said = count_moments([observe(corpus, "io", "always")], np.arange(5), 3).first
    start = first_values(said, balance, 0.8).reshape(5, 3, 3).transpose(0, 2, 1)
    np.testing.assert_allclose(emissions, start, atol=1e-4)


def test_balance_is_the_share_of_the_votes_or_what_is_given() -> None:
    corpus = votes().corpus(TYPES)
    shares = MajorityVote().fit(corpus).predict_proba(corpus).io().mean(axis=0)
    np.testing.assert_allclose(MatrixCompletion().fit(corpus).learned()[0], shares, atol=1e-3)
    model = MatrixCompletion(class_balance={"PER": 0.2, "LOC": 0.3}).fit(corpus)
    np.testing.assert_allclose(model.learned()[0], BALANCE)


def test_a_tagger_is_believed_but_is_not_in_the_matrix() -> None:
    corpus = votes().corpus(TYPES)
    sure = np.full((6000, 5), 0.01, np.float32)
    sure[:, 3] = 0.96
    helped = corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, sure))
    settings: dict[str, Any] = {"silence": "always", "class_balance": given(BALANCE, TYPES)}
    alone, with_tagger = (MatrixCompletion(**settings).fit(c) for c in (corpus, helped))
    np.testing.assert_array_equal(alone.learned()[1], with_tagger.learned()[1][:5])
    voting = MatrixCompletion(probabilities="votes", pull=0.0, **settings).fit(helped)
    assert voting.learned()[1][5, :, 2].min() > 0.9


def test_too_few_sources_are_an_error() -> None:
    corpus = votes(tokens=100).corpus(TYPES).select_sources(["s0", "s1"])
    with pytest.raises(DataError, match="at least 3 sources, but 2 vote"):
        MatrixCompletion().fit(corpus)
    idle = Annotations.from_lists([[] for _ in corpus], corpus.vocabulary)
    corpus = corpus.with_source("idle", idle)
    with pytest.raises(DataError, match="but 2 vote"):
        MatrixCompletion(silence="always").fit(corpus)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": 0.0}, "precision is 0.0"),
        ({"pull": -1.0}, "must not be negative"),
        ({"class_balance": {"PER": 0.2, "LOK": 0.2}}, "Did you mean 'LOC'"),
        ({"class_balance": {"PER": 0.2}}, "no share for LOC"),
        ({"class_balance": {"PER": 0.6, "LOC": 0.4}}, "leave some of 1 for O"),
    ],
)
def test_settings_out_of_range_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MatrixCompletion(**settings).fit(votes(tokens=50).corpus(TYPES))


@pytest.mark.parametrize(
    ("balance", "types", "epochs", "tolerance"),
    [((0.7, 0.3), ("LOC",), 1000, 1e-3), ((0.5, 0.5), ("LOC",), 1000, 1e-3), (BALANCE, TYPES, 200, 0.03)],
)
def test_it_agrees_with_snorkel(
    balance: tuple[float, ...], types: tuple[str, ...], epochs: int, tolerance: float
) -> None:
    """With more labels than two minima are not unique, and both stop in one near the truth."""
    pytest.importorskip("snorkel")
    from snorkel.labeling.model import LabelModel

    simulated = votes(balance, 3000)
    theirs = LabelModel(cardinality=len(balance), verbose=False)
    theirs.fit(simulated.votes, class_balance=list(balance), n_epochs=epochs, lr=0.1, seed=0, progress_bar=False)
    corpus = simulated.corpus(types)
    ours = MatrixCompletion(class_balance=given(balance, types), **PLAIN).fit(corpus)
    size = len(balance)
    confusions = theirs.mu.detach().numpy().reshape(-1, size, size).transpose(0, 2, 1)
    np.testing.assert_allclose(ours.learned()[1], confusions, atol=tolerance)
    posteriors, expected = ours.predict_proba(corpus).io(), theirs.predict_proba(simulated.votes)
    np.testing.assert_allclose(posteriors.mean(axis=0), expected.mean(axis=0), atol=tolerance)
    assert np.abs(posteriors - expected).mean() < tolerance
    assert (posteriors.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.985


def test_on_public_votes_it_is_not_under_the_majority(data_folder: Path) -> None:
    corpus = read(data_folder / "weak" / "laptop-review" / "dev.jsonl.gz")
    models = (MajorityVote(), MatrixCompletion())
    scores = [evaluate(corpus, model.fit(corpus).predict(corpus)).micro.f1 for model in models]
    assert scores[1] > scores[0] - 0.002
