"""What a format is, and what all readers need: options, places for messages, and a corpus in the making."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tagweave.corpus import Corpus, CorpusBuilder
from tagweave.errors import DataError
from tagweave.formats.problems import Problems

AnyPath = str | Path

OnError = Literal["raise", "skip"]
"""What a sentence or record that cannot be read does: it stops the reading, or it is left out, counted and reported."""


@dataclass(frozen=True)
class Types:
    """The entity types that a caller declares; see `CorpusBuilder.build`."""

    types: Sequence[str] | None = None
    coarse: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True)
class NoOptions:
    """Options of a format that has none."""


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: its name.
        suffixes: endings of file names that mean it.
        read: gives the corpus of a file, or None if the format can only be written.
        read_options: dataclass of what can be set in reading.
        write: writes a corpus, or None if the format can only be read.
        write_options: dataclass of what can be set in writing.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[AnyPath, Types, Any], Corpus] | None = None
    read_options: type[Any] = NoOptions
    write: Callable[[Corpus, AnyPath, Any], None] | None = None
    write_options: type[Any] = NoOptions


def build(builder: CorpusBuilder, types: Types, name: str) -> Corpus:
    """The corpus, with the name of the file in the message if the types do not fit."""
    try:
        return builder.build(types.types, types.coarse)
    except DataError as error:
        raise type(error)(f"{name}: {error}") from None


def report_skipped(problems: Problems, what: str, document: str | None, error: DataError) -> None:
    """Note a sentence or record that is left out because of an error."""
    problems.add("skipped", f"{what} left out because of errors", document, str(error))
