from dataclasses import replace

import pytest

from source_documents import from_text, from_words
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources import Abbreviations, create_source
from tagweave.sources.base import checked


def having(document: Document, *entities: str, type: str = "D", source: str = "s") -> Document:
    """The document with votes of an earlier source on the places of some phrases."""
    spans = []
    for entity in entities:
        words = from_text(entity).tokens
        spans += [
            Span(i, i + len(words), type)
            for i in range(len(document.tokens))
            if list(document.tokens[i : i + len(words)]) == list(words)
        ]
    assert spans or not entities
    return replace(document, sources={**document.sources, source: spans})


def found(source: Abbreviations, *documents: Document) -> list[list[str] | None]:
    result: list[list[str] | None] = []
    for document, votes in zip(documents, source.annotate(documents), strict=True):
        spans = checked(source, document, votes)
        result.append(None if spans is None else [" ".join(document.tokens[span.start : span.end]) for span in spans])
    return result


def short(**settings: object) -> Abbreviations:
    source = create_source("abbreviations", {"name": "a", "of": "s", "types": ["D"], **settings})
    assert isinstance(source, Abbreviations)
    return source


RENAL = "Acute renal failure (ARF) is rare. ARF, and arf, and ARFs (see ARF)."


@pytest.mark.parametrize("make", [from_text, lambda text: from_words(" ".join(from_text(text).tokens))])
def test_a_short_form_is_found_everywhere(make) -> None:  # noqa: ANN001
    document = having(make(RENAL), "renal failure")
    assert found(short(), document) == [["ARF", "ARF", "ARF"]]
    assert found(short(long_forms=True), document) == [["Acute renal failure", "ARF", "ARF", "ARF"]]


def test_documents_without_text() -> None:
    document = having(from_text(RENAL), "renal failure")
    bare = replace(document, text=None, characters=None)
    assert found(short(long_forms=True), bare) == found(short(long_forms=True), document)


def test_the_letters_must_fit() -> None:
    document = having(
        from_text("Sodium (Na) and renal failure (XY) and gout (mild)."), "Sodium", "renal failure", "gout"
    )
    assert found(short(), document) == [[]]
    assert found(short(letters=False), document) == [["Na", "XY"]]


@pytest.mark.parametrize(
    ("text", "entity", "expected"),
    [
        ("N-methyl-D-aspartate (NMDA)", "aspartate", ["N - methyl - D - aspartate", "NMDA"]),
        ("the alpha-fetoprotein (AFP)", "alpha-fetoprotein", ["alpha - fetoprotein", "AFP"]),
        ("the 5-hydroxytryptamine (5-HT)", "5-hydroxytryptamine", ["5 - hydroxytryptamine", "5 - HT"]),
        ("human immunodeficiency virus 1 (HIV-1)", "virus 1", ["human immunodeficiency virus 1", "HIV - 1"]),
        ("very severe renal failure (RF)", "severe renal failure", ["renal failure", "RF"]),
        ("renal failure [RF]", "renal failure", ["renal failure", "RF"]),
        ("renal failure (RF, 20%)", "renal failure", ["renal failure", "RF"]),
        ("the (renal failure [RF])", "renal failure", ["renal failure", "RF"]),
        ("RF (renal failure)", "renal failure", ["RF", "renal failure"]),
        ("renal failure (n = 20)", "renal failure", []),
        ("renal failure (1990)", "renal failure", []),
        ("renal failure (R)", "renal failure", []),
        ("renal failure (see rare forms of it)", "renal failure", []),
        ("renal failure, found early (RF)", "renal failure", []),
        ("renal failure ()", "renal failure", []),
        ("(RF) renal failure", "renal failure", []),
        ("R (renal failure)", "renal failure", []),
        ("old (renal failure)", "renal failure", []),
        ("renal failure (RF", "renal failure", []),
        ("failure (failure)", "failure", []),
    ],
)
def test_definitions(text: str, entity: str, expected: list[str]) -> None:
    assert found(short(long_forms=True), having(from_text(text), entity)) == [expected]


def test_only_the_named_types_and_sources() -> None:
    document = having(from_text(RENAL), "renal failure", type="C")
    assert found(short(), document) == [[]]
    assert found(short(types=["C", "D"]), document) == [["ARF"] * 3]
    assert found(short(of=["x", "s"], types=["C"]), document) == [["ARF"] * 3]
    assert found(short(of=["x"], types=["C"]), document) == [None]


def test_the_group_shares_its_short_forms() -> None:
    first = replace(having(from_text("renal failure (RF)", "1"), "renal failure"), group="g")
    second = from_text("RF again.", "2", "g")
    other = having(from_text("RF again.", "3", "h"))
    assert found(short(), first, second, other) == [["RF"], ["RF"], []]
    assert found(short(), second) == [None]


def test_the_type_that_is_given_most_often_counts() -> None:
    text = "renal failure (RF), red fox (RF), renal failure (RF)"
    document = having(from_text(text), "renal failure")
    document = replace(document, sources={"s": [*(document.sources["s"] or ()), Span(6, 8, "C")]})
    votes = list(short(types=["C", "D"]).annotate([document]))[0]
    assert [vote[2] for vote in votes or () if len(vote) > 2] == ["D", "D", "D"]


def test_errors() -> None:
    with pytest.raises(UsageError, match="'a' needs types"):
        Abbreviations("a", "s")
    with pytest.raises(UsageError, match="long_forms needs letters"):
        Abbreviations("a", "s", ("D",), letters=False, long_forms=True)
