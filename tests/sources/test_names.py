from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_words, parsed, tagged, texts
from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources import FullNames, NameEndings, ProperNames, create_source
from tagweave.sources.base import checked
from tagweave.sources.proper import is_shouted, proper_tokens


def proper(words: str) -> list[str]:
    document = from_words(words)
    return [token for token, name in zip(document.tokens, proper_tokens(document), strict=True) if name]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Then Ada met Bob . Cleo slept", ["Ada", "Bob"]),
        ("The iPad of McCoy and NATO", ["iPad", "McCoy", "NATO"]),
        ("NATO met", ["NATO"]),
        ('( Then Ada ) " Now', ["Ada", "Now"]),
        ('" Now Ada', ["Ada"]),
        ("a U.S. plan , A B", ["U.S."]),
        ("1990 of 3M and -DOCSTART-", ["3M"]),
        ("OSLO , NORWAY 1996-08-30", []),
        ("Éva saw Éva", ["Éva"]),
        ("", []),
    ],
)
def test_tokens_that_look_like_names(words: str, expected: list[str]) -> None:
    assert proper(words) == expected


def test_parts_of_speech_make_names_too() -> None:
    pytest.importorskip("spacy")
    document = parsed(from_words("Clinton met the president"))
    assert proper_tokens(document) == [True, False, False, False]
    assert proper_tokens(from_words("Clinton met the president")) == [False] * 4
    assert texts(ProperNames("p", "ENT", pipeline="en_core_web_sm"), document) == ["Clinton"]


def test_shouted() -> None:
    assert is_shouted(from_words("OSLO 1990"))
    assert not is_shouted(from_words("OSLO iN"))


def test_runs_with_gaps() -> None:
    document = from_words("so the Bank of England and the Duke of York - Kent the x")
    assert texts(ProperNames("p", "ENT"), document) == ["Bank of England and the Duke of York - Kent"]
    assert texts(ProperNames("p", "ENT", gaps=("OF",)), document) == ["Bank of England", "Duke of York", "Kent"]
    assert texts(ProperNames("p", "ENT", gaps=(), min_length=5), document) == ["England"]


def test_full_names() -> None:
    source = FullNames("f", "PER", words=("Ada", "Jean-Paul"))
    given_words = (
        "so Ada de Lovelace and ADA King , Jean-Paul O'Neil , Ada , Ada X , Ada 3D , Miss Ada King , Ada and Bob"
    )
    assert tagged(source, from_words(given_words)) == [
        ("Ada de Lovelace", "PER"),
        ("ADA King", "PER"),
        ("Jean-Paul O'Neil", "PER"),
    ]
    assert texts(FullNames("f", "PER", words=("Ada",), max_tokens=2), from_words("so Ada de Lovelace")) == []


def test_endings() -> None:
    source = NameEndings("e", "ORG", words=("Ltd", "Inc."))
    document = from_words("so Acme Ltd Germany and Big Bad INC. or Ltd of Acme ltd")
    assert tagged(source, document) == [("Acme Ltd Germany and Big Bad INC.", "ORG")]
    assert texts(NameEndings("e", "ORG", words=("Ltd", "Inc."), gaps=()), document) == ["Acme Ltd", "Big Bad INC."]
    assert texts(NameEndings("e", "ORG", words=("Ltd",), min_tokens=1), document) == ["Acme Ltd", "Ltd"]
    assert texts(source, from_words("so Bear & Stearns Ltd Inc. and the The Acme Ltd and Oslo")) == [
        "Bear & Stearns Ltd Inc.",
        "The Acme Ltd",
    ]
    assert texts(source, from_words("so Acme Ltd and Ltd and Acme")) == ["Acme Ltd"]


def test_lists_are_files(tmp_path: Path) -> None:
    (tmp_path / "first.txt").write_text("Ada\nBob\n", encoding="utf-8")
    source = create_source("full-names", {"name": "f", "type": "PER", "lists": "first.txt"}, tmp_path)
    assert texts(source, from_words("so Bob Lund left")) == ["Bob Lund"]
    with pytest.raises(UsageError, match="source 'f' needs words, or lists"):
        FullNames("f", "PER")


@given(st.lists(st.sampled_from(["Ada", "of", "the", "-", "x", "Lund", "LTD", "."]), max_size=10))
def test_runs_begin_and_end_with_names(words: list[str]) -> None:
    document: Document = from_words(" ".join(words))
    names = proper_tokens(document)
    source = ProperNames("p", "ENT", min_length=1)
    spans = checked(source, document, source.find(document)) or []
    assert all(names[span.start] and names[span.end - 1] for span in spans)
    covered = {place for span in spans for place in range(span.start, span.end)}
    assert {place for place, name in enumerate(names) if name} <= covered
