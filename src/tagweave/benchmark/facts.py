"""Facts of the data sets that need no run: how large they are, and what each source is worth. Kept in one file each."""

from pathlib import Path
from typing import Any

from tagweave.benchmark.datasets import DATASETS, load_dataset, read_meta
from tagweave.evaluation import source_scores
from tagweave.storage import read_json, write_json

Facts = dict[str, Any]


def facts_of(data: Path, name: str) -> Facts:
    """Sizes of a data set and the scores of all its sources, on test where its gold is known, else on dev."""
    dataset, meta = load_dataset(data, name, "all"), read_meta(data, name)
    split = "test" if dataset.has_test_gold else "dev"
    parts = {"train": dataset.gold_train, "dev": dataset.dev, "test": dataset.test}
    documents = {part: len(corpus) for part, corpus in parts.items()}
    tokens = sum(int(corpus.offsets[-1]) for corpus in parts.values())
    return {
        "documents": documents,
        "tokens": tokens,
        "types": list(meta["entity_types"]),
        "sources": {kind: len(meta[f"{kind}_sources"]) for kind in ("paper", "recommended", "all")},
        "paper_sources": meta["paper_sources"],
        "recommended_sources": meta["recommended_sources"],
        "scored_on": split,
        "source_scores": {
            source: {n: round(100 * getattr(score, n), 3) for n in ("precision", "recall", "f1")}
            for source, score in source_scores(dataset.scored[split]).items()
        },
    }


def keep_facts(data: Path, out: Path, datasets: list[str]) -> None:
    """Write the facts that are not there yet."""
    for name in datasets:
        path = out / "data" / f"{name}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, facts_of(data, name), sealed=True)


def read_facts(out: Path) -> dict[str, Facts]:
    """The facts that were kept, by data set."""
    paths = {name: out / "data" / f"{name}.json" for name in DATASETS}
    return {name: read_json(path) for name, path in paths.items() if path.is_file()}
