"""Processes beside this one: how they start, end and report, and files that only one of them may have.

They are spawned, never forked, end with the process that started them, and get no interrupt (Ctrl-C) of their own.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.resource_tracker import ensure_running
from types import ModuleType
from typing import IO, Any

from tagweave.errors import TagweaveError
from tagweave.stopping import unbroken

CONTEXT = get_context("spawn")

_LONGEST_END = 60.0
"""Seconds from the end of a connection to that of its process, at most."""

MAIN_HINT = 'a script that starts processes needs the line `if __name__ == "__main__":` before what it does'


class Process:
    """A process that answers through a connection.

    Args:
        target: what it does; a function that can be imported. It is called with its end of the connection first.
        arguments: what else it is called with.
        hidden: whether it needs nothing of the script that runs here, which then is not run once more.
        daemon: whether Python ends it with this process. Without that it may start processes of its own, but somebody
            must `end` it; `end_with_parent` is for the case that this process is killed.

    Attributes:
        task: what it is at; None if it is idle.
    """

    def __init__(
        self,
        target: Callable[..., None],
        *arguments: Any,  # noqa: ANN401
        hidden: bool = False,
        daemon: bool = True,
    ) -> None:
        self.task: Any = None
        self.connection, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=daemon)
        with unbroken(), undisturbed(), _without_main(hidden):  # a process that is half started ends in a traceback
            self.process.start()
        theirs.close()

    def exit_code(self) -> int | None:
        """How it ended, after its connection has: on a busy machine a process may take a while longer."""
        self.process.join(_LONGEST_END)
        return self.process.exitcode

    def end(self) -> None:
        """End it; it has nothing to save."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no interrupt (Ctrl-C) reach the processes that start here; this one gets it a moment later."""
    ensure_running()  # it would let interrupts in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main(hidden: bool) -> Iterator[None]:
    """Keep new processes from running the script of this one once more, where they need nothing of it."""
    main = sys.modules["__main__"]
    if hidden:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def end_with_parent() -> None:
    """Wait for the end of the process that started this one, then end too; for a thread of its own."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def sendable(error: Exception) -> Exception:
    """The error in a form that another process can read, whatever its class needs."""
    if isinstance(error, TagweaveError):
        return type(error)(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))


def ending(code: int | None) -> str:
    """How a process ended, for people.

    >>> ending(-9), ending(1)
    ('signal SIGKILL', 'exit code 1')
    """
    if code is not None and code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def only_here(handle: IO[Any] | int) -> bool:
    """Have an open file or folder for this process only, until it is closed or the process ends, however it does.

    Returns:
        Whether it is free for us; always on systems and disks without such locks.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a disk on the network, say
        return True
    return True
