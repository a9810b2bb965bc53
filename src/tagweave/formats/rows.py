"""Rows of a file, whatever they are written in, that become documents: named, placed in messages, left out on error.

A format gives for each row the place where it stands and a function that makes the record (see
`tagweave.formats.records`); what fails in that function fails as an error of the row.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import DataError
from tagweave.formats.base import AnyPath, placed, report_skipped
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords, RecordReader, identifier
from tagweave.formats.streams import stem

Row = tuple[str, Callable[[], Mapping[str, Any] | None]]
"""Place of a row, and a function that makes its record, None if it is none."""


def row_documents(path: AnyPath, rows: Iterable[Row], options: ReadRecords, problems: Problems) -> Iterator[Document]:
    """The documents of rows; those without `id` are called after the file, with a number.

    Raises:
        FormatError, AlignmentError, LabelError: a row is wrong; the message names its place and id.

    >>> rows = [("in.x, row 0", lambda: {"tokens": ["Oslo"]}), ("in.x, row 1", lambda: None)]
    >>> [document.id for document in row_documents("in.x", rows, ReadRecords(), Problems("in.x"))]
    ['in-0']
    """
    reader = RecordReader(options, problems)
    count = 0
    for place, make in rows:
        try:
            record = make()
            if record is None:
                continue
            name = identifier(record["id"], "id") if "id" in record else f"{stem(path)}-{count}"
            place = f"{place}, record {name!r}"
            yield from reader.documents(record, name)
            count += 1
        except DataError as error:
            error = placed(error, place)
            if options.on_error == "raise":
                raise error from None
            report_skipped(problems, "records", None, error)
    reader.report()


def tag_scheme(rows: Iterable[Row], options: ReadRecords) -> str:
    """The scheme of the tags of all rows."""
    reader = RecordReader(options, Problems(""))
    for _, make in rows:
        with contextlib.suppress(DataError):
            reader.note_tags(make() or {})
    return reader.tags.scheme
