"""Finding phrases: the same as comparing every stretch of tokens with every phrase, however things are cut."""

import pickle
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tagweave.corpus import Document
from tagweave.sources import Dictionary
from tagweave.sources.phrase_matching import Hits, Laid, spellings

SIGNS = ["a", "A", "b", "1", "-", ".", "'", "İ", "ß", "ς", "Σ", "🚀", "e\u0301", "在", "奥", "\u0f0b", "n't", "\u200d"]
WORDS = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=3).map("".join)
PHRASES = st.lists(st.sampled_from([*SIGNS, " ", "\u00a0"]), min_size=1, max_size=5).map("".join)


def spoken(sign: str) -> bool:
    unspaced = "\u0e00" <= sign <= "\u0fff" or "\u3040" <= sign <= "\u30ff" or "\u4e00" <= sign <= "\u9fff"
    return (sign.isalnum() or category(sign)[0] == "M") and not unspaced


def spelled(text: str, folded: bool) -> str:
    """A text whose blanks are gone where they divide no two letters."""
    kept = ""
    for word in (text.casefold() if folded else text).split():
        kept += f" {word}" if kept and spoken(kept[-1]) and spoken(word[0]) else word
    return kept


def together(document: Document, place: int) -> bool:
    """Whether a token is written together with the one before it."""
    return document.tokens[place].lower() == "n't" or (
        document.characters is not None and document.characters[place - 1][1] == document.characters[place][0]
    )


def runs_on(document: Document, place: int) -> bool:
    """Whether a word goes on from the token before to this one."""
    if not 0 < place < len(document.tokens):
        return False
    before, after = document.tokens[place - 1][-1], document.tokens[place][0]
    return together(document, place) and spoken(before) and spoken(after)


def occurrences(document: Document, phrases: Sequence[str], folded: bool) -> set[tuple[int, int]]:
    """Every stretch of tokens that is a phrase: in whole words as it is written, or with blanks between its tokens."""
    known = {spelled(phrase, folded) for phrase in phrases} - {""}
    found = set()
    for start in range(len(document.tokens)):
        for end in range(start + 1, len(document.tokens) + 1):
            words = document.tokens[start:end]
            written = words[0]
            for place in range(start + 1, end):
                written += f"{'' if together(document, place) else ' '}{document.tokens[place]}"
            whole = not runs_on(document, start) and not runs_on(document, end)
            if (whole and spelled(written, folded) in known) or spelled(" ".join(words), folded) in known:
                found.add((start, end))
    return found


def without_overlaps(places: set[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(places, key=lambda place: (place[0] - place[1], place[0])):
        if all(end <= other[0] or other[1] <= start for other in kept):
            kept.append((start, end))
    return sorted(kept)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    words = draw(st.lists(WORDS, max_size=7))
    if draw(st.booleans()):
        return Document("d", words)
    text, places = "", []
    for word in words:
        text += draw(st.sampled_from(["", " ", "\n"]))
        places.append((len(text), len(text) + len(word)))
        text += word
    return Document("d", words, text, places)


@example(["aa"], [Document("d", ["a", "a", "a"], "aaa", [(0, 1), (1, 2), (2, 3)])], False)
@given(st.lists(PHRASES, min_size=1, max_size=8), st.lists(documents(), min_size=1, max_size=4), st.booleans())
def test_the_same_as_comparing_all_stretches(phrases: list[str], texts: list[Document], folded: bool) -> None:
    phrases = [*phrases, "a"]
    source = Dictionary("d", words=tuple(phrases), type="X", case="ignore" if folded else "exact")
    for document, votes in zip(texts, source.annotate(texts), strict=True):
        expected = without_overlaps(occurrences(document, phrases, folded))
        assert [vote[:2] for vote in votes or ()] == expected


@given(st.lists(PHRASES, min_size=1, max_size=8), documents())
def test_a_phrase_is_found_in_its_own_tokens(phrases: list[str], document: Document) -> None:
    if document.tokens:
        source = Dictionary("d", words=(*phrases, " ".join(document.tokens)), type="X")
        assert list(source.annotate([document])) == [[(0, len(document.tokens), "X")]]


def test_surrogates_and_blanks_in_tokens() -> None:
    words = ["New York", "\n", "lies", "\ud800", "New", "\t", "York"]
    source = Dictionary("d", words=("New York", "lies \ud800"), type="X")
    assert list(source.annotate([Document("d", words)])) == [[(0, 1, "X"), (2, 4, "X"), (4, 7, "X")]]
    assert list(source.annotate([Document("d", ["\n", " ", "New York"])])) == [[(2, 3, "X")]]
    assert list(source.annotate([Document("d", [" ", "\n"]), Document("e", [])])) == [[], []]
    assert list(source.annotate([])) == []


def test_units_are_found_alone_and_with_their_number() -> None:
    document = Document("d", ["10", "mg", "or", "20mg"], "10mg or 20mg", [(0, 2), (2, 4), (5, 7), (8, 12)])
    for phrase, expected in (("10mg", [(0, 2)]), ("mg", [(1, 2)]), ("10 mg", [(0, 2)]), ("20mg", [(3, 4)])):
        [votes] = Dictionary("d", words=(phrase,), type="X").annotate([document])
        assert [vote[:2] for vote in votes or ()] == expected


@pytest.mark.parametrize("words", [["Do", "n't", "Panic"], ["DO", "N'T", "PANIC"], ["Don't", "Panic"]])
@pytest.mark.parametrize("phrase", ["Don't Panic", "do n't panic"])
def test_what_tokenisers_cut_off(phrase: str, words: list[str]) -> None:
    [votes] = Dictionary("d", words=(phrase,), type="X", case="ignore").annotate([Document("d", words)])
    cut_alike = phrase == "Don't Panic" or len(words) == 3
    assert list(votes or ()) == [(0, len(words), "X")] * cut_alike


def test_scripts_without_blanks() -> None:
    source = Dictionary("d", words=("奥斯陆", "กรุงเทพ"), type="X")
    assert list(source.annotate([Document("d", list("在奥斯陆"))])) == [[(1, 4, "X")]]
    assert list(source.annotate([Document("d", ["กรุง", "เทพ"])])) == [[(0, 2, "X")]]


def test_folding_makes_no_difference_between_cases() -> None:
    source = Dictionary("d", words=("Straße", "ΟΔΟΣ", "µm"), type="X", case="ignore")
    [votes] = source.annotate([Document("d", ["STRASSE", "οδος", "μM", "Strase"])])
    assert [vote[:2] for vote in votes or ()] == [(0, 1), (1, 2), (2, 3)]


def test_places_in_the_string() -> None:
    words = ["A", "-", "T", ",", "x"]
    laid = Laid.of(words, np.array([2, 4]), np.zeros(5, bool))
    assert laid.text == " A - T \n, x \n"
    shown = [laid.text[start:end] for start, end in zip(laid.starts, laid.ends, strict=True)]
    assert shown == [" A ", "-", " T ", ",", " x "]
    assert all(one <= two for places in (laid.starts, laid.ends) for one, two in pairwise(places))


def test_many_phrases_are_spelled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    phrases = ["a b", "", "c-d", " \n", "E"] * 3
    whole = spellings(phrases)
    monkeypatch.setattr("tagweave.sources.phrase_matching._AT_ONCE", 4)
    assert spellings(phrases) == whole
    assert whole[:5] == [" a b ", "", " c - d ", "", " E "]


def test_hits_apart() -> None:
    def hits(*rows: tuple[int, int, int]) -> Hits:
        kinds, first, last = np.array(rows, np.int64).reshape(-1, 3).T
        return Hits(kinds, first, last)

    joined = hits((0, 4, 6)).and_apart(hits((1, 0, 2), (2, 5, 8), (3, 3, 4)))
    assert list(zip(joined.kinds.tolist(), joined.first.tolist(), joined.last.tolist(), strict=True)) == [
        (1, 0, 2),
        (3, 3, 4),
        (0, 4, 6),
    ]
    assert len(hits().longest().first) == 0
    assert hits().and_apart(hits((1, 0, 2))).kinds.tolist() == [1]


def test_pickled_without_what_was_built() -> None:
    source = Dictionary("d", words={"LOC": ("Oslo",), "PER": ("Ada",)})
    source.load()
    sent = pickle.dumps(source)
    assert len(sent) < 1000
    assert list(pickle.loads(sent).annotate([Document("d", ["Ada", "Oslo"])])) == [[(0, 1, "PER"), (1, 2, "LOC")]]
