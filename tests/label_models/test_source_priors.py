import math
from pathlib import Path

import numpy as np
import pytest

from label_models.test_hmm import labels_of, simulated
from tagweave.annotations import Span
from tagweave.config import create
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.label_models import HMM, LabelModel
from tagweave.label_models.source_priors import SourcePriors, confusion_prior, observed, source_priors
from tagweave.labels import LabelSet
from tagweave.observations import observe
from tagweave.soft_labels import SoftLabels

PRIORS: SourcePriors = {"reliable": (0.9, 0.8), "confused": (0.5, 0.4), "narrow": {"PER": (0.9, 0.6)}}


def corpus_of(**sources: list[Span]) -> Corpus:
    return Corpus.from_documents([Document("d", ["w"] * 6, sources=dict(sources))], ("LOC", "PER"))


def test_the_formula_by_hand() -> None:
    labels = LabelSet(("LOC", "PER"))
    precision, recall = np.array([0.8, 0.9, 0.7, 0.6, 0.5]), np.array([0.9, 0.5, 0.6, 0.7, 0.8])
    frequencies = np.array([0.8, 0.05, 0.06, 0.07, 0.02])
    found = confusion_prior(labels, precision, recall, frequencies)
    factors = {("B-LOC", "I-LOC"): 5, ("B-PER", "I-PER"): 5, ("B-LOC", "B-PER"): 2, ("I-LOC", "I-PER"): 2}
    for i, true in enumerate(labels.names):
        errors = [
            (1 - recall[i])
            * (1 - precision[j])
            * (0.001 + frequencies[j])
            * (factors.get((true, said)) or factors.get((said, true)) or 1)
            * (i != j)
            for j, said in enumerate(labels.names)
        ]
        expected = np.array(errors) / sum(errors) * (1 - recall[i])
        expected[i] = recall[i]
        np.testing.assert_allclose(found[i], expected, rtol=1e-4)


def test_certain_sources_are_still_distributions() -> None:
    ones = np.ones(3)
    for recall in (ones, ones / 2, ones * 0):
        found = confusion_prior(LabelSet(("LOC", "PER"), "io"), ones, recall, np.array([1.0, 0, 0]))
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_allclose(np.diag(found), recall, atol=1e-5)
        assert (found > 0).all()


def test_a_pair_is_for_the_types_that_the_source_votes_for() -> None:
    corpus = corpus_of(a=[Span(0, 2, "PER")], b=[Span(0, 1, "PER"), Span(3, 4, "LOC")])
    priors = source_priors(
        [observe(corpus, "io", "never")], {"a": (0.9, 0.7), "b": {"PER": (0.9, 0.6), "O": (0.5, 0.95)}}, 100
    )
    np.testing.assert_allclose(priors.emissions.sum(axis=2), 100)
    np.testing.assert_allclose(np.diagonal(priors.emissions[0]), [90, 0, 70], atol=0.01)
    np.testing.assert_allclose(np.diagonal(priors.emissions[1]), [95, 0, 60], atol=0.01)


def test_moves_are_those_of_the_source_that_votes_for_most_labels() -> None:
    corpus = corpus_of(a=[Span(t, t + 1, "PER") for t in range(6)], b=[Span(0, 2, "PER"), Span(3, 4, "LOC")])
    priors = source_priors([observe(corpus, "io", "never")], {"a": (0.9, 0.7), "b": (0.9, 0.7)}, 1)
    # b says PER PER O LOC O O
    np.testing.assert_allclose(priors.start, [1, 1, 2])
    np.testing.assert_allclose(priors.transitions, [[2, 2, 1], [2, 1, 1], [2, 1, 2]])
    bio = source_priors([observe(corpus, "bio", "never")], {"a": (0.9, 0.7), "b": (0.9, 0.7)}, 1)
    labels = LabelSet(("LOC", "PER"))
    assert ((bio.transitions > 0) == labels.legal_moves).all()
    assert ((bio.start > 0) == labels.legal_starts).all()


@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("silence", ["never", "sentence"])
@pytest.mark.parametrize("only_observed", [True, False])
def test_the_objective_never_falls(state_space: str, silence: str, only_observed: bool) -> None:
    model = HMM(
        state_space=state_space,  # type: ignore[arg-type]
        silence=silence,  # type: ignore[arg-type]
        source_priors=PRIORS,
        only_observed=only_observed,
        iterations=20,
        tolerance=0,
    ).fit(simulated(100))
    history = [record["objective"] for record in model.history_]
    assert len(history) > 3
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in zip(history, history[1:], strict=False))


def test_what_is_known_of_sources_helps_where_they_contradict_each_other() -> None:
    corpus = simulated(300)
    gold = set(labels_of(corpus))

    def f1(priors: SourcePriors) -> float:
        model = HMM(state_space="io", silence="never", source_priors=priors, prior_strength=1e5).fit(corpus)
        found = set(labels_of(model.predict(corpus)))
        return 2 * len(found & gold) / (len(found) + len(gold))

    turned: SourcePriors = {**PRIORS, "reliable": PRIORS["confused"], "confused": PRIORS["reliable"]}
    assert f1(PRIORS) > f1(turned) + 0.1


@pytest.mark.parametrize("state_space", ["io", "bio"])
def test_only_labels_that_are_observed_come_out(state_space: str) -> None:
    corpus = simulated(100)
    model = HMM(state_space=state_space, silence="never", only_observed=True).fit(corpus)  # type: ignore[arg-type]
    possible = observed(observe(corpus, model.state_space, "never"))
    soft = model.predict_proba(corpus)
    probabilities = soft.io() if state_space == "io" else soft.probabilities
    assert probabilities[~possible].max() < 1e-6
    free = HMM(state_space=state_space, silence="never").fit(corpus).predict_proba(corpus)  # type: ignore[arg-type]
    assert (free.io() if state_space == "io" else free.probabilities)[~possible].max() > 1e-3


def test_what_is_observed() -> None:
    corpus = corpus_of(a=[Span(0, 2, "PER")], b=[Span(0, 1, "LOC"), Span(3, 4, "O")])
    found = observed(observe(corpus, "io", "always"))
    assert found.tolist() == [
        [False, True, True],
        [False, False, True],
        [True] * 3,
        [True, False, False],
        *[[True] * 3] * 2,
    ]
    tagger = SoftLabels(("LOC", "PER"), corpus.offsets, np.tile(np.float32([0, 1, 0, 0, 0]), (6, 1)))
    assert observed(observe(corpus.with_source("tagger", tagger), "bio")).all()


def test_a_source_taken_at_its_word_needs_no_prior() -> None:
    corpus = corpus_of(a=[Span(0, 2, "PER")])
    tagger = SoftLabels(("LOC", "PER"), corpus.offsets, np.tile(np.float32([0.6, 0.1, 0.1, 0.1, 0.1]), (6, 1)))
    taught = corpus.with_source("tagger", tagger)
    HMM(source_priors={"a": (0.9, 0.7)}).fit(taught)
    with pytest.raises(UsageError, match="no precision and recall of tagger"):
        HMM(source_priors={"a": (0.9, 0.7)}, probabilities="votes").fit(taught)


def test_priors_come_from_text_and_tables_and_are_saved(tmp_path: Path) -> None:
    settings = {"source_priors": {"reliable": "0.9,0.8", "confused": [0.5, 0.4], "narrow": {"PER": [0.9, 0.6]}}}
    model = create(HMM, settings)
    assert model.source_priors == PRIORS
    model.fit(simulated(20)).save(tmp_path / "model")
    assert LabelModel.load(tmp_path / "model").settings()["source_priors"] == PRIORS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reliabel": (0.9, 0.8)}, "no source is called 'reliabel'. Did you mean 'reliable'"),
        ({"narrow": {"PERS": (0.9, 0.8)}}, "no entity type of source 'narrow' is called 'PERS'. Did you mean 'PER'"),
        ({"narrow": {"PER": (0.9, 1.8)}}, r"source_priors.narrow.PER is \[0.9, 1.8\]: give two numbers from 0 to 1"),
        ({"narrow": (0.9,)}, "source_priors.narrow is"),
        ({"narrow": (0.9, math.nan)}, "source_priors.narrow is"),
        ({"confused": None}, "no precision and recall of confused; name every source"),
    ],
)
def test_wrong_priors_are_errors(change: dict[str, object], message: str) -> None:
    changed = {name: prior for name, prior in {**PRIORS, **change}.items() if prior is not None}
    with pytest.raises(UsageError, match=message):
        HMM(source_priors=changed).fit(simulated(5))  # type: ignore[arg-type]
