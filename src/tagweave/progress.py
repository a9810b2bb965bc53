"""Progress on stderr: silent in a library, shown once the command line calls `show`."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tagweave.errors import printable

Item = TypeVar("Item")

_PLAIN_INTERVAL = 10.0
"""Seconds between two lines where stderr is not a terminal."""

_shown = False


def show(enabled: bool = True) -> None:
    """Switch progress on or off for the whole process."""
    global _shown
    _shown = enabled


def shown() -> bool:
    """Whether progress is shown."""
    return _shown


def say(message: str) -> None:
    """One line of progress."""
    if _shown:
        sys.stderr.write(f"{printable(message)}\n")
        sys.stderr.flush()


def track(iterable: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """The items of an iterable; how far it has come is shown on stderr.

    A terminal gets a bar, anything else a line now and then.

    >>> list(track([1, 2], "counting"))
    [1, 2]
    """
    if not _shown:
        yield from iterable
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track as rich_track

        yield from rich_track(iterable, description, total=total, console=Console(stderr=True), transient=True)
    else:
        yield from _plain(iterable, description, total)


def _plain(iterable: Iterable[Item], description: str, total: int | None) -> Iterator[Item]:
    of = "" if total is None else f"/{total}"
    last = time.monotonic()
    for count, item in enumerate(iterable, 1):
        yield item
        if time.monotonic() - last > _PLAIN_INTERVAL:
            last = time.monotonic()
            say(f"{description}: {count}{of}")
