"""Where the results of a run go: a stream, or a file that can be gone on with after a break.

While a run lasts, its lines are in `OUT.partial`, and `OUT.journal.json` says how far that file can be trusted and what
the run was about. In the end the file takes its name, and the journal goes.
"""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from tagweave.annotating.statistics import Statistics, add_up
from tagweave.errors import StorageError, UsageError
from tagweave.formats.streams import STANDARD, is_stream
from tagweave.progress import say
from tagweave.storage import read_json, write_json
from tagweave.writing import not_elsewhere, only_run

_INTERVAL = 1.0
"""Seconds between two entries in the journal."""

_PIECE = 1 << 20


@dataclass
class Journal:
    """How far a run has come.

    Attributes:
        about: what the run was about: changes by name between two runs mean that they do not fit.
        batches: batches that are written.
        documents: documents in them.
        size: bytes that they take.
        sha256: of these bytes.
        statistics: what each source did for them.
    """

    about: dict[str, str] = field(default_factory=dict)
    batches: int = 0
    documents: int = 0
    size: int = 0
    sha256: str = ""
    statistics: dict[str, Statistics] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All of it, for a file."""
        return {**vars(self), "statistics": {name: each.to_json() for name, each in self.statistics.items()}}

    @classmethod
    def read(cls, path: Path) -> Self:
        """What is in a file.

        Raises:
            StorageError: it is no journal.
        """
        try:
            values = read_json(path)
            statistics = {name: Statistics.from_json(each) for name, each in values.pop("statistics").items()}
            return cls(**values, statistics=statistics)
        except StorageError as error:
            raise StorageError(f"{error}. Start afresh, without --resume") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"{path} cannot be read ({error}). Start afresh, without --resume") from None


class Output:
    """Takes the lines of one batch after the other.

    Attributes:
        journal: how far it has come.
    """

    def __init__(self, handle: BinaryIO, journal: Journal, shown: str) -> None:
        self.journal = journal
        self._handle = handle
        self._shown = shown

    def write(self, lines: bytes, documents: int, statistics: Mapping[str, Statistics]) -> None:
        """Append the lines of a batch.

        Raises:
            UsageError: they cannot be written.
        """
        with _writing(self._shown):
            rest = memoryview(lines)
            while rest:
                rest = rest[self._handle.write(rest) :]
        self.journal.batches += 1
        self.journal.documents += documents
        self.journal.size += len(lines)
        add_up(self.journal.statistics, statistics)


class _File(Output):
    """An output with a journal on disk."""

    def __init__(self, handle: BinaryIO, journal: Journal, shown: str, path: Path) -> None:
        super().__init__(handle, journal, shown)
        self._path = path
        self._noted = float("-inf")
        self._digest = hashlib.sha256()

    def go_on(self, partial: Path) -> None:
        """Leave what an earlier run has written as far as its journal goes, if it is still the same.

        Raises:
            StorageError: it is not.
        """
        rest = self.journal.size
        with partial.open("rb") as handle:
            while rest and (piece := handle.read(min(rest, _PIECE))):
                self._digest.update(piece)
                rest -= len(piece)
        if rest or (self.journal.size and self._digest.hexdigest() != self.journal.sha256):
            how = "is shorter than its journal says" if rest else "has changed since it was written"
            raise StorageError(f"{partial} {how}. Start afresh, without --resume")
        self._handle.truncate(self.journal.size)

    def write(self, lines: bytes, documents: int, statistics: Mapping[str, Statistics]) -> None:
        super().write(lines, documents, statistics)
        self._digest.update(lines)
        if time.monotonic() - self._noted > _INTERVAL:
            self.note()

    def note(self) -> None:
        """Bring the journal up to date."""
        with _writing(self._shown):
            os.fsync(self._handle.fileno())
            self.journal.sha256 = self._digest.hexdigest()
            write_json(self._path, self.journal.to_json(), sealed=True)
        self._noted = time.monotonic()

    def forget(self, partial: Path) -> None:
        """Leave nothing of a run that has come to nothing."""
        partial.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

    def finish(self, partial: Path, target: Path) -> None:
        """Give the file its name."""
        self.note()  # should the run end before the journal goes, it tells that all is done
        with _writing(self._shown):
            os.replace(partial, target)
            self._path.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(shown: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{shown} cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def opened_output(path: str | Path, about: dict[str, str], resume: bool) -> Iterator[Output]:
    """An output; it takes its name when all is done, and what was finished is kept where something goes wrong.

    Args:
        path: the file, or `-` for standard output.
        about: what the run is about, by name.
        resume: whether to go on with what an earlier run left.

    Raises:
        UsageError: the file cannot be written, another run is writing it, or it cannot be gone on with.
        StorageError: the journal is damaged.
    """
    if is_stream(path):
        if resume:
            raise UsageError(f"{path} is no file, so there is nothing to go on with. Leave out --resume")
        yield from _streamed(str(path))
        return
    target = Path(os.path.realpath(path))
    partial = target.with_name(f"{target.name}.partial")
    if target.is_dir():
        raise UsageError(f"{path} cannot be written: it is a folder. Name a file in it")
    with only_run(target), contextlib.ExitStack() as stack:
        journal_path = target.with_name(f"{target.name}.journal.json")
        journal = _journal(journal_path, about, resume)
        with _writing(str(path)):
            _take_back(target, partial, journal)
            handle = stack.enter_context(open(partial, "ab", buffering=0, opener=not_elsewhere))
        output = _File(handle, journal, str(path), journal_path)
        output.go_on(partial)
        yield from _kept(output, partial, target)


def _streamed(path: str) -> Iterator[Output]:
    if path == STANDARD:
        yield Output(sys.stdout.buffer, Journal(), "standard output")
        with _writing("standard output"):
            sys.stdout.buffer.flush()
        return
    with Path(path).open("wb", buffering=0) as handle:
        yield Output(handle, Journal(), path)


def _take_back(target: Path, partial: Path, journal: Journal) -> None:
    """Undo the last step of a run, if it was broken off after the file had its name and before the journal went."""
    unfinished = partial.exists() and partial.stat().st_size
    if journal.size and not unfinished and target.is_file() and target.stat().st_size == journal.size:
        with target.open("rb") as handle:
            whole = hashlib.file_digest(handle, "sha256").hexdigest() == journal.sha256
        if whole:
            os.replace(target, partial)


def _kept(output: _File, partial: Path, target: Path) -> Iterator[Output]:
    journal = output.journal
    try:
        yield output
    except BaseException:
        if journal.batches:
            with contextlib.suppress(UsageError):
                output.note()
            say(f"{journal.documents} documents are done and kept in {partial}; --resume goes on from there")
        else:
            output.forget(partial)
        raise
    output.finish(partial, target)


def _journal(path: Path, about: dict[str, str], resume: bool) -> Journal:
    """Where to go on."""
    if not resume:
        if path.exists():
            say("what an unfinished run left is overwritten; --resume would go on with it")
        path.unlink(missing_ok=True)
        return Journal(about)
    if not path.exists():
        say("there is no unfinished run to go on with; starting afresh")
        return Journal(about)
    journal = Journal.read(path)
    changed = [name for name in about if journal.about.get(name) != about[name]]
    if changed:
        raise UsageError(
            f"the unfinished run cannot be gone on with, because of changes in {', '.join(changed)}. Start afresh, "
            "without --resume"
        )
    say(f"{journal.documents} documents are done already")
    return journal
