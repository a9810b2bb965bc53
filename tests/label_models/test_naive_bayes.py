from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from label_models.simulated_votes import simulate
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import MajorityVote, NaiveBayes
from tagweave.observations import Observations, observe
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")
BALANCE, ACCURACIES, PROPENSITIES = (0.5, 0.3, 0.2), (0.9, 0.8, 0.7, 0.6, 0.85), (0.9, 0.6, 0.8, 0.7, 0.3)
PLAIN = {"silence": "always", "strength": 0.0, "smoothing": 0.01, "iterations": 300, "tolerance": 0.0}


def varied(count: int = 30) -> Corpus:
    """Votes of all kinds: for O, scored, coarse, whole distributions."""
    chance = np.random.default_rng(4)
    votes = simulate(BALANCE, ACCURACIES, PROPENSITIES, tokens=10 * count).corpus(TYPES)
    corpus = Corpus.from_documents(
        [
            replace(d, sources={**d.sources, "coarse": [s._replace(type="ENT") for s in d.sources["s0"] or ()][::2]})
            for d in votes
        ],
        TYPES,
        {"ENT": TYPES},
    )
    scored = corpus.sources["s1"]
    assert isinstance(scored, Annotations)
    corpus = corpus.with_source("s1", replace(scored, scores=chance.random(len(scored)).astype(np.float32)))
    rows = chance.dirichlet(np.ones(5), size=10 * count).astype(np.float32)
    rows[::10, [2, 4]] = 0
    return corpus.with_source("tagger", SoftLabels(TYPES, corpus.offsets, rows / rows.sum(axis=1, keepdims=True)))


@pytest.mark.parametrize("accuracies", ["source", "label"])
def test_known_accuracies_and_balance_are_recovered(accuracies: str) -> None:
    corpus = simulate(BALANCE, ACCURACIES, PROPENSITIES, tokens=30_000).corpus(TYPES)
    model = NaiveBayes(accuracies=accuracies, **PLAIN).fit(corpus)  # type: ignore[arg-type]
    learned = model.learned()
    found = np.diagonal(learned.emissions, axis1=1, axis2=2)
    np.testing.assert_allclose(found, np.tile(np.array(ACCURACIES)[:, None], (1, 3)), atol=0.035)
    np.testing.assert_allclose(learned.start, BALANCE, atol=0.03)
    np.testing.assert_allclose(model.propensities(), PROPENSITIES, atol=0.02)
    if accuracies == "source":
        np.testing.assert_allclose(np.ptp(found, axis=1), 0, atol=1e-12)


def test_it_beats_the_majority_where_accuracies_differ() -> None:
    simulated = simulate((0.4, 0.3, 0.3), (0.95, 0.5, 0.45, 0.5), (1.0, 1.0, 1.0, 1.0))
    corpus = simulated.corpus(TYPES)
    right = [
        float((model.fit(corpus).predict_proba(corpus).io().argmax(axis=1) == simulated.labels).mean())
        for model in (MajorityVote(silence="always"), NaiveBayes(silence="always"))
    ]
    assert right[1] > max(right[0] + 0.1, 0.9)


def likelihood(observations: Observations, emissions: NDArray[np.float64], token: int, label: int) -> float:
    """Probability of the votes on a token under a label, by the definition."""
    product = 1.0
    for k in range(len(observations.sources)):
        said = observations.source(k)[token]
        if said.sum() > 0:
            product *= sum(emissions[k, label, j] * said[j] for j in range(len(said)))
    return product


@pytest.mark.parametrize("probabilities", ["posteriors", "votes"])
def test_posteriors_are_those_of_the_definition(probabilities: str) -> None:
    corpus = varied(8)
    model = NaiveBayes(probabilities=probabilities, trust=1, iterations=2, tolerance=0).fit(corpus)  # type: ignore[arg-type]
    observations = observe(corpus, "io", "token", probabilities)  # type: ignore[arg-type]
    joint = np.array(
        [
            [
                model.learned().start[label] * likelihood(observations, model.learned().emissions, token, label)
                for label in range(3)
            ]
            for token in range(80)
        ]
    )
    np.testing.assert_allclose(model.predict_proba(corpus).io(), joint / joint.sum(axis=1, keepdims=True), atol=1e-5)


def test_the_recorded_likelihood_is_the_sum_over_labels() -> None:
    corpus = varied(8)
    model = NaiveBayes(iterations=1, probabilities="votes").fit(corpus)
    emissions = np.full((7, 3, 3), 0.05)
    emissions[:, range(3), range(3)] = 0.9
    observations = observe(corpus, "io", "token", "votes")
    start = (np.full(3, 1.0001)) / 3.0003
    expected = sum(
        np.log(sum(start[label] * likelihood(observations, emissions, token, label) for label in range(3)))
        for token in range(80)
    )
    assert model.history_[0]["log_likelihood"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("accuracies", ["source", "label"])
@pytest.mark.parametrize("silence", ["never", "token", "always"])
@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("probabilities", ["posteriors", "votes"])
def test_the_objective_never_falls(accuracies: str, silence: str, state_space: str, probabilities: str) -> None:
    settings = {"silence": silence, "state_space": state_space, "probabilities": probabilities, "tolerance": 0}
    model = NaiveBayes(accuracies=accuracies, **settings)  # type: ignore[arg-type]
    history = [record["objective"] for record in model.fit(varied()).history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))


def test_a_source_of_one_type_is_not_believed_to_be_right_about_others() -> None:
    corpus = simulate((0.4, 0.3, 0.3), (0.9, 0.85, 0.8, 0.8), (1.0, 1.0, 1.0, 1.0)).corpus(TYPES)
    narrow = replace(corpus.sources["s0"], type_ids=np.minimum(corpus.sources["s0"].type_ids, 1))  # type: ignore
    model = NaiveBayes(silence="always").fit(corpus.with_source("s0", narrow))
    accurate = np.diag(model.learned().emissions[0])
    assert accurate[2] < 0.05
    assert accurate[1] > 0.8


def test_sources_taken_at_their_word_have_no_accuracy_in_the_table() -> None:
    table = NaiveBayes().fit(varied()).tables()[0]
    assert [row[2] is None for row in table.rows] == [False] * 6 + [True]
    assert table.rows[-1][1] == pytest.approx(100)


@pytest.mark.parametrize("settings", [{"prior_accuracy": 1.0}, {"strength": -1.0}, {"smoothing": 0.0}])
def test_settings_out_of_range_are_errors(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        NaiveBayes(**settings)  # type: ignore[arg-type]


def test_a_corpus_without_tokens_is_answered() -> None:
    corpus = Corpus.from_documents([Document("d", [], sources={"a": []})], TYPES)
    with pytest.warns(UserWarning, match="no source votes"):
        model = NaiveBayes().fit(corpus)
    assert model.predict(corpus)[0].entities == []


def test_on_public_votes_it_is_not_under_the_majority(data_folder: Path) -> None:
    corpus = read(data_folder / "weak" / "laptop-review" / "dev.jsonl.gz")
    scores = [evaluate(corpus, model.fit(corpus).predict(corpus)).micro.f1 for model in (MajorityVote(), NaiveBayes())]
    assert scores[1] > scores[0] - 0.002
