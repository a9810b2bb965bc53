from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_words
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, UsageError
from tagweave.label_models import HMM
from tagweave.sources import DocumentHistory, DocumentMajority, Voter, create_source, labeling_function
from tagweave.sources.base import checked
from tagweave.sources.document_level import DocumentLevel

TYPES = ("LOC", "ORG", "PER")


def voted(
    words: str, group: str | None = None, name: str = "d", **sources: list[tuple[int, int, str]] | None
) -> Document:
    """A document with the votes of earlier sources."""
    document = from_words(words, name, group)
    votes = {s: None if spans is None else tuple(Span(*span) for span in spans) for s, spans in sources.items()}
    return Document(**{**vars(document), "sources": votes})


def found(source: Voter, *documents: Document) -> list[list[tuple[str, int, str]] | None]:
    """Text, first token and type of each vote."""
    result: list[list[tuple[str, int, str]] | None] = []
    for document, votes in zip(documents, source.annotate(documents), strict=True):
        spans = checked(source, document, votes)
        result.append(
            None if spans is None else [(" ".join(document.tokens[s.start : s.end]), s.start, s.type) for s in spans]
        )
    return result


# Voter


def test_voter_takes_the_majority_with_its_probability() -> None:
    document = voted("Paris sleeps", a=[(0, 1, "LOC")], b=[(0, 1, "PER")], c=[(0, 1, "PER")])
    (spans,) = list(Voter("v", TYPES).annotate([document]))
    assert [span[:3] for span in spans or ()] == [(0, 1, "PER")]
    assert [vote[3] for vote in spans or () if len(vote) == 4] == [pytest.approx(2 / 3)]


def test_voter_minds_only_the_named_sources_and_the_declared_types() -> None:
    document = voted("Paris sleeps", a=[(0, 1, "LOC"), (1, 2, "DATE")], b=[(0, 1, "PER")], c=[(0, 1, "PER")])
    assert found(Voter("v", TYPES, of=("a",)), document) == [[("Paris", 0, "LOC")]]
    assert found(Voter("v", ("LOC",)), document) == [[("Paris", 0, "LOC")]]


def test_votes_for_o_count() -> None:
    document = voted("Paris sleeps", a=[(0, 1, "LOC")], b=[(0, 1, "O")], c=[(0, 1, "O")])
    assert found(Voter("v", TYPES), document) == [[]]


def test_coarse_types_are_made_specific() -> None:
    document = voted("Acme sleeps", a=[(0, 1, "ENT")], b=[(0, 1, "ORG")])
    assert found(Voter("v", TYPES, coarse={"ENT": ("ORG", "PER")}), document) == [[("Acme", 0, "ORG")]]
    assert found(Voter("v", TYPES, of=("a",)), document) == [[]]


def test_span_vote_keeps_whole_spans() -> None:
    document = voted("New York City", a=[(0, 3, "LOC")], b=[(0, 2, "ORG")], c=[(0, 2, "ORG")])
    assert found(Voter("v", TYPES, voter="span-vote"), document) == [[("New York City", 0, "LOC")]]
    assert found(Voter("v", TYPES), document) == [[("New York", 0, "ORG"), ("City", 2, "LOC")]]


@pytest.mark.parametrize("voter", ["majority-vote", "span-vote"])
def test_no_document_depends_on_others(voter: Literal["majority-vote", "span-vote"]) -> None:
    coarse = {"ENT": ("LOC", "PER")}
    source = Voter("v", TYPES, voter=voter, coarse=coarse)
    unclear = voted("Jordan won", a=[(0, 1, "ENT")])
    crowd = [voted("Ada", name=f"{i}", a=[(0, 1, "PER")]) for i in range(5)]
    assert found(source, unclear) == found(source, unclear, *crowd)[:1]


def test_voter_abstains_where_nothing_ran() -> None:
    ran, not_ran = voted("Oslo", a=[], b=None), voted("Oslo", a=None, b=None)
    assert found(Voter("v", TYPES), ran, not_ran) == [[], None]
    assert found(Voter("v", TYPES, of=("b",)), ran) == [None]
    assert found(Voter("v", TYPES), voted("Oslo")) == [None]
    assert found(Voter("v", TYPES)) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [
        voted("in Oslo with Ada", name=f"{i}", a=[(1, 2, "LOC"), (3, 4, "PER")], b=[(1, 2, "LOC")], c=[])
        for i in range(20)
    ]
    folder = tmp_path_factory.mktemp("models") / "hmm"
    HMM(iterations=3).fit(Corpus.from_documents(documents, ("LOC", "PER"))).save(folder)
    return folder


def test_a_saved_label_model_votes(saved: Path) -> None:
    source = Voter("v", ("PER", "LOC"), model=saved)
    document = voted("near Rome", a=[(1, 2, "LOC")], b=[(1, 2, "LOC")], c=[], other=[(0, 1, "PER")])
    source.load()
    assert found(source, document) == [[("Rome", 1, "LOC")]]
    assert found(DocumentMajority("m", ("LOC", "PER"), model=saved, min_count=1), document) == [[("Rome", 1, "LOC")]]


def test_a_saved_label_model_must_fit(saved: Path) -> None:
    with pytest.raises(UsageError, match="`labels` is LOC, but the label model in .* was fitted on LOC, PER"):
        Voter("v", ("LOC",), model=saved).load()
    with pytest.raises(UsageError, match="`of` is a, but .* was fitted on a, b, c"):
        Voter("v", ("LOC", "PER"), of=("a",), model=saved).load()
    with pytest.raises(SourceError, match="source 'v', document 'd': no votes of b, c"):
        found(Voter("v", ("LOC", "PER"), model=saved), voted("Oslo", a=[]))


def test_settings_from_a_file(saved: Path) -> None:
    source = create_source("voter", {"name": "v", "labels": ["LOC", "PER"], "model": saved.name}, saved.parent)
    assert isinstance(source, Voter)
    assert source.model == saved
    settings = {
        "name": "m",
        "labels": "PER",
        "of": "a",
        "voter": "span-vote",
        "coarse": {"ENT": ["PER"]},
        "min_count": 3,
    }
    assert create_source("document-majority", settings) == DocumentMajority(
        "m", ("PER",), ("a",), "span-vote", coarse={"ENT": ("PER",)}, min_count=3
    )
    with pytest.raises(UsageError, match="Did you mean 'span-vote'"):
        create_source("voter", {"name": "v", "labels": ["LOC"], "voter": "spanvote"})
    with pytest.raises(UsageError, match="voter"):
        Voter("v", TYPES, voter="hmm")  # type: ignore[arg-type]


# Majority in the document


def test_every_occurrence_gets_the_likeliest_type() -> None:
    group = [
        voted("Lund beat Ada .", "g", "1", a=[(0, 1, "PER")], b=[(0, 1, "PER")]),
        voted("So Lund won in lund", "g", "2", a=[], b=[]),
        voted("Lund rests", "g", "3", a=[(0, 1, "LOC")], b=[(0, 1, "PER")]),
    ]
    assert found(DocumentMajority("m", TYPES), *group) == [
        [("Lund", 0, "PER")],
        [("Lund", 1, "PER")],
        [("Lund", 0, "PER")],
    ]
    uncased = found(DocumentMajority("m", TYPES, ignore_case=True), *group)
    assert uncased[1] == [("Lund", 1, "PER"), ("lund", 4, "PER")]


def test_the_sum_of_probabilities_decides_and_not_the_number_of_winners() -> None:
    sure = voted("Lund", "g", "1", a=[(0, 1, "PER")], b=[(0, 1, "PER")], c=[(0, 1, "PER")])
    torn = [voted("Lund", "g", f"2{i}", a=[(0, 1, "LOC")], b=[(0, 1, "PER")], c=[(0, 1, "LOC")]) for i in range(2)]
    assert found(DocumentMajority("m", TYPES), sure, *torn) == [[("Lund", 0, "PER")]] * 3
    assert found(DocumentMajority("m", TYPES), *torn) == [[("Lund", 0, "LOC")]] * 2


def test_a_string_must_occur_often_enough_in_the_group() -> None:
    once = voted("Lund won", "g", "1", a=[(0, 1, "PER")])
    again = voted("Lund", "g", "2", a=[])
    elsewhere = voted("Lund", "h", "3", a=[])
    assert found(DocumentMajority("m", TYPES), once, elsewhere) == [[], []]
    assert found(DocumentMajority("m", TYPES), once, again, elsewhere) == [
        [("Lund", 0, "PER")],
        [("Lund", 0, "PER")],
        [],
    ]
    assert found(DocumentMajority("m", TYPES, min_count=3), once, again) == [[], []]
    assert found(DocumentMajority("m", TYPES, min_count=1), once) == [[("Lund", 0, "PER")]]
    assert found(DocumentMajority("m", TYPES), voted("Lund and Lund", None, "4", a=[(0, 1, "PER")])) == [
        [("Lund", 0, "PER"), ("Lund", 2, "PER")]
    ]


def test_longer_strings_go_first() -> None:
    document = voted("New York or York or New York or York", a=[(0, 2, "LOC"), (3, 4, "ORG")])
    assert found(DocumentMajority("m", TYPES), document) == [
        [("New York", 0, "LOC"), ("York", 3, "ORG"), ("New York", 5, "LOC"), ("York", 8, "ORG")]
    ]


@pytest.mark.parametrize("source", [DocumentMajority("m", TYPES), DocumentHistory("h", TYPES)])
def test_a_group_on_which_nothing_ran_is_left_alone(source: DocumentLevel) -> None:
    group = [voted("Lund", "g", "1", a=None), voted("Lund", "g", "2", a=None)]
    other = [voted("Lund", "h", "3", a=None), voted("Oslo", "h", "4", a=[])]
    assert found(source, *group, *other) == [None, None, [], []]
    assert found(source, voted("", "g", "1", a=[])) == [[]]


# Full names and short ones


def test_short_forms_of_full_names() -> None:
    group = [
        voted("Earlier Turing spoke", "g", "1", a=[]),
        voted("Alan Mathison Turing and the Bank of Lund", "g", "2", a=[(0, 3, "PER"), (5, 8, "ORG")]),
        voted("turing , Alan , Alan Mathison , of Lund", "g", "3", a=[]),
        voted("Turing", "h", "4", a=[]),
    ]
    assert found(DocumentHistory("h", TYPES), *group) == [
        [("Turing", 1, "PER")],
        [],
        [("Alan", 2, "PER"), ("Alan Mathison", 4, "PER"), ("Lund", 8, "ORG")],
        [],
    ]
    assert found(DocumentHistory("h", TYPES, later_only=True), *group)[0] == []
    assert found(DocumentHistory("h", TYPES, ignore_case=True), *group)[2] == [
        ("turing", 0, "PER"),
        ("Alan", 2, "PER"),
        ("Alan Mathison", 4, "PER"),
        ("Lund", 8, "ORG"),
    ]
    assert found(DocumentHistory("h", TYPES, min_length=5), *group)[2] == [("Alan Mathison", 4, "PER")]
    assert found(DocumentHistory("h", TYPES, history_types=("ORG",)), *group)[2] == [("Lund", 8, "ORG")]


def test_later_within_one_document() -> None:
    document = voted("so Turing met Alan Turing and Turing", a=[(3, 5, "PER")])
    assert found(DocumentHistory("h", TYPES, later_only=True), document) == [[("Turing", 6, "PER")]]
    assert found(DocumentHistory("h", TYPES), document) == [[("Turing", 1, "PER"), ("Turing", 6, "PER")]]


def test_parts_of_names_of_two_types_belong_to_neither() -> None:
    document = voted("Mr Ford , Henry Ford , Ford Motors , Motors", a=[(3, 5, "PER"), (6, 8, "ORG")])
    assert found(DocumentHistory("h", TYPES), document) == [[("Motors", 9, "ORG")]]


def test_parts_inside_other_names_stay() -> None:
    document = voted("with Ada Byron and Byron , Byron Lund", a=[(1, 3, "PER"), (6, 8, "LOC")])
    assert found(DocumentHistory("h", TYPES), document) == [[("Byron", 4, "PER")]]


def test_names_in_small_letters_have_parts_too() -> None:
    document = voted("the bank of lund , that bank", a=[(1, 4, "ORG")])
    assert found(DocumentHistory("h", TYPES), document) == [[("bank", 6, "ORG")]]


# Laws

WORDS = st.sampled_from(["Ada", "Byron", "Lund", "lund", "New", "York", "of", "."])


@st.composite
def voted_groups(draw: st.DrawFn) -> list[Document]:
    """A group of documents in which three sources vote at random."""
    documents = []
    for number in range(draw(st.integers(1, 4))):
        words = draw(st.lists(WORDS, min_size=1, max_size=8))
        span = st.tuples(st.integers(0, len(words) - 1), st.integers(1, 3), st.sampled_from([*TYPES, "O"]))
        sources = {
            name: [
                (start, min(start + size, len(words)), label) for start, size, label in draw(st.lists(span, max_size=4))
            ]
            for name in "abc"
        }
        documents.append(voted(" ".join(words), "g", f"{number}", **sources))
    return documents


def by_name(source: Voter, documents: Sequence[Document]) -> dict[str, object]:
    return dict(zip((document.id for document in documents), found(source, *documents), strict=True))


@given(voted_groups(), st.booleans(), st.randoms())
def test_majority_does_not_depend_on_the_order_of_documents(
    documents: list[Document], ignore: bool, chance: Random
) -> None:
    source = DocumentMajority("m", TYPES, ignore_case=ignore)
    expected = by_name(source, documents)
    shuffled = list(documents)
    chance.shuffle(shuffled)
    assert by_name(source, shuffled) == expected


@given(voted_groups(), st.booleans())
def test_majority_votes_on_occurrences_of_entities(documents: list[Document], ignore: bool) -> None:
    def key(document: Document, start: int, end: int) -> tuple[str, ...]:
        return tuple(token.lower() if ignore else token for token in document.tokens[start:end])

    voter = Voter("v", TYPES).opinions(documents)
    entities = {
        key(document, span.start, span.end)
        for document, opinion in zip(documents, voter, strict=True)
        for span in (opinion.entities if opinion else ())
    }
    source = DocumentMajority("m", TYPES, ignore_case=ignore)
    types: dict[tuple[str, ...], str] = {}
    for document, votes in zip(documents, source.annotate(documents), strict=True):
        spans = checked(source, document, votes) or []
        assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))
        for span in spans:
            string = key(document, span.start, span.end)
            assert string in entities
            assert types.setdefault(string, span.type) == span.type


@given(voted_groups())
def test_short_forms_are_parts_of_names(documents: list[Document]) -> None:
    source = DocumentHistory("h", TYPES, history_types=TYPES, min_length=1)
    opinions = source.opinions(documents)
    names = [
        (span.type, " ".join(document.tokens[span.start : span.end]))
        for document, opinion in zip(documents, opinions, strict=True)
        for span in (opinion.entities if opinion else ())
        if span.end - span.start > 1
    ]
    for votes in found(source, *documents):
        for text, _, label in votes or ():
            assert any(f" {text} " in f" {name} " and text != name for kind, name in names if kind == label)


def test_sources_of_documents_run_after_others() -> None:
    from tagweave.annotating import Runner

    @labeling_function("PER")
    def names(document: Document) -> list[tuple[int, int]]:
        return [(i, i + 2) for i, token in enumerate(document.tokens) if token == "Ada"]

    documents = [from_words("by Ada Byron", "1", "g"), from_words("then Byron", "2", "g")]
    first, second = Runner([names, DocumentHistory("short", ("PER",), ("names",))]).run(documents)
    assert list(second.sources["short"] or ()) == [Span(1, 2, "PER")]
    assert list(first.sources["short"] or ()) == []
