"""What is tortured: tiny data, a tiny encoder, and the commands that write folders or files."""

import hashlib
import json
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

NAMES = ("Ada", "Bob", "Cyd", "Eve")
PLACES = ("Oslo", "Rome", "Bonn", "Kyiv")
OTHER = ("the", "went", "saw", "left", "and", "in", "to", "by", "rain", "1815")

PYTHON_SOURCES = '''
"""Sources in Python."""

from tagweave.sources import labeling_function


@labeling_function("PER")
def people(document):
    """Names of people."""
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in ("Ada", "Bob", "Cyd")]


@labeling_function("LOC")
def places(document):
    """Names of places."""
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in ("Oslo", "Rome", "Bonn")]


SOURCES = [people, places]
'''


def documents(count: int, seed: int, votes: bool = True) -> Iterator[dict[str, Any]]:
    """Documents with gold, and with the votes of three sources that err."""
    chance = random.Random(seed)
    for number in range(count):
        tokens: list[str] = []
        gold: list[list[Any]] = []
        for _ in range(chance.randint(2, 4)):
            tokens += chance.choices(OTHER, k=chance.randint(1, 3))
            names, kind = chance.choice(((NAMES, "PER"), (PLACES, "LOC")))
            gold.append([len(tokens), len(tokens) + 1, kind])
            tokens.append(chance.choice(names))
        record: dict[str, Any] = {"id": f"d{number}", "tokens": tokens, "entities": gold}
        if votes:
            shares = {"good": 0.9, "fair": 0.7, "poor": 0.4}
            record["sources"] = {
                name: [span for span in gold if chance.random() < share] for name, share in shares.items()
            }
        yield record


def write_lines(path: Path, records: Iterator[dict[str, Any]]) -> None:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def build(folder: Path) -> None:
    """Everything that commands read, in `folder/inputs`."""
    import tiny_encoder
    from benchmark.tiny_data import write_data

    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    write_lines(inputs / "train.jsonl", documents(40, 1))
    write_lines(inputs / "dev.jsonl", documents(20, 2))
    write_lines(inputs / "new.jsonl", documents(20, 3, votes=False))
    write_lines(inputs / "many.jsonl", documents(1500, 4, votes=False))
    (inputs / "shards").mkdir()
    for number in range(6):
        write_lines(inputs / "shards" / f"part-{number}.jsonl", documents(60, 10 + number, votes=False))
    (inputs / "sources.py").write_text(PYTHON_SOURCES.lstrip(), encoding="utf-8")
    tiny_encoder.build(inputs / "encoder", [*NAMES, *PLACES, *OTHER])
    write_data(inputs / "data")


@dataclass(frozen=True)
class Command:
    """A command line that makes something.

    Attributes:
        name: what the scoreboard calls it.
        arguments: run in a folder that has `inputs` in it; `out` is made there.
        resume: arguments that are added to go on.
        lock: the file that says that a run has its place.
        slow: whether it takes so long that it is killed less often.
    """

    name: str
    arguments: tuple[str, ...]
    resume: tuple[str, ...] = ()
    lock: str = ".out.lock"
    slow: bool = False

    @property
    def again(self) -> tuple[str, ...]:
        """The command that is given after a break."""
        return (*self.arguments, *self.resume)


QUICK = ("--set", "learning_rate=0.003", "--set", "window=32", "--set", "overlap=8")
_ENCODER = ("--encoder", "inputs/encoder")
_ANNOTATE = ("annotate", "inputs/many.jsonl", "--sources", "inputs/sources.py", "--out", "out.jsonl")
_AGGREGATE = ("aggregate", "inputs/train.jsonl", "--dev", "inputs/dev.jsonl", "--out", "labels.jsonl", "--save", "out")
_TRAIN = ("train", "inputs/train.jsonl", "--dev", "inputs/dev.jsonl", *_ENCODER, "--out", "out")
_ALTERNATE = ("alternate", "inputs/train.jsonl", "--dev", "inputs/dev.jsonl", "--label-model", "hmm", "--rounds", "2")

COMMANDS = {
    command.name: command
    for command in (
        Command("annotate, 1 process", _ANNOTATE, ("--resume",), ".out.jsonl.lock"),
        Command("annotate, 2 processes", (*_ANNOTATE, "--processes", "2"), ("--resume",), ".out.jsonl.lock"),
        Command(
            "annotate, shards",
            ("annotate", "inputs/shards", "--sources", "inputs/sources.py", "--out", "out", "--processes", "2"),
            lock="out/.lock",
            slow=True,
        ),
        Command("aggregate, hmm", (*_AGGREGATE, "--model", "hmm")),
        Command(
            "aggregate, chmm",
            (*_AGGREGATE, *("--model", "chmm"), *_ENCODER, *("--set", "epochs=3"), *("--set", "layers=-1")),
        ),
        Command("train", (*_TRAIN, *QUICK, "--set", "epochs=3"), ("--resume",)),
        Command(
            "alternate",
            (
                *_ALTERNATE,
                *(*_ENCODER, "--out", "out"),
                *(part if part == "--set" else f"tagger.{part}" for part in QUICK),
                *("--set", "tagger.epochs=2", "--set", "label_model.iterations=3"),
            ),
            ("--resume",),
            "out/.lock",
        ),
        Command(
            "benchmark",
            (
                *("benchmark", "paper", "--data", "inputs/data", "--out", "out", "--datasets", "laptop-review"),
                *("--systems", "majority-vote,hmm", *_ENCODER),
            ),
            lock="out/work/laptop-review/.hmm.paper.0.lock",
            slow=True,
        ),
    )
}


def fresh(base: Path, place: Path) -> Path:
    """An empty folder in which a command can run; the inputs are those of the base."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "inputs").symlink_to(base / "inputs")
    (place / "tmp").mkdir()
    return place


_TIMES = ("seconds", "peak_gigabytes", "starts", "fit_seconds")


def state(place: Path) -> dict[str, str]:
    """What is in a folder: a digest of each file by its path, without times in results of the benchmark."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_symlink() or name.startswith(("inputs", "tmp", "std")):
            continue
        found[name] = "folder" if path.is_dir() else _digest(path)
    return found


def _digest(path: Path) -> str:
    """A digest of a file; of records that have times in them, of what else they hold."""
    if path.name == "shards.json":
        record = json.loads(path.read_bytes())
        shards = {name: {**entry, "result": None} for name, entry in record["shards"].items()}
        content = json.dumps([record["missing"], shards]).encode()
    elif path.name in ("results.md", "results.json"):
        content = b"a table with times, made of the cells"
    elif "cells" in path.parts and path.suffix == ".json":
        record = json.loads(path.read_bytes())
        content = json.dumps({k: v for k, v in record.items() if k not in (*_TIMES, "seal", "machine")}).encode()
    else:
        content = path.read_bytes()
    return hashlib.sha256(content).hexdigest()
