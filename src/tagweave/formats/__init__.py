"""Files to corpora and back, in one piece or as streams, and the registry `FORMATS`, one module a format.

Whatever is in a file, reading ends in a corpus, perhaps with one `FormatWarning` that says what was repaired or left
out, or in a `TagweaveError` that names file and line. All files are UTF-8, names that end in `.gz` are packed, and `-`
is standard input or output.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tagweave.config import create
from tagweave.corpus import Corpus
from tagweave.errors import UsageError, unknown_name
from tagweave.formats.argilla import ARGILLA
from tagweave.formats.base import Format, Types
from tagweave.formats.bioc import BIOC
from tagweave.formats.brat import BRAT
from tagweave.formats.chmm_alt import CHMM_ALT
from tagweave.formats.conll import COLUMNS
from tagweave.formats.conllu import CONLLU
from tagweave.formats.corpora import corpora_of
from tagweave.formats.docbin import DOCBIN
from tagweave.formats.doccano import DOCCANO
from tagweave.formats.hf_datasets import DATASETS, PARQUET
from tagweave.formats.json_lines import JSON_LINES
from tagweave.formats.label_studio import LABEL_STUDIO
from tagweave.formats.problems import FormatWarning, Problem
from tagweave.formats.prodigy import PRODIGY
from tagweave.formats.pubtator import PUBTATOR
from tagweave.formats.semeval import SEMEVAL
from tagweave.formats.streams import STANDARD
from tagweave.formats.text import TEXT

__all__ = [
    "FORMATS",
    "Format",
    "FormatWarning",
    "Problem",
    "format_of",
    "read",
    "read_batches",
    "write",
    "write_batches",
]

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        JSON_LINES,
        TEXT,
        COLUMNS,
        CONLLU,
        CHMM_ALT,
        PUBTATOR,
        BIOC,
        BRAT,
        SEMEVAL,
        DOCBIN,
        DATASETS,
        PARQUET,
        LABEL_STUDIO,
        DOCCANO,
        PRODIGY,
        ARGILLA,
    )
}
"""All formats by name."""


def format_of(path: str | Path, name: str | None = None) -> Format:
    """The format of that name, or the one that a path means: by what a folder or XML file holds, else by its ending.

    Standard input and output are JSON lines.

    Raises:
        UsageError: there is no such format, or the path means none, or several.

    >>> format_of("dev.conll.gz").name
    'conll'
    """
    if name is not None:
        if name not in FORMATS:
            raise unknown_name("format", name, FORMATS)
        return FORMATS[name]
    if str(path) == STANDARD:
        return JSON_LINES
    for format in FORMATS.values():
        if format.recognises is not None and format.recognises(Path(path)):
            return format
    ending = Path(Path(path).name.removesuffix(".gz")).suffix.lower()
    meant = [format for format in FORMATS.values() if ending in format.suffixes]
    if len(meant) == 1:
        return meant[0]
    what = f"the ending {ending!r} means {'several formats' if meant else 'no format'}"
    if meant and Path(path).is_file():
        what, meant = f"{what}, and nothing in the file tells which", []
    known = ", ".join(map(_shown, meant or FORMATS.values()))
    if Path(path).is_dir():
        what = "nothing in this folder means a format"
    raise UsageError(f"{path}: {what}. Name one of {known}")


def _shown(format: Format) -> str:
    return f"{format.name} ({' '.join(format.suffixes)})" if format.suffixes else format.name


def read(
    path: str | Path,
    *,
    format: str | None = None,
    types: Sequence[str] | None = None,
    coarse: Mapping[str, Sequence[str]] | None = None,
    **options: Any,  # noqa: ANN401
) -> Corpus:
    """Read a file, or a folder if the format is one.

    Args:
        path: the file, or `-` for standard input.
        format: name of a format; None goes by the path.
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
    [corpus] = corpora_of(found, path, Types(types, coarse), create(found.read_options, options))
    return corpus


def read_batches(
    path: str | Path,
    *,
    format: str | None = None,
    documents: int = 1000,
    types: Sequence[str] | None = None,
    coarse: Mapping[str, Sequence[str]] | None = None,
    **options: Any,  # noqa: ANN401
) -> Iterator[Corpus]:
    """Read a file as a stream of corpora, in memory that does not grow with the file.

    All together they have the documents that `read` gives, in the same order. One that stands alone has the entity
    types and sources that occur in it: declare `types` where all must have the same.

    Args:
        path: the file, or `-` for standard input.
        format: name of a format; None goes by the path.
        documents: size of a corpus. A group, consecutive documents with one name in `group`, is never cut, so a corpus
            may be larger; the last may be smaller.
        types: entity types in the wanted order; by default all that occur in a corpus, in alphabetical order.
        coarse: types that each stand for one of several types.
        options: what the format lets one set, as for `read`.

    Yields:
        Corpora; none if the file has no documents.

    Raises:
        UsageError: no such file, format or option.
        DataError: the content is wrong, or an id occurs twice in the whole file.

    Warns:
        FormatWarning: something was repaired or left out; once, after the last corpus.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "in.conll")
    ...     _ = path.write_text("Ada B-PER" + 2 * chr(10) + "Oslo B-LOC" + 2 * chr(10) + "wrote O" + chr(10))
    ...     [corpus.id_list for corpus in read_batches(path, documents=2)]
    [['in-0', 'in-1'], ['in-2']]
    """
    if documents < 1:
        raise UsageError(f"documents must be at least 1, not {documents}")
    found = format_of(path, format)
    return corpora_of(found, path, Types(types, coarse), create(found.read_options, options), documents)


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


def write_batches(
    batches: Iterable[Corpus],
    path: str | Path,
    *,
    format: str | None = None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Write a stream of corpora to one file, which takes its name only when it is complete.

    With `read_batches` a file of any size can be worked on in memory that does not grow with it.

    Args:
        batches: what to write, one after the other.
        path: the file, or `-` for standard output.
        format: name of a format; None goes by the ending of the path. JSON lines can be written so.
        options: what the format lets one set, the fields of its `write_options`.

    Raises:
        UsageError: the file cannot be written, or the format not as a stream; or there is no such format or option.
    """
    found = format_of(path, format)
    if found.write_batches is None:
        able = ", ".join(name for name, each in FORMATS.items() if each.write_batches is not None)
        raise UsageError(f"the format {found.name} cannot be written as a stream, but can: {able}")
    found.write_batches(batches, path, create(found.write_options, options))
