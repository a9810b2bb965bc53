"""What a format is, and what all readers need: options, places for messages, and a corpus in the making."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError
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
        documents: gives the documents of a file one by one, and notes what it repairs; None if the format can only be
            written. `tagweave.formats.corpora` makes corpora of them. A document with soft labels is a
            `tagweave.formats.soft_columns.SoftDocument`.
        read_options: dataclass of what can be set in reading; formats of text without tokens extend
            `tagweave.formats.raw_text.TextOptions` and make their documents with `text_documents` there.
        recognises: tells whether a folder or file that exists is of this format, for formats that are folders, or that
            share an ending with others; asked before endings.
        holds_tags: tells whether the entities of a file are tags, which can be read in more than one way.
        write: writes a corpus, or None if the format can only be read.
        write_batches: writes a stream of corpora to one file, or None if the format needs all at once.
        write_options: dataclass of what can be set in writing.
    """

    name: str
    suffixes: tuple[str, ...]
    documents: Callable[[AnyPath, Any, Problems], Iterator[Document]] | None = None
    read_options: type[Any] = NoOptions
    recognises: Callable[[Path], bool] | None = None
    holds_tags: Callable[[AnyPath], bool] = lambda path: False
    write: Callable[[Corpus, AnyPath, Any], None] | None = None
    write_batches: Callable[[Iterable[Corpus], AnyPath, Any], None] | None = None
    write_options: type[Any] = NoOptions


def report_overlaps(problems: Problems, corpus: Corpus) -> None:
    """Note the spans that overlap a longer one of the same annotator; the corpus keeps them."""
    for name, column in (("entities", corpus.entities), *corpus.sources.items()):
        if not isinstance(column, Annotations):
            continue
        order = np.lexsort((column.starts, column.documents))
        documents, starts, ends = column.documents[order], column.starts[order], column.ends[order]
        overlapping = np.flatnonzero((documents[1:] == documents[:-1]) & (starts[1:] < ends[:-1]))
        if not len(overlapping):
            continue
        first = int(overlapping[0])
        problems.add(
            "overlap",
            "spans that overlap a longer one of the same source; where each token needs one label, the longest wins",
            corpus.id_list[documents[first]],
            f"{name}, tokens {starts[first]} to {ends[first]} and {starts[first + 1]} to {ends[first + 1]}",
            len(column) - len(column.without_overlaps()),
        )


def placed(error: DataError, place: str) -> DataError:
    """The error with its place before it; what is no more than `DataError` is an error of the format."""
    kind = FormatError if type(error) is DataError else type(error)
    return kind(f"{place}: {error}")


def report_skipped(problems: Problems, what: str, document: str | None, error: DataError) -> None:
    """Note a sentence or record that is left out because of an error."""
    problems.add("skipped", f"{what} left out because of errors", document, str(error))
