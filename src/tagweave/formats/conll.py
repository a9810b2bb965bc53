"""Columns: one token a line, its tag in the last column, a blank line after each sentence.

Reading
    - The first column is the token and the last one that is not empty is the tag, if no other columns are named.
      Columns are set apart by blanks or tabs, as many as there are; with an explicit delimiter every line must have as
      many columns as the first.
    - A line of blanks and tabs only ends a sentence, as often as it comes.
    - `-DOCSTART-` begins a document: the sentences that follow are a group. It is never a token.
    - `# key = value` before the first token of a sentence is a comment; any other line that begins with `#` is a token.
    - Tags are read in every scheme of `tagweave.formats.tags`, which is found out if it is not named.

Writing
    Token, tab, BIO tag. What columns cannot hold is reported: sources, links, soft labels, scores, and the
    shorter of two entities that overlap.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError, LabelError, UsageError
from tagweave.formats.base import AnyPath, Format, NoOptions
from tagweave.formats.losses import held_by_tags
from tagweave.formats.problems import Problems
from tagweave.formats.streams import BYTE_ORDER_MARK, Lines, shown_name, stem, written
from tagweave.formats.tagged import NumberedLine, Sentence, TagOptions, tagged_documents
from tagweave.formats.tags import tags_from_spans

DOCUMENT_START = "-DOCSTART-"
BLANKS = re.compile(r"[ \t]+")
_UNWRITABLE = re.compile(r"[ \t\r\n\0]")


@dataclass(frozen=True)
class ReadColumns(TagOptions):
    """Options of reading columns."""

    delimiter: str | None = None
    """What stands between columns; None is any number of blanks and tabs."""
    token: int = 1
    """Number of the column with the token, from 1; negative numbers count from the last, which is -1."""
    column: int | None = None
    """Number of the column with the tag; None is the last that is not empty."""
    tags: bool = True
    """Whether there are tags; without, each line is a token, perhaps with other columns."""

    def __post_init__(self) -> None:
        if self.token == 0 or self.column == 0:
            raise UsageError("columns are counted from 1, or from the last as -1, -2 and so on: there is no column 0")


class _ColumnReader:
    """Reads the sentences of one file; document numbers begin at 1, and 0 is what stands before any `-DOCSTART-`."""

    def __init__(self, path: AnyPath, options: ReadColumns) -> None:
        self._path = path
        self._options = options
        self._document = 0
        self._columns = 0

    def blocks(self, lines: Iterable[NumberedLine]) -> Iterator[list[NumberedLine]]:
        """The lines of each sentence; a document start is a block of its own."""
        block: list[NumberedLine] = []
        for number, line in lines:
            bare = line.strip(" \t")
            begins_document = bare.startswith(DOCUMENT_START)
            if (not bare or begins_document) and block:
                yield block
                block = []
            if begins_document:
                yield [(number, line)]
            elif bare and (block or not _is_comment(line)):
                block.append((number, line))
        if block:
            yield block

    def sentence(self, block: list[NumberedLine], index: int) -> Sentence | None:
        """The sentence of a block, None for a document start."""
        if block[0][1].lstrip(" \t").startswith(DOCUMENT_START):
            self._document += 1
            return None
        cells = [(number, *self._cells(number, line)) for number, line in block]
        name = stem(self._path)
        group = f"{name}-document-{self._document}" if self._document else None
        document = Document(f"{name}-{index}", [token for _, token, _ in cells], group=group)
        return Sentence(document, [(number, tag) for number, _, tag in cells] if self._options.tags else None)

    def _cells(self, number: int, line: str) -> tuple[str, str]:
        """Token and tag of a line; the tag is empty if there are none."""
        if self._options.delimiter is None:
            cells = BLANKS.split(line.strip(" \t"))
        else:
            cells = line.split(self._options.delimiter)
            self._columns = self._columns or len(cells)
            if len(cells) != self._columns:
                raise self._error(
                    number,
                    f"{len(cells)} columns between {self._options.delimiter!r}, but {self._columns} are expected",
                )
        token = cells[0] if self._options.token == 1 else self._cell(number, cells, self._options.token)
        tag = self._tag(number, cells, token) if self._options.tags else ""
        if not token:
            raise self._error(number, f"no token{f' before the tag {tag!r}' if tag else ''}")
        return token, tag

    def _tag(self, number: int, cells: list[str], token: str) -> str:
        if self._options.column is not None:
            tag = self._cell(number, cells, self._options.column)
        else:
            place = self._options.token - 1 if self._options.token > 0 else len(cells) + self._options.token
            tag = next(filter(None, cells[:place:-1]), "")
        if not tag:
            raise self._error(number, f"no tag after the token {token!r}")
        return tag

    def _cell(self, number: int, cells: list[str], column: int) -> str:
        if not -len(cells) <= column <= len(cells):
            raise self._error(number, f"no column {column}, only {len(cells)}")
        return cells[column - 1 if column > 0 else column]

    def _error(self, number: int, message: str) -> FormatError:
        return FormatError(f"{shown_name(self._path)}, line {number}: {message}")


def _is_comment(line: str) -> bool:
    """Whether a line reads `# key = value`."""
    key, equals, _ = line.partition(" = ")
    return line.startswith("#") and bool(equals) and bool(key[1:].strip()) and "\t" not in key


def column_documents(path: AnyPath, options: ReadColumns, problems: Problems) -> Iterator[Document]:
    """The sentences of columns; see the module's text for the rules.

    Raises:
        FormatError: a line has no tag, a stray tag or too many columns; the message names file and line.
    """
    return tagged_documents(path, Lines(path), lambda _: _ColumnReader(path, options), options, problems)


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
    plain = held_by_tags(corpus, problems, "columns")
    if corpus.texts is not None:
        problems.add("texts", "columns of texts left out, which columns cannot hold", None, "tokens stay")
    if corpus.entities is None and len(corpus):
        title = "documents whose entities nobody told, written as documents without any"
        problems.add("unlabelled", title, corpus.id_list[0], "all O", len(corpus))
    with written(path) as handle:
        before: str | None = None
        for index, document in enumerate(plain):
            if document.group != before:
                handle.write(f"{DOCUMENT_START}\tO\n\n".encode())
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
        if not token or _UNWRITABLE.search(token) or token.startswith(DOCUMENT_START) or marked:
            raise AlignmentError(
                f"{path}: columns cannot hold token {number} of document {document.id!r}, {token!r}. "
                "Write JSON lines instead"
            )


COLUMNS = Format(
    name="conll",
    suffixes=(".conll", ".tsv", ".bio", ".iob", ".iob2"),
    documents=column_documents,
    read_options=ReadColumns,
    holds_tags=lambda path: True,
    write=write_columns,
)
