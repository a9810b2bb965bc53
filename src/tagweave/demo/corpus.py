"""Reads the demo corpus: text files of the package to records of the native format, with the votes of every source."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Literal

from tagweave.demo.rules import SOURCES, Vote
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


def records(split: Split) -> list[dict[str, object]]:
    """Sentences of one split in the native format, ready for `json.dumps`.

    Each record has `id`, `text`, `tokens`, `offsets` (start and end of each token in `text`), `sources` (the spans of
    each source, `[start, end, type]` in tokens) and `votes_o` (the stretches that a source says are no entity); `dev`
    and `test` also have `entities`.

    Raises:
        FormatError: a mark in the text cannot be read.
        AlignmentError: an entity begins or ends inside a token.

    Example:
        >>> record = records("train")[0]
        >>> record["id"], record["tokens"][:4], record["sources"]["problems-dictionary"]
        ('demo-train-0', ['The', 'vine', 'weevil', 'grubs'], [[1, 3, 'Problem']])
    """
    lines = files(__package__).joinpath(f"{split}.txt").read_text(encoding="utf-8").splitlines()
    return [_record(f"demo-{split}-{number}", line, has_gold=split != "train") for number, line in enumerate(lines)]


def _record(name: str, line: str, has_gold: bool) -> dict[str, object]:
    text, entities = parse_marked(line)
    offsets = tokenise(text)
    tokens = [text[start:end] for start, end in offsets]
    entities_in_tokens = list(_to_tokens(name, text, entities, offsets))
    votes = {source: sorted(function(tokens)) for source, function in SOURCES.items()}
    outside = {source: _outside(spans) for source, spans in votes.items()}
    return {
        "id": name,
        "text": text,
        "tokens": tokens,
        "offsets": [list(pair) for pair in offsets],
        **({"entities": entities_in_tokens} if has_gold else {}),
        "sources": {source: [list(vote) for vote in spans if vote[2] != "O"] for source, spans in votes.items()},
        "votes_o": {source: spans for source, spans in outside.items() if spans},
    }


def _outside(votes: Sequence[Vote]) -> list[list[int]]:
    return [[start, end] for start, end, type_ in votes if type_ == "O"]


def _to_tokens(
    name: str, text: str, entities: Sequence[Vote], offsets: Sequence[tuple[int, int]]
) -> Iterator[list[int | str]]:
    """Entities counted in tokens instead of characters."""
    starts = {start: token for token, (start, _) in enumerate(offsets)}
    ends = {end: token + 1 for token, (_, end) in enumerate(offsets)}
    for start, end, type_ in entities:
        if start not in starts or end not in ends:
            raise AlignmentError(f"{name}: entity {text[start:end]!r} begins or ends inside a token of {text!r}.")
        yield [starts[start], ends[end], type_]
