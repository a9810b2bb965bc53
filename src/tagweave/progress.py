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


def track(iterable: Iterable[Item], description: str, total: int | None = None, done: int = 0) -> Iterator[Item]:
    """The items of an iterable; how far it has come is shown on stderr.

    A terminal gets a bar, anything else a line now and then.

    Args:
        iterable: what is worked through.
        description: what is done, in words.
        total: how many items there are, those included that an earlier run has done.
        done: how many an earlier run has done; they are not in `iterable`.

    >>> list(track([1, 2], "counting"))
    [1, 2]
    """
    if not _shown:
        yield from iterable
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track as rich_track

        console = Console(stderr=True)
        yield from rich_track(iterable, description, total=total, completed=done, console=console, transient=True)
    else:
        yield from _plain(iterable, description, total, done)


def _plain(iterable: Iterable[Item], description: str, total: int | None, done: int) -> Iterator[Item]:
    of = "" if total is None else f"/{total}"
    last = time.monotonic()
    for count, item in enumerate(iterable, done + 1):
        yield item
        if time.monotonic() - last > _PLAIN_INTERVAL:
            last = time.monotonic()
            say(f"{description}: {count}{of}")
