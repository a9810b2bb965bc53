"""What runs workers: processes of this machine, or actors of a Ray cluster; and the loop that keeps them busy."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tagweave.errors import ShardError, UsageError, unknown_name
from tagweave.progress import say
from tagweave.shards.working import Died, Outcome, Task

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Starts workers, each of which has a copy of one object with a method `work`, and calls that method."""

    def start(self) -> Any:  # noqa: ANN401
        """A new worker."""

    def send(self, worker: Any, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401
        """Call `work` in a worker."""

    def wait(self, workers: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
        """Answers of those that have one, by number, or how they died; at least one."""

    def end(self, worker: Any) -> None:  # noqa: ANN401
        """End a worker, whatever it does."""


def engine_of(
    name: str,
    hand: Any,  # noqa: ANN401
    processes: int,
    *,
    address: str = "auto",
    gpus: float | None = None,
    hidden: bool = False,
) -> AbstractContextManager[Engine]:
    """The engine of that name.

    Args:
        name: `local` or `ray`.
        hand: what each worker gets a copy of.
        processes: how many workers there will be.
        address: of the Ray cluster.
        gpus: graphics cards for each Ray worker.
        hidden: whether processes need nothing of the script that runs here.

    Raises:
        UsageError: there is no such engine, or no cluster, or too small a one.
        MissingExtraError: Ray is not installed.
    """
    check_engine(name, processes)
    if name == "ray":
        from tagweave.shards.ray_cluster import ray_engine

        return ray_engine(hand, processes, address=address, gpus=gpus)
    from tagweave.shards.local import local_engine

    return local_engine(hand, hidden)


def check_engine(name: str, processes: int) -> None:
    """Refuse what cannot be.

    Raises:
        UsageError: there is no such engine, or no worker.
    """
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    if processes < 1:
        raise UsageError(f"processes = {processes}: give 1 or more")


class Team:
    """Workers of one engine, started when there is something to do for them.

    Args:
        engine: what runs them.
        size: how many there are at most.
    """

    def __init__(self, engine: Engine, size: int) -> None:
        self._engine = engine
        self._workers: list[Any] = [None] * size

    def __len__(self) -> int:
        return len(self._workers)

    def work(self, take: Callable[[int], Task | None]) -> Iterator[tuple[Task, Outcome]]:
        """Do tasks until there are no more.

        Args:
            take: gives the next task for a worker, by its number, or None.

        Yields:
            Each task with what became of it. A worker that died is replaced when there is a task for it.
        """
        busy: dict[int, Task] = {}
        while True:
            for number in range(len(self)):
                if number not in busy and (task := take(number)) is not None:
                    if self._workers[number] is None:
                        self._workers[number] = self._engine.start()
                    self._engine.send(self._workers[number], task.arguments)
                    busy[number] = task
            if not busy:
                return
            for number, answer in self._engine.wait({each: self._workers[each] for each in busy}):
                if isinstance(answer, Died):
                    self._engine.end(self._workers[number])
                    self._workers[number] = None
                yield busy.pop(number), answer

    def end(self) -> None:
        """End all workers."""
        for number, worker in enumerate(self._workers):
            if worker is not None:
                self._engine.end(worker)
                self._workers[number] = None


def lost(task: Task, died: Died, retries: int) -> ShardError | None:
    """Note that a worker died at a task, and say that it is tried again; or the error, if that is of no use."""
    task.deaths += 1
    if task.deaths > retries:
        times = "" if task.deaths == 1 else f" {task.deaths} times"
        return ShardError(f"shard {task.name!r}: its worker died{times} ({died.how})")
    say(f"shard {task.name!r}: its worker died ({died.how}); it is tried again, {task.deaths} of {retries}")
    return None
