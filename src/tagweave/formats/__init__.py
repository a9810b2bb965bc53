"""Files to corpora and back: `read`, `write`, and the registry `FORMATS`, one module a format.

Whatever is in a file, reading ends in a corpus, perhaps with one `FormatWarning` that says what was repaired or left
out, or in a `TagweaveError` that names file and line. All files are UTF-8, names that end in `.gz` are packed, and `-`
is standard input or output.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tagweave.config import create
from tagweave.corpus import Corpus
from tagweave.errors import UsageError, unknown_name
from tagweave.formats.base import Format, Types, read_documents
from tagweave.formats.chmm_alt import CHMM_ALT
from tagweave.formats.conll import COLUMNS
from tagweave.formats.json_lines import JSON_LINES
from tagweave.formats.problems import FormatWarning, Problem
from tagweave.formats.streams import STANDARD

__all__ = ["FORMATS", "Format", "FormatWarning", "Problem", "format_of", "read", "write"]

FORMATS: dict[str, Format] = {format.name: format for format in (JSON_LINES, COLUMNS, CHMM_ALT)}
"""All formats by name."""


def format_of(path: str | Path, name: str | None = None) -> Format:
    """The format of that name, or the one that the ending of the path means; JSON lines for standard input and output.

    Raises:
        UsageError: there is no such format, or the ending means none.

    >>> format_of("dev.conll.gz").name
    'conll'
    """
    if name is not None:
        if name not in FORMATS:
            raise unknown_name("format", name, FORMATS)
        return FORMATS[name]
    if str(path) == STANDARD:
        return JSON_LINES
    ending = Path(Path(path).name.removesuffix(".gz")).suffix.lower()
    for format in FORMATS.values():
        if ending in format.suffixes:
            return format
    known = ", ".join(f"{format.name} ({' '.join(format.suffixes)})" for format in FORMATS.values())
    raise UsageError(f"{path}: the ending {ending!r} means no format. Name one of {known}")


def read(
    path: str | Path,
    *,
    format: str | None = None,
    types: Sequence[str] | None = None,
    coarse: Mapping[str, Sequence[str]] | None = None,
    **options: Any,  # noqa: ANN401
) -> Corpus:
    """Read a file.

    Args:
        path: the file, or `-` for standard input.
        format: name of a format; None goes by the ending of the path.
        types: entity types in the wanted order; by default all that occur, in alphabetical order.
        coarse: types that each stand for one of several types, e.g. `{"ENT": ("PER", "LOC")}`.
        options: what the format lets one set, the fields of its `read_options`: `ReadRecords` for JSON lines,
            `ReadColumns` for CoNLL columns.

    Raises:
        UsageError: no such file, format or option.
        DataError: the content is wrong; the message names file and line.

    Warns:
        FormatWarning: something was repaired or left out; once for the file, with counts.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.conll")
    ...     _ = path.write_text("Ada B-PER" + chr(10) + "wrote O" + chr(10))
    ...     read(path)[0].entities
    [Span(start=0, end=1, type='PER', score=None)]
    """
    found = format_of(path, format)
    chosen = create(found.read_options, options)
    if found.read is not None:
        return found.read(path, Types(types, coarse), chosen)
    return read_documents(found, path, Types(types, coarse), chosen)


def write(corpus: Corpus, path: str | Path, *, format: str | None = None, **options: Any) -> None:  # noqa: ANN401
    """Write a file; it takes its name only when it is complete.

    Args:
        corpus: what to write.
        path: the file, or `-` for standard output.
        format: name of a format; None goes by the ending of the path.
        options: what the format lets one set, the fields of its `write_options`.

    Raises:
        UsageError: the file cannot be written, or no such format or option.
        DataError: the format cannot hold a document; the message names it.

    Warns:
        FormatWarning: the format cannot hold all that the corpus has; once, with counts.
    """
    found = format_of(path, format)
    if found.write is None:
        raise UsageError(f"the format {found.name} can be read, but not written")
    found.write(corpus, path, create(found.write_options, options))
