"""`Pool`: workers for the parts of a corpus; it survives those that die or never come back."""

import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tagweave.annotating.clock import Beat
from tagweave.annotating.running import failed
from tagweave.annotating.statistics import Statistics, add_up
from tagweave.annotating.workers import CannotStart, Finish, Worker
from tagweave.corpus import Corpus
from tagweave.errors import SourceError, SourceTimeout, TagweaveError, TagweaveWarning
from tagweave.processes import ending
from tagweave.sources.base import Source, groups

DEATHS = 3
"""How often a worker may die at one place before the source is to blame."""

GRACE = 1.0
"""Seconds that a worker has after the time limit to come back by itself."""

_LOOK = 0.5
"""Seconds between two looks at what the workers do."""


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
        self._start = partial(Worker, origin, finish, tolerant, time_limit)
        self._most = 2 * processes
        self._workers: list[Worker] = []
        try:
            self._workers += [self._start() for _ in range(processes)]
            for number in range(processes):
                self._greet(number)
        except BaseException:
            self.close()
            raise

    def _greet(self, number: int) -> None:
        """Wait until a worker is there; where it is killed before that, another one takes its place.

        Raises:
            CannotStart: it ends again, or by itself.
        """
        for death in range(DEATHS):
            try:
                self._workers[number].greet()
                return
            except CannotStart:
                if (self._workers[number].process.exitcode or 0) >= 0 or death + 1 == DEATHS:
                    raise
                self._workers[number].end()
                self._workers[number] = self._start()

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

    def _assign(self, worker: Worker, task: _Task) -> None:
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

    def _receive(self, worker: Worker, done: dict[int, Result | Exception]) -> None:
        task = worker.task
        assert task is not None
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            worker.exit_code()
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

    def _lost(self, worker: Worker, late: bool, done: dict[int, Result | Exception]) -> None:
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
            self._workers.append(self._start())
            self._greet(-1)
            fresh = self._workers[-1]
        except (SourceError, CannotStart) as error:
            done[task.number] = error if isinstance(error, SourceError) else SourceError(str(error))
            return
        self._assign(fresh, task)

    def _blame(self, task: _Task, beat: Beat, late: bool, code: int | None) -> None:
        """Find out which source it is, and on which documents; next time it does not run there.

        Raises:
            SourceError: failures are not tolerated, or it is no source.
        """
        how = f"it ends the process ({ending(code)})"
        if not beat.started:
            ids = task.corpus.id_list
            raise SourceError(f"documents {ids[0]!r} to {ids[-1]!r}: a worker dies again and again, {ending(code)}")
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


def _plain(corpus: Corpus) -> Corpus:
    """The corpus in a form that can be sent."""
    return replace(corpus, coarse=dict(corpus.coarse), sources=dict(corpus.sources), links=dict(corpus.links))
