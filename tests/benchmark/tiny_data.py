"""A tiny folder of benchmark data in the right layout, and results of cells that nobody ran."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

from tagweave.benchmark.cells import Cell
from tagweave.storage import write_json

NAMES = ["Ada", "Bob", "Cyd", "Oslo", "Rome", "Bonn"]
WORDS = ["the", "went", "saw", "left", "and", "in", "to", "by"]
SOURCES = ["tag-names", "tag-cities", "link-phrases"]


def write_data(folder: Path) -> Path:
    """Three data sets: with the gold of test, without it, and without votes for train."""
    chance = random.Random(7)
    for dataset, has_votes, has_test_gold in (
        ("laptop-review", True, True),
        ("bc5cdr", True, False),
        ("conll-2003", False, False),
    ):
        place = folder / "weak" / dataset
        place.mkdir(parents=True)
        for split, count in (("train", 12), ("dev", 8), ("test", 6)):
            if split != "train" or has_votes:
                gold = split != "test" or has_test_gold
                lines = [json.dumps(_document(f"{split}-{n}", gold, chance)) for n in range(count)]
                with gzip.open(place / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")
        meta = {"all_sources": SOURCES, "paper_sources": SOURCES, "recommended_sources": SOURCES[:2]}
        write_json(place / "meta.json", {"entity_types": ["TERM"], **meta})
    _compressed(folder / "raw" / "conll-2003" / "train.conll.gz", "Ada N B-NP B-TERM\nleft V B-VP O\n\n" * 4)
    _compressed(folder / "raw" / "dictionaries" / "laptop-review-core.tsv.gz", "AspectTerm\tAda\nAspectTerm\tOslo\n")
    _compressed(folder / "raw" / "dictionaries" / "laptop-review-full.tsv.gz", "Rome\nAda\n")
    return folder


def _document(name: str, gold: bool, chance: random.Random) -> dict[str, Any]:
    tokens: list[str] = []
    entities = []
    for _ in range(3):
        tokens += chance.choices(WORDS, k=2)
        entities.append([len(tokens), len(tokens) + 1, "TERM"])
        tokens.append(chance.choice(NAMES))
    shares = zip(SOURCES, (0.8, 0.6, 0.4), strict=True)
    votes = {source: [entity for entity in entities if chance.random() < share] for source, share in shares}
    return {"id": name, "tokens": tokens, **({"entities": entities} if gold else {}), "sources": votes}


def _compressed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def write_cell(out: Path, cell: Cell, f1: float, split: str = "test", **changes: Any) -> None:  # noqa: ANN401
    """A result: precision is one over F1 and recall one under it."""
    scores = {"precision": f1 + 1, "recall": f1 - 1, "f1": f1}
    record = {
        "cell": cell.to_json(),
        "settings": cell.settings(),
        "scores": {"dev": scores} if split == "dev" else {"dev": {**scores, "f1": 1.0}, "test": scores},
        "notes": [],
        "seconds": {"fit": 20.0},
        "peak_gigabytes": 1.5,
        "starts": 1,
        "versions": {"python": "3.11.7"},
        "machine": {"processor": "Abacus", "cores": 2, "usable_cores": 1},
    }
    cell.path(out).parent.mkdir(parents=True, exist_ok=True)
    write_json(cell.path(out), {**record, **changes})


def rounds(*pairs: tuple[float, float]) -> list[dict[str, Any]]:
    """Rounds with F1 of label model and tagger on test."""
    return [
        {
            "number": number,
            "scores": {"label-model": {"test": {"f1": label_model}}, "tagger": {"test": {"f1": tagger}}},
            "fit_seconds": 10.0 * (number + 1),
        }
        for number, (label_model, tagger) in enumerate(pairs)
    ]
