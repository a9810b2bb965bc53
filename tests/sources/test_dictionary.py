"""Dictionaries: what they find, in text and in tokens, and what their settings do."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import DataError, FormatError, TagweaveError, UsageError
from tagweave.formats.words import tokenize
from tagweave.sources import Dictionary, create_source
from tagweave.sources.outside import ENGLISH_STOP_WORDS
from tagweave.sources.phrase_files import Phrase, read_phrases

WORDS = st.sampled_from(["a", "b", "A", "-", "ab", "'s", "İ", "🚀", "ß"])


def document_of(text: str) -> Document:
    characters = tokenize(text)
    return Document("d", [text[start:end] for start, end in characters], text, characters)


def found(source: Dictionary, *documents: Document) -> list[list[str]]:
    """The words of each vote, with its type where it is not X."""
    return [
        [
            f"{' '.join(document.tokens[start:end])}{'' if name == 'X' else f' {name}'}"
            for start, end, name in votes or ()
        ]
        for document, votes in zip(documents, source.annotate(documents), strict=True)
    ]


def words_of(*words: str, **settings: object) -> Dictionary:
    return Dictionary("d", words=words, type="X", **settings)  # type: ignore[arg-type]


@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=6, unique=True),
    st.lists(st.lists(WORDS, max_size=8), min_size=1, max_size=3),
)
def test_finds_what_a_search_token_by_token_finds(phrases: list[tuple[str, ...]], texts: list[list[str]]) -> None:
    source = words_of(*(" ".join(phrase) for phrase in phrases))
    documents = [Document(str(number), tokens) for number, tokens in enumerate(texts)]
    # Blanks around marks do not count, so phrases are compared without them.
    known = {"".join(_squeezed(phrase)) for phrase in phrases}
    for document, votes in zip(documents, source.annotate(documents), strict=True):
        places = [
            (start, end)
            for start in range(len(document.tokens))
            for end in range(start + 1, len(document.tokens) + 1)
            if "".join(_squeezed(document.tokens[start:end])) in known
        ]
        kept: list[tuple[int, int]] = []
        for start, end in sorted(places, key=lambda place: (place[0] - place[1], place[0])):
            if all(end <= other[0] or other[1] <= start for other in kept):
                kept.append((start, end))
        assert sorted(vote[:2] for vote in votes or ()) == sorted(kept)


def _squeezed(tokens: Sequence[str]) -> list[str]:
    gaps = [
        " " if one[-1:].isalnum() and two[:1].isalnum() else "" for one, two in zip(tokens, tokens[1:], strict=False)
    ]
    return [word + gap for word, gap in zip(tokens, [*gaps, ""], strict=True)]


@pytest.mark.parametrize(
    ("phrase", "tokens"),
    [
        ("Wal-Mart", ["Wal-Mart"]),
        ("Wal-Mart", ["Wal", "-", "Mart"]),
        ("Wal - Mart", ["Wal-Mart"]),
        ("AT&T", ["AT", "&", "T"]),
        ("U.S. Bank", ["U.S.", "Bank"]),
        ("U.S. Bank", ["U", ".", "S", ".", "Bank"]),
        ("Macy's", ["Macy", "'s"]),
        ("glucose ( 6 ) phosphate", ["glucose(6)", "phosphate"]),
        ("New  York", ["New", "York"]),
    ],
)
def test_it_does_not_matter_how_text_and_phrases_were_cut(phrase: str, tokens: list[str]) -> None:
    [votes] = words_of(phrase).annotate([Document("d", ["of", *tokens, "and"])])
    assert list(votes or ()) == [(1, 1 + len(tokens), "X")]


def test_a_phrase_begins_and_ends_with_a_token() -> None:
    assert found(words_of("York", "art"), Document("d", ["Yorkers", "NewYork", "start", "York", "art"])) == [
        ["York", "art"]
    ]


def test_phrases_do_not_go_over_the_end_of_a_document() -> None:
    documents = [Document("1", ["New"]), Document("2", ["York"]), Document("3", []), Document("4", ["New", "York"])]
    assert found(words_of("New York"), *documents) == [[], [], [], ["New York"]]


def test_lower_case_that_grows_moves_nothing() -> None:
    text = "İzel and ORLIN left the STRASSE of İİ Vestara"
    document = document_of(text)
    [votes] = words_of("orlin", "vestara", case="ignore").annotate([document])
    places = [(document.characters or ())[start] for start, _, _ in votes or ()]  # type: ignore[misc]
    assert [text[start:end] for start, end in places] == ["ORLIN", "Vestara"]


def test_emoji_and_marks_move_nothing() -> None:
    assert found(words_of("Oslo", "Zoë"), document_of("🚀🚀 Zoe\u0308 in Oslo — \u202bשלום\u202c Zoë")) == [
        ["Oslo", "Zoë"]
    ]


def test_tokens_with_nul_are_found_around() -> None:
    assert found(words_of("Oslo"), Document("d", ["a\0b", "Oslo", "\0"])) == [["Oslo"]]


def test_case() -> None:
    document = Document("d", ["Acme", "ACME", "acme", "aCme"])
    assert found(words_of("Acme"), document) == [["Acme"]]
    assert found(words_of("Acme", case="capitals"), document) == [["Acme", "ACME"]]
    assert found(words_of("Acme", case="ignore"), document) == [["Acme", "ACME", "acme", "aCme"]]


def test_more_capitals_than_listed() -> None:
    words = ["chronic pain", "Chronic pain", "Chronic Pain", "CHRONIC PAIN", "chronic Pain", "cHRONIC PAIN"]
    documents = [Document(word, word.split()) for word in words]
    votes = found(words_of("chronic pain", case="capitals"), *documents)
    assert [bool(found) for found in votes] == [True, True, True, True, False, False]
    assert found(words_of("iPad", case="capitals"), Document("d", ["iPad", "IPad", "IPAD", "Ipad", "ipad"])) == [
        ["iPad", "IPad", "IPAD"]
    ]


def test_lists_of_words_by_type() -> None:
    document = Document("d", ["Ada", "in", "Oslo"])
    words = {"PER": ("Ada", "Oslo"), "CITY": ("Oslo",)}
    assert found(Dictionary("d", words=words), document) == [["Ada PER", "Oslo PER", "Oslo CITY"]]
    assert found(Dictionary("d", words=words, rename={"CITY": "LOC"}, type="LOC"), document) == [["Oslo LOC"]]
    settings = {"name": "d", "words": {"PER": ["Ada"]}, "case": "ignore"}
    assert create_source("dictionary", settings).types == ("PER",)


def test_phrases_that_are_no_entities() -> None:
    source = Dictionary("d", words=("as well as",), type="O", exclude=tuple(ENGLISH_STOP_WORDS))
    assert source.types == ()
    [document] = Runner([source]).run([Document("d", ["Oslo", "as", "well", "as", "Rome"])])
    assert document.sources["d"] == (Span(1, 4, "O"),)


def test_words_of_grammar_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "companies.txt"
    path.write_text("The\nIt\nThe Who\n?\n", encoding="utf-8")
    source = Dictionary("d", path, type="X", exclude=tuple(ENGLISH_STOP_WORDS))  # type: ignore[arg-type]
    assert found(source, Document("d", ["The", "Who", ",", "It", "The", "?"])) == [["The Who", "?"]]


def test_what_is_excluded_makes_room_for_shorter_phrases() -> None:
    document = Document("d", ["the", "Vestara", "Grand", "Canal", "Museum", "opened"])
    source = words_of("Vestara Grand Canal Museum", "Vestara Grand", not_over=("blocked",))
    assert found(source, document) == [["Vestara Grand Canal Museum"]]
    blocked = Document("d", document.tokens, sources={"blocked": [Span(3, 5, "ORG")]})
    assert found(source, blocked) == [["Vestara Grand"]]
    assert found(words_of("Vestara Grand Canal Museum", "Canal", max_tokens=2), document) == [["Canal"]]


def test_sizes_and_exceptions() -> None:
    document = Document("d", ["WT1", "and", "Big", "Sur", "or", "Ohio"])
    everything = ("WT1", "Big Sur", "Ohio", "or")
    assert found(words_of(*everything, min_length=3), document) == [["WT1", "Big Sur", "Ohio"]]
    assert found(words_of(*everything, max_length=4), document) == [["WT1", "or", "Ohio"]]
    assert found(words_of(*everything, min_tokens=2), document) == [["Big Sur"]]
    assert found(words_of(*everything, exclude=("wt1", "OR")), document) == [["Big Sur", "Ohio"]]


def test_side_by_side() -> None:
    document = Document("d", ["game", "sound", "and", "sound"])
    assert found(words_of("game", "sound"), document) == [["game", "sound", "sound"]]
    assert found(words_of("game", "sound", join=True), document) == [["game sound", "sound"]]


def test_whole_names() -> None:
    source = words_of("Bank", "York", "reading", "Reading", proper=True)
    sentence = Document("d", ["He", "left", "York", "for", "West", "Bank", ",", "reading", "in", "Reading"])
    assert found(source, sentence) == [["York", "Reading"]]
    assert found(words_of("York", case="ignore", proper=True), Document("d", ["YORK", "1996"])) == [["YORK"]]


def test_several_types_of_a_phrase(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    path.write_text("LOC\tWashington\nPER\tWashington\nLOC\tOslo\n", encoding="utf-8")
    document = Document("d", ["Washington", "or", "Oslo"])
    assert found(Dictionary("d", (path,)), document) == [["Washington LOC", "Washington PER", "Oslo LOC"]]
    assert Dictionary("d", (path,)).types == ("LOC", "PER")
    assert found(Dictionary("d", (path,), type="PER"), document) == [["Washington PER"]]
    assert found(Dictionary("d", (path,), rename={"PER": "X", "LOC": "X"}), document) == [["Washington", "Oslo"]]


def test_base_forms() -> None:
    pytest.importorskip("spacy")
    source = words_of("tumor", "brain tumor", case="ignore", lemma=True, pipeline="en_core_web_sm")
    [document] = Runner([source]).run([Document("d", ["Two", "brain", "tumors", "and", "one", "tumor", "."])])
    votes = sorted(document.sources["d"] or ())
    assert [tuple(vote[:2]) for vote in votes] == [(1, 3), (5, 6)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs phrases .files. or words"),
        ({"words": ("a",)}, "words without a type"),
        ({"words": "a", "type": "X"}, "must be a list of phrases"),
        ({"words": ("a",), "type": "X", "case": "any"}, "no case is called 'any'"),
        ({"words": ("a",), "type": "X", "lemma": True}, "name the pipeline"),
    ],
)
def test_wrong_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Dictionary("d", **settings)  # type: ignore[arg-type]


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(DataError, match="leave no phrase"):
        words_of("ab", min_length=3).load()


FILES = {
    "a.txt": ("\ufeffOslo\r\n\r\nNew York  \r\n", [Phrase("Oslo", None), Phrase("New York", None)]),
    "a.tsv": ("LOC\tOslo\nRome\n", [Phrase("Oslo", "LOC"), Phrase("Rome", None)]),
    "a.csv": (
        'type,phrase\nLOC,"Washington, D.C."\n,Rome\n',
        [Phrase("Washington, D.C.", "LOC"), Phrase("Rome", None)],
    ),
    "a.json": ('{"LOC": ["Oslo", " "], "PER": ["Ada"]}', [Phrase("Oslo", "LOC"), Phrase("Ada", "PER")]),
    "b.json": ('\ufeff["Oslo"]', [Phrase("Oslo", None)]),
    "a.jsonl": (
        '{"label": "ORG", "pattern": "Acme"}\n{"label": "LOC", "pattern": [{"LOWER": "new"}, {"LOWER": "york"}]}\n',
        [Phrase("Acme", "ORG"), Phrase("new york", "LOC", lower=True)],
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_files_of_phrases(name: str, packed: bool, tmp_path: Path) -> None:
    text, expected = FILES[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert list(read_phrases(path)) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\tc\n", "a.tsv, line 1: a phrase, or type, tab and phrase"),
        ("a.csv", "x,y\n", "a.csv, line 1: no column is called phrase"),
        ("a.csv", "type,phrase\nLOC\n", "a.csv, line 2: 1 cells"),
        ("a.csv", "phrase,type\nOs\rlo,LOC\n", "a.csv, line 2: new-line character"),
        ("a.csv", "phrase\n" + "x" * 200_000 + "\n", "a.csv, line 2: field larger"),
        ("a.json", '{"LOC": "Oslo"}', "a.json: a list of phrases"),
        ("a.json", "[1]", "a.json: a list of phrases"),
        ("a.json", "[", "a.json: not JSON"),
        ("a.jsonl", "[]", "a.jsonl, line 1: an object with 'label' and 'pattern'"),
        (
            "a.jsonl",
            '{"label": "X", "pattern": [{"POS": "NOUN"}]}',
            "line 1: the pattern .* is more than words",
        ),
        ("a.jsonl", '{"label": "X", "pattern": [1]}', "line 1: 'pattern' must be a text or a list"),
        ("a.jsonl", '{"label": "X", "pattern": 5}', "line 1: 'pattern' must be a text or a list"),
        ("a.xls", "", "lists of phrases end in"),
    ],
)
def test_files_that_are_none(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(FormatError, match=message):
        list(read_phrases(path))


def test_patterns_in_lower_case_ignore_case(tmp_path: Path) -> None:
    path = tmp_path / "patterns.jsonl"
    rows = [{"label": "X", "pattern": [{"LOWER": "acme"}]}, {"label": "X", "pattern": "Zorn"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert found(Dictionary("d", (path,)), Document("d", ["ACME", "Zorn", "zorn"])) == [["ACME", "Zorn"]]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TagweaveError, match="none.txt cannot be read"):
        Dictionary("d", (tmp_path / "none.txt",), type="X").load()
