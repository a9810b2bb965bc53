"""What every format that is read and written keeps: a corpus goes through a file and back."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formats.mention_texts import ASTRAL, EMOJI, HEBREW
from tagweave import Corpus, Document, Span, read, write
from tagweave.formats import FORMATS, FormatWarning
from tagweave.formats.words import tokenize

CRLF = "She wrote\r\nto Ada\r\n\r\nin Oslo."
TEXTS = {"emoji": EMOJI, "hebrew": HEBREW, "astral": ASTRAL, "lines": CRLF}

BOTH = [name for name, format in FORMATS.items() if format.documents is not None and format.write is not None]

ENDINGS = {"doccano": ".jsonl", "prodigy": ".jsonl", "brat": ""}
READING: dict[str, dict[str, Any]] = {
    "label-studio": {"entities": "entities"},
    "argilla": {"entities": "suggestions"},
    "semeval": {"type": "X"},
}
WITHOUT_ENTITIES = {"text"}
WITHOUT_TEXT = {"conll", "chmm-alt"}
WITHOUT_LINES = {"text", "conllu", "pubtator"}
"""Formats that are lines themselves: line ends in texts are written as blanks."""
LOSSY = {"text", "conll", "chmm-alt"}
"""Formats that tell that they cannot hold one of the two."""
WITHOUT_IDS = {"text", "conll"}
WITH_SOURCES = ("jsonl", "docbin", "datasets", "parquet", "label-studio", "argilla")
"""Formats that tell a source that did not run from one that found nothing."""


def path_of(name: str, folder: Path) -> Path:
    """A file or folder with the ending of a format."""
    return folder / f"out{ENDINGS.get(name, (*FORMATS[name].suffixes, '')[0])}"


def corpus(texts: dict[str, str]) -> Corpus:
    """A document for each text, whose first two and last words are entities."""
    documents = []
    for name, text in texts.items():
        places = tokenize(text)
        tokens = [text[start:end] for start, end in places]
        spans = [Span(0, 2, "X"), Span(len(tokens) - 1, len(tokens), "X")]
        documents.append(Document(name, tokens, text=text, characters=places, entities=spans))
    return Corpus.from_documents(documents)


@pytest.mark.parametrize("name", BOTH)
def test_a_corpus_through_a_file(name: str, tmp_path: Path) -> None:
    texts = {key: text for key, text in TEXTS.items() if name not in WITHOUT_LINES or "\n" not in text}
    before = corpus(texts)
    path = path_of(name, tmp_path)
    with pytest.warns(FormatWarning) if name in LOSSY else nullcontext():
        write(before, path, format=name)
    after = read(path, format=name, **READING.get(name, {}))
    order = {key: number for number, key in enumerate(after.id_list)}
    for number, document in enumerate(before):
        found = after[number if name in WITHOUT_IDS else order[document.id]]
        assert found.tokens == document.tokens
        if name not in WITHOUT_ENTITIES:
            assert found.entities == document.entities
        if name not in WITHOUT_TEXT:
            assert (found.text, found.characters) == (document.text, document.characters)


@pytest.mark.parametrize("name", WITH_SOURCES)
def test_votes_through_a_file(name: str, tmp_path: Path) -> None:
    first, second, *others = corpus(TEXTS)
    documents = [
        replace(first, group="g", sources={"names": first.entities, "cities": []}),
        replace(second, sources={"names": [], "cities": second.entities}, entities=None),
        *(replace(document, sources={"names": None, "cities": []}) for document in others),
    ]
    before = Corpus.from_documents(documents)
    path = path_of(name, tmp_path)
    write(before, path, format=name)
    assert [*read(path, format=name, **READING.get(name, {}))] == [*before]
