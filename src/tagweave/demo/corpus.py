"""Reads the demo corpus: the text files of the package, with the votes of every source."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Literal

from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.demo.rules import SOURCES
from tagweave.errors import AlignmentError, FormatError

Split = Literal["train", "dev", "test"]

TYPES = ("Plant", "Problem", "Treatment")
"""The entity types of the corpus."""

TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’-]\w+)*|[^\w\s]")
"""A number; or a word, with the hyphens and apostrophes inside it; or one other mark. White space separates."""

MARKED = re.compile(r"\[([^\[\]]+)\]\((\w+)\)")
"""An entity in the text: `[vine weevil](Problem)`."""


def tokenise(text: str) -> list[tuple[int, int]]:
    """Start and end of each token of `text`, in code points.

    Example:
        >>> text = "Rosa 'New Dawn', two-year-old."
        >>> [text[start:end] for start, end in tokenise(text)]
        ['Rosa', "'", 'New', 'Dawn', "'", ',', 'two-year-old', '.']
    """
    return [match.span() for match in TOKEN.finditer(text)]


def parse_marked(line: str) -> tuple[str, list[tuple[int, int, str]]]:
    """Take the marks out of a line with inline gold.

    Returns:
        The plain text, and the entities as start and end in it (code points) and type.

    Raises:
        FormatError: a mark is incomplete or names a type that the corpus does not have.

    Example:
        >>> parse_marked("No [rust](Problem).")
        ('No rust.', [(3, 7, 'Problem')])
    """
    text, entities, done = "", [], 0
    for match in MARKED.finditer(line):
        text += line[done : match.start()]
        name, type_ = match.groups()
        if type_ not in TYPES:
            raise FormatError(f"Unknown type {type_!r} in {line!r}. Use one of {', '.join(TYPES)}.")
        entities.append((len(text), len(text) + len(name), type_))
        text, done = text + name, match.end()
    text += line[done:]
    if "[" in text or "]" in text:
        raise FormatError(f"Incomplete mark in {line!r}. Write an entity as [vine weevil](Problem).")
    return text, entities


def read_demo(split: Split) -> Corpus:
    """One split of the demo corpus: its sentences, the votes of every source, and in `dev` and `test` the gold.

    Raises:
        FormatError: a mark in the text cannot be read.
        AlignmentError: an entity begins or ends inside a token.

    Example:
        >>> corpus = read_demo("train")
        >>> len(corpus), corpus.types, corpus.entities
        (477, ('Plant', 'Problem', 'Treatment'), None)
        >>> corpus[0].tokens[:4], corpus[0].sources["problems-dictionary"]
        (['The', 'vine', 'weevil', 'grubs'], [Span(start=1, end=3, type='Problem', score=None)])
    """
    lines = files(__package__).joinpath(f"{split}.txt").read_text(encoding="utf-8").splitlines()
    documents = [_document(f"demo-{split}-{number}", line, split != "train") for number, line in enumerate(lines)]
    return Corpus.from_documents(Runner(SOURCES).run(documents), TYPES)


def _document(name: str, line: str, has_gold: bool) -> Document:
    text, entities = parse_marked(line)
    characters = tokenise(text)
    tokens = [text[start:end] for start, end in characters]
    return Document(
        id=name,
        tokens=tokens,
        text=text,
        characters=characters,
        entities=list(_to_tokens(name, text, entities, characters)) if has_gold else None,
    )


def _to_tokens(
    name: str, text: str, entities: Sequence[tuple[int, int, str]], characters: Sequence[tuple[int, int]]
) -> Iterator[Span]:
    """Entities counted in tokens instead of characters."""
    starts = {start: token for token, (start, _) in enumerate(characters)}
    ends = {end: token + 1 for token, (_, end) in enumerate(characters)}
    for start, end, type_ in entities:
        if start not in starts or end not in ends:
            raise AlignmentError(f"{name}: entity {text[start:end]!r} begins or ends inside a token of {text!r}.")
        yield Span(starts[start], ends[end], type_)
