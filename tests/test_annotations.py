from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Annotations, Span
from tagweave.labels import LabelSet

NAMES = ("O", "X", "Y")
SPAN = st.tuples(st.integers(0, 5), st.integers(1, 4), st.sampled_from(NAMES), st.sampled_from([None, 0.25, 1.0])).map(
    lambda parts: Span(parts[0], parts[0] + parts[1], parts[2], parts[3])
)
LISTS = st.lists(st.none() | st.lists(SPAN, max_size=6), max_size=5)


def lists(column: Annotations) -> list[list[Span] | None]:
    return [column.document(index, NAMES) for index in range(len(column.ran))]


@given(LISTS)
def test_lists_come_back(documents: list[list[Span] | None]) -> None:
    column = Annotations.from_lists(documents, NAMES)
    assert lists(column) == documents
    assert len(column) == sum(len(spans or ()) for spans in documents)
    assert (column.scores is None) == all(span.score is None for spans in documents for span in spans or ())


@given(LISTS, st.data())
def test_subset(documents: list[list[Span] | None], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(documents) - 1), max_size=7)) if documents else []
    column = Annotations.from_lists(documents, NAMES).subset(np.array(chosen, np.int64))
    assert lists(column) == [documents[index] for index in chosen]


@given(LISTS, LISTS)
def test_concatenate(first: list[list[Span] | None], second: list[list[Span] | None]) -> None:
    parts = [Annotations.from_lists(documents, NAMES) for documents in (first, second)]
    assert lists(Annotations.concatenate(parts)) == first + second


@given(LISTS)
def test_where(documents: list[list[Span] | None]) -> None:
    column = Annotations.from_lists(documents, NAMES)
    kept = column.where(column.ends - column.starts > 2)
    assert lists(kept) == [
        None if spans is None else [span for span in spans if span.end - span.start > 2] for spans in documents
    ]
    assert kept.documents.tolist() == [
        index for index, spans in enumerate(documents) for span in spans or () if span.end - span.start > 2
    ]


@given(LISTS, st.randoms())
def test_overlaps_longest_then_leftmost_then_first_type(documents: list[list[Span] | None], random: Random) -> None:
    expected: list[set[tuple[int, int, str]] | None] = []
    for spans in documents:
        taken: set[int] = set()
        kept = set()
        for span in sorted(spans or (), key=lambda s: (s.start - s.end, s.start, NAMES.index(s.type))):
            if taken.isdisjoint(range(span.start, span.end)):
                taken.update(range(span.start, span.end))
                kept.add(span[:3])
        expected.append(None if spans is None else kept)
    shuffled = [None if spans is None else random.sample(spans, len(spans)) for spans in documents]
    for order in (documents, shuffled):
        settled = lists(Annotations.from_lists(order, NAMES).without_overlaps())
        assert [None if spans is None else {span[:3] for span in spans} for spans in settled] == expected
        assert all(len(spans or ()) == len({span[:3] for span in spans or ()}) for spans in settled)


def test_renumbered_types() -> None:
    column = Annotations.from_lists([[Span(0, 1, "X"), Span(1, 2, "O")]], NAMES).with_types(
        np.array([0, 2, 1], np.int16)
    )
    assert lists(column) == [[Span(0, 1, "Y"), Span(1, 2, "O")]]


def test_spans_of_labels() -> None:
    labels = LabelSet(("X", "Y"))
    column = Annotations.from_labels(np.array([0, 1, 2, 4]), np.array([0, 2, 4]), labels)
    assert lists(column) == [[Span(1, 2, "X")], [Span(0, 1, "X"), Span(1, 2, "Y")]]
    assert column.ran.all()


def test_an_unknown_type_is_no_silent_zero() -> None:
    with pytest.raises(KeyError):
        Annotations.from_lists([[Span(0, 1, "Z")]], NAMES)
