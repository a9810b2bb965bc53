"""Strings find their places: always on whole tokens, never shifted, and only where they are."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import TagweaveWarning
from tagweave.formats.words import tokenize
from tagweave.sources import Numbers
from tagweave.sources.aligning import Finder, Unaligned, place

PIECES = [
    "a",
    "A",
    "b",
    " ",
    "  ",
    "\n",
    "-",
    "\u2013",
    "'",
    "\u2019",
    '"',
    "\u201c",
    "``",
    ".",
    "1",
    "22",
    "é",
    "e\u0301",
]
PIECES += ["😀", "👩\u200d👧", "ﬁ", "İ", "ß", "\u200b", "\u00ad", "…", "New York", "york", "\u0301", "Ⅳ", "½"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(text=TEXTS, surface=TEXTS, whole=st.booleans())
def test_every_place_is_in_the_text_and_no_two_overlap(text: str, surface: str, whole: bool) -> None:
    finder = Finder.of(text, whole=whole)
    places = tokenize(text)
    found = finder.all(surface)
    assert found == sorted(found)
    assert all(end <= after for (_, end), (after, _) in zip(found, found[1:], strict=False))
    for start, end in found:
        assert 0 <= start < end <= len(text)
        if whole:
            assert start in {first for first, _ in places}
            assert end in {last for _, last in places}
    assert finder.first(surface) == (found[0] if found else None)


@given(text=TEXTS, data=st.data())
def test_what_stands_at_whole_tokens_is_found_where_it_stands(text: str, data: st.DataObject) -> None:
    places = tokenize(text)
    if not places:
        return
    first = data.draw(st.integers(0, len(places) - 1))
    last = data.draw(st.integers(first, len(places) - 1))
    surface = text[places[first][0] : places[last][1]]
    others = Finder.of(text).all(surface)
    begins = text[slice(*places[first])]  # not with an accent alone, on something that cannot be seen
    if any(sign.isprintable() and sign not in "\u0301" for sign in begins):
        assert others
        start = places[first][0]
        assert any(begin <= start < end or start <= begin < places[last][1] for begin, end in others)


@given(text=TEXTS, surface=TEXTS, data=st.data())
def test_places_that_are_taken_are_left_alone(text: str, surface: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    finder = Finder.of(text)
    found = [*finder.all(surface, [(start, end)]), finder.first(surface, [(start, end)])]
    assert all(place is None or place[1] <= start or end <= place[0] for place in found)


@given(text=TEXTS, surface=TEXTS)
def test_first_again_and_again_gives_all(text: str, surface: str) -> None:
    finder = Finder.of(text)
    taken: list[tuple[int, int]] = []
    while (place := finder.first(surface, taken)) is not None:
        taken.append(place)
    assert taken == finder.all(surface)


@pytest.mark.parametrize(
    ("text", "surface", "expected"),
    [
        ("He saw Paris.", "Paris", ["Paris"]),
        ("Parisian Paris", "Paris", ["Paris"]),
        ("Paris, paris, PARIS", "Paris", ["Paris"]),
        ("The PARIS talks", "Paris", ["PARIS"]),
        ("What is it?", "IT", []),
        ("Zoë and Bjork", "Zoe", []),
        ("Zoe\u0308 Smith", "Zoe Smith", ["Zoe\u0308 Smith"]),
        ("Wal - Mart grew", "Wal-Mart", ["Wal - Mart"]),
        ("O\u2019Hara \u2013 he said", "O'Hara - he", ["O\u2019Hara \u2013 he"]),
        ("the `` New Deal '' of", '"New Deal"', ["`` New Deal ''"]),
        ("San\n  Francisco", "San Francisco", ["San\n  Francisco"]),
        ("🚀 Elon Musk 🚀", "Elon Musk", ["Elon Musk"]),
        ("soft\u00adware firm", "software", ["soft\u00adware"]),
        ("the University of Oxfrod said", "University of Oxford", ["University of Oxfrod"]),
        ("on 12 May 2018 he", "12 May 2019", []),
        ("Jon Smith met Jon Smith", "John Smith", ["Jon Smith", "Jon Smith"]),
        ("Ann", "Dan Brown", []),
        ("anything", "", []),
        ("anything", " \u200b ", []),
        ("", "anything", []),
    ],
)
def test_what_counts_as_the_same(text: str, surface: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in Finder.of(text).all(surface)] == expected


def test_the_way_without_blanks_is_open_where_tokens_are() -> None:
    text = "他在奥斯陆住"
    places = tokenize(text, "characters")
    assert Finder(text, places).all("奥斯陆") == [(2, 5)]
    assert Finder(text, tokenize(text, "whitespace")).all("奥斯陆") == []


def test_parts_of_tokens_only_on_demand() -> None:
    text = "A German-speaking town in Germanyland."
    places = tokenize(text, "whitespace")
    assert Finder(text, places).all("German") == []
    assert Finder(text, places, whole=False).all("German") == [(2, 8)]


def test_no_similarity_above_100() -> None:
    assert Finder.of("Jon Smith", similarity=101).all("John Smith") == []
    assert Finder.of("Jon Smith", similarity=100).all("John Smith") == []
    assert Finder.of("Jon Smith", similarity=0).all("John Smith") == [(0, 9)]


def surfaces(document: Document, spans: list[Span]) -> list[tuple[str, str]]:
    assert document.text is not None
    assert document.characters is not None
    places = document.characters
    return [(document.text[places[start][0] : places[end - 1][1]], name) for start, end, name, _ in spans]


def test_the_inner_name_is_kept_out() -> None:
    document = from_text("New York is not York.")
    spans, lost = place(document, [("York", "LOC"), ("New York", "LOC")])
    assert surfaces(document, spans) == [("New York", "LOC"), ("York", "LOC")]
    assert lost == []
    spans, lost = place(from_text("New York"), [("York", "LOC"), ("New York", "LOC")])
    assert len(spans) == 1
    assert lost == []


def test_as_often_as_listed() -> None:
    document = from_text("Oslo, Oslo and Oslo")
    assert len(place(document, [("Oslo", "LOC")])[0]) == 3
    spans, lost = place(document, [("Oslo", "LOC")] * 2, occurrences="listed")
    assert [span.start for span in spans] == [0, 2]
    spans, lost = place(document, [("Oslo", "LOC")] * 4, occurrences="listed")
    assert (len(spans), lost) == (3, [("Oslo", "LOC")])


def test_types_may_share_a_place() -> None:
    document = from_text("Washington met")
    spans, _ = place(document, [("Washington", "PER"), ("Washington", "LOC")])
    assert surfaces(document, spans) == [("Washington", "LOC"), ("Washington", "PER")]


def test_parts_of_tokens_take_the_token_in_on_demand() -> None:
    document = from_words("A German-speaking town.")
    assert place(document, [("German", "MISC"), ("town", "X")]) == ([], [("German", "MISC"), ("town", "X")])
    spans, lost = place(document, [("German", "MISC"), ("town", "X")], alignment="expand")
    assert surfaces(document, spans) == [("German-speaking", "MISC"), ("town.", "X")]
    spans, lost = place(document, [("German", "MISC")], alignment="contract")
    assert (spans, lost) == ([], [("German", "MISC")])


@given(words=st.lists(st.sampled_from(["a", "b", "Ab", "é", "-"]), max_size=6), data=st.data())
def test_votes_say_what_was_named(words: list[str], data: st.DataObject) -> None:
    document = from_words(" ".join(words))
    named = data.draw(st.lists(st.tuples(st.sampled_from(["a", "b", "a b", "Ab -", "zz"]), st.sampled_from("XY"))))
    spans, lost = place(document, named)
    assert {(text.replace(" ", ""), name) for text, name in surfaces(document, spans)} <= {
        (text.replace(" ", ""), name) for text, name in named
    }
    assert {text for text, _ in lost} >= {text for text, _ in named if text == "zz"}


def test_what_has_no_place_is_said_once_counted_always_and_written_down(tmp_path: Path) -> None:
    source = Numbers("n")
    unaligned = Unaligned(source, tmp_path / "lost.jsonl")
    with pytest.warns(TagweaveWarning, match=r"document 'd', LOC 'Oslø'\); all are in .*lost.jsonl"):
        unaligned.add(from_words("a"), [("Oslø", "LOC")])
    unaligned.add(from_words("a"), [])
    unaligned.add(from_words("a"), [("b", "X"), ("c", "X")])
    assert source.counters == {"not in the text": 3}
    lines = (tmp_path / "lost.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"source": "n", "id": "d", "label": "LOC", "text": "Oslø"}
    assert len(lines) == 3


def test_a_long_text_takes_little_time() -> None:
    finder = Finder.of("One of the words here is not like others, number 7. " * 2000)
    begin = time.perf_counter()
    assert finder.all("Universty of Oxford") == []
    assert time.perf_counter() - begin < 5
