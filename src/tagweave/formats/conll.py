"""Columns: one token a line, its tag in the last column, a blank line after each sentence.

Reading
    - The first column is the token and the last one that is not empty is the tag. Columns are set apart by blanks or
      tabs, as many as there are; with an explicit delimiter every line must have as many columns as the first.
    - A line of blanks and tabs only ends a sentence, as often as it comes.
    - `-DOCSTART-` begins a document: the sentences that follow are a group. It is never a token.
    - `# key = value` before the first token of a sentence is a comment; any other line that begins with `#` is a token.
    - Tags are read in every scheme of `tagweave.formats.tags`, which is found out if it is not named.

Writing
    Token, tab, BIO tag. What columns cannot hold is reported: sources, soft labels, scores, and the shorter of two
    entities that overlap.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from tagweave.corpus import Corpus, CorpusBuilder, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError
from tagweave.formats.base import AnyPath, Format, NoOptions, OnError, Types, build, report_skipped
from tagweave.formats.problems import Problems
from tagweave.formats.streams import BYTE_ORDER_MARK, read_lines, shown_name, stem, written
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tags import Parsed, spans_from_parsed, tags_from_spans
from tagweave.labels import Decoding

_DOCUMENT_START = "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")
_UNWRITABLE = re.compile(r"[ \t\r\n\0]")


@dataclass(frozen=True)
class ReadColumns:
    """Options of reading columns."""

    delimiter: str | None = None
    """What stands between columns; None is any number of blanks and tabs."""
    scheme: str | None = None
    """Name of the tag scheme; None finds it out."""
    mode: Decoding = "lenient"
    """How tags are read, see `tagweave.formats.tags.spans_from_tags`."""
    on_error: OnError = "raise"
    """What a sentence that cannot be read does."""


class _Sentence(NamedTuple):
    document: int
    tokens: list[str]
    tags: list[Parsed]


class _ColumnReader:
    """Reads the sentences of one file."""

    def __init__(self, path: AnyPath, options: ReadColumns) -> None:
        self.name = shown_name(path)
        self.problems = Problems(self.name)
        self.tags = TagParser(options.scheme)
        self._path = path
        self._options = options
        self._columns = 0

    def sentences(self) -> Iterator[_Sentence]:
        """The sentences, in order; document numbers begin at 1, and 0 is what stands before any `-DOCSTART-`."""
        document = 0
        for lines in self._blocks():
            if lines[0][1].lstrip(" \t").startswith(_DOCUMENT_START):
                document += 1
                continue
            try:
                sentence = self._sentence(document, lines)
            except DataError as error:
                if self._options.on_error == "raise":
                    raise
                report_skipped(self.problems, "sentences", None, error)
                continue
            self.tags.add(sentence.tags)
            yield sentence

    def _blocks(self) -> Iterator[list[tuple[int, str]]]:
        """The lines of each sentence; a document start is a block of its own."""
        block: list[tuple[int, str]] = []
        for number, line in read_lines(self._path):
            bare = line.strip(" \t")
            begins_document = bare.startswith(_DOCUMENT_START)
            if (not bare or begins_document) and block:
                yield block
                block = []
            if begins_document:
                yield [(number, line)]
            elif bare and (block or not _is_comment(line)):
                block.append((number, line))
        if block:
            yield block

    def _sentence(self, document: int, lines: list[tuple[int, str]]) -> _Sentence:
        tokens, tags = [], []
        for number, line in lines:
            token, tag = self._cells(number, line)
            try:
                tags.append(self.tags.parse(tag, f"line {number}"))
            except LabelError as error:
                raise FormatError(f"{self.name}, line {number}: {error}") from None
            tokens.append(token)
        return _Sentence(document, tokens, tags)

    def _cells(self, number: int, line: str) -> tuple[str, str]:
        """Token and tag of a line."""
        if self._options.delimiter is None:
            cells = _BLANKS.split(line.strip(" \t"))
        else:
            cells = line.split(self._options.delimiter)
            self._columns = self._columns or len(cells)
            if len(cells) != self._columns:
                raise FormatError(
                    f"{self.name}, line {number}: {len(cells)} columns between {self._options.delimiter!r}, but "
                    f"{self._columns} are expected"
                )
        filled = [cell for cell in cells[1:] if cell]
        if not filled:
            raise FormatError(f"{self.name}, line {number}: no tag after the token {cells[0]!r}")
        if not cells[0]:
            raise FormatError(f"{self.name}, line {number}: no token before the tag {filled[-1]!r}")
        return cells[0], filled[-1]


def _is_comment(line: str) -> bool:
    """Whether a line reads `# key = value`."""
    key, equals, _ = line.partition(" = ")
    return line.startswith("#") and bool(equals) and bool(key[1:].strip()) and "\t" not in key


def read_columns(path: AnyPath, types: Types, options: ReadColumns) -> Corpus:
    """Read columns; see the module's text for the rules.

    Raises:
        FormatError: a line has no tag, a stray tag or too many columns; the message names file and line.
    """
    reader = _ColumnReader(path, options)
    builder = CorpusBuilder()
    name = stem(path)
    sentences = reader.sentences() if options.mode == "lenient" else iter(list(reader.sentences()))
    for index, (document, tokens, tags) in enumerate(sentences):
        group = f"{name}-document-{document}" if document else None
        spans = spans_from_parsed(tags, reader.tags.scheme, options.mode)
        builder.add(Document(f"{name}-{index}", tokens, group=group, entities=spans))
    reader.tags.report(reader.problems, options.mode)
    reader.problems.warn()
    return build(builder, types, reader.name)


def write_columns(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write token, tab, BIO tag.

    Raises:
        AlignmentError: a document has no token, or a token that columns cannot hold; the message names the document.
        LabelError: the name of a type has blanks in it.
    """
    for name in corpus.types:
        if _UNWRITABLE.search(name) or not name:
            raise LabelError(f"{path}: columns cannot hold the entity type {name!r}. Rename it, or write JSON lines")
    problems = Problems(shown_name(path))
    plain = _without_overlaps(corpus, problems)
    with written(path) as handle:
        before: str | None = None
        for index, document in enumerate(plain):
            if document.group != before:
                handle.write(f"{_DOCUMENT_START}\tO\n\n".encode())
            before = document.group
            tags = tags_from_spans(document.entities or (), len(document.tokens))
            _check_tokens(document, path, first=index == 0)
            lines = [f"{token}\t{tag}\n" for token, tag in zip(document.tokens, tags, strict=True)]
            handle.write(("".join(lines) + "\n").encode())
    problems.warn()


def _check_tokens(document: Document, path: AnyPath, first: bool) -> None:
    if not document.tokens:
        raise AlignmentError(f"{path}: columns cannot hold document {document.id!r}, which has no token")
    for number, token in enumerate(document.tokens):
        marked = first and number == 0 and token.startswith(BYTE_ORDER_MARK)
        if not token or _UNWRITABLE.search(token) or token.startswith(_DOCUMENT_START) or marked:
            raise AlignmentError(
                f"{path}: columns cannot hold token {number} of document {document.id!r}, {token!r}. "
                "Write JSON lines instead"
            )


def _without_overlaps(corpus: Corpus, problems: Problems) -> Corpus:
    """The corpus with what columns hold, and a note on what they do not."""
    if corpus.sources:
        names = ", ".join(corpus.sources)
        problems.add("sources", "sources left out, which columns cannot hold", None, names, len(corpus.sources))
    if corpus.soft_labels is not None:
        problems.add("soft_labels", "tables of soft labels left out, which columns cannot hold", None, "soft labels")
    if corpus.entities is None:
        return replace(corpus, sources={}, soft_labels=None)
    if corpus.entities.scores is not None:
        problems.add("scores", "columns of scores left out", None, "scores of entities")
    entities = corpus.entities.without_overlaps()
    lost = len(corpus.entities) - len(entities)
    if lost:
        problems.add("overlap", "entities left out that overlap a longer one", None, "the longest stays", lost)
    return replace(corpus, entities=entities, sources={}, soft_labels=None)


COLUMNS = Format(
    name="conll",
    suffixes=(".conll", ".tsv", ".txt", ".bio", ".iob", ".iob2"),
    read=read_columns,
    read_options=ReadColumns,
    holds_tags=lambda path: True,
    write=write_columns,
)
