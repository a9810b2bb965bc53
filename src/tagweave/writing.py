"""Files and folders that take their names when they are complete, and places that one run has for itself.

What is being written lies beside its place as `.NAME.xxxxxxxx.new`. Whoever writes it has a lock on it that goes with
the process, so what killed processes left can be told from what others are at; it goes when the place is written next.
"""

import ctypes
import json
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from tagweave.errors import UsageError
from tagweave.processes import only_here

LOCK = ".lock"
"""The end of the names of files that say that a place is taken; in a folder of a run, the whole name."""

_LOOK = 0.1
"""Seconds between two looks at a place that another run has."""


def not_elsewhere(path: str | Path, flags: int) -> int:
    """Opens a file whose name is ours, not the user's: for `open(..., opener=...)`.

    A link under that name is not followed, since whoever made it would have a file elsewhere written, and a pipe under
    it is not waited for.

    Raises:
        OSError: there is a link, a pipe without reader, or what else the system says.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name when the block ends without an error; until then an older one stays as it is.

    Raises:
        OSError: it cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_file(Path(folder, "a.txt")) as handle:
    ...         _ = handle.write(b"all of it")
    ...     os.listdir(folder), Path(folder, "a.txt").read_text()
    (['a.txt'], 'all of it')
    """
    _clear(path)
    while True:
        work = _beside(path)
        with work.open("xb") as handle:
            if not only_here(handle) or not work.exists():
                continue  # somebody took it for left behind
            try:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
                os.replace(work, path)
                _settle(path.parent)
            finally:
                work.unlink(missing_ok=True)
            return


@contextmanager
def replacement(folder: Path) -> Iterator[Path]:
    """A folder that takes the place of another one, or of none, when the block ends without an error.

    Raises:
        OSError: it cannot be written.
    """
    _clear(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    work, lock = _locked_folder(folder)
    try:
        yield work
        for path in work.rglob("*"):
            _settle(path)
        _settle(work)
        if folder.exists():
            _exchange(work, folder)
        else:
            os.replace(work, folder)
        _settle(folder.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove(folder: Path) -> None:
    """Remove a folder in one step: a process that is killed in the middle leaves nothing that looks like it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     (Path(name) / "state").mkdir()
    ...     remove(Path(name) / "state")
    ...     os.listdir(name)
    []
    """
    aside = _beside(folder)
    os.replace(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def _locked_folder(folder: Path) -> tuple[Path, int | None]:
    while True:
        work = _beside(folder)
        work.mkdir()
        if sys.platform == "win32":
            return work, None
        lock = os.open(work, os.O_RDONLY)
        if only_here(lock) and work.exists():
            return work, lock
        os.close(lock)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")


def _clear(path: Path) -> None:
    """Remove what killed processes left when they wrote a place."""
    if sys.platform == "win32" or not path.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.new")
    with os.scandir(path.parent) as entries:
        found = [path.with_name(entry.name) for entry in entries if pattern.fullmatch(entry.name)]
    for left in found:
        with suppress(OSError):
            handle = not_elsewhere(left, os.O_RDONLY)
            try:
                if only_here(handle):
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def _settle(path: Path) -> None:
    """Have a file or the entries of a folder on the disk itself, so that they are there after a loss of power."""
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exchange(new: Path, old: Path) -> None:
    """Let two folders change their names, in one step where the system can."""
    libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform in ("linux", "darwin") else None
    names = os.fsencode(new), os.fsencode(old)
    if hasattr(libc, "renameat2"):
        failed = libc.renameat2(-100, names[0], -100, names[1], 2)  # AT_FDCWD, RENAME_EXCHANGE
    elif hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, 2)  # RENAME_SWAP
    else:
        failed = True
    if failed:
        aside = old.with_name(f".{old.name}.{secrets.token_hex(4)}.old")
        os.replace(old, aside)
        os.replace(new, old)
        os.replace(aside, new)


@contextmanager
def only_run(place: Path, lock: Path | None = None, *, waits: bool = False) -> Iterator[None]:
    """Have a place for this run only, from before its work until the end of the block, or of this process.

    Args:
        place: the file or folder that will be written.
        lock: the file that says so; by default one beside the place.
        waits: wait for the end of another run, instead of an error.

    Raises:
        UsageError: another run has it, or nothing can be written there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with only_run(Path(folder, "model")):
    ...         print(os.listdir(folder))
    ...     print(os.listdir(folder))
    ['.model.lock']
    []
    """
    lock = lock_of(place) if lock is None else lock
    with ExitStack() as held:
        try:
            taken = _take(lock, waits, held)
        except OSError as error:
            raise UsageError(f"{place} cannot be written: {error.strerror or error}") from None
        if not taken:
            raise UsageError(
                f"{place}: another run is writing it ({_holder(lock)}). Wait for its end, or choose another place"
            )
        yield


def lock_of(place: Path) -> Path:
    """The file beside a place that says that a run has it; one that was killed leaves it behind.

    >>> str(lock_of(Path("out/model")))
    'out/.model.lock'
    """
    return place.with_name(f".{place.name}{LOCK}")


def _take(lock: Path, waits: bool, held: ExitStack) -> bool:
    """Take a lock until `held` ends; whether no other run has it."""
    while True:
        with ExitStack() as attempt:
            handle = attempt.enter_context(open(lock, "a", encoding="utf-8", opener=not_elsewhere))
            if not only_here(handle):
                if not waits:
                    return False
            elif _is_there(handle, lock):  # else its last holder has just removed it
                attempt.callback(_removed, lock)
                handle.truncate(0)
                handle.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
                handle.flush()
                held.push(attempt.pop_all())
                return True
        time.sleep(_LOOK)


def _is_there(handle: IO[Any], path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _removed(lock: Path) -> None:
    with suppress(OSError):
        lock.unlink()


def _holder(lock: Path) -> str:
    try:
        values = json.loads(lock.read_text(encoding="utf-8"))
        return f"process {values['pid']} on {values['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it is just starting or ending"
