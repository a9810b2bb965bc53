"""Plain text: a document a line, a paragraph, or a file.

Only a line feed ends a line; a line of nothing but blanks (form feeds are some) is empty. Texts stay as they are, with
blanks at their edges and inside.

Reading
    - `line`: each line that is not empty is a document. Where empty lines stand between lines, they end paragraphs, and
      the lines of each are a group.
    - `paragraph`: the lines between empty lines are a document.
    - `file`: all is one document.

    A file that looks like columns of tokens and tags is refused.

Writing
    A line a document, an empty line between groups. Line breaks in texts become blanks, and tokens without text are
    joined by blanks. All else is left out and reported.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.conll import BLANKS, DOCUMENT_START
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions, text_documents
from tagweave.formats.streams import BYTE_ORDER_MARK, Lines, shown_name, stem, written

_TAG = re.compile(r"O|[BIESLUM]-[^\W\d]\S*")
_BREAKS = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class ReadText(TextOptions):
    """Options of reading plain text."""

    unit: Literal["line", "paragraph", "file"] = "line"
    """What is a document."""
    check: bool = True
    """Whether a file that looks like columns of tokens and tags is refused."""


def plain_documents(path: AnyPath, options: ReadText, problems: Problems) -> Iterator[Document]:
    """The documents of a text file; see the module's text for the rules.

    Raises:
        FormatError: the file looks like columns, or is not UTF-8.
    """
    lines = Lines(path, ends=True)
    if options.check:
        _refuse_columns(lines.first(), shown_name(path))
    for number, name, text, group in _texts(path, lines, options):
        try:
            yield from text_documents(name, text, options, problems, group=group)
        except DataError as error:
            raise placed(error, f"{shown_name(path)}, line {number}") from None


def _texts(path: AnyPath, lines: Lines, options: ReadText) -> Iterator[tuple[int, str, str, str | None]]:
    """Number of the first line, id, text and group of each document."""
    name = stem(path)
    if options.unit == "file":
        text = "".join(line for _, line in lines)
        if text.strip():
            yield 1, name, text, None
        return
    grouped = options.unit == "line" and lines.look(_has_empty_lines)
    count = paragraph = 0
    for filled, block in groupby(lines, key=lambda line: bool(line[1].strip())):
        if not filled:
            continue
        group = f"{name}-paragraph-{paragraph}" if grouped else None
        paragraph += 1
        for unit in [[*block]] if options.unit == "paragraph" else ([line] for line in block):
            text = "".join(line for _, line in unit)
            yield unit[0][0], f"{name}-{count}", text.removesuffix("\n").removesuffix("\r"), group
            count += 1


def _has_empty_lines(lines: Iterable[str]) -> bool:
    """Whether there are empty lines between others."""
    runs = (filled for filled, _ in groupby(bool(line.strip()) for line in lines) if filled)
    return next(runs, False) and next(runs, False)


def _refuse_columns(lines: list[str], name: str) -> None:
    """Stop if nearly all lines have the same few columns, of which the last is a tag."""
    rows = [BLANKS.split(bare) for line in lines if (bare := line.strip()) and not bare.startswith(DOCUMENT_START)]
    if len(rows) < 2:
        return
    width = Counter(map(len, rows)).most_common(1)[0][0]
    tags = [row[-1] for row in rows if len(row) == width and _TAG.fullmatch(row[-1])]
    sure = set(tags) != {"O"} or len(rows) >= 5
    if 2 <= width <= 6 and sure and len(tags) >= 0.95 * len(rows):
        raise FormatError(
            f"{name} looks like {width} columns of tokens and tags, not like text: {len(tags)} of the first "
            f"{len(rows)} lines end in a tag ({', '.join(dict.fromkeys(tags))[:40]}). Name the format: --from conll, "
            "or format='conll' in Python. If it is text all the same, set check=false"
        )


def write_text(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write a line a document; see the module's text for what is lost."""
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "plain text", ("groups",))
    groups = None if corpus.groups is None else corpus.group_numbers
    before: int | None = None
    with written(path) as handle:
        for index, document in enumerate(replace(corpus, entities=None, sources={}, links={}, soft_labels=None)):
            line = _line(document, problems)
            if not line.strip():
                problems.add("empty", "documents left out that have no text", document.id, "only blanks, if anything")
                continue
            if before is None and line.startswith(BYTE_ORDER_MARK):
                line = BYTE_ORDER_MARK + line
            group = 0 if groups is None else int(groups[index])
            if before is not None and group != before:
                handle.write(b"\n")
            handle.write(f"{line}\n".encode())
            before = group
    problems.warn()


def _line(document: Document, problems: Problems) -> str:
    """The text of a document on one line."""
    text = " ".join(document.tokens) if document.text is None else document.text
    breaks = len(_BREAKS.findall(text))
    if breaks:
        problems.add("line_breaks", "line breaks in texts, written as blanks", document.id, repr(text[:40]), breaks)
    return _BREAKS.sub(" ", text)


TEXT = Format(
    name="text",
    suffixes=(".txt", ".text"),
    documents=plain_documents,
    read_options=ReadText,
    write=write_text,
)
