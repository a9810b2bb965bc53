"""How long majority vote and hidden Markov model take on a million sentences, and beside skweak on some of them.

    python benchmarks/voting.py                                      # a few minutes
    python benchmarks/voting.py --skweak skweak-env/bin/python       # with skweak beside
    python benchmarks/voting.py --small                              # seconds, on little

Made-up sentences of 15 tokens with entities of two types. Each of 16 sources finds most of the entities of one type,
and a few that are none; where several speak, one may say another type or other bounds. Documents and spans are in
memory when the clock starts; it runs until the entities and probabilities of all tokens are there. Steps:

- majority vote: `MajorityVote().fit(corpus).predict(corpus)`;
- an iteration of the HMM: what is observed of the votes, the expected counts of all events by forward-backward, and new
  matrices; its parts are rows of their own;
- an HMM whole: crossing spans, anchor, observation and one iteration, as `HMM(iterations=1).fit(corpus)`.

skweak has an environment of its own: `python -m venv skweak-env && skweak-env/bin/pip install skweak==0.3.3`. It gets
the first `--peer-sentences` sentences as spaCy documents that are ready in memory, and runs one iteration of `HMM.fit`
and `SequentialMajorityVoter.pipe`. tagweave's time for the same sentences is that of the same work in this process.

Memory is the highest resident memory of this process, with the corpus in it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from recording import Claim, record

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models import HMM, MajorityVote
from tagweave.observations import observe
from tagweave.report import Table

LENGTH, SOURCES, TYPES = 15, 16, ("LOC", "PER")
NAMES = tuple(f"s{number}" for number in range(SOURCES))

SKWEAK = """
import json, sys, time
import numpy as np, skweak, spacy
from spacy.tokens import Doc, Span

data = np.load(sys.argv[1])
names, types = json.loads(sys.argv[2])
vocabulary = spacy.blank("en").vocab
documents = [Doc(vocabulary, words=["w"] * int(length)) for length in data["lengths"]]
for name in names:
    spans = [[] for _ in documents]
    for document, start, end, kind in data[name].tolist():
        spans[document].append(Span(documents[document], start, end, label=types[kind - 1]))
    for document, own in zip(documents, spans):
        document.spans[name] = own
found = {}
begun = time.perf_counter()
for _ in skweak.voting.SequentialMajorityVoter("vote", types).pipe(documents):
    pass
found["vote"] = time.perf_counter() - begun
for document in documents:
    del document.spans["vote"]
begun = time.perf_counter()
skweak.generative.HMM("hmm", types).fit(documents, n_iter=1)
found["hmm"] = time.perf_counter() - begun
print(json.dumps(found))
"""


def made_up(sentences: int, seed: int = 0) -> Corpus:
    """Sentences with votes, about one entity in two of them."""
    chance = np.random.default_rng(seed)
    offsets = np.arange(sentences + 1, dtype=np.int64) * LENGTH
    tokens = pa.array(np.full(LENGTH, "w")).cast(pa.large_string())
    corpus = Corpus(
        ids=pa.array(np.arange(sentences)).cast(pa.large_string()),
        offsets=offsets,
        tokens=tokens.take(pa.array(np.zeros(sentences * LENGTH, np.int64))),
        types=TYPES,
    )
    documents = np.flatnonzero(chance.random(sentences) < 0.5)
    starts, types = chance.integers(0, LENGTH - 4, len(documents)), chance.integers(1, 3, len(documents))
    lengths = chance.integers(1, 4, len(documents))
    for number, name in enumerate(NAMES):
        found = (chance.random(len(documents)) < 0.7) & (types == 1 + number % 2)
        wrong = chance.random(len(documents)) < 0.05
        kept = found | wrong
        said = np.where(found, types, 1 + number % 2)[kept]
        ends = starts + np.maximum(1, lengths - (chance.random(len(documents)) < 0.1))
        corpus = corpus.with_source(name, _column(sentences, documents[kept], starts[kept], ends[kept], said))
    return corpus


def _column(
    sentences: int,
    documents: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    types: NDArray[np.int64],
) -> Annotations:
    counts = np.bincount(documents, minlength=sentences)
    return Annotations(
        ran=np.ones(sentences, bool),
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        starts=starts.astype(np.int32),
        ends=ends.astype(np.int32),
        type_ids=types.astype(np.int16),
    )


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Seconds of the best of some runs, and what it gave."""
    best, result = float("inf"), None
    for _ in range(repeats):
        begun = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - begun)
    return best, result


def vote(corpus: Corpus) -> Corpus:
    return MajorityVote().fit(corpus).predict(corpus)


def hmm(corpus: Corpus) -> HMM:
    return HMM(iterations=1).fit(corpus)


def measured(corpus: Corpus, repeats: int) -> dict[str, float]:
    """Seconds of each step."""
    timed(lambda: (vote(corpus.subset(range(100))), hmm(corpus.subset(range(100)))), 1)  # compiles
    seconds = {}
    seconds["majority vote"], _ = timed(lambda: vote(corpus), repeats)
    seconds["HMM whole, one iteration"], model = timed(lambda: hmm(corpus), repeats)
    seconds["HMM, observation"], said = timed(lambda: observe(corpus, "bio"), repeats)
    seconds["HMM, expected counts and new matrices"], _ = timed(lambda: model._expect_all([said]), repeats)
    seconds["HMM, entities and probabilities"], _ = timed(lambda: model.predict(corpus), 1)
    return seconds


def skweak(python: str, corpus: Corpus) -> dict[str, float]:
    """Seconds of skweak on a corpus."""
    columns = {}
    for name in NAMES:
        own = corpus.sources[name]
        assert isinstance(own, Annotations)
        columns[name] = np.stack([own.documents, own.starts, own.ends, own.type_ids], axis=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.npz"
        np.savez(path, lengths=np.diff(corpus.offsets), **columns)
        command = [python, "-c", SKWEAK, str(path), json.dumps([NAMES, TYPES])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"skweak failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def beside(python: str | None, corpus: Corpus, repeats: int) -> tuple[list[Claim], Table]:
    """tagweave and skweak on the same sentences."""
    vote(corpus), hmm(corpus)
    ours = {"vote": timed(lambda: vote(corpus), repeats)[0], "hmm": timed(lambda: hmm(corpus), repeats)[0]}
    theirs = skweak(python, corpus) if python else {}
    rows, claims = [], []
    for name, what in (("vote", "majority vote"), ("hmm", "HMM, one iteration")):
        other = theirs.get(name)
        ratio = other / ours[name] if other else None
        peer = f"skweak 0.3.3 {other:.1f} s" if other else "skweak 0.3.3, not run"
        claims.append(Claim(f"{what}, {len(corpus):,} sentences", ratio, "times as fast", 50.0, peer=peer))
        rows.append((what, ours[name], other, ratio))
    title = f"{len(corpus):,} sentences, beside skweak 0.3.3"
    return claims, Table(title, ("step", "seconds", "skweak", "ratio"), tuple(rows), decimals=(0, 3, 1, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="little data: shows that it works")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--peer-sentences", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--skweak", metavar="PYTHON", help="the interpreter of an environment with skweak 0.3.3")
    options = parser.parse_args()
    if options.small:
        options.sentences, options.peer_sentences, options.repeats = 2000, 500, 1
    corpus = made_up(options.sentences)
    first = corpus.subset(range(options.peer_sentences))
    seconds = measured(corpus, options.repeats)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    claims, peers = beside(options.skweak, first, options.repeats)
    tokens = int(corpus.offsets[-1])
    iteration = seconds["HMM, observation"] + seconds["HMM, expected counts and new matrices"]
    size = f"{options.sentences:,} sentences"
    claims = [
        Claim(f"majority vote, {size}", seconds["majority vote"], "seconds", 10.0, "lower"),
        Claim(f"an iteration of the HMM, {size}", iteration, "seconds", 10.0, "lower"),
        Claim(f"memory, {size}", gigabytes, "GB"),
        *claims,
    ]
    rows = tuple((name, value, tokens / value / 1e6) for name, value in seconds.items())
    title = f"{size}, {tokens:,} tokens, {SOURCES} sources, {os.cpu_count()} cores"
    steps = Table(title, ("step", "seconds", "M tokens/s"), rows, decimals=(0, 2, 1))
    record("voting", claims=claims, tables=[steps, peers], keep=not options.small)


if __name__ == "__main__":
    main()
