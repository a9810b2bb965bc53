from time import monotonic

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words, tagged, texts
from tagweave.corpus import Document
from tagweave.errors import SourceError, SourceTimeout, UsageError
from tagweave.sources import Regex, create_source

# Patterns with nested or overlapping repetition, and texts that nearly match them.
CATASTROPHES = [
    (r"^(a+)+$", "a" * 40 + "!"),
    (r"^(a+)+c", "a" * 40 + "!c"),
    (r"(a|a)*$", "a" * 40 + "!"),
    (r"(a|aa)+$", "a" * 60 + "!"),
    (r"^(a*)*c", "a" * 40 + "!c"),
    (r"^(a|b|ab)*c", "ab" * 40 + "!c"),
    (r"([a-zA-Z]+)*1", "a" * 40 + "!1"),
    (r"(.*a){20}b", "a" * 60 + "\nb"),
    (r"(x+x+)+y", "x" * 2000),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60 + "!"),
    (r"^(\w+\s?)*$", "word " * 20 + "!"),
    (r"^([0-9a-z]+[-.]?)+@", "a" * 60 + "!@"),
    (r"(\d+)*(\d+)*(\d+)*x", "1" * 300 + "!x"),
    (r"(.+)+\1x", "ab" * 200 + "\nx"),
    (r"^(?:a?){40}a{40}c", "a" * 40 + "!c"),
    (r"(\s*\w*)*;", "some words here " * 10 + "!;"),
    (r"<(\w+)(\s+\w+=.*)*\s*></\1>", "<a " + 'b="c" ' * 30 + ">!</a>"),
    (r"((a{0,5}){0,5}){0,5}[b]", "a" * 60 + "!b"),
    (r"(\w|\d)*\1(\w|\d)*\2=", "1" * 60 + "!="),
    (r"(?:(.*bar){e<=3}(.*)*baz){e<=4};", "fxo brx " * 60 + "!;"),
]


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHES, ids=range(len(CATASTROPHES)))
def test_no_pattern_takes_longer_than_it_may(pattern: str, text: str) -> None:
    source = Regex("evil", pattern, "X", timeout=0.05)
    document = Document("long", [text], text, [(0, len(text))])
    began = monotonic()
    try:
        source.find(document)
    except SourceTimeout as error:
        assert "source 'evil', document 'long'" in str(error)
        assert repr(pattern) in str(error)
    assert monotonic() - began < 0.55


def test_some_of_them_do_run_out_of_time() -> None:
    late = 0
    for pattern, text in CATASTROPHES:
        try:
            Regex("evil", pattern, "X", timeout=0.01).find(Document("long", [text], text, [(0, len(text))]))
        except SourceTimeout:
            late += 1
    assert late >= 5


def test_the_time_is_for_all_patterns_together() -> None:
    pattern, text = CATASTROPHES[8]
    source = Regex("evil", (pattern,) * 20, "X", timeout=0.05)
    began = monotonic()
    with pytest.raises(SourceTimeout, match="longer than 0.05 s on 2000 characters"):
        source.find(Document("long", [text], text, [(0, len(text))]))
    assert monotonic() - began < 0.55
    assert issubclass(SourceTimeout, SourceError)


def test_groups_by_number_and_name() -> None:
    document = from_text("Take 5 mg or 7 ml.")
    assert texts(Regex("r", r"(\d+) (?<unit>m\w)", "X"), document) == ["5 mg", "7 ml"]
    assert texts(Regex("r", r"(\d+) (?<unit>m\w)", "X", group=1), document) == ["5", "7"]
    assert texts(Regex("r", r"(\d+) (?<unit>m\w)", "X", group="unit"), document) == ["mg", "ml"]
    assert texts(Regex("r", r"(\d+) (mg)?", "X", group=2), document) == ["mg"]
    for group in (3, "units"):
        with pytest.raises(UsageError, match=f"has no group {group!r}"):
            Regex("r", r"(\d+) (?<unit>m\w)", "X", group=group)


def test_several_patterns_and_flags() -> None:
    settings = {"name": "r", "type": "X", "patterns": ["oslo", "rome|ROME"], "flags": "ignorecase"}
    assert texts(create_source("regex", settings), from_text("Oslo, Rome")) == ["Oslo", "Rome"]
    with pytest.raises(UsageError, match="no value of Regex.flags is called 'ignore'. Did you mean 'ignorecase'"):
        create_source("regex", {**settings, "flags": ["ignore"]})


def test_a_pattern_of_toml_keeps_its_commas() -> None:
    source = create_source("regex", {"name": "r", "type": "X", "patterns": r"\d{1,3}", "group": "0"})
    assert texts(source, from_text("a 123 b")) == ["123"]


def test_matches_inside_tokens() -> None:
    document = from_text("Colitis and gastritis")
    assert texts(Regex("r", "itis", "X"), document) == []
    assert texts(Regex("r", "itis", "X", alignment="expand"), document) == ["Colitis", "gastritis"]
    assert texts(Regex("r", "itis and gas", "X", alignment="expand"), document) == ["Colitis and gastritis"]
    assert texts(Regex("r", "itis and gas", "X", alignment="contract"), document) == ["and"]


def test_blanks_at_the_ends_and_empty_matches() -> None:
    document = from_text("the  old   house")
    assert texts(Regex("r", r"\s+old\s+", "X"), document) == ["old"]
    assert texts(Regex("r", r"x*|\s*", "X", alignment="expand"), document) == []


@pytest.mark.parametrize("type", ["X", "O"])
def test_votes_against_entities(type: str) -> None:
    assert tagged(Regex("r", "old", type), from_text("the old")) == [("old", type)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("😀 Oslo 👩‍👩‍👧 Oslo", ["Oslo", "Oslo"]),
        ("𝔘𝔫𝔦 Oslo", ["Oslo"]),
        ("cafe\u0301 Oslo e\u0301 Oslo", ["Oslo", "Oslo"]),
        ("Oslo\u0301 Oslo", ["Oslo"]),
        ("👍🏽Oslo", ["Oslo"]),
        ("عبد Oslo अन्न", ["Oslo"]),
        ("", []),
    ],
)
def test_offsets_count_code_points(text: str, expected: list[str]) -> None:
    for document in (from_text(text), from_words(text)):
        found = texts(Regex("r", "Oslo", "X"), document)
        assert found == [token for token in document.tokens if token == "Oslo"]
    assert texts(Regex("r", "Oslo", "X"), from_text(text)) == expected


def test_patterns_that_are_none() -> None:
    for pattern in ("(", "a{2,1}", "[", r"\p{Nothing}"):
        with pytest.raises(UsageError, match="is no regular expression"):
            Regex("r", pattern, "X")
    with pytest.raises(UsageError, match="'r' has no patterns"):
        Regex("r", (), "X")


@given(st.text("ab é😀\u0301-", max_size=20), st.sampled_from(["a", "a+b?", "[ab]+", "é|😀", r"\S+", r"b\b", "a b"]))
def test_strict_votes_are_the_matches_that_are_whole_tokens(text: str, pattern: str) -> None:
    document = from_text(text)
    starts, ends = ({place[side] for place in document.characters or ()} for side in (0, 1))
    expected = [m[0] for m in regex.finditer(pattern, text) if m.start() in starts and m.end() in ends]
    assert texts(Regex("r", pattern, "X"), document) == expected


@pytest.mark.parametrize("timeout", [0.0, -5.0, float("nan"), float("inf"), 1e29])
def test_times_that_are_none(timeout: float) -> None:
    with pytest.raises(UsageError, match="timeout must be above 0"):
        Regex("r", "a", "X", timeout=timeout)
