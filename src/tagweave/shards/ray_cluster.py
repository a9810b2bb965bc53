"""The engine of many machines: actors in a Ray cluster, each of which has the function."""

import math
import os
import re
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tagweave.errors import MissingExtraError, ShardError, UsageError
from tagweave.shards.working import Died, Hand, Loading, Outcome, Task, Work

_STORE = 80 * 1024 * 1024
"""Bytes of shared memory for a cluster that is started here; shards do not go through it."""


def run_ray(
    function: Work | Loading, waiting: deque[Task], aside: Path, processes: int, *, address: str, gpus: float | None
) -> Iterator[tuple[Task, Outcome]]:
    """Work shards in actors of a Ray cluster.

    Args:
        function: the function, or what it is made from.
        waiting: the shards; whoever takes the outcomes may add to them, or clear them.
        aside: a folder for unfinished outputs that all machines see.
        processes: how many actors at most, with a CPU each.
        address: of the cluster, `auto` for the one that runs here, `local` to start one.
        gpus: graphics cards for each actor; None shares what there are, at most one each.

    Yields:
        Each shard with what became of it.

    Raises:
        MissingExtraError: Ray is not installed.
        UsageError: there is no cluster, or it is too small.
    """
    ray = _ray()
    with _connected(ray, address, processes):
        settings = {"num_cpus": 1, "num_gpus": _share(ray.cluster_resources(), processes, gpus)}
        actor = ray.remote(Hand).options(**settings)
        idle: list[Any] = []
        busy: dict[Any, tuple[Any, Task]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < processes:
                    hand = idle.pop() if idle else actor.remote(function, os.getcwd())
                    task = waiting.popleft()
                    target = aside / uuid.uuid4().hex / task.name
                    busy[hand.work.remote(task.name, task.shard, target)] = hand, task
                for reference in ray.wait(list(busy), num_returns=1)[0]:
                    hand, task = busy.pop(reference)
                    outcome = _outcome(ray, reference)
                    if isinstance(outcome, Died):
                        ray.kill(hand)
                    else:
                        idle.append(hand)
                    yield task, outcome
        finally:
            for hand in [*idle, *(hand for hand, _ in busy.values())]:
                ray.kill(hand)


def _outcome(ray: Any, reference: Any) -> Outcome:  # noqa: ANN401
    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayError as error:
        if isinstance(error, ray.exceptions.RayTaskError) or getattr(error, "actor_init_failed", False):
            last = str(error).strip().splitlines()[-1]
            return ShardError(f"the function does not reach the workers of the cluster: {last}")
        return Died(_how(str(error)))


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
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings |= {"num_cpus": processes, "include_dashboard": False, "object_store_memory": _STORE}
    try:
        ray.init(address=address, **settings)
    except ConnectionError as error:
        hint = "Start one with `ray start --head`, or ask for a local one (address `local`)"
        raise UsageError(f"no Ray cluster is found at {address!r} ({error}). {hint}") from None
    try:
        yield
    finally:
        ray.shutdown()


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
