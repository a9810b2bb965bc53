"""Corpora joined by document id, averages, the bootstrap, coverage, and speed."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagweave
from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, TagweaveWarning
from tagweave.evaluation import evaluate
from tagweave.evaluation.scores import Score
from tagweave.soft_labels import SoftLabels

LENGTH = 6
Entities = Sequence[tuple[int, int, str]] | None


def corpus(entities: Mapping[str, Entities], groups: Mapping[str, str] | None = None, length: int = LENGTH) -> Corpus:
    """A corpus of documents of equal length with the given entities."""
    return Corpus.from_documents(
        Document(
            name,
            [f"w{index}" for index in range(length)],
            group=None if groups is None else groups.get(name),
            entities=None if spans is None else [Span(*span) for span in spans],
        )
        for name, spans in entities.items()
    )


GOLD = {"a": [(0, 2, "PER"), (3, 4, "LOC")], "b": [(1, 2, "LOC")], "c": []}
PREDICTED = {"a": [(0, 2, "PER"), (3, 5, "LOC")], "b": [], "c": [(0, 1, "PER")]}


def test_counts_by_type_and_averages() -> None:
    scores = evaluate(corpus(GOLD), corpus(PREDICTED))
    assert scores.by_type == {"LOC": Score.from_counts(0, 1, 2), "PER": Score.from_counts(1, 2, 1)}
    assert scores.micro == Score.from_counts(1, 3, 3)
    assert (scores.precision, scores.recall, scores.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert scores.macro.f1 == pytest.approx(np.mean([0, 2 / 3]))
    assert scores.weighted.f1 == pytest.approx(2 / 9)
    assert (scores.documents, scores.tokens, scores.left_out, scores.not_in_gold) == (3, 18, 0, 0)


def test_macro_is_over_the_types_of_the_gold() -> None:
    scores = evaluate(corpus({"a": [(0, 1, "LOC")]}), corpus({"a": [(0, 1, "LOC"), (2, 3, "PER")]}))
    assert scores.macro.f1 == 1.0
    assert scores.by_type["PER"].undefined == ("recall",)


def test_the_order_of_documents_and_spans_does_not_matter() -> None:
    forward = evaluate(corpus(GOLD), corpus(PREDICTED))
    turned = {name: list(reversed(spans)) for name, spans in reversed(PREDICTED.items())}
    assert evaluate(corpus(GOLD), corpus(turned)) == forward
    turned_gold = {name: list(reversed(spans)) for name, spans in reversed(GOLD.items())}
    assert evaluate(corpus(turned_gold), corpus(PREDICTED)) == forward


def test_doubles_count_once() -> None:
    doubled = {"a": [(0, 2, "PER")] * 3}
    assert evaluate(corpus(doubled), corpus(doubled)).micro == Score.from_counts(1, 1, 1)


def test_votes_for_o_are_no_entities() -> None:
    scores = evaluate(corpus({"a": [(0, 1, "PER")]}), corpus({"a": [(0, 1, "PER"), (2, 4, "O")]}))
    assert scores.f1 == 1.0


def test_equal_positions_in_other_documents_do_not_count() -> None:
    assert evaluate(corpus({"a": [(0, 1, "X")], "b": []}), corpus({"a": [], "b": [(0, 1, "X")]})).f1 == 0.0


def test_a_missing_document_is_named() -> None:
    with pytest.raises(AlignmentError, match=r"no prediction for document 'b'; gold has 3"):
        evaluate(corpus(GOLD), corpus({"a": [], "c": []}))
    many = {f"d{index}": [] for index in range(9)}
    with pytest.raises(AlignmentError, match=r"'d0', 'd1', 'd2' and 6 more"):
        evaluate(corpus(many), corpus({}))


def test_other_lengths_are_named() -> None:
    with pytest.raises(AlignmentError, match=r"'a' has 6 tokens in the gold, but 5 in the prediction .*token 5"):
        evaluate(corpus({"a": []}), corpus({"a": []}, length=5))


def test_further_documents_are_left_out_with_a_warning() -> None:
    with pytest.warns(TagweaveWarning, match="2 predicted documents are not in the gold .* first is 'x'"):
        scores = evaluate(corpus(GOLD), corpus({"x": [(0, 1, "PER")], **PREDICTED, "y": []}))
    assert scores.micro == evaluate(corpus(GOLD), corpus(PREDICTED)).micro
    assert scores.not_in_gold == 2
    assert "left out: 2 predicted documents" in scores.text()


def test_gold_without_annotation_is_left_out_and_counted() -> None:
    scores = evaluate(corpus({**GOLD, "d": None}), corpus({**PREDICTED, "d": [(0, 1, "PER")]}))
    assert scores.micro == evaluate(corpus(GOLD), corpus(PREDICTED)).micro
    assert scores.left_out == 1
    assert "|left-out:1|" in scores.signature
    assert "left out: 1 gold documents" in scores.text()
    assert evaluate(corpus({**GOLD, "d": None}), corpus(PREDICTED)).documents == 3


def test_no_prediction_for_a_document_costs_recall_and_shows_in_the_coverage() -> None:
    scores = evaluate(corpus(GOLD), corpus({**PREDICTED, "b": None}))
    assert scores.micro == evaluate(corpus(GOLD), corpus(PREDICTED)).micro
    assert scores.coverage.answered == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("gold", "predicted"),
    [
        ({}, {}),
        ({"a": []}, {"a": []}),
        ({"a": []}, {"a": [(0, 1, "X")]}),
        ({"a": [(0, 1, "X")]}, {"a": []}),
        ({"a": [(0, 1, "X")]}, {"a": None}),
        ({"a": None}, {"a": [(0, 1, "X")]}),
        ({"a": None}, {"a": None}),
    ],
)
def test_nothing_to_score_is_no_error(gold: Mapping[str, Entities], predicted: Mapping[str, Entities]) -> None:
    scores = evaluate(corpus(gold), corpus(predicted))
    assert scores.f1 == 0.0
    assert scores.micro.undefined or scores.micro.support
    assert scores.text()
    parsed = json.loads(json.dumps(scores.to_json(), allow_nan=False))
    assert parsed["micro"]["undefined"] == list(scores.micro.undefined)


def test_documents_without_tokens() -> None:
    assert evaluate(corpus({"a": []}, length=0), corpus({"a": []}, length=0)).coverage.tokens == 0.0
    empty, full = Document("e", [], entities=[]), Document("f", ["x"], entities=[Span(0, 1, "X")])
    both = Corpus.from_documents([empty, full, Document("g", [], entities=[])])
    assert evaluate(both, both).coverage.documents == pytest.approx(1 / 3)


def test_soft_labels_stand_in_for_missing_entities() -> None:
    gold = corpus({"a": [(0, 2, "PER")]})
    soft = SoftLabels.from_labels(np.array([1, 2, 0, 0, 0, 0]), gold.offsets, ("PER",))
    assert evaluate(gold, gold.with_entities(None, soft)).f1 == 1.0
    assert evaluate(gold.with_entities(None, soft), gold).left_out == 1


def test_the_interval_is_repeatable_and_holds_the_score() -> None:
    generator = np.random.default_rng(7)
    gold = {f"d{index}": [(0, 1, "X"), (2, 3, "X")] for index in range(60)}
    predicted = {name: [(0, 1, "X"), (2, 3 + int(generator.integers(2)), "X")] for name in gold}
    scores = [evaluate(corpus(gold), corpus(predicted), seed=seed).interval for seed in (0, 0, 1)]
    first, again, other = scores
    assert first is not None
    assert first == again
    assert first != other
    assert first.low < evaluate(corpus(gold), corpus(predicted)).f1 < first.high
    assert (first.level, first.resamples, first.unit, first.units) == (0.95, 1000, "documents", 60)


def test_the_interval_agrees_with_drawing_documents_one_by_one() -> None:
    generator = np.random.default_rng(3)
    right = generator.integers(0, 4, size=40)
    gold = {f"d{index}": [(place, place + 1, "X") for place in range(3)] for index in range(40)}
    predicted = {
        name: [(place, place + 1 + (place >= right[index]), "X") for place in range(3)]
        for index, name in enumerate(gold)
    }
    interval = evaluate(corpus(gold), corpus(predicted), bootstrap=20_000).interval
    assert interval is not None
    drawn = right[generator.integers(0, 40, size=(20_000, 40))]
    f1 = np.minimum(drawn, 3).sum(axis=1) / 120
    assert [interval.low, interval.high] == pytest.approx(np.quantile(f1, [0.025, 0.975]).tolist(), abs=0.01)


def test_groups_are_drawn_as_a_whole() -> None:
    groups = {name: "same" for name in GOLD}
    interval = evaluate(corpus(GOLD, groups), corpus(PREDICTED)).interval
    assert interval is not None
    assert (interval.unit, interval.units) == ("groups", 1)
    assert interval.low == interval.high == pytest.approx(1 / 3)
    assert "|groups:1|" in evaluate(corpus(GOLD, groups), corpus(PREDICTED)).signature


def test_no_interval_when_none_is_asked_for() -> None:
    scores = evaluate(corpus(GOLD), corpus(PREDICTED), bootstrap=0)
    assert scores.interval is None
    assert scores.to_json()["interval"] is None
    assert "|boot:0|" in scores.signature


def test_coverage_of_entities_and_votes() -> None:
    predicted = corpus(PREDICTED)
    votes = Annotations.from_lists([[Span(0, 3, "O")], None, []], predicted.vocabulary)
    assert evaluate(corpus(GOLD), predicted).coverage.voted_tokens is None
    coverage = evaluate(corpus(GOLD), predicted.with_source("rules", votes)).coverage
    assert coverage.documents == pytest.approx(2 / 3)
    assert coverage.tokens == pytest.approx(5 / 18)
    assert coverage.voted_documents == pytest.approx(1 / 3)
    assert coverage.voted_tokens == pytest.approx(3 / 18)
    soft = SoftLabels.from_labels(np.zeros(18, np.int64), predicted.offsets, predicted.types)
    assert evaluate(corpus(GOLD), predicted.with_source("tagger", soft)).coverage.voted_tokens == 1.0


def test_signature_text_and_json_say_how_it_was_computed() -> None:
    scores = evaluate(corpus(GOLD), corpus(PREDICTED), reading="tags:lenient", seed=5)
    expected = f"strict|tags:lenient|micro|docs:3|types:2|boot:1000,seed:5|v{tagweave.__version__}"
    assert scores.signature == expected
    assert expected in scores.text()
    assert scores.to_json()["reading"] == "tags:lenient"
    assert scores.to_json()["matching"] == "strict"
    assert str(scores).startswith("f1 33.3 (")
    assert [table.columns[0] for table in scores.tables()] == ["type", "scheme"]


def test_a_million_tokens() -> None:
    sizes = np.full(50_000, 20)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    documents = [Document(f"d{index}", ["w"] * 20, entities=[Span(0, 1, "A"), Span(1, 2, "B")]) for index in range(50)]
    small = Corpus.from_documents(documents)
    whole = small.subset(np.arange(50_000) % 50)
    ids = tagweave.Corpus.from_documents(Document(f"d{index}", []) for index in range(50_000)).ids
    entities = Annotations(
        ran=np.ones(50_000, bool),
        offsets=np.arange(50_001) * 2,
        starts=np.tile(np.array([0, 5], np.int32), 50_000),
        ends=np.tile(np.array([2, 8], np.int32), 50_000),
        type_ids=np.tile(np.array([1, 2], np.int16), 50_000),
    )
    gold = Corpus(ids, offsets, whole.tokens, small.types, entities=entities)
    shifted = np.where(np.arange(100_000) % 4 == 0, entities.ends + 1, entities.ends).astype(np.int32)
    predicted = gold.with_entities(
        Annotations(entities.ran, entities.offsets, entities.starts, shifted, entities.type_ids)
    )
    scores = evaluate(gold, predicted)
    assert scores.tokens == 1_000_000
    assert scores.f1 == pytest.approx(0.75)
    assert scores.relaxed["partial"].partial == 25_000
    assert scores.interval is not None


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from("AB")), max_size=5), max_size=4)
)
def test_a_corpus_against_itself_is_perfect(rows: list[list[tuple[int, int, str]]]) -> None:
    entities = {f"d{i}": [(a, b, t) for a, b, t in row if a < b] for i, row in enumerate(rows)}
    scores = evaluate(corpus(entities), corpus(entities), bootstrap=10)
    assert scores.f1 == (1.0 if scores.micro.support else 0.0)
    assert scores.micro.support == sum(len(set(row)) for row in entities.values())
    assert all(matching.f1 == scores.f1 for matching in scores.relaxed.values())
