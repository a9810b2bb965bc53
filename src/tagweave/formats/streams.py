"""Lines out of files and into them: UTF-8 whatever the machine's language, gzip, standard input and output.

Only a line feed, or a carriage return before it, ends a line. One byte order mark at the start is no text.

What comes in is bounded, whoever made it: pipes and devices are no files, a packed file may hold `MOST_PACKED` times
its size, and a line, or all of a text from standard input, `LONGEST_TEXT` bytes.
"""

import contextlib
import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from tagweave.errors import FormatError, UsageError
from tagweave.storage import plain_file
from tagweave.writing import new_file

STANDARD = "-"
"""The path that stands for standard input or standard output."""

BYTE_ORDER_MARK = "\ufeff"

MOST_PACKED = 200
"""How many times its size a packed file may hold, once it holds more than `LEAST_LIMIT` bytes. Text is packed to a
tenth, the most uniform soft labels to a hundredth, and what was made to fill memories to a thousandth."""

LEAST_LIMIT = 1 << 24

LONGEST_TEXT = 1 << 28
"""Bytes of the longest line, and of the longest text that is read from standard input in one piece."""

_PIECE = 1 << 24
"""Bytes that are read before a look at what they are."""


def shown_name(path: str | Path) -> str:
    """The name of a file as messages show it."""
    return "standard input" if str(path) == STANDARD else str(path)


def stem(path: str | Path) -> str:
    """The name of a file without folder and suffixes, from which ids are made.

    >>> stem("corpora/news.train.conll.gz")
    'news.train'
    """
    if str(path) == STANDARD:
        return "stdin"
    return Path(Path(path).name.removesuffix(".gz")).stem


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if its name ends in `.gz`.

    Raises:
        UsageError: the file cannot be opened.
        FormatError: the file is not the gzip file that its name promises.
    """
    if str(path) == STANDARD:
        yield sys.stdin.buffer
        return
    try:
        with plain_file(path).open("rb") as handle:
            yield _Unpacked.stream(handle, path) if str(path).endswith(".gz") else handle
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{path}: not a complete gzip file ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


class _Unpacked(io.RawIOBase):
    """What a gzip file holds.

    Args:
        packed: the file, open.
        path: its name.
    """

    def __init__(self, packed: BinaryIO, path: str | Path) -> None:
        self._packed = packed
        self._content = gzip.GzipFile(fileobj=packed)
        self._path = path
        self._bytes = 0

    @classmethod
    def stream(cls, packed: BinaryIO, path: str | Path) -> BinaryIO:
        """The bytes, buffered."""
        return cast(BinaryIO, io.BufferedReader(cls(packed, path), 1 << 17))

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        """Fill a buffer as far as one read goes.

        Raises:
            FormatError: far more has come out than went in.
        """
        data = self._content.read1(len(buffer))
        self._bytes += len(data)
        if packed_too_well(self._packed.tell(), self._bytes):
            raise FormatError(f"{self._path}: {too_well_packed('gunzip it')}")
        buffer[: len(data)] = data
        return len(data)


def packed_too_well(packed: int, unpacked: int) -> bool:
    """Whether packed bytes hold more than any file of documents does."""
    return unpacked > max(LEAST_LIMIT, MOST_PACKED * packed)


def too_well_packed(way_out: str) -> str:
    """What is said of a file that is packed too well."""
    return (
        f"unpacked, it is more than {MOST_PACKED} times as large, which no file of documents is. If you trust it and "
        f"have room for it, {way_out} and read what comes out"
    )


def read_lines(path: str | Path, ends: bool = False) -> Iterator[tuple[int, str]]:
    r"""Line numbers from 1, and lines, without their ends unless `ends` is set.

    Raises:
        UsageError: the file cannot be opened.
        FormatError: a line is not UTF-8, holds a NUL character or has no end.
    """
    name = shown_name(path)
    with opened(path) as handle:
        for number, raw in enumerate(iter(partial(handle.readline, _PIECE), b""), 1):
            if len(raw) == _PIECE:
                raw = _rest(raw, handle.readline, f"{name}, line {number}")
            line = decoded(raw, f"{name}, line {number}")
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            yield number, line if ends else line.removesuffix("\n").removesuffix("\r")


def _rest(raw: bytes, read: Callable[[int], bytes], where: str) -> bytes:
    """Bytes with those that follow.

    Args:
        raw: the first ones.
        read: gives more of them, at most as many as it is asked for; fewer at the end.
        where: goes into the message of the `FormatError`.

    Raises:
        FormatError: there is no end of them.
    """
    pieces = [raw]
    while len(pieces[-1]) == _PIECE and pieces[-1][-1:] != b"\n" and b"\0" not in pieces[-1]:
        if len(pieces) * _PIECE >= LONGEST_TEXT:
            raise FormatError(
                f"{where}: longer than {LONGEST_TEXT >> 20} MiB. Write each document on a line of its own"
            )
        pieces.append(read(_PIECE))
    return b"".join(pieces)


LOOK_AHEAD = 1000
"""How many lines of standard input are read to see what is in it."""


class Lines:
    """The lines of a file, as `read_lines` gives them, with a look at what comes.

    A file can be read again, standard input cannot: only its first lines are looked at, and to go through it twice all
    its lines are kept in memory.

    Args:
        path: the file.
        ends: whether lines keep their ends.
    """

    def __init__(self, path: str | Path, ends: bool = False) -> None:
        self._path = path
        self._ends = ends
        self._source = read_lines(path, ends)
        self._held: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Line numbers from 1, and lines; those of standard input only once, unless they are kept."""
        if str(self._path) == STANDARD:
            return chain(self._held, self._source)
        return read_lines(self._path, self._ends)

    def keep(self) -> None:
        """Make it possible to go through the lines more than once."""
        if str(self._path) == STANDARD:
            self._held.extend(self._source)

    def first(self) -> list[str]:
        """The first lines, at most `LOOK_AHEAD` of them."""
        if str(self._path) != STANDARD:
            return [line for _, line in islice(self, LOOK_AHEAD)]
        self._held.extend(islice(self._source, max(LOOK_AHEAD - len(self._held), 0)))
        return [line for _, line in self._held[:LOOK_AHEAD]]

    def look(self, sees: Callable[[Iterable[str]], bool]) -> bool:
        """Whether something is among the lines of a file, or among the first lines of standard input."""
        if str(self._path) == STANDARD:
            return sees(self.first())
        return sees(line for _, line in self)


def read_text(path: str | Path) -> str:
    """A whole file as text, with its line ends as they are.

    Raises:
        UsageError: the file cannot be opened.
        FormatError: it is not UTF-8 or holds a NUL character.
    """
    raw = read_bytes(path)
    try:
        return decoded(raw, shown_name(path)).removeprefix(BYTE_ORDER_MARK)
    except FormatError:
        for number, line in enumerate(raw.split(b"\n"), 1):
            decoded(line, f"{shown_name(path)}, line {number}")
        raise


def read_bytes(path: str | Path) -> bytes:
    """All bytes of a file, unpacked.

    Raises:
        UsageError: the file cannot be opened.
        FormatError: there is no end of standard input.
    """
    with opened(path) as handle:
        if str(path) != STANDARD:
            return handle.read()
        raw = handle.read(LONGEST_TEXT + 1)
    if len(raw) > LONGEST_TEXT:
        raise FormatError(f"{shown_name(path)}: more than {LONGEST_TEXT >> 20} MiB. Put it into a file, and name that")
    return raw


def decoded(raw: bytes, where: str) -> str:
    """Bytes as UTF-8 text; `where` goes into the message of the `FormatError`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{where}: byte {error.start + 1} is not UTF-8 ({error.reason}). Convert the file to UTF-8"
        ) from None
    if "\0" in text:
        raise FormatError(
            f"{where}: holds a NUL character. Is it a binary file, or text in UTF-16? Convert it to UTF-8"
        )
    return text


def is_stream(path: str | Path) -> bool:
    """Whether this is standard output, or a device or pipe, which cannot be gone on with."""
    return str(path) == STANDARD or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir())


@contextlib.contextmanager
def written(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write bytes to, packed if its name ends in `.gz`.

    The bytes go to a temporary name in the same folder, which takes the real name when all is well: whatever goes
    wrong, an older file is kept, and no half a file is left. Devices and pipes are written to as they are.

    Raises:
        UsageError: the file cannot be written.
    """
    if str(path) == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if is_stream(target):
            with target.open("wb") as device:
                yield device
            return
        with contextlib.ExitStack() as stack:
            handle = stack.enter_context(new_file(target))
            if target.name.endswith(".gz"):
                packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=handle, mtime=0)
                handle = cast(BinaryIO, stack.enter_context(packed))
            yield handle
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
