"""The engine of one machine: processes, each of which has the function."""

import os
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tagweave.errors import ShardError, UsageError
from tagweave.processes import MAIN_HINT, Process, end_with_parent, ending
from tagweave.shards.working import Died, Hand, Loading, Outcome, Task, Work


def run_local(
    function: Work | Loading, waiting: deque[Task], aside: Path, processes: int
) -> Iterator[tuple[Task, Outcome]]:
    """Work shards in processes of this machine.

    Args:
        function: the function, or what it is made from.
        waiting: the shards; whoever takes the outcomes may add to them, or clear them.
        aside: a folder for unfinished outputs.
        processes: how many processes at most.

    Yields:
        Each shard with what became of it.
    """
    workers: list[Process] = []
    try:
        while True:
            _assign(function, workers, waiting, aside, processes)
            busy = {worker.connection: worker for worker in workers if worker.task is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                task, worker.task = worker.task, None
                outcome = _outcome(worker)
                if isinstance(outcome, Died):
                    worker.end()
                    workers.remove(worker)
                yield task, outcome
    finally:
        for worker in workers:
            worker.end()


def _assign(
    function: Work | Loading, workers: list[Process], waiting: deque[Task], aside: Path, processes: int
) -> None:
    """Give every idle worker a shard, and start workers that are missing."""
    while waiting:
        worker = next((each for each in workers if each.task is None), None)
        if worker is None:
            if len(workers) == processes:
                return
            worker = Process(_work, daemon=False)
            workers.append(worker)
            _teach(worker, function)
        worker.task = waiting.popleft()
        _send(worker, (worker.task.name, worker.task.shard, aside / uuid.uuid4().hex / worker.task.name))


def _teach(worker: Process, function: Work | Loading) -> None:
    try:
        _send(worker, function)
    except Exception as error:  # pickling fails in many ways
        raise UsageError(f"the function cannot be sent to other processes: {error}") from None


def _send(worker: Process, message: object) -> None:
    try:
        worker.connection.send(message)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has died; that is seen where its answer is waited for


def _outcome(worker: Process) -> Outcome:
    try:
        return worker.connection.recv()  # type: ignore[no-any-return]
    except (EOFError, OSError):
        worker.process.join(1)
        code = worker.process.exitcode
        return Died(ending(code) + (f"; {MAIN_HINT}" if code == 1 else ""))


def _work(connection: Connection) -> None:
    """The life of a worker: it works shards until nobody asks any more."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # what functions print must not get between results
    problem: ShardError | None = None
    hand: Hand | None = None
    try:
        hand = Hand(connection.recv())
    except Exception as error:  # it cannot be unpickled
        problem = ShardError(f"the function does not reach other processes: {type(error).__name__}: {error}")
    while True:
        try:
            name, shard, target = connection.recv()
            connection.send(problem if hand is None else hand.work(name, shard, target))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return
