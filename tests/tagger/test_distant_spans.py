"""What sources and soft labels give to learn, and the choice among overlapping spans against enumeration."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, LabelError, UsageError
from tagweave.soft_labels import SoftLabels
from tagweave.tagger.distant_spans import DistantSpans, spans_of_entities, spans_of_sources

TOKENS = ["a", "b", "c", "d", "e", "f"]


def shown(spans: DistantSpans) -> list[tuple[int, int, list[bool]]]:
    return list(zip(spans.starts.tolist(), spans.ends.tolist(), spans.allowed.tolist(), strict=True))


def voted(**sources: Sequence[Span] | None) -> Corpus:
    document = Document("d", TOKENS, sources=sources)
    return Corpus.from_documents([document], types=["A", "B"], coarse={"ANY": ["A", "B"]})


candidates = st.lists(
    st.tuples(st.integers(0, 7), st.integers(1, 4), st.booleans()).map(lambda s: (s[0], min(s[0] + s[1], 8), s[2])),
    max_size=7,
)


@given(candidates)
def test_the_chosen_set_is_the_best_of_all(rows: list[tuple[int, int, bool]]) -> None:
    offsets = np.array([0, 8])
    spans = DistantSpans(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([[row[2]] for row in rows], bool).reshape(-1, 1),
        np.ones(1, bool),
    )
    kept = spans.longest(offsets)
    core = {row[:2] for row in rows if row[2]}

    def value(chosen: Sequence[tuple[int, int]]) -> tuple[int, int]:
        lengths = {span: span[1] - span[0] for span in chosen}
        return sum(n * n for n in lengths.values()), sum(n for span, n in lengths.items() if span in core)

    places = sorted({row[:2] for row in rows})
    sets = itertools.chain.from_iterable(itertools.combinations(places, n) for n in range(len(places) + 1))
    best = max(value(s) for s in sets if all(a[1] <= b[0] for a, b in itertools.pairwise(s)))
    found = list(zip(kept.starts.tolist(), kept.ends.tolist(), strict=True))
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(found))
    assert value(found) == best
    assert kept.typed.tolist() == [span in core for span in found]


def test_longer_phrases_of_unknown_type_hide_shorter_typed_ones() -> None:
    corpus = voted(core=[Span(1, 2, "A"), Span(4, 6, "B")], full=[Span(0, 3, "A"), Span(4, 6, "A")])
    spans = spans_of_sources(corpus, full=["full"])
    assert shown(spans) == [(0, 3, [False, False]), (4, 6, [False, True])]


def test_several_types_are_all_allowed_and_votes_for_o_are_none() -> None:
    corpus = voted(one=[Span(0, 2, "A"), Span(5, 6, "O")], two=[Span(0, 2, "B"), Span(3, 4, "ANY")])
    assert shown(spans_of_sources(corpus)) == [(0, 2, [True, True]), (3, 4, [True, True])]
    assert shown(spans_of_sources(corpus, core=["one"])) == [(0, 2, [True, False])]


def test_a_document_on_which_no_typed_source_ran_is_unknown() -> None:
    documents = [
        Document("a", TOKENS, sources={"core": [], "full": []}),
        Document("b", TOKENS, sources={"full": [Span(0, 1, "A")]}),
    ]
    spans = spans_of_sources(Corpus.from_documents(documents, types=["A"]), full=["full"])
    assert spans.ran.tolist() == [True, False]


def test_soft_sources_are_read_as_their_entities() -> None:
    corpus = voted(one=[])
    rows = np.zeros((6, 5), np.float32)
    rows[:, 0], rows[2] = 1, [0.2, 0.8, 0, 0, 0]
    assert shown(spans_of_sources(corpus.with_source("soft", SoftLabels(("A", "B"), corpus.offsets, rows)))) == [
        (2, 3, [True, False])
    ]


def test_sources_that_are_not_there_are_named() -> None:
    with pytest.raises(UsageError, match="fulll"):
        spans_of_sources(voted(core=[], full=[]), full=["fulll"])
    with pytest.raises(DataError, match="named as full"):
        spans_of_sources(voted(full=[]), full=["full"])


def test_doubtful_words_and_the_entities_they_lie_in_are_open() -> None:
    corpus = voted()
    rows = np.array(
        [[0, 1, 0, 0, 0], [0.4, 0, 0.6, 0, 0], [1, *[0] * 4], [0.6, 0.4, 0, 0, 0], [0, 0, 0, 0.9, 0.1], [1, *[0] * 4]],
        np.float32,
    )
    soft = SoftLabels(("A", "B"), corpus.offsets, rows)
    labelled = corpus.with_entities(None, soft)
    none, both = [False, False], [False, True]
    assert shown(spans_of_entities(labelled, 0.7)) == [(0, 2, none), (3, 4, none), (4, 5, both)]
    assert shown(spans_of_entities(labelled, 0.5)) == [(0, 2, [True, False]), (4, 5, both)]
    broken = corpus.with_entities(None, soft)
    assert broken.soft_labels is not None
    broken.soft_labels.probabilities[1] = 0.5
    with pytest.raises(LabelError, match="'d', token 1"):
        spans_of_entities(broken, 0.7)


def test_entities_are_certain_and_documents_without_are_unknown() -> None:
    documents = [Document("a", TOKENS, entities=[Span(1, 3, "B")]), Document("b", TOKENS)]
    spans = spans_of_entities(Corpus.from_documents(documents, types=["A", "B"]), 0.7)
    assert shown(spans) == [(1, 3, [False, True])]
    assert spans.ran.tolist() == [True, False]
    with pytest.raises(DataError, match="nothing to learn"):
        spans_of_entities(voted(), 0.7)
