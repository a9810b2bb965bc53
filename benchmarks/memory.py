"""How much memory a corpus takes that is larger than memory should be asked to hold.

    python benchmarks/memory.py            # 100,000 and 1,000,000 sentences, more than half an hour
    python benchmarks/memory.py --small    # 2,000 and 8,000 sentences, a minute

Sentences of some 15 made-up words go, as files, through `annotate` with 16 sources, `aggregate` with the HMM (fit and
labels), and `predict` with a tagger, at two sizes. Each command is a process of its own. Its peak memory is the largest
that the system has counted for it or for a process that it started (`ru_maxrss` of `wait4`); `annotate` has two at a
time, so all together it takes at most twice that. `grows` is from the smaller corpus to the larger. The seconds are
those of the processor, on one thread.

The tagger of `predict` is tiny, with random weights: what a real one does with 15 million words takes hours, and memory
does not depend on it but for its weights. `train` holds its documents in memory; it is measured on fewer sentences,
to tell what a million words take.
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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


def measured(*command: str | Path) -> Run:
    """Run a command of tagweave in a process of its own.

    The system counts what a process took before it became another program, too, so this one must stay small.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    process = subprocess.Popen([sys.executable, "-m", "tagweave", *map(str, command)], env={**os.environ, **threads})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} failed")
    unit = 1 if sys.platform == "darwin" else 1024
    found = Run(usage.ru_maxrss * unit / 2**20, usage.ru_utime + usage.ru_stime)
    print(f"{command[0]:10} {found.peak:7.0f} MiB {found.seconds:7.1f} s", flush=True)
    return found


def pipeline(folder: Path, sentences: int, tagger: Path | None) -> dict[str, Run]:
    """All commands over so many sentences; the tagger is trained on the first of them, if there is none yet."""
    print(f"{sentences} sentences", flush=True)
    write_sentences(folder / "in.jsonl", sentences)
    found = {
        "annotate": measured(
            "annotate", folder / "in.jsonl", "--sources", folder / "rules.py", "--out", folder / "votes.jsonl"
        ),
        "aggregate": measured(
            "aggregate",
            folder / "votes.jsonl",
            "--model",
            "hmm",
            "--save",
            folder / "hmm",
            "--out",
            folder / "labels.jsonl",
        ),
    }
    if tagger is None:
        tagger = folder / "tagger"
        train(folder, min(2000, sentences), tagger)
    found["predict"] = measured("predict", tagger, folder / "in.jsonl", "--out", folder / "predicted.jsonl")
    for name in ("votes.jsonl", "labels.jsonl", "predicted.jsonl"):
        with (folder / name).open("rb") as handle:
            assert sum(1 for _ in handle) == sentences, f"{name} has not all sentences"
    return found


def train(folder: Path, sentences: int, out: Path) -> Run:
    """A tiny tagger, from the first labelled sentences."""
    with (folder / "labels.jsonl").open("rb") as every, (folder / "some.jsonl").open("wb") as some:
        some.writelines(islice(every, sentences))
    return measured(
        "train",
        folder / "some.jsonl",
        "--encoder",
        folder / "encoder",
        "--set",
        "epochs=1",
        "--set",
        "batch_windows=128",
        "--out",
        out,
    )


def make_encoder(folder: Path) -> None:
    """A tiny encoder with random weights, made in a process of its own so that this one stays small."""
    tests = Path(__file__).parents[1] / "tests"
    code = f"import sys, pathlib; sys.path.insert(0, {str(tests)!r}); import tiny_encoder; "
    code += f"tiny_encoder.build(pathlib.Path({str(folder)!r}), ['a', 'Bel'], positions=128)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def growth(small: float, large: float) -> float:
    """In percent."""
    return 100 * (large / small - 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="2,000 and 8,000 sentences; nothing is recorded")
    chosen = parser.parse_args(arguments)
    sizes = (2000, 8000) if chosen.small else (100_000, 1_000_000)
    shares = (500, 2000) if chosen.small else (20_000, 100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rules.py").write_text(RULES, encoding="utf-8")
        make_encoder(folder / "encoder")
        few = pipeline(folder, sizes[0], None)
        trained = [train(folder, sentences, folder / f"trained-{sentences}") for sentences in shares]
        for each in ("votes.jsonl", "labels.jsonl", "predicted.jsonl"):
            (folder / each).unlink()
        many = pipeline(folder, sizes[1], folder / "tagger")
        gc.collect()
    report(sizes, few, many, shares, trained, keep=not chosen.small)


def report(
    sizes: tuple[int, int],
    few: dict[str, Run],
    many: dict[str, Run],
    shares: tuple[int, int],
    trained: Sequence[Run],
    *,
    keep: bool,
) -> None:
    """Print and keep the figures."""
    from recording import Claim, record

    from tagweave.report import Table

    columns = ("command", *(f"{size:,}: MiB" for size in sizes), "grows, %", *(f"{size:,}: s" for size in sizes))
    rows = tuple(
        (name, few[name].peak, many[name].peak, growth(few[name].peak, many[name].peak), few[name].seconds, run.seconds)
        for name, run in many.items()
    )
    a_million = (trained[1].peak - trained[0].peak) / (shares[1] - shares[0]) * 1e6 / 15
    train_row = ("train", *(run.peak for run in trained), a_million, *(run.seconds for run in trained))
    train_columns = (
        "command",
        *(f"{share:,}: MiB" for share in shares),
        "a million words: MiB",
        *(f"{share:,}: s" for share in shares),
    )
    claims = [
        Claim(
            "largest peak memory of a command, a million sentences",
            max(r.peak for r in many.values()) / 1024,
            "GiB",
            4.0,
            "lower",
        ),
        *(
            Claim(
                f"{name}: growth of peak memory from {sizes[0]:,} to {sizes[1]:,} sentences",
                max(row_growth, 0.0),
                "%",
                20.0,
                "lower",
            )
            for name, _, _, row_growth, *_ in rows
        ),
        Claim("train, which holds its documents in memory: a million words take", a_million, "MiB"),
    ]
    tables = [
        Table("Peak memory by sentences", columns, rows, decimals=0),
        Table("Training, one epoch, by sentences", train_columns, (train_row,), decimals=0),
    ]
    record("memory", claims=claims, tables=tables, notes=NOTES, keep=keep)


NOTES = (
    "`aggregate` reads the file once and holds it, as columns, in a temporary file (`TMPDIR`) that takes about as much "
    "space as the documents with their votes; the HMM's votes are in a second one, one byte a word and source. Both "
    "are mapped into memory part by part in each step of EM.",
    "`train` is not a stream: documents are drawn anew in each epoch.",
)


if __name__ == "__main__":
    main()
