"""`Clock`: no piece of work takes longer than it may, and others can see what is being worked on."""

import signal
import threading
import time
from collections.abc import Iterator, MutableSequence
from contextlib import contextmanager
from typing import Any, NamedTuple

_TICK = 0.25
"""Seconds between two looks at the time."""


class TimeUp(BaseException):
    """The time is up; no `Exception`, so that code that catches every exception does not catch it."""


class Beat(NamedTuple):
    """What a process is working on.

    Attributes:
        started: when the piece of work began, in seconds of `time.monotonic`; 0 between two pieces.
        source: number of the source.
        document: number of the document in its batch, the first if there are several.
        documents: how many are worked on together.
    """

    started: float = 0.0
    source: int = 0
    document: int = 0
    documents: int = 0


class Clock:
    """Stops work that takes too long.

    While it runs, a signal now and then looks at the time. It reaches Python code, `time.sleep` and regular
    expressions, but not code in C that never looks at signals; a process that watches another one can read in the
    `beat` what that one has been at, and since when.

    Args:
        limit: seconds that a piece of work may take; 0 is no limit.
        beat: four numbers, the fields of `Beat`; they may be in memory that processes share.

    >>> clock = Clock(0.05)
    >>> with clock.running():
    ...     try:
    ...         clock.start(0, 0, 1)
    ...         time.sleep(10)
    ...     except TimeUp:
    ...         print("too long")
    ...     finally:
    ...         clock.stop()
    too long
    """

    def __init__(self, limit: float, beat: MutableSequence[float] | None = None) -> None:
        self.limit = limit
        self._beat: Any = [0.0] * 4 if beat is None else beat

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the time in here. It is kept in the main thread of a process, as signals only come there."""
        kept = self.limit > 0 and hasattr(signal, "setitimer")
        if not kept or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, self._look)
        tick = min(_TICK, self.limit / 2)
        timer = signal.setitimer(signal.ITIMER_REAL, tick, tick)
        try:
            yield
        finally:
            self.stop()
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, before)

    def start(self, source: int, document: int, documents: int) -> None:
        """A piece of work begins."""
        beat = self._beat
        beat[1], beat[2], beat[3] = source, document, documents
        beat[0] = time.monotonic()

    def stop(self) -> None:
        """It has ended."""
        self._beat[0] = 0.0

    def _look(self, *_: object) -> None:
        started = self._beat[0]
        if started and time.monotonic() - started > self.limit:
            raise TimeUp
