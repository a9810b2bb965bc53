import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_words
from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, UsageError
from tagweave.sources import Corrected, Exclusive, Renamed, Source, Specified, TokenCount, create_source
from tagweave.sources.base import checked
from tagweave.sources.wrappers import Wrapper

Spans = list[tuple[int, int, str]]


def document(words: str, **votes: Spans | None) -> Document:
    """A document with the votes of earlier sources."""
    spans = {name: None if found is None else tuple(Span(*vote) for vote in found) for name, found in votes.items()}
    return Document(**{**vars(from_words(words)), "sources": spans})


def found(source: Source, given: Document) -> Spans | None:
    spans = checked(source, given, source.find(given))
    return None if spans is None else [(span.start, span.end, span.type) for span in spans]


ALL: list[Wrapper] = [
    Renamed("x", "s", ("A", "B"), {"A": "B"}),
    Corrected("x", "s", ("A", "B")),
    TokenCount("x", "s", ("A", "B")),
    Exclusive("x", "s", ("A", "B"), ("t",)),
    Specified("x", "s", ("A", "B"), {"C": ("A", "B")}, ("t",)),
]


@pytest.mark.parametrize("source", ALL)
def test_wrappers_abstain_where_the_source_did(source: Wrapper) -> None:
    assert found(source, document("a b", s=None, t=[(0, 1, "A")])) is None
    assert found(source, document("a b", s=[], t=[(0, 1, "A")])) == []


def test_renamed() -> None:
    given = document("a b c d", s=[(0, 1, "GPE"), (1, 2, "LOC"), (2, 3, "DATE"), (3, 4, "O")])
    rename = {"GPE": "LOC", "LOC": "PLACE"}
    assert found(Renamed("r", "s", ("LOC", "PLACE"), rename), given) == [(0, 1, "LOC"), (1, 2, "PLACE"), (3, 4, "O")]
    assert found(Renamed("r", "s", ("LOC", "PLACE", "DATE"), rename, keep=True), given) == [
        (0, 1, "LOC"),
        (1, 2, "PLACE"),
        (2, 3, "DATE"),
        (3, 4, "O"),
    ]
    with pytest.raises(SourceError, match="declared type is called 'DATE'"):
        found(Renamed("r", "s", ("LOC", "PLACE"), rename, keep=True), given)


def test_scores_are_kept() -> None:
    given = Document("d", ["the", "Bank"], sources={"s": [Span(0, 2, "GPE", 0.25)]})
    assert list(Renamed("r", "s", ("LOC",), {"GPE": "LOC"}).find(given) or ()) == [Span(0, 2, "LOC", 0.25)]
    assert list(Corrected("r", "s", ("GPE",)).find(given) or ()) == [Span(1, 2, "GPE", 0.25)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("The Bank of Oslo 's", "Bank of Oslo"),
        ("' The Times '", "Times"),
        ("a", None),
        ("' '", None),
        ("( AP )", "AP"),
        ("the ( AP )", "AP"),
        ("Alzheimer disease ( AD )", "Alzheimer disease ( AD )"),
        ("Alzheimer disease ( AD", "Alzheimer disease ( AD"),
        ("Alzheimer disease (", "Alzheimer disease"),
        ("AD )", "AD"),
        ("( R ) - ibuprofen", "( R ) - ibuprofen"),
        ("( R ) - ibuprofen ,", "( R ) - ibuprofen"),
        ('film " Alien "', 'film " Alien "'),
        ('" Alien "', "Alien"),
        ('film Alien "', "film Alien"),
        ("`` Alien ''", "Alien"),
        ("“ Alien ” “", "Alien"),
        ("U.S. .", "U.S."),
        ("Yahoo !", "Yahoo"),
        ("Ada", "Ada"),
    ],
)
def test_corrected(words: str, expected: str | None) -> None:
    size = len(words.split())
    given = document(f"so {words} went", s=[(1, 1 + size, "ORG")])
    spans = found(Corrected("c", "s", ("ORG",)), given)
    assert spans is not None
    texts = [" ".join(given.tokens[start:end]) for start, end, _ in spans]
    assert texts == ([] if expected is None else [expected])


def test_what_is_corrected_is_a_setting() -> None:
    given = document("the Mr Bean !", s=[(0, 4, "PER")])
    assert found(Corrected("c", "s", ("PER",), leading=("mr",)), given) == [(0, 3, "PER")]
    assert found(Corrected("c", "s", ("PER",), leading=("the", "mr"), edges=()), given) == [(2, 4, "PER")]
    assert found(Corrected("c", "s", ("PER",), leading=(), edges=()), given) == [(0, 4, "PER")]


def test_votes_for_o_are_not_corrected_or_counted() -> None:
    given = document("the , Oslo", s=[(0, 2, "O"), (0, 1, "O"), (2, 3, "LOC")])
    assert found(Corrected("c", "s", ("LOC",)), given) == [(0, 2, "O"), (0, 1, "O"), (2, 3, "LOC")]
    assert found(TokenCount("c", "s", ("LOC",)), given) == [(0, 2, "O"), (0, 1, "O")]


def test_token_count() -> None:
    given = document("a b c d", s=[(0, 1, "A"), (0, 2, "A"), (0, 3, "A"), (0, 4, "A")])
    assert found(TokenCount("c", "s", ("A",)), given) == [(0, 2, "A"), (0, 3, "A"), (0, 4, "A")]
    assert found(TokenCount("c", "s", ("A",), min_tokens=1, max_tokens=2), given) == [(0, 1, "A"), (0, 2, "A")]
    assert found(TokenCount("c", "s", ("A",), min_tokens=3, max_tokens=3), given) == [(0, 3, "A")]


def test_exclusive() -> None:
    given = document("a b c d", s=[(0, 2, "A"), (2, 3, "A"), (3, 4, "B")], t=[(1, 2, "X")], u=[(3, 4, "O")], v=None)
    assert found(Exclusive("e", "s", ("A", "B"), ("t", "u", "v")), given) == [(2, 3, "A"), (3, 4, "B")]
    with pytest.raises(UsageError, match="needs the setting over"):
        create_source("exclusive", {"name": "e", "of": "s", "labels": "A"})


def test_specified() -> None:
    coarse = {"ENT": ("PER", "LOC")}
    labels = ("LOC", "PER", "X")
    given = document(
        "a b c d e",
        s=[(0, 3, "ENT"), (3, 4, "ENT"), (4, 5, "X")],
        t=[(0, 1, "PER"), (1, 2, "LOC"), (2, 3, "X")],
        u=[(2, 3, "LOC")],
        v=None,
    )
    assert found(Specified("k", "s", labels, coarse, ("t", "u", "v")), given) == [(0, 3, "LOC"), (4, 5, "X")]
    assert found(Specified("k", "s", labels, coarse, ("t",)), given) == [(0, 3, "LOC"), (4, 5, "X")]
    kept = Specified("k", "s", labels, coarse, ("u",), keep=True)
    assert found(kept, given) == [(0, 3, "LOC"), (3, 4, "ENT"), (4, 5, "X")]
    assert set(kept.types) == {"LOC", "PER", "X", "ENT"}


def test_from_a_file_and_in_a_run() -> None:
    made = create_source(
        "specified",
        {"name": "k", "of": "s", "labels": ["LOC", "PER"], "coarse": {"ENT": ["LOC", "PER"]}, "over": "t"},
    )
    assert made == Specified("k", "s", ("LOC", "PER"), {"ENT": ("LOC", "PER")}, ("t",))
    (result,) = Runner([made]).run([document("so Oslo", s=[(1, 2, "ENT")], t=[(1, 2, "LOC")])])
    assert list(result.sources["k"] or ()) == [Span(1, 2, "LOC")]


WORDS = st.lists(st.sampled_from(["the", "Ada", "(", ")", '"', "'s", ",", "of"]), min_size=1, max_size=8)


@given(WORDS)
def test_corrected_spans_are_parts_without_loose_edges(words: list[str]) -> None:
    given_votes = document(" ".join(words), s=[(0, len(words), "A")])
    source = Corrected("c", "s", ("A",))
    for start, end, _ in found(source, given_votes) or ():
        assert words[start] != "the"
        assert {words[start], words[end - 1]}.isdisjoint({",", "'s"})
        again = document(" ".join(words[start:end]), s=[(0, end - start, "A")])
        assert found(source, again) == [(0, end - start, "A")]
