"""What every label model must do, whatever it learns."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_encoder
from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, NotFittedError, TagweaveError, UsageError
from tagweave.label_models import LABEL_MODELS, LabelModel, create_label_model
from tagweave.label_models.confusion import WEIGHT
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels

WORDS = "the old Ada Lovelace met Bo in rainy Oslo near Lake Como today".split()
TYPES = ("LOC", "PER")

QUICK: dict[str, dict[str, Any]] = {"chmm": {"epochs": 2, "layers": (1, 2)}, "chmm-iid": {"epochs": 2, "layers": (2,)}}
"""Settings that keep a slow model quick in these tests; the encoder is added by `tiny`."""

WITHOUT_TYPES = ("weighted-vote",)
"""Models that learn the same about all entity types."""


AGREEING = {"matrix-completion"}
"""Models that learn from agreement among three sources or more, and refuse fewer."""


@pytest.fixture(scope="module", autouse=True)
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A tiny encoder, and a cache of embeddings for this module only."""
    encoder = tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGWEAVE_CACHE", str(tmp_path_factory.mktemp("cache")))
        for settings in QUICK.values():
            patch.setitem(settings, "encoder", encoder)
        yield


pytestmark = pytest.mark.parametrize("name", sorted(LABEL_MODELS))


def make(name: str, **settings: object) -> LabelModel:
    return create_label_model(name, {**QUICK.get(name, {}), **settings})


def documents(count: int = 40, seed: int = 0) -> list[Document]:
    """Sentences with gold names, and sources that see most of them, mix up types and cut spans short."""
    chance = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words = [*WORDS[: int(chance.integers(1, len(WORDS) + 1))]]
        found = [Span(2, 4, "PER"), Span(5, 6, "PER"), Span(8, 9, "LOC"), Span(10, 12, "LOC")]
        gold = [span for span in found if span.end <= len(words)]
        sources: dict[str, list[Span] | None] = {}
        for source, recall, error in (("good", 0.9, 0.02), ("fair", 0.7, 0.2), ("poor", 0.5, 0.4)):
            said = [span for span in gold if chance.random() < recall]
            swapped = [
                s._replace(type="LOC" if s.type == "PER" else "PER") if chance.random() < error else s for s in said
            ]
            sources[source] = [s._replace(end=s.start + 1) if chance.random() < error else s for s in swapped]
        if number % 7 == 3:
            sources["poor"] = None
        if number % 11 == 5:
            sources = dict.fromkeys(sources, [])
        made.append(Document(f"d{number}", words, entities=gold, sources=sources))
    return made


def corpus(count: int = 40, seed: int = 0) -> Corpus:
    return Corpus.from_documents(documents(count, seed), TYPES)


def probabilities(model: LabelModel, target: Corpus) -> np.ndarray[Any, Any]:
    soft = model.predict_proba(target)
    order = [soft.labels.names.index(label) for label in ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")]
    return soft.probabilities[:, order]


def entities(model: LabelModel, target: Corpus) -> list[list[tuple[int, int, str]]]:
    return [[span[:3] for span in document.entities or ()] for document in model.predict(target)]


@pytest.mark.parametrize("state_space", ["io", "bio"])
@pytest.mark.parametrize("silence", ["never", "token", "sentence", "document", "document-strict", "always"])
def test_every_token_gets_a_distribution(name: str, state_space: str, silence: str) -> None:
    train = corpus()
    soft = make(name, state_space=state_space, silence=silence).fit(train).predict_proba(train)
    soft.check(train.id_list)
    np.testing.assert_allclose(soft.probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(soft.offsets, train.offsets)
    assert soft.probabilities[train.offsets[:-1], 2::2].max() < 1e-6, "a document cannot start inside an entity"


def f1(predicted: list[list[tuple[int, int, str]]]) -> float:
    gold = [[span[:3] for span in document.entities or ()] for document in documents()]
    correct = sum(len(set(a) & set(b)) for a, b in zip(predicted, gold, strict=True))
    return 2 * correct / (sum(map(len, predicted)) + sum(map(len, gold)))


def test_labels_are_much_better_than_the_poor_source(name: str) -> None:
    train = corpus()
    poor = f1([[s[:3] for s in d.sources["poor"] or ()] for d in train])
    assert f1(entities(make(name).fit(train), train)) > poor + 0.2


def test_order_of_sources_changes_nothing(name: str) -> None:
    train = corpus()
    turned = train.select_sources(list(train.sources)[::-1])
    np.testing.assert_allclose(
        probabilities(make(name).fit(train), train), probabilities(make(name).fit(turned), turned), atol=2e-3
    )


def test_order_of_types_changes_nothing(name: str) -> None:
    train, turned = corpus(), Corpus.from_documents(documents(), TYPES[::-1])
    a, b = make(name).fit(train), make(name).fit(turned)
    np.testing.assert_allclose(probabilities(a, train), probabilities(b, turned), atol=2e-3)
    assert entities(a, train) == entities(b, turned)


def test_order_of_documents_changes_nothing(name: str) -> None:
    train = corpus()
    turned = train.subset(np.arange(len(train))[::-1])
    a, b = make(name).fit(train).predict(train), make(name).fit(turned).predict(turned)
    assert {d.id: [s[:3] for s in d.entities or ()] for d in a} == {d.id: [s[:3] for s in d.entities or ()] for d in b}


def test_a_subset_gets_what_it_gets_in_the_whole(name: str) -> None:
    train = corpus()
    model = make(name).fit(train)
    chosen = np.array([5, 0, 17])
    whole, part = model.predict(train).subset(chosen), model.predict(train.subset(chosen))
    assert whole.soft_labels is not None
    assert part.soft_labels is not None
    np.testing.assert_allclose(whole.soft_labels.probabilities, part.soft_labels.probabilities, atol=1e-6)
    assert [d.entities for d in whole] == [
        [s._replace(score=pytest.approx(s.score, abs=1e-5)) for s in d.entities or ()] for d in part
    ]


def test_the_input_is_not_changed(name: str) -> None:
    train = corpus()
    before = list(train)
    make(name).fit(train, corpus(10, seed=5)).predict(train)
    assert list(train) == before


def test_gold_of_the_corpus_does_not_matter(name: str) -> None:
    train = corpus()
    blind, seeing = make(name).fit(train.with_entities(None)), make(name).fit(train)
    np.testing.assert_array_equal(probabilities(blind, train), probabilities(seeing, train))


def test_the_same_seed_gives_the_same_result(name: str) -> None:
    train = corpus()
    first, second = (make(name, seed=3).fit(train) for _ in range(2))
    np.testing.assert_array_equal(probabilities(first, train), probabilities(second, train))
    for key, value in first.parameters().items():
        np.testing.assert_array_equal(value, second.parameters()[key])


def test_documents_where_nobody_speaks_are_answered_with_outside(name: str) -> None:
    train = corpus()
    silent = Corpus.from_documents(
        [
            Document("quiet", ["a", "b"], entities=[], sources={"good": [], "fair": [], "poor": []}),
            Document("idle", ["c"], entities=[], sources={"good": None, "fair": None, "poor": None}),
            Document("empty", [], entities=[], sources={"good": [], "fair": [], "poor": None}),
        ],
        TYPES,
    )
    answered = make(name).fit(train).predict(silent)
    assert [document.id for document in answered] == ["quiet", "idle", "empty"]
    assert [document.entities for document in answered] == [[], [], []]


def test_votes_never_seen_in_the_fit_are_answered(name: str) -> None:
    train = corpus()
    strange = [Span(0, 1, "PER"), Span(1, 2, "LOC"), Span(2, 3, "PER")]
    votes = {"good": strange, "fair": [Span(0, 3, "LOC")], "poor": [Span(0, 3, "O")]}
    new = Corpus.from_documents([Document("x", ["a", "b", "c"], entities=strange, sources=votes)], TYPES)
    assert np.isfinite(make(name).fit(train).predict_proba(new).probabilities).all()


def with_tagger(train: Corpus, right: float, changed: float = 0.0) -> Corpus:
    """With one more source, a tagger that gives the gold label, or sometimes the next one, this probability."""
    assert train.entities is not None
    size = 1 + 2 * len(TYPES)
    chance = np.random.default_rng(0)
    said = train.entities.labels(train.offsets, LabelSet(train.types))
    said = np.where(chance.random(len(said)) < changed, (said + 1) % size, said)
    sure = np.full((len(said), size), (1 - right) / (size - 1), np.float32)
    sure[np.arange(len(said)), said] = right
    return train.with_source("tagger", SoftLabels(train.types, train.offsets, sure))


def test_soft_sources_are_taken(name: str, tmp_path: Path) -> None:
    helped = with_tagger(corpus(), 0.92)
    model = make(name).fit(helped)
    assert model.sources_ == ("good", "fair", "poor", "tagger")
    model.predict_proba(helped).check(helped.id_list)
    model.save(tmp_path / "model")
    loaded = LabelModel.load(tmp_path / "model")
    np.testing.assert_array_equal(probabilities(loaded, helped), probabilities(model, helped))


def test_a_tagger_is_followed_more_the_more_it_is_trusted(name: str) -> None:
    taught = with_tagger(corpus(), 0.96)
    certain = []
    for trust in (0.1, 1.0):
        model = make(name, trust=trust).fit(taught)
        certain.append(f1(entities(model, taught)))
    assert certain[0] <= certain[1]
    assert certain[1] > 0.8


def test_what_inference_applies_is_chosen_on_dev(name: str, tmp_path: Path) -> None:
    for right, changed in ((0.96, 0.0), (0.99, 0.9)):
        taught = with_tagger(corpus(), right, changed)
        model = make(name, silence="token").fit(taught, taught)
        best = f1(entities(model, taught))
        chosen = dict(model.chosen_)
        assert set(chosen) == set(model.applied)
        for setting, values in (("trust", (0.25, 0.5, 0.75, 1.0)), ("weight", WEIGHT)):
            for value in values if setting in chosen else ():
                model.chosen_ = {**chosen, setting: value}
                assert f1(entities(model, taught)) <= best
        model.chosen_ = chosen
        model.save(tmp_path / "model")
        loaded = LabelModel.load(tmp_path / "model")
        assert loaded.chosen_ == chosen
        assert entities(loaded, taught) == entities(model, taught)


def babbling(count: int, babble: float) -> Corpus:
    """With a source that marks a third of all words; the others see nearly everything, so their silence tells a lot."""
    chance = np.random.default_rng(1)
    made = []
    for document in documents(count):
        gold = list(document.entities or ())
        sources: dict[str, list[Span] | None] = {
            source: [span for span in gold if chance.random() < 0.95] for source in ("good", "fair")
        }
        free = [Span(i, i + 1, "LOC") for i in range(len(document.tokens)) if chance.random() < babble]
        sources["poor"] = [s for s in free if not any(g.start <= s.start < g.end for g in gold)]
        made.append(replace(document, sources=sources))
    return Corpus.from_documents(made, TYPES)


def test_silence_is_chosen_on_dev_if_its_worth_is_learned(name: str, tmp_path: Path) -> None:
    chosen = set()
    for train in (corpus(), babbling(40, 0.3)):
        scores = {s: f1(entities(make(name, silence=s).fit(train), train)) for s in ("token", "never")}
        model = make(name).fit(train, train)
        chosen.add(model.silence_)
        if name not in QUICK:  # those look at dev for more
            best = max(scores.values()) if model.weighs_silence else scores["token"]
            assert f1(entities(model, train)) >= best
        model.save(tmp_path / "model")
        loaded = LabelModel.load(tmp_path / "model")
        assert loaded.silence_ == model.silence_
        assert entities(loaded, train) == entities(model, train)
        without_dev = make(name).fit(train)
        assert without_dev.silence_ == without_dev.default_silence
        assert make(name, silence="sentence").fit(train, train).silence_ == "sentence"
    if name == "hmm" or not make(name).weighs_silence:
        assert chosen == ({"token", "never"} if name == "hmm" else {"token"})


@pytest.mark.parametrize("trust", [-0.1, 1.5])
def test_trust_must_be_a_share(name: str, trust: float) -> None:
    with pytest.raises(UsageError, match="trust is .*from 0 to 1"):
        make(name, trust=trust).fit(corpus())


def test_scored_spans_are_taken(name: str) -> None:
    train = corpus()
    scored = train.sources["good"]
    assert isinstance(scored, Annotations)
    scored = replace(scored, scores=np.full(len(scored), 0.8, np.float32))
    helped = train.with_source("good", scored)
    make(name).fit(helped).predict_proba(helped).check(helped.id_list)


def test_coarse_types_never_come_out(name: str) -> None:
    coarse = {"ENT": ("PER", "LOC")}
    made = [
        replace(d, sources={**d.sources, "names": [s._replace(type="ENT") for s in d.entities or ()]})
        for d in documents()
    ]
    train = Corpus.from_documents(made, TYPES, coarse)
    found = {span.type for document in make(name).fit(train).predict(train) for span in document.entities or ()}
    assert found == {"PER", "LOC"}


def test_a_single_source_of_certain_votes_is_followed(name: str) -> None:
    train = corpus().select_sources(["good"])
    if name in AGREEING:
        with pytest.raises(DataError, match="at least 3 sources, but 1"):
            make(name).fit(train)
        return
    predicted = entities(make(name).fit(train), train)
    said = [[s[:3] for s in d.sources["good"] or ()] for d in train]
    agree = sum(len(set(a) & set(b)) for a, b in zip(predicted, said, strict=True))
    assert agree > 0.9 * sum(map(len, said))


def test_documents_of_one_token(name: str) -> None:
    oslo = [Span(0, 1, "LOC")]
    sources = dict.fromkeys("abc" if name in AGREEING else "a", oslo)
    made = [Document(f"d{i}", ["Oslo"], entities=oslo, sources=sources) for i in range(5)]
    train = Corpus.from_documents(made, ["LOC"])
    assert entities(make(name).fit(train), train) == [[(0, 1, "LOC")]] * 5


def test_saved_and_loaded_it_answers_the_same(name: str, tmp_path: Path) -> None:
    train = corpus()
    model = make(name, state_space="bio", silence="document").fit(train)
    model.save(tmp_path / "model")
    loaded = LabelModel.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.settings() == model.settings()
    assert loaded.history_ == model.history_
    np.testing.assert_array_equal(probabilities(loaded, train), probabilities(model, train))


def test_learned_values_are_shown_by_name(name: str) -> None:
    train = corpus()
    tables = make(name).fit(train).tables()
    if tables:
        shown = "\n".join(table.text() for table in tables)
        assert all(source in shown for source in train.sources)
        assert name in WITHOUT_TYPES or all(type_ in shown for type_ in TYPES)


def test_other_sources_are_left_aside_and_missing_ones_are_an_error(name: str) -> None:
    train = corpus()
    train = train.with_source("twin", train.sources["good"])
    model = make(name).fit(train.select_sources(["good", "fair", "twin"]))
    assert model.predict_proba(train).probabilities.shape == (int(train.offsets[-1]), 5)
    with pytest.raises(UsageError, match="no source is called 'fair'"):
        model.predict_proba(train.select_sources(["good", "twin"]))


def test_unknown_types_are_an_error(name: str) -> None:
    model = make(name).fit(corpus())
    votes = {"good": [Span(0, 1, "ORG")], "fair": [], "poor": []}
    with pytest.raises(DataError, match="ORG"):
        model.predict(Corpus.from_documents([Document("x", ["a"], entities=[], sources=votes)]))


def test_asked_before_it_is_fitted(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="has not been fitted"):
        make(name).predict(corpus())
    with pytest.raises(NotFittedError, match="has not been fitted"):
        make(name).save(tmp_path / "model")


def test_no_sources_is_an_error(name: str) -> None:
    with pytest.raises(TagweaveError, match="no source"):
        make(name).fit(corpus().select_sources([]))


def test_wrong_settings_are_errors(name: str) -> None:
    with pytest.raises(UsageError, match="Did you mean 'silence'"):
        make(name, silenc="token")
    with pytest.raises(UsageError, match="bioes"):
        make(name, state_space="bioes")
