"""Files of annotation tools: JSON records that a format turns into those of `tagweave.formats.records`.

The records are items of one JSON list, or stand one on each line.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import FormatError, TagweaveError
from tagweave.formats.base import AnyPath, placed
from tagweave.formats.json_lines import json_object, parse_json
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.rows import Row, row_documents
from tagweave.formats.streams import Lines, opened, shown_name, written

Translate = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""Makes the record of a tool one of ours, or None if it is to be left out."""

_HEAD = 1 << 16


def tool_documents(path: AnyPath, translate: Translate, options: ReadRecords, problems: Problems) -> Iterator[Document]:
    """The documents of a JSON list or of JSON lines.

    Raises:
        FormatError, AlignmentError, LabelError: a record is wrong; the message names file, line or item, and id.
    """
    return row_documents(path, _rows(path, translate), options, problems)


def _rows(path: AnyPath, translate: Translate) -> Iterator[Row]:
    lines = Lines(path, ends=True)
    name = shown_name(path)
    if "".join(lines.first()).lstrip().startswith("["):
        try:
            items = parse_json("".join(line for _, line in lines))
        except FormatError as error:
            raise placed(error, name) from None
        for number, item in enumerate(items):
            yield f"{name}, item {number}", partial(_translated, item, translate)
        return
    for number, line in lines:
        if line.strip():
            yield f"{name}, line {number}", partial(_line, line, translate)


def _line(line: str, translate: Translate) -> Mapping[str, Any] | None:
    return translate(json_object(line))


def _translated(item: object, translate: Translate) -> Mapping[str, Any] | None:
    if not isinstance(item, dict):
        raise FormatError(f"an object is expected, not {json.dumps(item)[:40]}")
    return translate(item)


def head(path: Path) -> str:
    """The beginning of a `.json` file, to see what is in it; nothing if it is none, or cannot be read."""
    if not path.name.lower().removesuffix(".gz").endswith(".json") or not path.is_file():
        return ""
    try:
        with opened(path) as handle:
            return handle.read(_HEAD).decode(errors="ignore").lstrip("\ufeff \t\r\n")
    except TagweaveError:
        return ""


def is_list_with(path: Path, key: str) -> bool:
    """Whether a path is a `.json` file with a list of objects that have a key near their beginning.

    Args:
        path: the file.
        key: pattern of the names of keys.
    """
    text = head(path)
    return text.startswith("[") and re.search(rf'[{{,]\s*"(?:{key})"\s*:', text) is not None


def write_tool_records(path: AnyPath, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records, one on each line: as a JSON list if the name of the file ends in `.json`, else as JSON lines.

    Raises:
        UsageError: the file cannot be written.
    """
    lines = (json.dumps(record, ensure_ascii=False).encode() for record in records)
    with written(path) as handle:
        if not str(path).lower().removesuffix(".gz").endswith(".json"):
            handle.writelines(line + b"\n" for line in lines)
            return
        handle.write(b"[")
        for number, line in enumerate(lines):
            handle.write((b",\n" if number else b"\n") + line)
        handle.write(b"\n]\n")
