"""How fast a tagger learns and reads: in one process and in two of `torchrun`, with one thread and with two, in float32
and in bfloat16.

    python benchmarks/distributed.py

The default encoder, with half of its layers frozen, learns the majority vote on the sentences of the demo, without
dropout, in batches of 32 sentences and three epochs; the fastest epoch counts, which leaves out what is slow at first.
Each run is a process of its own, bound to one processor for each of its threads, and all runs are made twice, in turn.
Beside the speed stands what comes of it: the losses, and F1 on the dev sentences. Words in a processor second, of all
processes and threads together, tell what sharing costs where others keep the machine busy.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recording import Claim, record

from tagweave.report import Cell, Table


@dataclass(frozen=True)
class Setup:
    """One way to train."""

    processes: int
    threads: int
    precision: str
    sentences: int
    epochs: int

    @property
    def name(self) -> str:
        workers = f"{self.processes} process{'es' * (self.processes > 1)}"
        return f"{workers}, {self.threads} thread{'s' * (self.threads > 1)} each, {self.precision}"


WAYS = ((1, 1, "float32"), (2, 1, "float32"), (1, 2, "float32"), (1, 1, "bfloat16"), (1, 2, "bfloat16"))


def work(setup: Setup) -> dict[str, Any]:
    """What one process of a run measures."""
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    rank = int(os.environ.get("RANK", "0"))
    own = [processors[(rank * setup.threads + i) % len(processors)] for i in range(setup.threads)] if processors else []
    if own:
        os.sched_setaffinity(0, own)
    import torch

    from tagweave.demo.corpus import read_demo
    from tagweave.evaluation import evaluate
    from tagweave.label_models import MajorityVote
    from tagweave.tagger import Tagger
    from tagweave.team import join

    torch.set_num_threads(setup.threads)
    train, dev = read_demo("train"), read_demo("dev")
    labelled = MajorityVote().fit(train).predict(train.subset(range(min(setup.sentences, len(train)))))
    tagger = Tagger(
        epochs=setup.epochs, learning_rate=4e-4, batch_windows=32, empty_share=1.0, dropout=0.0,
        precision=setup.precision,  # type: ignore[arg-type]
    )  # fmt: skip
    with join() as team:
        assert team.size == setup.processes
        losses, seconds, work_done, before, worked = [], [], [], time.perf_counter(), time.process_time()
        for epoch in tagger.fit_steps(labelled.select_sources([])):
            losses.append(epoch.loss)
            now, work_now = time.perf_counter(), time.process_time()
            seconds.append(now - before)
            work_done += team.add([work_now - worked])
            before, worked = time.perf_counter(), time.process_time()
        reading = []
        for _ in range(2):
            before = time.perf_counter()
            predicted = tagger.predict(dev)
            reading.append(time.perf_counter() - before)
        f1 = evaluate(dev, predicted, bootstrap=0).f1
    return {
        "losses": losses,
        "f1": 100 * f1,
        "learning": len(labelled.tokens) / min(seconds),
        "work": len(labelled.tokens) / min(work_done),
        "reading": len(dev.tokens) / min(reading),
    }


def measure(setup: Setup) -> dict[str, Any]:
    """What the first process of a run found."""
    worker = [os.path.abspath(__file__), "--worker", json.dumps(asdict(setup))]
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(setup.processes)]
    command = [sys.executable, *(several if setup.processes > 1 else []), *worker]
    environment = {**os.environ, "OMP_NUM_THREADS": str(setup.threads), "PYTHONPATH": _path()}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found


def _path() -> str:
    import tagweave

    here = [str(Path(tagweave.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(filter(None, here))


def best(setups: Sequence[Setup], rounds: int) -> list[dict[str, Any]]:
    """The best speeds of all runs of each setup, taken in turn; losses and F1 must be the same each time."""
    found: list[dict[str, Any]] = [{} for _ in setups]
    for _ in range(rounds):
        for index, setup in enumerate(setups):
            run = measure(setup)
            if found[index] and (run["losses"], run["f1"]) != (found[index]["losses"], found[index]["f1"]):
                raise AssertionError(f"{setup.name}: the same run gave {run} and {found[index]}")
            found[index] = {
                name: max(value, found[index].get(name, 0)) if name in ("learning", "work", "reading") else value
                for name, value in run.items()
            }
    return found


def table(setups: Sequence[Setup], found: Sequence[dict[str, Any]]) -> Table:
    first = found[0]
    rows: list[tuple[Cell, ...]] = []
    for setup, run in zip(setups, found, strict=True):
        apart = max(abs(a / b - 1) for a, b in zip(run["losses"], first["losses"], strict=True))
        speeds = [
            part for name in ("learning", "work", "reading") for part in (round(run[name]), run[name] / first[name])
        ]
        rows.append((setup.name, *speeds, f"{apart:.0e}", run["f1"]))
    columns = ("run", "learns words/s", "times", "in a processor second", "times", "reads words/s", "times",
               "losses differ by", "dev F1")  # fmt: skip
    return Table("Beside one process with one thread in float32", columns, tuple(rows), decimals=2)


def claims(setups: Sequence[Setup], found: Sequence[dict[str, Any]]) -> list[Claim]:
    runs = {(s.processes, s.threads, s.precision): run for s, run in zip(setups, found, strict=True)}
    one, two = runs[1, 1, "float32"], runs[2, 1, "float32"]
    threads, small = runs.get((1, 2, "float32"), {}), runs.get((1, 1, "bfloat16"), {})
    apart = max(abs(a / b - 1) for a, b in zip(two["losses"], one["losses"], strict=True))

    def times(run: dict[str, Any], name: str) -> float | None:
        return run[name] / one[name] if run else None

    return [
        Claim("steps of two processes, beside one", times(two, "learning"), "times", 1.6, peer="1 process"),
        Claim("losses of two processes are those of one, relative difference", apart, "", 1e-3, "lower"),
        Claim("learning with two threads, beside one", times(threads, "learning"), "times"),
        Claim("learning in bfloat16, beside float32", times(small, "learning"), "times"),
        Claim("reading in bfloat16, beside float32", times(small, "reading"), "times"),
        Claim("F1 lost by bfloat16", one["f1"] - small["f1"] if small else None, "points", 1.0, "lower"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="few sentences and two runs, only to see that it works")
    parser.add_argument("--rounds", type=int, default=2, help="how often each run is made")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        found = work(Setup(**json.loads(arguments.worker)))
        if os.environ.get("RANK", "0") == "0":
            print(json.dumps(found), flush=True)
        return
    sentences, epochs, rounds = (16, 1, 1) if arguments.small else (192, 3, arguments.rounds)
    setups = [Setup(*way, sentences, epochs) for way in (WAYS[:2] if arguments.small else WAYS)]
    results = best(setups, rounds)
    record("distributed", claims=claims(setups, results), tables=[table(setups, results)], keep=not arguments.small)


if __name__ == "__main__":
    main()
