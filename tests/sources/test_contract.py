"""What all kinds of sources keep to: votes on whole tokens, settings from files, copies in other processes."""

import pickle
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words
from tagweave.annotations import Span
from tagweave.config import setting_fields
from tagweave.corpus import Document
from tagweave.sources import SOURCES, Source, create_source
from tagweave.sources.base import checked
from tagweave.sources.words import Phrases, longest, runs

# One of each kind that needs no pipeline; what is found differs from text to text.
SETTINGS: dict[str, dict[str, Any]] = {
    "abbreviations": {"of": "s", "types": ["X"], "letters": False},
    "affixes": {"type": "X", "suffixes": ["s", "é", "1"], "prefixes": "a"},
    "dates": {},
    "money": {},
    "numbers": {},
    "outside-words": {"words": ["a", "5", "may"]},
    "punctuation": {},
    "regex": {"type": "X", "patterns": [r"\w+", r"[^a-m]{1,3}", r"\d"], "alignment": "expand"},
    "stop-words": {},
    "triggers": {"type": "X", "triggers": ["a", "5 m"], "parts_of_speech": [], "window": 1},
}
PIECES = [
    *["a", "A", "may", "May", "5", "12", "1", " ", "  ", "\n", "$", "%", ".", ",", "-", ":", "(", ")", "é", "e\u0301"],
    *["😀", "👩\u200d👧", "ﬁ", "İ", "ß", "million", "one", "am", "2024", "st", "m"],
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@pytest.mark.parametrize("kind", sorted(SETTINGS))
@given(text=TEXTS, words=st.booleans())
def test_every_vote_lies_on_whole_tokens(kind: str, text: str, words: bool) -> None:
    source = create_source(kind, {"name": "x", **SETTINGS[kind]})
    document = from_words(text) if words else from_text(text)
    document = Document(
        **{**vars(document), "sources": {"s": [Span(i, i + 1, "X") for i in range(len(document.tokens))]}}
    )
    (votes,) = source.annotate([document])
    spans = checked(source, document, votes)
    assert spans is not None
    assert spans == sorted(spans, key=lambda span: span.start) or kind == "regex"


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_a_copy_in_another_process_says_the_same(kind: str) -> None:
    source = create_source(kind, {"name": "x", **SETTINGS[kind]})
    document = from_text("On 12 May 2024 a man paid $5 (USD) for 1 of 12 apples.")
    document = Document(**{**vars(document), "sources": {"s": []}})
    source.load()
    copy = pickle.loads(pickle.dumps(source))
    assert copy == source
    assert [list(votes or ()) for votes in copy.annotate([document])] == [
        list(votes or ()) for votes in source.annotate([document])
    ]


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_kinds_have_names_and_descriptions(kind: str) -> None:
    cls = SOURCES[kind]
    assert cls.kind == kind
    assert cls.kind == cls.kind.lower()
    assert cls.__doc__
    assert not cls.__doc__.startswith(f"{cls.__name__}(")
    assert issubclass(cls, Source)


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_settings_come_from_files(kind: str) -> None:
    names = [field.name for field in setting_fields(SOURCES[kind])]
    assert names[0] == "name"
    assert not [name for name in names if name.startswith("_")]
    given = {field.name for field in setting_fields(SOURCES[kind]) if field.default is not MISSING}
    assert {"description", "hidden"} <= given


# What they share


@given(st.lists(st.booleans()))
def test_runs_cover_what_is_marked(marked: list[bool]) -> None:
    found = list(runs(marked))
    covered = {token for start, end in found for token in range(start, end)}
    assert covered == {token for token, mark in enumerate(marked) if mark}
    assert all(after > end for (_, end), (after, _) in zip(found, found[1:], strict=False))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.sampled_from("AB"))))
def test_longest_keeps_what_does_not_overlap(drawn: list[tuple[int, int, str]]) -> None:
    spans = [(start, start + length, label) for start, length, label in drawn]
    kept = longest(spans)
    assert all(end <= after for (_, end, _), (after, _, _) in zip(kept, kept[1:], strict=False))
    for start, end, _ in spans:
        rivals = [span for span in kept if span[0] < end and start < span[1]]
        assert rivals
        assert any(other - first >= end - start for first, other, _ in rivals)


@given(st.lists(st.sampled_from(["a", "b", "ab", "c"]), max_size=8), st.sampled_from(["a", "ab", "a b", "ab c", "b a"]))
def test_phrases_are_found_at_whole_tokens(words: list[str], phrase: str) -> None:
    found = {(start, end) for start, end, _ in Phrases({0: phrase}).find(words)}
    expected = set()
    parts = phrase.split()
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            joined = "".join(words[start:end])
            cuts = {len("".join(words[start:middle])) for middle in range(start, end + 1)}
            if joined == "".join(parts) and {len("".join(parts[:n])) for n in range(len(parts) + 1)} <= cuts:
                expected.add((start, end))
    assert found == expected


def test_every_kind_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    assert not [kind for kind in SOURCES if f"`{kind}`" not in page]
