"""How much memory a corpus takes that is larger than memory should be asked to hold.

    python benchmarks/memory.py            # 100,000 and 1,000,000 sentences, more than half an hour
    python benchmarks/memory.py --small    # 2,000 and 8,000 sentences, without a tagger, seconds

Sentences of some 15 made-up words go, as files, through `annotate` with 16 sources, `aggregate` with the HMM (fit and
labels), and `predict` with a tagger, at two sizes. Each command is a process of its own. Its peak memory is the largest
that the system has counted for it or for a process that it started (`ru_maxrss` of `wait4`); `annotate` has two at a
time, so all together it takes at most twice that. `grows` is from the smaller corpus to the larger. The seconds are
those of the processor, on one thread.

The tagger of `predict` is tiny, with random weights: what a real one does with 15 million words takes hours, and memory
does not depend on it but for its weights. `train` can reach any document at any time: its labels and words lie in
temporary files that are mapped into memory, and the numbers of the word pieces are held. It is measured up to its first
step. What is mapped counts in its peak, but gives way when others need the memory; so what it holds is measured too,
the most that `RssAnon` in `/proc` was, looked at ten times a second.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

TYPES = ("LOC", "MISC", "ORG", "PER")

RULES = '''
"""Four sources a type: each knows some of the names, takes some of another type for its own, and may miss an end."""

from functools import cache
from zlib import crc32

from tagweave.sources import labeling_function

TYPES = ("LOC", "MISC", "ORG", "PER")


@cache
def said(word, source):
    """What a source takes a word for."""
    number = crc32(word.encode())
    known = crc32(f"{source}{word}".encode()) % 100
    if known < 55:
        return TYPES[number % 4]
    return TYPES[(number + 1) % 4] if known < 65 else None


def spans(tokens, source, own):
    start = None
    for place, word in enumerate([*tokens, ""]):
        if word.istitle() and start is None:
            start = place
        elif not word.istitle() and start is not None:
            if said(tokens[start], source) == own:
                yield start, place - (source % 4 == 3 and place - start > 1)
            start = None


def source(number):
    own = TYPES[number % 4]

    @labeling_function(own, name=f"{own.lower()}-{number // 4}")
    def rule(document):
        return list(spans(document.tokens, number, own))

    return rule


for number in range(16):
    globals()[f"rule_{number}"] = source(number)
'''


def write_sentences(path: Path, sentences: int, seed: int = 0) -> None:
    """Sentences of 8 to 22 made-up words with names of one or two words among them, 20 to a group."""
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "el", "im", "on", "ur", "est", "e")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(8000)]
    names = ["".join(chance.choices(syllables, k=chance.randint(2, 3))).title() for _ in range(6000)]
    with path.open("w", encoding="utf-8") as handle:
        for number in range(sentences):
            tokens = chance.choices(words, k=chance.randint(8, 22))
            for place in chance.sample(range(len(tokens) - 1), chance.randint(0, 2)):
                tokens[place : place + chance.randint(1, 2)] = chance.sample(names, chance.randint(1, 2))
            handle.write(json.dumps({"id": f"s{number}", "tokens": tokens, "group": f"d{number // 20}"}) + "\n")


class Run(NamedTuple):
    """What a command took."""

    peak: float
    """MiB."""
    seconds: float
    """Of the processor."""
    held: float
    """MiB without mapped files; 0 where the system does not tell."""


class Bench:
    """Commands over files in a folder; what is measured stays there, so that a run that was ended can go on."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._notes = folder, folder / "measured.json"
        self._done: dict[str, Run] = {}
        if self._notes.exists():
            self._done = {name: Run(*found) for name, found in json.loads(self._notes.read_text()).items()}
        (folder / "rules.py").write_text(RULES, encoding="utf-8")
        if not (folder / "encoder").exists():
            _make_encoder(folder / "encoder")

    def annotate(self, sentences: int) -> Run:
        """Sentences, and the votes of sixteen sources on them."""
        place = self._place(sentences)
        if not (place / "in.jsonl").exists():
            write_sentences(place / "in.jsonl", sentences)
        command = ("annotate", place / "in.jsonl", "--sources", self._folder / "rules.py")
        return self._measured(sentences, *command, "--out", place / "votes.jsonl")

    def aggregate(self, sentences: int) -> Run:
        """An HMM and its labels."""
        place = self._place(sentences)
        command = ("aggregate", place / "votes.jsonl", "--model", "hmm", "--save", place / "hmm")
        return self._measured(sentences, *command, "--out", place / "labels.jsonl")

    def predict(self, sentences: int, taught: int) -> Run:
        """The labels of a tagger."""
        place = self._place(sentences)
        if not (self._folder / "tagger").exists():
            self.train(taught, 2000, self._folder / "tagger", epochs=1)
        command = ("predict", self._folder / "tagger", place / "in.jsonl")
        return self._measured(sentences, *command, "--out", place / "predicted.jsonl")

    def train(self, labelled: int, sentences: int, out: Path | None = None, epochs: int = 0) -> Run:
        """A tiny tagger, from the first of so many labelled sentences."""
        some = self._place(labelled) / f"some-{sentences}.jsonl"
        with (self._place(labelled) / "labels.jsonl").open("rb") as every, some.open("wb") as file:
            file.writelines(islice(every, sentences))
        command = ("train", some, "--encoder", self._folder / "encoder", "--set", f"epochs={epochs}")
        return self._measured(sentences, *command, "--out", out or self._folder / f"untrained-{sentences}")

    def _place(self, sentences: int) -> Path:
        place = self._folder / str(sentences)
        place.mkdir(exist_ok=True)
        return place

    def _measured(self, sentences: int, *command: str | Path) -> Run:
        name = f"{command[0]} {sentences}"
        if name not in self._done:
            self._done[name] = found = measured(*map(str, command))
            print(f"{name:18} {found.peak:7.0f} MiB {found.seconds:7.1f} s", flush=True)
            self._notes.write_text(json.dumps(self._done), encoding="utf-8")
            out = Path(command[-1])
            if out.is_file():
                with out.open("rb") as handle:
                    assert sum(1 for _ in handle) == sentences, f"{out} has not all sentences"
        return self._done[name]


def measured(*command: str) -> Run:
    """Run a command of tagweave in a process of its own.

    The system counts what a process took before it became another program, too, so this one must stay small.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    process = subprocess.Popen([sys.executable, "-m", "tagweave", *command], env={**os.environ, **threads})
    held = 0.0
    while (found := os.wait4(process.pid, os.WNOHANG))[0] == 0:
        held = max(held, _held(process.pid))
        time.sleep(0.1)
    _, status, usage = found
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(usage.ru_maxrss * unit / 2**20, usage.ru_utime + usage.ru_stime, held)


def _held(process: int) -> float:
    """MiB of a process that are no mapped files."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:")), 0.0)


def _make_encoder(folder: Path) -> None:
    """A tiny encoder with random weights, made in a process of its own so that this one stays small."""
    tests = Path(__file__).parents[1] / "tests"
    code = f"import sys, pathlib; sys.path.insert(0, {str(tests)!r}); import tiny_encoder; "
    code += f"tiny_encoder.build(pathlib.Path({str(folder)!r}), ['a', 'Bel'], positions=128)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--small", action="store_true", help="2,000 and 8,000 sentences, without a tagger; nothing is recorded"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="keep files here, some 5 GB; a run that was ended goes on [default: a temporary one]",
    )
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        run(Bench(folder), chosen.small)


def run(bench: Bench, small: bool) -> None:
    """All commands at both sizes; those that need torch are left out of a small run."""
    sizes = (2000, 8000) if small else (100_000, 1_000_000)
    runs = {name: [getattr(bench, name)(sentences) for sentences in sizes] for name in ("annotate", "aggregate")}
    if small:
        report(sizes, runs, keep=False)
        return
    runs["predict"] = [bench.predict(sentences, sizes[0]) for sentences in sizes]
    report(sizes, runs, [bench.train(sizes[1], sentences) for sentences in sizes])


def report(
    sizes: tuple[int, int],
    runs: Mapping[str, Sequence[Run]],
    trained: Sequence[Run] = (),
    *,
    keep: bool = True,
) -> None:
    """Print and keep the figures."""
    from recording import Claim, record

    from tagweave.report import Table

    grows = {name: 100 * (many.peak / few.peak - 1) for name, (few, many) in runs.items()}
    most = max(run.peak for pair in runs.values() for run in pair) / 1024
    claims = [Claim(f"largest peak memory of a command, up to {sizes[1]:,} sentences", most, "GiB", 4.0, "lower")]
    for name, percent in grows.items():
        what = f"{name}: growth of peak memory from {sizes[0]:,} to {sizes[1]:,} sentences"
        claims.append(Claim(what, max(percent, 0.0), "%", 20.0, "lower"))
    columns = ("command", *(f"{size:,}: MiB" for size in sizes), "grows, %", *(f"{size:,}: s" for size in sizes))
    rows = tuple(
        (name, few.peak, many.peak, grows[name], few.seconds, many.seconds) for name, (few, many) in runs.items()
    )
    tables = [Table("Peak memory by sentences", columns, rows, decimals=0)]
    if trained:
        few, many = trained
        memories = []
        for name in ("peak", "held"):
            first, last = getattr(few, name), getattr(many, name)
            memories.append((name, first, last, (last - first) / (sizes[1] - sizes[0]) * 1e6 / 15))
        claims.append(Claim("train: memory that a million words hold", memories[1][3], "MiB"))
        columns = ("memory", *(f"{size:,}: MiB" for size in sizes), "a million words: MiB")
        tables.append(Table("Training, up to its first step, by sentences", columns, tuple(memories), decimals=0))
    record("memory", claims=claims, tables=tables, notes=NOTES, keep=keep)


NOTES = (
    "`aggregate` reads the file once and holds it, as columns, in a temporary file (`TMPDIR`) that takes about as much "
    "space as the documents with their votes; the HMM's votes are in a second one, one byte a word and source. Both "
    "are mapped into memory part by part in each step of EM.",
    "`train` draws documents anew in each epoch, from labels and words that are mapped into memory: they count in the "
    "peak, not in what is held.",
)


if __name__ == "__main__":
    main()
