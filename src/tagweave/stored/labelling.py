"""Files in, labels out: documents are read, labelled and written part by part; memory does not grow with them."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tagweave.corpus import Corpus
from tagweave.errors import UsageError
from tagweave.formats import format_of, read_batches, write, write_batches
from tagweave.formats.streams import is_stream
from tagweave.progress import track
from tagweave.stored import StoredCorpus
from tagweave.writing import only_run

PART = 2000
"""Documents in a part, more where a group is larger."""


def needs_all(out: str | Path) -> bool:
    """Whether the format of a file to be written needs all documents at once."""
    return format_of(out).write_batches is None


def store(path: str | Path, *, whole: bool = False, coarse: Mapping[str, Sequence[str]] | None = None) -> StoredCorpus:
    """Read a file into a corpus on disk, in one pass.

    Args:
        path: the file, or `-` for standard input.
        whole: whether all documents are put into one part, which then must fit into memory.
        coarse: types that each stand for one of several types.

    Raises:
        UsageError, DataError: as for `tagweave.read`.
        StorageError: there is no space in the folder for temporary files.
    """
    return StoredCorpus(track(read_parts(path, whole=whole, coarse=coarse), "reading, parts"))


def read_parts(
    path: str | Path, *, whole: bool = False, coarse: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Corpus]:
    """Read a file part by part, each with the types and sources that occur in it; arguments as for `store`."""
    return read_batches(path, documents=sys.maxsize if whole else PART, coarse=coarse)


@contextmanager
def taken(out: str | Path) -> Iterator[None]:
    """Have the place of a file for this run, before the work whose result it will hold.

    Raises:
        UsageError: another run has it, or nothing can be written there.
    """
    if is_stream(out):
        yield
        return
    if Path(out).is_dir() and format_of(out).recognises is None:
        raise UsageError(f"{out} cannot be written: it is a folder. Name a file in it")
    with only_run(Path(os.path.realpath(out))):
        yield


def write_labels(parts: Iterable[Corpus], out: str | Path, total: int | None = None) -> None:
    """Write labelled documents without votes; the file takes its name when it is complete.

    Args:
        parts: the documents; one part only, if the format of the file needs all at once (`needs_all`).
        out: the file, or `-` for standard output.
        total: how many parts there are, for progress.
    """
    labelled = (part.select_sources([]) for part in track(parts, "labelling, parts", total))
    if needs_all(out):
        write(next(labelled, Corpus.from_documents([])), out)
    else:
        write_batches(labelled, out)
