"""What results depend on: the same command twice, threads, processes, hash seeds, the order of sources and documents.

Every label model, tagger and way of annotating, and alternate training, learns from the same documents in each of these
ways, in processes of its own. The tables show the largest difference of any probability (of any vote, for annotate)
from the first run. It must be zero where nothing but chance or the machine's scheduling could make one, and no more
than the noise of floating-point sums where the order of a sum is another one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from recording import Claim, record  # noqa: E402
from torturing.world import NAMES, OTHER, PLACES, PYTHON_SOURCES, documents, write_lines  # noqa: E402

from tagweave.report import Table  # noqa: E402

NOISE = 1e-4
"""What sums in another order may change, after many steps of learning on float32."""


@dataclass(frozen=True)
class Way:
    """One way of coming to the same results.

    Attributes:
        name: what it is called.
        hash_seed: how Python mixes the order of sets.
        threads: of the chain, of torch, and processes that annotate.
        sources: whether sources come in the reverse order.
        documents: whether documents do.
    """

    name: str
    hash_seed: str = "0"
    threads: int = 1
    sources: bool = False
    documents: bool = False


WAYS = (
    Way("first"),
    Way("again"),
    Way("another hash seed", hash_seed="7"),
    Way("two threads, two processes", threads=2),
    Way("sources in another order", sources=True),
    Way("documents in another order", documents=True),
)

IN_STEPS = ("chmm", "tagger", "alternate")
"""Beginnings of names of what learns batch by batch: the order of documents decides what is in a batch, and torch sums
in another order with more threads."""


def limit(way: Way, system: str) -> float | None:
    """The largest difference that a way may make; None where it asks for another result."""
    if way.documents and system.startswith(IN_STEPS):
        return None
    if way.sources or way.documents:
        return 0.0 if system.startswith("annotate") else NOISE
    if way.threads > 1 and system.startswith(IN_STEPS):
        return NOISE
    return 0.0


def main() -> None:
    """Run all ways, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="label models on votes only, to see that this works")
    parser.add_argument("--way", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way is not None:
        results = {name: made() for name, made in systems(WAYS[arguments.way], arguments.into, arguments.small)}
        np.savez(arguments.into / f"{arguments.way}.npz", **results)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        found = [run(number, Path(folder), arguments.small) for number in range(len(WAYS))]
    differences = compare(found)
    lines = [(system, *(shown(differences[way.name, system]) for way in WAYS[1:])) for system in found[0]]
    table = Table("Largest differences", ("system", *(way.name for way in WAYS[1:])), tuple(lines))
    wrong = [
        f"{system}, {way.name}: {differences[way.name, system]:g}"
        for way in WAYS[1:]
        for system in found[0]
        if (most := limit(way, system)) is not None and differences[way.name, system] > most
    ]
    checks = sum(limit(way, system) is not None for way in WAYS[1:] for system in found[0])
    zeros, noise = (
        max(differences[way.name, system] for way in WAYS[1:] for system in found[0] if limit(way, system) == most)
        for most in (0.0, NOISE)
    )
    record(
        "determinism",
        claims=[
            Claim("systems and ways that agree as they must", 100 * (1 - len(wrong) / checks), "%", 100.0),
            Claim("largest difference where there must be none", zeros, "probability", better="lower"),
            Claim("largest difference where sums have another order", noise, "probability", NOISE, "lower"),
        ],
        tables=[table],
        notes=[f"Too large: {each}" for each in wrong],
        keep=not arguments.small,
    )
    sys.exit(bool(wrong))


def shown(value: float) -> str:
    """A difference with two digits that count."""
    return f"{value:.1e}" if value else "0"


def compare(found: list[dict[str, NDArray[Any]]]) -> dict[tuple[str, str], float]:
    """The largest difference of each way and system from the first way."""
    return {
        (way.name, system): difference(first, result[system])
        for way, result in zip(WAYS[1:], found[1:], strict=True)
        for system, first in found[0].items()
    }


def difference(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The largest difference of two arrays; infinite where their shapes differ."""
    if first.shape != second.shape:
        return float("inf")
    return float(np.abs(first.astype(np.float64) - second.astype(np.float64)).max(initial=0.0))


def run(number: int, folder: Path, small: bool) -> dict[str, NDArray[Any]]:
    """The results of one way, from a process of its own."""
    way = WAYS[number]
    command = [sys.executable, __file__, "--way", str(number), "--into", str(folder), *["--small"] * small]
    environment = {
        "PYTHONHASHSEED": way.hash_seed,
        "TAGWEAVE_CACHE": str(folder / f"cache-{number}"),
        "OMP_NUM_THREADS": str(way.threads),
    }
    subprocess.run(command, env=os.environ | environment, check=True)
    with np.load(folder / f"{number}.npz") as arrays:
        return dict(arrays)


def prepare(folder: Path) -> None:
    """Write what all ways read."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import tiny_encoder

    write_lines(folder / "train.jsonl", documents(60, 1))
    write_lines(folder / "plain.jsonl", documents(600, 3, votes=False))
    (folder / "sources.py").write_text(PYTHON_SOURCES.lstrip(), encoding="utf-8")
    tiny_encoder.build(folder / "encoder", [*NAMES, *PLACES, *OTHER])


def systems(way: Way, folder: Path, small: bool) -> Iterator[tuple[str, Callable[[], NDArray[Any]]]]:
    """Every system by name, and what makes its result: rows of tokens in the usual order of documents."""
    import warnings

    from tagweave.chain import posterior, threads
    from tagweave.errors import TagweaveWarning
    from tagweave.label_models import LABEL_MODELS

    warnings.simplefilter("ignore", TagweaveWarning)
    threads.BLOCK = 50  # so that a small corpus has many
    posterior.thread_limit = lambda: way.threads
    corpus = arranged(folder / "train.jsonl", way)
    encoder = str(folder / "encoder")
    for name, kind in LABEL_MODELS.items():
        if kind.uses_gold or (small and name.startswith("chmm")):
            continue
        settings = {"encoder": encoder, "layers": (-1,)} if name.startswith("chmm") else {}
        yield name, lambda kind=kind, settings=settings: label(kind(**settings), corpus, way)  # type: ignore[misc]
    yield "annotate a corpus", lambda: annotated(folder, way)
    yield "annotate a file", lambda: annotated_file(folder, way)
    if small:
        return
    from tagweave.tagger import TAGGERS

    for name in TAGGERS:
        yield f"tagger {name}", lambda name=name: tag(name, encoder, corpus, way)  # type: ignore[misc]
    yield "alternate", lambda: alternate(encoder, corpus, way)


def arranged(path: Path, way: Way) -> Any:  # noqa: ANN401
    """The documents of a file in the order of a way."""
    from tagweave.formats import read

    corpus = read(path)
    if way.documents:
        corpus = corpus.subset(np.arange(len(corpus))[::-1])
    if way.sources:
        corpus = corpus.select_sources(list(corpus.sources)[::-1])
    return corpus


def rows(corpus: Any, way: Way) -> NDArray[Any]:  # noqa: ANN401
    """The probabilities of a labelled corpus, in the usual order of documents and types."""
    if way.documents:
        corpus = corpus.subset(np.arange(len(corpus))[::-1])
    found: NDArray[Any] = corpus.soft_labels.with_types(sorted(corpus.soft_labels.types)).probabilities
    return found


def label(model: Any, corpus: Any, way: Way) -> NDArray[Any]:  # noqa: ANN401
    """What a label model says."""
    return rows(model.fit(corpus).predict(corpus), way)


def tag(name: str, encoder: str, corpus: Any, way: Way) -> NDArray[Any]:  # noqa: ANN401
    """What a tagger says that has learned the majority vote."""
    from tagweave.label_models import MajorityVote

    labelled = MajorityVote().fit(corpus).predict(corpus)
    tagger = tagger_of(name, encoder)
    return rows(tagger.fit(labelled, corpus).predict(corpus), way)


def tagger_of(name: str, encoder: str) -> Any:  # noqa: ANN401
    """A tagger that learns fast."""
    from tagweave.tagger import create_tagger

    return create_tagger(name, {"encoder": encoder, "epochs": 2, "window": 32, "overlap": 8, "precision": "float32"})


def alternate(encoder: str, corpus: Any, way: Way) -> NDArray[Any]:  # noqa: ANN401
    """What the tagger of the best round says."""
    from tagweave.alternate import AlternateTraining
    from tagweave.label_models import HMM

    training = AlternateTraining(label_model=HMM(iterations=3), tagger=tagger_of("bert", encoder), rounds=1)
    return rows(training.fit(corpus, corpus).predict(corpus), way)


def annotated(folder: Path, way: Way) -> NDArray[Any]:
    """The votes of all sources on a corpus in memory."""
    from tagweave.annotating import annotate
    from tagweave.sources.loading import load_sources

    sources = load_sources(folder / "sources.py")
    corpus = arranged(folder / "plain.jsonl", Way("", documents=way.documents))
    return votes(annotate(corpus, sources[::-1] if way.sources else sources, processes=way.threads), way)


def annotated_file(folder: Path, way: Way) -> NDArray[Any]:
    """The votes of all sources on a file, as they are in the file that is written."""
    from tagweave.annotating import annotate_file
    from tagweave.formats import read, write

    write(arranged(folder / "plain.jsonl", Way("", documents=way.documents)), folder / "arranged.jsonl")
    text = PYTHON_SOURCES.replace("[people, places]", "[places, people]") if way.sources else PYTHON_SOURCES
    (folder / "arranged.py").write_text(text.lstrip(), encoding="utf-8")
    annotate_file(folder / "arranged.jsonl", folder / "arranged.py", folder / "out.jsonl", processes=way.threads)
    return votes(read(folder / "out.jsonl"), way)


def votes(corpus: Any, way: Way) -> NDArray[Any]:  # noqa: ANN401
    """All votes as numbers: source, document, start, end, type."""
    if way.documents:
        corpus = corpus.subset(np.arange(len(corpus))[::-1])
    sources, types = sorted(corpus.sources), sorted(corpus.types)
    return np.array(
        [
            (sources.index(name), number, span.start, span.end, types.index(span.type))
            for name in sources
            for number, document in enumerate(corpus)
            for span in document.sources[name] or ()
        ]
    )


if __name__ == "__main__":
    main()
