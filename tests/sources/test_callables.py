"""Functions and models that answer with places of characters."""

import pickle
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words, tagged
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, UsageError
from tagweave.sources import CallableSource, PredictEntities
from tagweave.sources.base import checked


def source(*places: Any, labels: tuple[str, ...] = ("X",), alignment: Any = "strict") -> CallableSource:  # noqa: ANN401
    return CallableSource("s", lambda text: places, labels, alignment=alignment)


@given(
    words=st.lists(st.sampled_from(["a", "bc", "é", "😀", "👩\u200d👧", "-"]), min_size=1, max_size=8), data=st.data()
)
def test_what_is_voted_covers_what_was_meant(words: list[str], data: st.DataObject) -> None:
    document = from_words(" ".join(words))
    text = document.text or ""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = tagged(source((start, end)), document)
    assert found in ([], [(text[start:end].strip(), "X")])
    covered = tagged(source((start, end), alignment="expand"), document)
    assert all(text[start:end].strip() in surface for surface, _ in covered)


def test_cut_tokens_are_counted() -> None:
    voter = source((0, 3), (0, 6))
    assert tagged(voter, from_words("German-speaking")) == []
    assert voter.counters == {"cut tokens": 2}
    assert tagged(source((0, 6), alignment="expand"), from_words("German-speaking")) == [("German-speaking", "X")]


def test_types_and_scores() -> None:
    found = list(source((0, 1, "A", 0.25), (2, 3, "B"), labels=("A", "B")).find(from_words("a b")) or ())
    assert found == [Span(0, 1, "A", 0.25), Span(1, 2, "B", None)]


def test_none_abstains_and_generators_are_taken() -> None:
    assert CallableSource("s", lambda text: None, ("X",)).find(from_words("a")) is None
    assert CallableSource("s", lambda text: ((n, n + 1) for n in range(1)), ("X",)).find(from_words("a"))


def test_documents_of_tokens_only_have_no_text() -> None:
    assert source().find(Document("d", [])) == []


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 9), "does not lie within the 3 characters"),
        ((2, 2), "does not lie within"),
        ((-1, 2), "does not lie within"),
        ((0.0, 1), "does not lie within"),
        ("ab", "is not"),
        (7, "is not"),
        ((1,), "is not"),
    ],
)
def test_what_is_no_place(place: object, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        source(place).find(from_words("a b"))


def test_a_type_must_be_named_where_there_are_several_and_declared() -> None:
    with pytest.raises(SourceError, match="names no type"):
        source((0, 1), labels=("A", "B")).find(from_words("a b"))
    voter = source((0, 1, "C"))
    with pytest.raises(SourceError, match="declared type"):
        checked(voter, from_words("a"), voter.find(from_words("a")))


class Model:
    """Finds every label as if it were a word."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.asked: list[tuple[list[str], float]] = []

    def predict_entities(self, text: str, labels: list[str], threshold: float) -> Iterable[dict[str, Any]]:
        self.asked.append((labels, threshold))
        for label in labels:
            start = text.find(label)
            if start >= 0:
                yield {"start": start, "end": start + len(label), "text": label, "label": label, "score": 1.0000001}


def test_a_model_is_asked_for_the_labels() -> None:
    model = Model()
    voter = PredictEntities("g", model, {"town": "LOC", "man": "PER"}, threshold=0.25)
    assert voter.types == ("LOC", "PER")
    assert tagged(voter, from_text("A man in town.")) == [("town", "LOC"), ("man", "PER")]
    assert model.asked == [(["town", "man"], 0.25)]
    assert voter.find(Document("d", [], "")) == []
    assert PredictEntities("g", model, ["town"]).types == ("town",)


def test_a_model_is_made_once_in_each_process() -> None:
    Model.made = 0
    voter = PredictEntities("g", Model, ["town"])
    assert Model.made == 0
    for _ in range(2):
        assert tagged(voter, from_text("town")) == [("town", "town")]
    assert Model.made == 1
    copy = pickle.loads(pickle.dumps(voter))
    assert Model.made == 1
    copy.load()
    assert Model.made == 2


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"start": 0, "end": 3, "text": "man", "label": "x"}, "covers 'A m' in the text, not 'man'"),
        ({"start": 0, "end": 1, "label": "y"}, "not asked for"),
        ({"start": 0, "label": "x"}, "is not an entity"),
        ("man", "is not an entity"),
        ({"start": 0, "end": 99, "label": "x"}, "does not lie within"),
    ],
)
def test_what_a_model_must_not_answer(found: object, message: str) -> None:
    class Wrong:
        def predict_entities(self, text: str, labels: list[str], threshold: float) -> Any:  # noqa: ANN401
            return [found]

    with pytest.raises(SourceError, match=message):
        PredictEntities("g", Wrong(), ["x"]).find(from_text("A man"))


def test_what_is_no_model() -> None:
    with pytest.raises(UsageError, match="predict_entities"):
        PredictEntities("g", object(), ["x"]).load()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="predict_entities"):
        PredictEntities("g", dict, ["x"]).load()  # type: ignore[arg-type]
