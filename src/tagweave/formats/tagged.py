"""Files of tagged sentences: what those have in common that have a token a line and a blank line after a sentence."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from tagweave.corpus import Document
from tagweave.errors import DataError, FormatError, LabelError
from tagweave.formats.base import AnyPath, OnError, placed, report_skipped
from tagweave.formats.problems import Problems
from tagweave.formats.streams import Lines, shown_name
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tags import Scheme, spans_from_parsed
from tagweave.labels import Decoding

NumberedLine = tuple[int, str]


@dataclass(frozen=True)
class TagOptions:
    """Options of reading tags."""

    scheme: str | None = None
    """Name of the scheme of tags; None finds it out."""
    mode: Decoding = "lenient"
    """How tags are read, see `tagweave.formats.tags.spans_from_tags`."""
    on_error: OnError = "raise"
    """What a sentence or record that cannot be read does."""


class Sentence(NamedTuple):
    """A sentence as it stands in a file.

    Attributes:
        document: all of it but its entities.
        tags: number of the line and tag of each token; None if nobody looked for entities.
    """

    document: Document
    tags: list[tuple[int, str]] | None


class SentenceReader(Protocol):
    """Reads one file once."""

    def blocks(self, lines: Iterable[NumberedLine]) -> Iterator[list[NumberedLine]]:
        """The lines of each sentence, and what else is of interest, each not empty."""

    def sentence(self, block: list[NumberedLine], index: int) -> Sentence | None:
        """The sentence with that number, None if the block is none.

        Raises:
            DataError: it cannot be read; the message names file and line.
        """


def tagged_documents(
    path: AnyPath,
    lines: Lines,
    reader: Callable[[Problems], SentenceReader],
    options: TagOptions,
    problems: Problems,
) -> Iterator[Document]:
    """The documents of a file of tagged sentences.

    Read leniently, tags stand for the same spans in every scheme. If they are to be read strictly in a scheme that is
    not named, the file is gone through before to find it out.

    Args:
        path: the file.
        lines: its lines.
        reader: makes what reads it once, and notes problems.
        options: how tags are read.
        problems: where is noted what is repaired, left out, or does not fit the scheme.
    """
    scheme: Scheme | None = None
    if options.mode == "strict" and options.scheme is None:
        lines.keep()
        first, silent = TagParser(None), Problems("")
        for _ in _documents(path, lines, reader(silent), replace(options, mode="lenient"), first, silent):
            pass
        scheme = first.scheme
    tags = TagParser(options.scheme)
    yield from _documents(path, lines, reader(problems), options, tags, problems, scheme)
    tags.report(problems, options.mode)


def _documents(
    path: AnyPath,
    lines: Iterable[NumberedLine],
    reader: SentenceReader,
    options: TagOptions,
    tags: TagParser,
    problems: Problems,
    scheme: Scheme | None = None,
) -> Iterator[Document]:
    index = 0
    for block in reader.blocks(lines):
        try:
            sentence = reader.sentence(block, index)
            document = None if sentence is None else _with_entities(sentence, tags, scheme, options.mode, path)
        except DataError as error:
            _skip(error, options, problems)
            continue
        if document is None:
            continue
        try:
            yield document
        except DataError as error:
            _skip(placed(error, f"{shown_name(path)}, line {block[0][0]}"), options, problems)
            continue
        index += 1


def _with_entities(
    sentence: Sentence, tags: TagParser, scheme: Scheme | None, mode: Decoding, path: AnyPath
) -> Document:
    if sentence.tags is None:
        return sentence.document
    parsed = []
    for number, tag in sentence.tags:
        try:
            parsed.append(tags.parse(tag, f"line {number}"))
        except LabelError as error:
            raise FormatError(f"{shown_name(path)}, line {number}: {error}") from None
    tags.add(parsed)
    return replace(sentence.document, entities=spans_from_parsed(parsed, scheme or tags.scheme, mode))


def _skip(error: DataError, options: TagOptions, problems: Problems) -> None:
    """Leave out a sentence, or stop."""
    if options.on_error == "raise":
        raise error from None
    report_skipped(problems, "sentences", None, error)
