"""`Pool`: processes that run sources over parts of a corpus; it survives workers that die or never come back."""

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from tagweave.annotating.clock import Beat
from tagweave.annotating.running import Runner, failed
from tagweave.annotating.statistics import Statistics, add_up
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, SourceTimeout, TagweaveError, TagweaveWarning
from tagweave.sources.base import Source, groups
from tagweave.sources.loading import MODULE_PREFIX, load_sources

DEATHS = 3
"""How often a worker may die at one place before the source is to blame."""

GRACE = 2.0
"""Seconds that a worker has after the time limit to come back by itself."""

_LOOK = 0.5
"""Seconds between two looks at what the workers do."""

_CONTEXT = get_context("spawn")


class CannotStart(Exception):  # noqa: N818
    """A worker cannot be started with these sources; what hinders it."""


@dataclass
class Result:
    """What comes back for a part of a corpus.

    Attributes:
        documents: number of documents.
        payload: what `Finish` made of them.
        statistics: what each source did.
    """

    documents: int
    payload: Any
    statistics: dict[str, Statistics]


Finish = Callable[[Corpus, list[Document]], Any]
"""Makes of a part of a corpus, and its documents with votes, what is sent back."""


@dataclass
class _Task:
    """A part of a corpus on its way."""

    number: int
    corpus: Corpus
    deaths: Counter[Beat] = field(default_factory=Counter)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    failures: dict[str, Statistics] = field(default_factory=dict)


class Pool:
    """Workers for parts of a corpus. Results come in the order of the parts.

    Args:
        origin: where workers get the sources: a file that each of them loads, or the sources themselves.
        sources: the sources.
        processes: number of workers.
        finish: what workers send back; a function that can be imported.
        tolerant: whether a source that fails on a document abstains there.
        time_limit: seconds that a source may take, see `Runner`.

    Raises:
        CannotStart: the first worker does not come up.
    """

    def __init__(
        self,
        origin: Path | Sequence[Source],
        sources: Sequence[Source],
        processes: int,
        finish: Finish,
        *,
        tolerant: bool,
        time_limit: float,
    ) -> None:
        self._sources = list(sources)
        self._tolerant = tolerant
        self._limit = time_limit
        self._alone: set[str] = set()
        self._told: set[str] = set()
        self._start = partial(_Worker, origin, finish, tolerant, time_limit)
        self._most = 2 * processes
        self._workers: list[_Worker] = []
        try:
            self._workers += [self._start() for _ in range(processes)]
            for worker in self._workers:
                worker.greet()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, whatever they do."""
        for worker in self._workers:
            worker.end()
        self._workers = []

    def run(self, parts: Iterator[Corpus]) -> Iterator[Result]:
        """The results for some parts of a corpus.

        At most twice as many parts as there are workers are under way.

        Raises:
            SourceError: a source fails, kills its process, or does not come back.
            TagweaveError: another mistake; that of the first part that has one.
        """
        waiting: deque[_Task] = deque()
        done: dict[int, Result | Exception] = {}
        read, given, more = 0, 0, True
        while True:
            while given in done:
                result = done.pop(given)
                if isinstance(result, Exception):
                    raise result
                given += 1
                yield result
            for worker in self._workers:
                if worker.task is None and waiting:
                    self._assign(worker, waiting.popleft())
            if more and read - given < self._most and not any(isinstance(found, Exception) for found in done.values()):
                try:
                    corpus = next(parts, None)
                except TagweaveError as error:
                    corpus, done[read] = None, error
                more = corpus is not None
                if corpus is not None:
                    waiting.append(_Task(read, corpus))
                read += more or read in done
                self._collect(done, 0)
            elif given == read:
                return
            else:
                self._collect(done, _LOOK)

    def _assign(self, worker: "_Worker", task: _Task) -> None:
        worker.task = task
        try:
            worker.connection.send((_plain(task.corpus), frozenset(task.skipped), frozenset(self._alone)))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has died; `_collect` sees that

    def _collect(self, done: dict[int, Result | Exception], seconds: float) -> None:
        """Take what workers have sent, and see after those that do not come back."""
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        for connection in wait(list(busy), seconds):
            self._receive(busy.pop(connection), done)  # type: ignore[call-overload]
        for worker in busy.values():
            started = worker.beat.started
            if self._limit and started and time.monotonic() - started > self._limit + GRACE:
                worker.end()
                self._lost(worker, worker.beat.started == started, done)  # it may have come back this very moment

    def _receive(self, worker: "_Worker", done: dict[int, Result | Exception]) -> None:
        task = worker.task
        assert task is not None
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(1)
            self._lost(worker, False, done)
            return
        worker.task = None
        if isinstance(answer, Exception):
            done[task.number] = answer
            return
        payload, statistics, alone, told = answer
        self._alone |= alone
        for message in told - self._told:
            warnings.warn(TagweaveWarning(message), stacklevel=2)
        self._told |= told
        add_up(statistics, task.failures)
        done[task.number] = Result(len(task.corpus), payload, statistics)

    def _lost(self, worker: "_Worker", late: bool, done: dict[int, Result | Exception]) -> None:
        """A worker is dead: another one takes its place and its task, unless a source is to blame."""
        task, beat, code = worker.task, worker.beat, worker.process.exitcode
        assert task is not None
        worker.end()
        place = beat._replace(started=0.0) if beat.started else Beat()
        task.deaths[place] += 1
        self._workers.remove(worker)
        try:
            if late or task.deaths[place] >= DEATHS or task.deaths.total() >= 3 * DEATHS:
                self._blame(task, beat, late, code)
            fresh = self._start()
            fresh.greet()
            self._workers.append(fresh)
        except (SourceError, CannotStart) as error:
            done[task.number] = error if isinstance(error, SourceError) else SourceError(str(error))
            return
        self._assign(fresh, task)

    def _blame(self, task: _Task, beat: Beat, late: bool, code: int | None) -> None:
        """Find out which source it is, and on which documents; next time it does not run there.

        Raises:
            SourceError: failures are not tolerated, or it is no source.
        """
        how = f"it ends the process ({_ending(code)})"
        if not beat.started:
            ids = task.corpus.id_list
            raise SourceError(f"documents {ids[0]!r} to {ids[-1]!r}: a worker dies again and again, {_ending(code)}")
        source = self._sources[int(beat.source)]
        after = (task.corpus[i] for i in range(int(beat.document), len(task.corpus)))
        asked = (document for document in after if (source.name, document.id) not in task.skipped)
        documents = list(islice(asked, int(beat.documents)))
        if len(groups(documents)) > 1:
            self._alone.add(source.name)
            return
        place = f"source {source.name!r}, document {documents[0].id!r}"
        if late:
            message = f"it took longer than {self._limit:g} seconds and could not be interrupted"
            error: SourceError = SourceTimeout(f"{place}: {message}")
        else:
            error = SourceError(f"{place}: {how}")
        if not self._tolerant:
            raise error
        add_up(task.failures, {source.name: failed(error)})
        task.skipped |= {(source.name, document.id) for document in documents}


def _files_of(origin: Path | Sequence[Source]) -> list[Path]:
    """The files that sources were loaded from, which must be run where they are unpickled."""
    if isinstance(origin, Path):
        return []
    objects = [getattr(source, "function", type(source)) for source in origin]
    modules = {getattr(found, "__module__", "") for found in objects}
    return [Path(str(sys.modules[name].__file__)) for name in sorted(modules) if name.startswith(MODULE_PREFIX)]


def _ending(code: int | None) -> str:
    """How a process ended, for people."""
    if code is not None and code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def _plain(corpus: Corpus) -> Corpus:
    """The corpus in a form that can be sent."""
    return replace(corpus, coarse=dict(corpus.coarse), sources=dict(corpus.sources), links=dict(corpus.links))


class _Worker:
    """A process as the pool sees it."""

    def __init__(self, origin: Path | Sequence[Source], finish: Finish, tolerant: bool, time_limit: float) -> None:
        self.task: _Task | None = None
        self._shared = _CONTEXT.RawArray("d", len(Beat()))
        self.connection, theirs = _CONTEXT.Pipe()
        self._origin = origin
        arguments = (theirs, self._shared, finish, tolerant, time_limit)
        self.process = _CONTEXT.Process(target=work, args=arguments, daemon=True)
        with _undisturbed(), _without_main(isinstance(origin, Path)):
            self.process.start()
        theirs.close()

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
            self.process.join(1)
            raise CannotStart(
                f"a new process ended at once, {_ending(self.process.exitcode)}; a script that starts processes needs "
                'the line `if __name__ == "__main__":` before what it does'
            ) from None
        if isinstance(answer, Exception):
            raise answer

    @property
    def beat(self) -> Beat:
        """What it is at, or was when it died."""
        return Beat(*self._shared)

    def end(self) -> None:
        """End it; it has nothing to save."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
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


# In the worker


def work(
    connection: Connection,
    shared: Any,  # noqa: ANN401
    finish: Finish,
    tolerant: bool,
    time_limit: float,
) -> None:
    """The life of a worker: it loads the sources and answers until nobody asks any more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # what sources print must not get between the results
    try:
        for path in connection.recv():
            load_sources(path)
        origin = connection.recv()
        sources = load_sources(origin) if isinstance(origin, Path) else origin
        runner = Runner(sources, tolerant=tolerant, time_limit=time_limit, beat=shared)
    except TagweaveError as error:
        connection.send(_sendable(error))
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
            return _sendable(error)
    messages = {str(each.message) for each in told if issubclass(each.category, TagweaveWarning)}
    return payload, runner.take_statistics(), set(runner.alone), messages


def _sendable(error: Exception) -> Exception:
    if isinstance(error, TagweaveError):
        return type(error)(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
