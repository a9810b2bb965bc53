"""How a command ends when it is told to: Ctrl-C, `kill`, or a terminal that goes."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_WORDS = {"SIGINT": "interrupted", "SIGTERM": "told to end (SIGTERM)", "SIGHUP": "the terminal has gone (SIGHUP)"}

_MOMENT = 0.01
"""Seconds until a signal that was lost comes once more."""

_PATIENCE = 2.0
"""Seconds after a signal in which more of them change nothing; then the next one ends the process as it is."""


class Stopped(BaseException):
    """A signal that ends the command; what is under way puts its things in order as with every other exception.

    Attributes:
        code: what the process returns, as shells have it.
        how: in words.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number
        self.how = _WORDS[signal.Signals(number).name]


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside the block, signals that end a process raise `Stopped`, unless whoever started it has them ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: list[float] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            raise Stopped(number)
        if time.monotonic() - first[0] > _PATIENCE:
            os._exit(128 + number)

    def repeat(found: "sys.UnraisableHookArgs") -> None:
        """What is raised while Python clears up an object is lost: the signal comes once more, a moment later."""
        if isinstance(found.exc_value, Stopped):
            first.clear()
            timer = threading.Timer(_MOMENT, os.kill, (os.getpid(), found.exc_value.code - 128))
            timer.daemon = True
            timer.start()
        else:
            hook(found)

    hook, sys.unraisablehook = sys.unraisablehook, repeat
    before = {}
    for name in _WORDS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def unbroken() -> Iterator[None]:
    """For a moment that must not be cut: a signal that would raise inside the block raises at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals raise in the main thread only
        return
    came: list[int] = []
    numbers = [number for name in _WORDS if (number := getattr(signal, name, None)) is not None]
    handled = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    for number in handled:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        if came:
            os.kill(os.getpid(), came[0])
