"""The generative model of votes on candidates, and what comes out of it."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import SpanVote, SwellShark
from tagweave.label_models.beliefs import Beliefs, count, emissions, errors
from tagweave.label_models.candidates import Candidates, observe_candidates, source_places
from tagweave.observations import Observations
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")
ACCURACY = {"best": 0.95, "good": 0.85, "fair": 0.75, "poor": 0.6}
SPEAKS = {"best": 0.6, "good": 0.8, "fair": 0.9, "poor": 0.7}


def simulated(documents: int = 300, seed: int = 0, coarse: bool = False) -> Corpus:
    """Ten places a document where an entity may be; sources miss some and err, then towards any other class."""
    chance = np.random.default_rng(seed)
    classes, made = ("O", *TYPES), []
    for number in range(documents):
        truth = chance.integers(0, 3, 10)
        sources: dict[str, list[Span]] = {}
        for name, accuracy in ACCURACY.items():
            said = np.where(chance.random(10) < accuracy, truth, (truth + chance.integers(1, 3, 10)) % 3)
            spoken = chance.random(10) < SPEAKS[name]
            sources[name] = [Span(3 * i, 3 * i + 1, classes[said[i]]) for i in range(10) if spoken[i]]
        if coarse:
            sources["any"] = [Span(3 * i, 3 * i + 1, "ENT") for i in range(10) if truth[i] and chance.random() < 0.5]
            sources["sure"] = [Span(3 * i, 3 * i + 1, "PER", 0.7) for i in range(10) if truth[i] == 2]
        gold = [Span(3 * i, 3 * i + 1, classes[y]) for i, y in enumerate(truth) if y]
        made.append(Document(f"d{number}", ["w"] * 30, entities=gold, sources=sources))
    return Corpus.from_documents(made, TYPES, {"ENT": TYPES} if coarse else None)


def observed(corpus: Corpus) -> Observations:
    return observe_candidates(corpus, Candidates.of(source_places(corpus), corpus.offsets), "always")


def replace_parse(patch: pytest.MonkeyPatch, parse: Callable[[Corpus, str], Any]) -> None:
    """Parts of speech by another function, in the very module of the class, which a doctest may have loaded twice."""
    patch.setitem(SwellShark._features.__globals__, "parts_of_speech", parse)


@pytest.mark.parametrize("propensity", ["source", "class"])
@pytest.mark.parametrize("silence", ["token", "never", "always"])
@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("coarse", [False, True])
def test_the_objective_never_falls(propensity: str, silence: str, strength: float, coarse: bool) -> None:
    settings: dict[str, Any] = {"propensity": propensity, "silence": silence, "strength": strength}
    model = SwellShark(**settings, iterations=25, tolerance=0).fit(simulated(60, coarse=coarse))
    history = [record["objective"] for record in model.history_]
    assert len(history) > 3
    assert all(later >= before - 1e-7 * abs(before) for before, later in zip(history, history[1:], strict=False))
    assert history[-1] > history[0]


@pytest.mark.parametrize("propensity", ["source", "class"])
def test_accuracies_and_propensities_are_recovered(propensity: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    """Every place is a candidate, also where no source sees an entity: else accuracies are those on chosen places."""
    every = np.array([2, 0, 0], np.int8)
    replace_parse(monkeypatch, lambda corpus, _: np.tile(every, 10 * len(corpus)))
    settings: dict[str, Any] = {"candidates": "noun-phrases", "silence": "always", "strength": 0.0}
    learned = SwellShark(propensity=propensity, **settings).fit(simulated(600)).learned()
    np.testing.assert_allclose(learned.accuracy, list(ACCURACY.values()), atol=0.03)
    np.testing.assert_allclose(learned.propensity, np.tile(list(SPEAKS.values()), (3, 1)).T, atol=0.03)
    np.testing.assert_allclose(learned.balance, 1 / 3, atol=0.03)


def test_expected_counts_are_those_of_all_explanations() -> None:
    corpus = simulated(2, coarse=True)
    observations = observed(corpus)
    chance = np.random.default_rng(1)
    beliefs = Beliefs(np.array([0.2, 0.5, 0.3]), chance.uniform(0.4, 0.9, 6), chance.uniform(0.2, 0.9, (6, 3)))
    tables = emissions(beliefs, errors(observations))
    np.testing.assert_allclose(tables.sum(axis=2), 1)
    weights = chance.dirichlet(np.ones(3), len(observations.votes))
    patterns = np.vstack([observations.patterns, np.zeros(4)])
    said = np.empty((len(weights), 6, 4))
    said[:, observations.hard] = patterns[observations.votes]
    said[:, observations.soft_positions] = observations.soft
    right, propensity = np.zeros((6, 2)), np.zeros((6, 3, 2))
    for row, source, label in product(range(len(weights)), range(6), range(3)):
        meant = said[row, source] * tables[source, label]
        meant = weights[row, label] * meant / meant.sum()
        right[source] += meant[label], meant[:3].sum() - meant[label]
        propensity[source, label] += meant[:3].sum(), meant[3]
    counted = count(observations, weights, tables)
    np.testing.assert_allclose(counted.balance, weights.sum(axis=0))
    np.testing.assert_allclose(counted.accuracy, right, rtol=1e-6)
    np.testing.assert_allclose(counted.propensity, propensity, rtol=1e-6, atol=1e-9)


def test_log_likelihood_is_the_sum_over_classes() -> None:
    corpus = simulated(3)
    model = SwellShark(silence="always", iterations=3, tolerance=0).fit(corpus)
    tables, balance = model.emissions_, model.learned().balance
    total = 0.0
    for votes in observed(corpus).votes:
        total += np.log(sum(balance[y] * np.prod([tables[k, y, v] for k, v in enumerate(votes)]) for y in range(3)))
    again = SwellShark(silence="always", iterations=4, tolerance=0).fit(corpus)
    assert again.history_[3]["log_likelihood"] == pytest.approx(total)


def test_errors_are_spread_as_a_source_votes() -> None:
    votes = [Span(0, 1, "PER"), Span(2, 3, "PER"), Span(4, 5, "PER"), Span(6, 7, "O")]
    corpus = Corpus.from_documents([Document("d", ["w"] * 8, sources={"a": votes})], TYPES)
    wrong = errors(
        observe_candidates(corpus, Candidates.of([np.array([(0, 1), (2, 3), (4, 5), (6, 7)])], corpus.offsets))
    )
    np.testing.assert_allclose(wrong[0].sum(axis=1), 1)
    np.testing.assert_allclose(wrong[0, 1], [0.25, 0, 0.75], atol=0.01)
    assert wrong[0, 2, 0] > 0.98


def test_a_long_span_of_many_beats_short_ones_of_few() -> None:
    names, part = [Span(0, 3, "PER")], [Span(1, 2, "PER")]
    votes = {"a": names, "b": names, "c": names, "d": part}
    corpus = Corpus.from_documents([Document(f"d{i}", ["w"] * 4, sources=votes) for i in range(30)], TYPES[1:])
    document = SwellShark().fit(corpus).predict(corpus)[0]
    assert [span[:3] for span in document.entities or ()] == [(0, 3, "PER")]


@pytest.mark.parametrize("generator", ["sources", "noun-phrases"])
def test_a_tagger_adds_candidates_and_is_believed(generator: str) -> None:
    tokens = ["they", "saw", "Ada", "Lovelace"]
    votes = {"a": [Span(3, 4, "PER")]}
    corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes if i else {}) for i in range(20)], ["PER"])
    rows = np.tile(np.array([[0.98, 0.01, 0.01]] * 2 + [[0.02, 0.97, 0.01], [0.02, 0.01, 0.97]], np.float32), (20, 1))
    rows[:4] = [[0.01, 0.98, 0.01], [0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.9, 0.05, 0.05]]
    corpus = corpus.with_source("tagger", SoftLabels(("PER",), corpus.offsets, rows))
    model = SwellShark(candidates=generator)  # type: ignore[arg-type]
    predicted = model.fit(corpus).predict(corpus)
    assert [span[:3] for span in predicted[0].entities or ()] == [(0, 1, "PER")]
    assert [span[:3] for span in predicted[1].entities or ()] == [(2, 4, "PER")]
    assert np.isnan(model.learned().accuracy).tolist() == [False, True]
    assert np.isfinite([record["objective"] for record in model.history_]).all()
    assert model.tables()[0].rows[1] == ("tagger", None, None, None)


def test_noun_phrases_bound_what_is_found_and_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = "the severe colon cancer was treated".split()
    votes = {"a": [Span(2, 4, "PER"), Span(5, 6, "PER")], "b": [Span(2, 4, "PER"), Span(5, 6, "PER")]}
    corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(5)], ["PER"])
    parses = []

    def parse(read: Corpus, pipeline: str) -> Any:  # noqa: ANN401
        parses.append(len(read))
        return np.tile(np.array([0, 1, 2, 2, 0, 0], np.int8), len(read))

    replace_parse(monkeypatch, parse)
    model = SwellShark(candidates="noun-phrases", propensity="class").fit(corpus)
    assert [span[:3] for span in model.predict(corpus)[0].entities or ()] == [(2, 4, "PER")]
    assert parses == [5]
    model.predict(corpus.subset([0, 1]))
    assert parses == [5, 2]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"candidates": "noun-phrase"}, "Did you mean 'noun-phrases'"),
        ({"overlap": "none"}, "overlap"),
        ({"propensity": "label"}, "propensity"),
        ({"accuracy": 1.0}, "accuracy is 1.0"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"strength": -1.0}, "strength"),
        ({"longest": 0}, "longest"),
    ],
)
def test_settings_out_of_range_are_errors(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SwellShark(**setting)


def test_real_votes_are_judged_better_than_by_span_vote(data_folder: Path) -> None:
    sources = ["tag-CoreDictionaryUncased", "tag-CoreDictionaryExact", "tag-CancerLike", "tag-BodyTerms"]
    sources.append("link-ExtractedPhrase")
    folder = data_folder / "weak" / "ncbi-disease"
    train, dev = (read(folder / f"{part}.jsonl.gz").select_sources(sources) for part in ("train", "dev"))
    scores = {}
    for model in (SwellShark(), SpanVote()):
        scores[model.name] = evaluate(dev, model.fit(train.with_entities(None)).predict(dev)).f1
    assert scores["swellshark"] > 0.835
    assert scores["swellshark"] >= scores["span-vote"]
