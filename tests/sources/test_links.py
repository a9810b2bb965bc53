import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words, parsed
from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, UsageError
from tagweave.sources import (
    SOURCES,
    BigramLinks,
    CapitalLinks,
    DependencyLinks,
    Dictionary,
    EmbeddingLinks,
    HyphenLinks,
    LinkedSpans,
    PhraseLinks,
    PossessiveLinks,
    Source,
)
from tagweave.sources.base import checked
from tagweave.sources.links import stretches


def linked(source: Source, *documents: Document) -> list[list[str]]:
    """The text of each stretch of each document."""
    source.load()
    result = []
    for document, votes in zip(documents, source.annotate(documents), strict=True):
        spans = checked(source, document, votes) or []
        assert all(span.type == "same" for span in spans)
        result.append([" ".join(document.tokens[span.start : span.end]) for span in spans])
    return result


def test_linking_rules_are_known_as_such() -> None:
    rules = {kind for kind, cls in SOURCES.items() if cls.linking}
    assert rules == {kind for kind in SOURCES if kind.endswith("-links")}
    assert len(rules) == 7


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("with Alzheimer 's disease today", ["Alzheimer 's disease"]),
        ("Crohn ’s disease", ["Crohn ’s disease"]),
        ("'s disease of Ada 's", ["'s disease", "Ada 's"]),
        ("Ada 's and Bob 's cat", ["Ada 's and", "Bob 's cat"]),
        ("Ada 's Bob 's cat", ["Ada 's Bob 's cat"]),
        ("the ' disease", []),
        ("'s", []),
        ("", []),
    ],
)
def test_possessive(words: str, expected: list[str]) -> None:
    assert linked(PossessiveLinks("p"), from_words(words)) == [expected]


def test_hyphens() -> None:
    text = "the X-linked beta-2 gene - von Hippel-Lindau-like -"
    assert linked(HyphenLinks("h"), from_text(text)) == [
        ["X - linked", "beta - 2", "gene - von", "Hippel - Lindau - like"]
    ]
    assert linked(HyphenLinks("h", touching=True), from_text(text)) == [
        ["X - linked", "beta - 2", "Hippel - Lindau - like"]
    ]
    assert linked(HyphenLinks("h", short_prefix=True), from_text(text)) == [["X - linked", "beta - 2"]]
    assert linked(HyphenLinks("h", after_only=True), from_text("X-linked A-B")) == [["- linked", "- B"]]
    assert linked(HyphenLinks("h", touching=True), from_words("X - linked")) == [[]]


def test_phrases() -> None:
    rule = PhraseLinks("p", words=("breast cancer", "breast cancer gene", "gene", "cell line"), case="ignore")
    document = from_words("Breast cancer gene , gene , cell line breast cancer")
    assert linked(rule, document) == [["Breast cancer gene", "cell line", "breast cancer"]]
    with pytest.raises(UsageError, match="needs phrases"):
        PhraseLinks("p")


def test_types_of_phrases_do_not_matter(tmp_path) -> None:  # noqa: ANN001
    path = tmp_path / "phrases.tsv"
    path.write_text("Disease\tbreast cancer\nChemical\tfolic acid\n", encoding="utf-8")
    assert Dictionary("d", (path,)).types == ("Chemical", "Disease")
    assert linked(PhraseLinks("p", (path,)), from_words("folic acid or breast cancer")) == [
        ["folic acid", "breast cancer"]
    ]


def test_frequent_bigrams_of_a_group() -> None:
    first = from_words("heart failure , heart failure rate", "1", "g")
    second = from_words("heart failure , rate", "2", "g")
    other = from_words("heart failure , heart failure", "3", "h")
    assert linked(BigramLinks("b", min_count=3), first, second, other) == [
        ["heart failure", "heart failure"],
        ["heart failure"],
        [],
    ]
    assert linked(BigramLinks("b", min_count=2), other) == [["heart failure", "heart failure"]]
    assert linked(BigramLinks("b", min_count=1), second) == [["heart failure"]]
    assert linked(BigramLinks("b", min_count=2), from_words("a b c a b c")) == [["a b c", "a b c"]]


def test_capitals() -> None:
    document = from_words("New York and Mac Book Air or HP Pavilion Dv6 , A Bug DVD")
    assert linked(CapitalLinks("c"), document) == [["Mac Book Air", "Pavilion Dv6", "A Bug"]]
    assert linked(CapitalLinks("c", skip=0), document)[0][0] == "New York"


def test_compounds() -> None:
    pytest.importorskip("spacy")
    document = from_words("The hard disk drive of my laptop computer failed")
    assert linked(DependencyLinks("d"), parsed(document)) == [["disk drive", "laptop computer"]]
    assert linked(DependencyLinks("d", relations=("det",)), parsed(document)) == [[]]
    assert linked(DependencyLinks("d", relations=("poss", "nsubj")), parsed(from_words("my dog barks"))) == [
        ["my dog barks"]
    ]
    with pytest.raises(SourceError, match="source 'd', document 'd': the analysis by .* is missing"):
        DependencyLinks("d").find(document)


def test_similar_embeddings() -> None:
    pytest.importorskip("torch")
    documents = [
        from_words("the breast cancer patients died", "1"),
        from_words("", "2"),
        from_words("dog", "3"),
        from_words("he paid quickly New York taxes", "4"),
    ]
    assert linked(EmbeddingLinks("e"), *documents) == [["breast cancer"], [], [], ["New York"]]
    assert linked(EmbeddingLinks("e", threshold=-1), *documents) == [
        ["the breast cancer patients died"],
        [],
        [],
        ["he paid quickly New York taxes"],
    ]
    assert linked(EmbeddingLinks("e")) == []
    with pytest.raises(UsageError, match="no-such-encoder"):
        EmbeddingLinks("e", encoder="./no-such-encoder").load()


def test_only_embeddings_need_torch() -> None:
    code = "import sys, tagweave.sources; assert not {'torch', 'spacy', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Linked spans


def document(
    words: str, links: list[tuple[int, int, str]] | None, **votes: list[tuple[int, int, str]] | None
) -> Document:
    """A document with links of a rule `r` and votes of sources."""
    spans = {name: None if found is None else tuple(Span(*vote) for vote in found) for name, found in votes.items()}
    rule = {"r": None if links is None else tuple(Span(*link) for link in links)}
    return Document(**{**vars(from_words(words)), "sources": spans, "links": rule})


FAILURE = "acute heart failure today"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ({"a": [(1, 2, "D")]}, [(0, 3, "D")]),
        ({"a": [(1, 2, "D")], "b": [(1, 2, "C")]}, [(0, 3, "C")]),  # a tie goes to the alphabet
        ({"a": [(1, 3, "D")], "b": [(1, 2, "C")]}, [(0, 3, "D")]),  # more tokens
        ({"a": [(1, 2, "D")], "b": [(2, 4, "C")], "c": [(1, 2, "C")]}, [(0, 3, "C")]),  # outside tokens do not count
        ({"a": [(1, 2, "D")], "b": [(0, 1, "O")]}, [(0, 3, "D")]),  # an entity goes before O
        ({"a": [(1, 2, "D")], "b": [(0, 2, "O")]}, []),
        (
            {"a": [(1, 2, "D"), (1, 2, "D"), (0, 3, "D")], "b": [(0, 3, "C"), (2, 3, "C")]},
            [(0, 3, "C")],
        ),  # once a token
        ({"a": [(1, 2, "X")]}, []),
        ({"a": [(3, 4, "D")]}, []),
        ({"a": [], "b": None}, []),
        ({"a": None}, None),
        ({}, None),
    ],
)
def test_votes_on_a_stretch(
    votes: dict[str, list[tuple[int, int, str]] | None], expected: list[tuple[int, int, str]] | None
) -> None:
    source = LinkedSpans("l", "r", ("C", "D"))
    assert source.find(document(FAILURE, [(0, 3, "same")], **votes)) == expected


def test_only_the_named_sources_vote() -> None:
    given = document(FAILURE, [(0, 3, "same")], a=[(1, 2, "D")], b=[(0, 3, "C")])
    assert LinkedSpans("l", "r", ("C", "D"), ("a",)).find(given) == [(0, 3, "D")]


def test_a_rule_that_did_not_run() -> None:
    assert LinkedSpans("l", "r", ("D",)).find(document(FAILURE, None, a=[(1, 2, "D")])) is None
    assert LinkedSpans("l", "r", ("D",)).find(document(FAILURE, [], a=[(1, 2, "D")])) == []


def test_stretches_that_share_tokens_are_one_and_different_ones_are_not() -> None:
    votes = {"a": [(1, 2, "D"), (3, 4, "D")]}
    source = LinkedSpans("l", "r", ("D",))
    assert source.find(document(FAILURE, [(0, 2, "same"), (1, 3, "same")], **votes)) == [(0, 3, "D")]
    assert source.find(document(FAILURE, [(0, 2, "same"), (2, 4, "same")], **votes)) == [(0, 2, "D"), (2, 4, "D")]
    for links in ([(0, 4, "same"), (1, 3, "different")], [(1, 3, "different"), (0, 4, "same")]):
        assert source.find(document(FAILURE, links, **votes)) == [(0, 2, "D"), (2, 4, "D")]


def test_links_end_to_end() -> None:
    sources = [
        Dictionary("short", words=("cancer",), type="D"),
        PhraseLinks("phrases", words=("breast cancer",), hidden=True),
        LinkedSpans("long", "phrases", ("D",), ("short",)),
    ]
    (result,) = Runner(sources).run([from_words("breast cancer or cancer")])
    assert list(result.sources["long"] or ()) == [Span(0, 2, "D")]
    assert "phrases" not in result.links


# Laws


@given(st.lists(st.booleans()))
def test_stretches_say_what_the_pairs_say(pairs: list[bool]) -> None:
    again = [False] * len(pairs)
    found = stretches(pairs)
    for start, end in found:
        again[start : end - 1] = [True] * (end - 1 - start)
    assert again == pairs
    assert all(end <= after for (_, end), (after, _) in zip(found, found[1:], strict=False))


WORDS = st.lists(st.sampled_from(["Ada", "'s", "-", "x", "heart", "failure", "DVD", "β"]), max_size=10)


@given(WORDS, st.data())
def test_linked_spans_lie_on_links_and_hold_a_vote(words: list[str], data: st.DataObject) -> None:
    text = from_words(" ".join(words))
    size = len(words)
    rules = [PossessiveLinks("p"), HyphenLinks("h"), CapitalLinks("c"), BigramLinks("b", min_count=2)]
    for rule in rules:
        (links,) = [checked(rule, text, votes) for votes in rule.annotate([text])]
        assert links is not None
        spots = data.draw(st.lists(st.integers(0, size - 1), max_size=3)) if size else []
        votes = [Span(spot, spot + 1, data.draw(st.sampled_from("CDO"))) for spot in spots]
        given_votes = Document(**{**vars(text), "sources": {"a": votes}, "links": {"r": links}})
        source = LinkedSpans("l", "r", ("C", "D"))
        for span in checked(source, given_votes, source.find(given_votes)) or []:
            assert (span.start, span.end) in {(link.start, link.end) for link in links}
            assert any(vote.type == span.type and span.start <= vote.start < span.end for vote in votes)
