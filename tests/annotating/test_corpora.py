"""`annotate` on corpora in memory, in one process."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagweave
from tagweave.annotating.corpora import annotate, parts_of
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, SourceTimeout, TagweaveWarning, UsageError
from tagweave.soft_labels import SoftLabels
from tagweave.sources import Renamed, Source, labeling_function
from tagweave.sources.base import Votes


@labeling_function("LOC")
def cities(document: Document) -> Iterator[tuple[int, int]]:
    for i, token in enumerate(document.tokens):
        if token == "Oslo":
            yield i, i + 1


@labeling_function("PER")
def brittle(document: Document) -> list[tuple[int, int]]:
    place = list(document.tokens).index("Ada")
    return [(place, place + 1)]


@labeling_function("ODD")
def last(document: Document) -> list[tuple[int, int]] | None:
    return [(len(document.tokens) - 1, len(document.tokens))] if document.tokens else None


@dataclass
class Capitals(Source):
    """Neighbours in capitals belong together."""

    linking = True
    types = ()

    def find(self, document: Document) -> Votes:
        return [(0, 2)] if len(document.tokens) > 1 else []


def small() -> Corpus:
    return Corpus.from_documents(
        [
            Document("d0", ["Ada", "saw", "Oslo"], sources={"old": [Span(0, 1, "PER")], "vague": [Span(0, 1, "ENT")]}),
            Document("d1", ["Oslo", "sleeps"], sources={"old": []}),
        ],
        ["PER", "MISC", "LOC"],
        {"ENT": ("PER", "LOC")},
    )


def test_types_of_the_corpus_and_earlier_votes_stay() -> None:
    found = annotate(small(), [last, cities])
    assert found.types == ("PER", "MISC", "LOC", "ODD")
    assert dict(found.coarse) == {"ENT": ("PER", "LOC")}
    assert list(found.sources) == ["old", "vague", "last", "cities"]
    assert found[0].sources["vague"] == [Span(0, 1, "ENT")]
    assert found[1].sources == {
        "old": [],
        "vague": None,
        "last": [Span(1, 2, "ODD")],
        "cities": [Span(0, 1, "LOC")],
    }


def test_votes_of_one_name_are_replaced_and_that_is_said_once() -> None:
    renamed = labeling_function("LOC", name="old")(cities.function)
    with pytest.warns(TagweaveWarning, match="votes of 'old' already; they are replaced") as said:
        found = annotate(small(), [renamed])
    assert len(said) == 1
    assert found[0].sources["old"] == [Span(2, 3, "LOC")]


def test_hidden_sources_serve_only_later_ones() -> None:
    hidden = labeling_function("LOC", name="hidden", hidden=True)(cities.function)
    found = annotate(small(), [hidden, Renamed("towns", of="hidden", labels=("TOWN",), rename={"LOC": "TOWN"})])
    assert "hidden" not in found.sources
    assert "LOC" in found.types
    assert found[0].sources["towns"] == [Span(2, 3, "TOWN")]


def test_links_are_columns_of_their_own() -> None:
    found = annotate(small(), [Capitals("capitals"), cities])
    assert list(found.links) == ["capitals"]
    assert found[0].links["capitals"] == [Span(0, 2, "same")]
    assert "capitals" not in found.sources


def test_soft_labels_of_other_annotators_stay() -> None:
    corpus = small()
    soft = SoftLabels(corpus.types, corpus.offsets, np.full((5, 7), 1 / 7, np.float32))
    found = annotate(corpus.with_source("model", soft), [last])
    column = found.sources["model"]
    assert isinstance(column, SoftLabels)
    assert "B-ODD" in column.labels.names


def test_a_failure_names_source_document_and_error() -> None:
    with pytest.raises(SourceError, match=r"source 'brittle', document 'd1': ValueError: 'Ada' is not in list"):
        annotate(small(), [cities, brittle])


def test_a_failure_that_is_tolerated_is_counted_and_said() -> None:
    with pytest.warns(TagweaveWarning, match="source 'brittle' failed 1 times.* First: .*'d1'"):
        found = annotate(small(), [brittle, cities], tolerant=True)
    assert found[0].sources["brittle"] == [Span(0, 1, "PER")]
    assert found[1].sources["brittle"] is None
    assert found[1].sources["cities"] == [Span(0, 1, "LOC")]


def test_time_is_bounded() -> None:
    @labeling_function("X")
    def endless(document: Document) -> Votes:
        while document.id == "d1":
            pass
        return []

    with pytest.raises(SourceTimeout, match=r"source 'endless', document 'd1': it took longer than 0\.1 seconds"):
        annotate(small(), [endless], time_limit=0.1)


@pytest.mark.parametrize(
    ("sources", "settings", "message"),
    [
        ([], {}, "no sources"),
        ([cities, cities], {}, "two sources are called 'cities'"),
        ([cities], {"processes": 0}, "processes must be at least 1"),
        ([cities], {"time_limit": -1.0}, "time limit"),
        ([cities], {"time_limit": float("nan")}, "time limit"),
        ([Renamed("r", of="none", labels=("A",), rename={})], {}, "builds on 'none'"),
    ],
)
def test_what_cannot_be_is_refused(sources: list[Source], settings: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        annotate(small(), sources, **settings)  # type: ignore[arg-type]


def test_no_documents() -> None:
    found = annotate(Corpus.from_documents([]), [cities], processes=2)
    assert len(found) == 0
    assert list(found.sources) == ["cities"]


def test_it_is_public() -> None:
    assert tagweave.annotate is annotate


@given(st.lists(st.sampled_from([None, "a", "b"]), max_size=12), st.integers(1, 4))
def test_parts_are_all_documents_in_order_and_cut_no_group(names: list[str | None], documents: int) -> None:
    corpus = Corpus.from_documents(Document(str(i), ["x"], group=name) for i, name in enumerate(names))
    parts = list(parts_of(corpus, documents))
    assert [name for part in parts for name in part.id_list] == corpus.id_list
    assert all(len(part) >= documents for part in parts[:-1])
    for before, after in zip(parts, parts[1:], strict=False):
        group = before[len(before) - 1].group
        assert group is None or group != after[0].group
