"""The engine of one machine: processes, each of which has the function."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from tagweave.errors import ShardError, UsageError
from tagweave.processes import MAIN_HINT, Process, end_with_parent, ending
from tagweave.shards.working import Died


class Local:
    """Workers that are processes of this machine; see `tagweave.shards.engines.Engine`.

    Args:
        hand: what each of them gets a copy of.
        hidden: whether they need nothing of the script that runs here, which then is not run once more in each.
    """

    def __init__(self, hand: Any, hidden: bool) -> None:  # noqa: ANN401
        self._hand = hand
        self._hidden = hidden
        self._started: list[Process] = []

    def start(self) -> Process:
        """A new process.

        Raises:
            UsageError: the function cannot be sent there.
        """
        with _one_thread():
            worker = Process(_work, daemon=False, hidden=self._hidden)
        self._started.append(worker)
        try:
            self.send(worker, self._hand)
        except Exception as error:  # pickling fails in many ways
            raise UsageError(f"the function cannot be sent to other processes: {error}") from None
        return worker

    def send(self, worker: Process, arguments: Any) -> None:  # noqa: ANN401
        """Send what it shall do; if it is dead, that is seen where its answer is waited for."""
        try:
            worker.connection.send(arguments)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def wait(self, workers: Mapping[int, Process]) -> Iterator[tuple[int, Any]]:
        """Answers of those that have one, or how they died."""
        numbers = {worker.connection: number for number, worker in workers.items()}
        for connection in wait(list(numbers)):
            number = numbers[connection]  # type: ignore[index]
            yield number, _answer(workers[number])

    def end(self, worker: Process) -> None:
        """Kill it."""
        self._started.remove(worker)
        worker.end()

    def end_all(self) -> None:
        """Kill those that are left."""
        while self._started:
            self._started.pop().end()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start here use one thread, as actors do, unless the environment says otherwise."""
    name = "OMP_NUM_THREADS"
    chosen = name in os.environ
    os.environ.setdefault(name, "1")
    try:
        yield
    finally:
        if not chosen:
            del os.environ[name]


@contextmanager
def local_engine(hand: Any, hidden: bool) -> Iterator[Local]:  # noqa: ANN401
    """Processes of this machine, which end with the block; see `Local`."""
    engine = Local(hand, hidden)
    try:
        yield engine
    finally:
        engine.end_all()


def _answer(worker: Process) -> Any:  # noqa: ANN401
    try:
        return worker.connection.recv()
    except (EOFError, OSError):
        code = worker.exit_code()
        return Died(ending(code) + (f"; {MAIN_HINT}" if code == 1 else ""))


def _work(connection: Connection) -> None:
    """The life of a worker: it answers until nobody asks any more."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # what functions print must not get between results
    try:
        hand = _received(connection)
        while True:
            arguments = _received(connection)
            problem = next((each for each in (hand, arguments) if isinstance(each, ShardError)), None)
            connection.send(problem or hand.work(*arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _received(connection: Connection) -> Any:  # noqa: ANN401
    """What was sent, or an error if it cannot be made here."""
    try:
        return connection.recv()
    except (EOFError, ConnectionResetError):
        raise
    except Exception as error:
        return ShardError(f"a function does not reach other processes: {type(error).__name__}: {error}")
