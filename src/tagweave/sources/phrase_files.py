"""Lists of phrases from files: plain text, TSV, CSV, JSON, and the patterns of spaCy's entity ruler."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tagweave.errors import FormatError
from tagweave.formats.json_lines import parse_json
from tagweave.formats.streams import read_lines, read_text

_PHRASE_NAMES = ("phrase", "name", "term", "text", "pattern")
_TYPE_NAMES = ("type", "label")
_EXACT, _LOWER = ("ORTH", "TEXT"), "LOWER"


class Phrase(NamedTuple):
    """A phrase with its type, None where the file names none; `lower` when its case does not matter."""

    text: str
    type: str | None
    lower: bool = False


def read_phrases(path: Path) -> Iterator[Phrase]:
    r"""The phrases of a file, by the ending of its name, which may end in `.gz` too.

    ==========  ======================================================================================================
    `.txt`      one phrase a line
    `.tsv`      a phrase a line, or type, tab, phrase
    `.csv`      a first line with names of columns: phrase (or name, term, text), and type (or label) if there are types
    `.json`     a list of phrases, or an object with a list of phrases for each type
    `.jsonl`    patterns of spaCy's entity ruler: `{"label": "ORG", "pattern": "Acme"}`; a pattern that is a list of
                tokens must be all `LOWER` or all `ORTH`
    ==========  ======================================================================================================

    Blank lines are no phrases. A byte order mark at the start is no text.

    Raises:
        UsageError: the file cannot be opened.
        FormatError: a line or value is no phrase; the message names file and line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "places.tsv")
    ...     _ = path.write_text("LOC\tNew York\nLOC\tOslo\n")
    ...     [phrase.text for phrase in read_phrases(path)]
    ['New York', 'Oslo']
    """
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in _READERS:
        raise FormatError(
            f"{path}: lists of phrases end in {', '.join(_READERS)}, packed or not, but not in {ending!r}"
        )
    return _READERS[ending](path)


def _plain(path: Path) -> Iterator[Phrase]:
    for _, line in read_lines(path):
        if line.strip():
            yield Phrase(line.strip(), None)


def _tabs(path: Path) -> Iterator[Phrase]:
    for number, line in read_lines(path):
        cells = line.rstrip("\t").split("\t")
        if not line.strip():
            continue
        if len(cells) > 2 or not all(cell.strip() for cell in cells):
            raise FormatError(f"{path}, line {number}: a phrase, or type, tab and phrase, are expected, not {line!r}")
        yield Phrase(cells[-1].strip(), cells[0].strip() if len(cells) == 2 else None)


def _commas(path: Path) -> Iterator[Phrase]:
    rows = _rows(path)
    names = [name.strip().lower() for name in next(rows, [])]
    phrase = next((names.index(name) for name in _PHRASE_NAMES if name in names), None)
    kind = next((names.index(name) for name in _TYPE_NAMES if name in names), None)
    if phrase is None:
        raise FormatError(f"{path}, line 1: no column is called {', '.join(_PHRASE_NAMES)}, only {', '.join(names)}")
    for number, row in enumerate(rows, start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(names):
            raise FormatError(f"{path}, line {number}: {len(row)} cells, but the first line names {len(names)} columns")
        if row[phrase].strip():
            yield Phrase(row[phrase].strip(), None if kind is None else row[kind].strip() or None)


def _rows(path: Path) -> Iterator[list[str]]:
    rows = csv.reader(line for _, line in read_lines(path))
    try:
        yield from rows
    except csv.Error as error:
        raise FormatError(f"{path}, line {rows.line_num}: {error}") from None


def _json(path: Path) -> Iterator[Phrase]:
    try:
        value = parse_json(read_text(path).removeprefix("\ufeff"))
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    lists = value if isinstance(value, dict) else {None: value}
    for kind, phrases in lists.items():
        if not isinstance(phrases, list) or not {*map(type, phrases)} <= {str}:
            raise FormatError(f"{path}: a list of phrases, or an object with a list for each type, is expected")
        yield from (Phrase(text.strip(), kind) for text in phrases if text.strip())


def _patterns(path: Path) -> Iterator[Phrase]:
    for number, line in read_lines(path):
        if line.strip():
            try:
                yield _ruler(parse_json(line))
            except FormatError as error:
                raise FormatError(f"{path}, line {number}: {error}") from None


def _ruler(record: object) -> Phrase:
    label = record.get("label") if isinstance(record, dict) else None
    pattern = record.get("pattern") if isinstance(record, dict) else None
    if not isinstance(label, str) or not pattern:
        raise FormatError("an object with 'label' and 'pattern' is expected")
    if isinstance(pattern, str):
        return Phrase(pattern.strip(), label)
    if not isinstance(pattern, list) or not all(isinstance(token, dict) for token in pattern):
        raise FormatError("'pattern' must be a text or a list of objects, one for each token")
    for names in (_EXACT, (_LOWER,)):
        words = [next((token[name] for name in names if token.keys() == {name}), None) for token in pattern]
        if all(isinstance(word, str) for word in words):
            return Phrase(" ".join(map(str, words)), label, lower=names == (_LOWER,))
    raise FormatError(
        f"the pattern {json.dumps(pattern, ensure_ascii=False)} is more than words; use a source of the kind "
        "token-patterns for it"
    )


_READERS: dict[str, Callable[[Path], Iterator[Phrase]]] = {
    ".txt": _plain,
    ".tsv": _tabs,
    ".csv": _commas,
    ".json": _json,
    ".jsonl": _patterns,
}
