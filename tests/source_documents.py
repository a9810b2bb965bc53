"""Documents for the tests of sources."""

from tagweave.corpus import Document
from tagweave.formats.words import tokenize
from tagweave.pipelines import parse
from tagweave.sources import Source
from tagweave.sources.base import checked


def from_text(text: str, name: str = "d", group: str | None = None) -> Document:
    """A document whose tokens are words and marks."""
    places = tokenize(text)
    return Document(name, [text[start:end] for start, end in places], text, places, group)


def from_words(words: str, name: str = "d", group: str | None = None) -> Document:
    """A document of words divided by blanks."""
    places = tokenize(words, "whitespace")
    return Document(name, [words[start:end] for start, end in places], words, places, group)


def parsed(document: Document, pipeline: str = "en_core_web_sm") -> Document:
    """The document with the analysis of a pipeline."""
    (doc,) = parse([document], pipeline)
    return Document(document.id, document.tokens, document.text, document.characters, document.group, parse=doc)


def tagged(source: Source, document: Document) -> list[tuple[str, str]]:
    """The text and type of each vote, checked."""
    source.load()
    (votes,) = source.annotate([document])
    spans = checked(source, document, votes)
    assert spans is not None
    assert document.text is not None
    assert document.characters is not None
    return [
        (document.text[document.characters[span.start][0] : document.characters[span.end - 1][1]], span.type)
        for span in spans
    ]


def texts(source: Source, document: Document) -> list[str]:
    """The text of each vote."""
    return [text for text, _ in tagged(source, document)]
