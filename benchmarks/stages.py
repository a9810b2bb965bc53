"""Where the time of alternate training goes, stage by stage, with and without keeping what frozen layers say.

    python benchmarks/stages.py                  # a tenth of ncbi-disease, where TAGWEAVE_DATA names the data
    python benchmarks/stages.py --share 1
    python benchmarks/stages.py --small          # seconds, on a few sentences of the demo

Without the data the sentences of the demo are taken.
The system is `chmm-alt` of `tagweave benchmark`: a conditional HMM on embeddings and a tagger, both with the default
encoder, two rounds after phase I. Seconds are those of the processor, so that others on the machine disturb them
little; a stage inside another one counts for itself alone. Each way runs in a process of its own, with one thread.

- loading: the program, torch and transformers, and the encoder once; this is the same for any amount of text.
- reading, writing: files with documents; folders of models and states.
- embedding: the words' embeddings for the conditional HMM, computed afresh.
- label model: fitting and applying it, with what it observes.
- tokenising: words into pieces.
- training: steps of the tagger. evaluating: dev after each epoch, decoding and scoring too.
- predicting: the tagger on train for the label model, and on dev for the round's score.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from recording import Claim, record

from tagweave.report import Table

WAYS = ("computed anew", "kept")
STAGES = (
    "loading",
    "reading",
    "embedding",
    "label model",
    "tokenising",
    "training",
    "evaluating",
    "predicting",
    "writing",
    "the rest",
)


class Clock:
    """Processor seconds by stage; what runs inside a stage of its own is taken off."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside, self._last = ["the rest"], time.process_time()

    def _count(self) -> None:
        now = time.process_time()
        self.seconds[self._inside[-1]] += now - self._last
        self._last = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._count()
        self._inside.append(name)
        try:
            yield
        finally:
            self._count()
            self._inside.pop()

    def watch(self, owner: Any, function: str, name: str, inside: str | None = None) -> None:  # noqa: ANN401
        """Count a function to a stage; with `inside`, only where it is called from there it counts to that one."""
        original: Callable[..., Any] = getattr(owner, function)

        @functools.wraps(original)
        def counted(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            with self.stage(inside if inside in self._inside else name):
                return original(*given, **named)

        setattr(owner, function, counted)


def watched() -> Clock:
    """A clock that is told of every stage."""
    from tagweave import storage, training
    from tagweave.encoder import Encoder, embeddings
    from tagweave.label_models import conditional_hmm
    from tagweave.tagger import Tagger, fitting

    clock = Clock()
    clock.watch(conditional_hmm, "embed", "embedding")
    clock.watch(embeddings, "_compute", "embedding")
    clock.watch(Encoder, "pieces", "tokenising")
    clock.watch(training.TrainingLoop, "_single_step", "training")
    clock.watch(fitting.Fitting, "_scored", "evaluating")
    clock.watch(Tagger, "_predict", "predicting", inside="evaluating")
    for owner, function in ((Tagger, "save"), (training.TrainingLoop, "save"), (storage, "save_folder")):
        clock.watch(owner, function, "writing")
    for function in ("fit", "predict"):
        clock.watch(conditional_hmm.ConditionalHMM, function, "label model")
    return clock


def documents(share: float, small: bool) -> tuple[str, Any, Any]:
    """What they are, and train and dev with votes."""
    if small or not os.environ.get("TAGWEAVE_DATA"):
        from tagweave.demo.corpus import read_demo

        train, dev = read_demo("train"), read_demo("dev")
        name = "the demo"
    else:
        from tagweave.benchmark.datasets import load_dataset

        data = load_dataset(Path(os.environ["TAGWEAVE_DATA"]), "ncbi-disease")
        train, dev, name = data.fit, data.dev, "ncbi-disease"
    return name, *(part.subset(np.arange(round(len(part) * share))) for part in (train, dev))


def work(way: str, share: float, small: bool) -> dict[str, Any]:
    """What one way costs, and what comes of it."""
    from dataclasses import replace

    from tagweave.benchmark.systems import parse_system
    from tagweave.encoder import Encoder
    from tagweave.encoder.frozen import Cut

    clock = watched()
    Encoder.load("default").model()
    clock._last = clock.seconds["loading"] = time.process_time()
    if way == "computed anew":
        Cut.of = lambda *given: None  # type: ignore[method-assign]
    with clock.stage("reading"):
        name, train, dev = documents(share, small)
    plan = replace(parse_system("chmm-alt").training("default", seed=0), rounds=1 if small else 2, patience=9)
    with tempfile.TemporaryDirectory() as folder:
        rounds = [round_.f1 for round_ in plan.run(train, dev, folder=Path(folder) / "run")]
        with clock.stage("predicting"):
            from tagweave.alternate import load_round
            from tagweave.formats import write

            found, output = load_round(Path(folder) / "run")
            tagged = found.predict(dev.with_entities(None), output)
        with clock.stage("writing"):
            write(tagged, Path(folder) / "out.jsonl")
    clock._count()
    return {
        "data": f"{share:g} of {name}: {len(train.tokens):,} and {len(dev.tokens):,} words of train and dev",
        "seconds": dict(clock.seconds),
        "rounds": rounds,
        "gigabytes": _peak(),
    }


def _peak() -> float | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e6


def measure(way: str, share: float, small: bool) -> dict[str, Any]:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, os.path.abspath(__file__), "--worker", way, "--share", str(share)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TAGWEAVE_CACHE": cache, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [*command, *(["--small"] if small else [])], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    found: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found


def _tables(found: dict[str, dict[str, Any]]) -> list[Table]:
    seconds = [[found[way]["seconds"].get(stage, 0.0) for way in WAYS] for stage in STAGES]
    totals = [sum(found[way]["seconds"].values()) for way in WAYS]
    rows = [
        (stage, *(round(value, 1) for value in row), *(f"{100 * v / t:.0f}" for v, t in zip(row, totals, strict=True)))
        for stage, row in zip(STAGES, seconds, strict=True)
    ]
    rows.append(("all", *(round(total, 1) for total in totals), "100", "100"))
    outcome = [
        (way, *(round(100 * f1, 2) for scores in found[way]["rounds"] for f1 in scores.values()),
         None if found[way]["gigabytes"] is None else round(found[way]["gigabytes"], 2))
        for way in WAYS
    ]  # fmt: skip
    heads = [f"round {number}, {output}" for number, scores in enumerate(found["kept"]["rounds"]) for output in scores]
    where = found["kept"]["data"]
    return [
        Table(f"Processor seconds by stage, {where}",
              ("stage", *(f"{way}, s" for way in WAYS), *(f"{way}, %" for way in WAYS)), tuple(rows)),
        Table("F1 on dev, and most memory in gigabytes", ("frozen layers", *heads, "memory"), tuple(outcome)),
    ]  # fmt: skip


def main() -> None:
    """Measure both ways, and record what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.1, help="of the documents")
    parser.add_argument("--small", action="store_true", help="seconds, on a few sentences")
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    share = 0.04 if options.small else options.share
    if options.worker:
        print(json.dumps(work(options.worker, options.share, options.small)))
        return
    found = {way: measure(way, share, options.small) for way in WAYS}
    ratio = {
        stage: found["kept"]["seconds"].get(stage, 0) / max(found["computed anew"]["seconds"].get(stage, 0), 1e-9)
        for stage in ("training", "evaluating", "predicting")
    }
    claims = [
        Claim(f"{stage}: time with kept outputs of frozen layers beside that without", value, "times", target, "lower")
        for (stage, value), target in zip(ratio.items(), (0.8, 0.6, None), strict=True)
    ]
    totals = [sum(found[way]["seconds"].values()) for way in WAYS]
    claims.append(Claim("the whole of alternate training, the same", totals[1] / totals[0], "times", None, "lower"))
    record("stages", claims=claims, tables=_tables(found), keep=not options.small)


if __name__ == "__main__":
    main()
