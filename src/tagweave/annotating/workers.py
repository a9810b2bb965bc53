"""`Worker`: a process that runs sources over parts of a corpus, as the one sees it that started it, and from inside."""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tagweave.annotating.clock import Beat
from tagweave.annotating.running import Runner
from tagweave.corpus import Corpus, Document
from tagweave.errors import TagweaveError, TagweaveWarning
from tagweave.processes import CONTEXT, MAIN_HINT, Process, end_with_parent, ending, sendable
from tagweave.sources.base import Source
from tagweave.sources.loading import MODULE_PREFIX, load_sources


class CannotStart(Exception):
    """A worker cannot be started with these sources; what hinders it."""


Finish = Callable[[Corpus, list[Document]], Any]
"""Makes of a part of a corpus, and its documents with votes, what is sent back."""


def _files_of(origin: Path | Sequence[Source]) -> list[Path]:
    """The files that sources were loaded from, which must be run where they are unpickled."""
    if isinstance(origin, Path):
        return []
    objects = [getattr(source, "function", type(source)) for source in origin]
    modules = {getattr(found, "__module__", "") for found in objects}
    return [Path(str(sys.modules[name].__file__)) for name in sorted(modules) if name.startswith(MODULE_PREFIX)]


class Worker(Process):
    """A process as the pool sees it."""

    def __init__(self, origin: Path | Sequence[Source], finish: Finish, tolerant: bool, time_limit: float) -> None:
        self._shared = CONTEXT.RawArray("d", len(Beat()))
        self._origin = origin
        super().__init__(work, self._shared, finish, tolerant, time_limit, hidden=isinstance(origin, Path))

    def greet(self) -> None:
        """Wait until it is there.

        Raises:
            CannotStart: it ended before.
            SourceError, UsageError, FormatError: the sources cannot be loaded.
        """
        try:
            self.connection.send(_files_of(self._origin))
            self.connection.send(self._origin)
            answer = self.connection.recv()
        except (EOFError, OSError):
            code = self.exit_code()
            hint = "" if isinstance(self._origin, Path) else f"; {MAIN_HINT}"
            raise CannotStart(f"a new process ended at once, {ending(code)}{hint}") from None
        if isinstance(answer, Exception):
            raise answer

    @property
    def beat(self) -> Beat:
        """What it is at, or was when it died."""
        return Beat(*self._shared)


# In the worker


def work(
    connection: Connection,
    shared: Any,  # noqa: ANN401
    finish: Finish,
    tolerant: bool,
    time_limit: float,
) -> None:
    """The life of a worker: it loads the sources and answers until nobody asks any more."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # what sources print must not get between the results
    try:
        for path in connection.recv():
            load_sources(path)
        origin = connection.recv()
        sources = load_sources(origin) if isinstance(origin, Path) else origin
        runner = Runner(sources, tolerant=tolerant, time_limit=time_limit, beat=shared)
    except TagweaveError as error:
        connection.send(sendable(error))
        return
    except Exception as error:  # they cannot be unpickled
        connection.send(CannotStart(f"{type(error).__name__}: {error}"))
        return
    connection.send("ready")
    while True:
        try:
            corpus, skipped, alone = connection.recv()
            connection.send(_answer(runner, finish, corpus, skipped, alone))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _answer(
    runner: Runner, finish: Finish, corpus: Corpus, skipped: frozenset[tuple[str, str]], alone: frozenset[str]
) -> Any:  # noqa: ANN401
    runner.alone |= alone
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TagweaveWarning)
        try:
            payload = finish(corpus, runner.run(list(corpus), skipped))
        except Exception as error:
            return sendable(error)
    messages = {str(each.message) for each in told if issubclass(each.category, TagweaveWarning)}
    return payload, runner.take_statistics(), set(runner.alone), messages
