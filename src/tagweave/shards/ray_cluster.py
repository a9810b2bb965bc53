"""The engine of many machines: actors in a Ray cluster, each of which has the function."""

import math
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tagweave.errors import MissingExtraError, ShardError, UsageError
from tagweave.processes import ending
from tagweave.shards.working import Died

_STORE = 80 * 1024 * 1024
"""Bytes of shared memory for a cluster that is started here; shards do not go through it."""

_TRY = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR'); ray.shutdown()"
_LONGEST_TRY = 120.0
"""Seconds in which a cluster must answer; on a busy machine Ray alone takes half a minute to start."""

_LONGEST_END = 30.0
"""Seconds in which a cluster must know how a worker ended."""


class Holder:
    """What an actor is: it has the hand, and the working folder where the machine has that.

    Args:
        hand: what works.
        folder: the working folder.
    """

    def __init__(self, hand: Any, folder: str) -> None:  # noqa: ANN401
        self._hand = hand
        if os.path.isdir(folder):
            os.chdir(folder)

    def work(self, *arguments: Any) -> Any:  # noqa: ANN401
        """What the hand answers."""
        return self._hand.work(*arguments)


class Cluster:
    """Workers that are actors of a Ray cluster; see `tagweave.shards.engines.Engine`.

    Args:
        ray: Ray.
        hand: what each of them gets a copy of.
        cards: graphics cards for each.
    """

    def __init__(self, ray: Any, hand: Any, cards: float) -> None:  # noqa: ANN401
        self._ray = ray
        self._hand = hand
        self._actor = ray.remote(Holder).options(num_cpus=1, num_gpus=cards)
        self._asked: dict[Any, Any] = {}

    def start(self) -> Any:  # noqa: ANN401
        """A new actor, with a CPU."""
        worker = self._actor.remote(self._hand, os.getcwd())
        self._asked[worker] = None
        return worker

    def send(self, worker: Any, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401
        """Call it."""
        self._asked[worker] = worker.work.remote(*arguments)

    def wait(self, workers: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
        """Answers of those that have one, or how they died."""
        numbers = {self._asked[worker]: number for number, worker in workers.items()}
        for reference in self._ray.wait(list(numbers), num_returns=1)[0]:
            number = numbers[reference]
            yield number, self._answer(reference, workers[number])

    def end(self, worker: Any) -> None:  # noqa: ANN401
        """Kill it."""
        del self._asked[worker]
        self._ray.kill(worker)

    def end_all(self) -> None:
        """Kill those that are left."""
        for worker in list(self._asked):
            self.end(worker)

    def _answer(self, reference: Any, worker: Any) -> Any:  # noqa: ANN401
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError) or getattr(error, "actor_init_failed", False):
                last = str(error).strip().splitlines()[-1]
                return ShardError(f"the function does not reach the workers of the cluster: {last}")
            return Died(_how(str(self._end_of(worker) if isinstance(error, errors.ActorUnavailableError) else error)))

    def _end_of(self, worker: Any) -> Any:  # noqa: ANN401
        """How a worker ended of which the cluster knows no more yet than that it cannot be reached."""
        try:
            self._ray.get(worker.__ray_ready__.remote(), timeout=_LONGEST_END)
        except self._ray.exceptions.RayError as error:
            return error
        return "it could not be reached for a moment"


@contextmanager
def ray_engine(hand: Any, processes: int, *, address: str, gpus: float | None) -> Iterator[Cluster]:  # noqa: ANN401
    """Actors of a Ray cluster, which end with the block.

    Args:
        hand: what each of them gets a copy of.
        processes: how many actors there will be, with a CPU each.
        address: of the cluster, `auto` for the one that runs here, `local` to start one.
        gpus: graphics cards for each actor; None shares what there are, at most one each.

    Raises:
        MissingExtraError: Ray is not installed.
        UsageError: there is no cluster, or it is too small.
    """
    ray = _ray()
    with _connected(ray, address, processes):
        engine = Cluster(ray, hand, _share(ray.cluster_resources(), processes, gpus))
        try:
            yield engine
        finally:
            engine.end_all()


def _how(text: str) -> str:
    """How a worker ended, for people, of the many lines in which Ray says it.

    >>> _how("It died. pid: 7 ip: 10.0.0.1 The actor is dead because its node has died. Node Id: a90")
    'its node has died, 10.0.0.1'
    """
    text = " ".join(text.split())
    reason = re.search(r"The actor is dead because (.*?)\.(?= |$)", text)
    machine = re.search(r"\bip: (\S+)", text)
    return (reason[1] if reason else text[:200]) + (f", {machine[1]}" if machine else "")


def _share(resources: dict[str, float], processes: int, gpus: float | None) -> float:
    """Graphics cards for each actor.

    Raises:
        UsageError: the cluster has too little for all actors.

    >>> _share({"CPU": 8, "GPU": 2}, 3, None), _share({"CPU": 8}, 4, None), _share({"CPU": 8, "GPU": 4}, 1, None)
    (0.5, 0.0, 1.0)
    """
    cards = int(resources.get("GPU", 0))
    share = gpus if gpus is not None else 1 / math.ceil(processes / cards) if cards else 0.0
    for name, needed in (("CPU", float(processes)), ("GPU", share * processes)):
        if needed > resources.get(name, 0.0) + 1e-6:
            has = f"{resources.get(name, 0.0):g} {name}s, and {processes} workers need {needed:g}"
            raise UsageError(f"the Ray cluster has {has}. Ask for fewer workers")
    return share


@contextmanager
def _connected(ray: Any, address: str, processes: int) -> Iterator[None]:  # noqa: ANN401
    """A connection to a cluster; one that is there already is used, and left as it is.

    Raises:
        UsageError: there is no cluster at the address.
    """
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    place = address
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings |= {"num_cpus": processes, "include_dashboard": False, "object_store_memory": _STORE}
    try:
        if address != "local":
            place = _found() if address == "auto" else address
            _knock(place)
        ray.init(address=place, **settings)
    except (OSError, ValueError, RuntimeError) as error:
        at = repr(address) if place == address else f"{address!r}, which is {place}"
        hint = "Start one with `ray start --head`, or ask for a local one (address `local`)"
        raise UsageError(f"no Ray cluster is found at {at} ({error}). {hint}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _found() -> str:
    """The address that Ray takes for `auto`: that of the environment, of a cluster that runs here, or of the last one.

    Raises:
        ConnectionError: there is none.
    """
    from ray._private.services import canonicalize_bootstrap_address

    return os.environ.get("RAY_ADDRESS") or str(canonicalize_bootstrap_address("auto"))


def _knock(address: str) -> None:
    """Look whether a cluster answers at an address, which may be that of one that has ended.

    Ray itself would try for minutes, and then end the process. So another process tries.

    Raises:
        OSError: none does.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in address:
        socket.create_connection((host, int(port)), timeout=10).close()
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _TRY, address], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_TRY
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"something is there, but did not answer as a cluster in {_LONGEST_TRY:g} seconds") from None
    if tried.returncode:
        lines = tried.stderr.decode(errors="replace").strip().splitlines()
        raise ConnectionError(lines[-1] if lines else ending(tried.returncode))


def _ray() -> Any:  # noqa: ANN401
    """Ray.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("the engine 'ray' needs Ray: pip install 'tagweave[ray]'") from None
    return ray
