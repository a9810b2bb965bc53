"""The data sets of the benchmark: which corpus is fitted on, which are scored, and what choices are made by."""

import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from tagweave.corpus import Corpus
from tagweave.errors import DataError, UsageError, unknown_name
from tagweave.formats import read

DATA_VARIABLE = "TAGWEAVE_DATA"
Sources = Literal["paper", "recommended", "all"]
"""The paper's own sources, the subset that later papers use, or all that were published."""

DATASETS = ("conll-2003", "ncbi-disease", "bc5cdr", "laptop-review")
"""In the order of the paper's tables."""


def data_folder(given: Path | None) -> Path:
    """The folder with the data: the given one, or the one that `TAGWEAVE_DATA` names.

    Raises:
        UsageError: neither is given, or it has no folder `weak`.
    """
    name = given or os.environ.get(DATA_VARIABLE)
    if not name:
        raise UsageError(f"no data: give --data DIR, or let {DATA_VARIABLE} name the folder. It needs a folder 'weak'")
    folder = Path(name)
    if not (folder / "weak").is_dir():
        raise UsageError(f"{folder} has no folder 'weak' with one folder a data set in it: is this the right place?")
    return folder


@dataclass(frozen=True)
class DataSet:
    """One data set with the votes of some sources.

    Attributes:
        name: one of `DATASETS`.
        folder: of all the data; the data set is in `weak/NAME`.
        sources: names of the sources, in their order.
        fit: what label models and taggers learn from, without gold: train, or dev and test where train has no votes.
        dev: documents with votes and gold, by which choices are made.
        test: documents with votes, and gold where it is known.
        scored: the corpora with gold that scores are taken on, by name: dev, and test where its gold is known.
        notes: what a reader of the scores must know.
    """

    name: str
    folder: Path
    sources: tuple[str, ...]
    fit: Corpus
    dev: Corpus
    test: Corpus
    scored: dict[str, Corpus]
    notes: tuple[str, ...] = ()

    @property
    def has_test_gold(self) -> bool:
        """Whether test can be scored."""
        return "test" in self.scored

    @cached_property
    def gold_train(self) -> Corpus:
        """The train documents with gold and without votes, for supervised systems only."""
        own = self.folder / "weak" / self.name / "train.jsonl.gz"
        path = own if own.is_file() else self.folder / "raw" / self.name / "train.conll.gz"
        corpus = read(path, types=self.dev.types).select_sources([])
        if not _has_gold(corpus):
            raise DataError(f"{path} has no gold entities, so nothing supervised can be trained on it")
        return corpus

    def with_dev_to_learn(self) -> Self:
        """For systems that learn from dev: test alone is scored, or the second half of dev where test has no gold."""
        if self.has_test_gold:
            return replace(self, scored={"test": self.scored["test"]})
        middle = len(self.dev) // 2
        first, second = self.dev.subset(np.arange(middle)), self.dev.subset(np.arange(middle, len(self.dev)))
        note = f"learns from the first {middle} dev documents and is scored on the other {len(second)}"
        return replace(self, dev=first, scored={"dev": second}, notes=(*self.notes, note))


def load_dataset(folder: Path, name: str, sources: Sources = "paper") -> DataSet:
    """Read a data set with the votes of the chosen sources.

    Raises:
        UsageError: there is no such data set, or its folder is missing.
        DataError: a file is wrong, or dev has no gold.
    """
    meta = read_meta(folder, name)
    place = folder / "weak" / name
    chosen, types = tuple(meta[f"{sources}_sources"]), tuple(meta["entity_types"])
    found = {
        split: read(path, types=types).select_sources(chosen)
        for split in ("train", "dev", "test")
        if (path := place / f"{split}.jsonl.gz").is_file()
    }
    for split in ("dev", "test"):
        if split not in found:
            raise DataError(f"{place} has no {split}.jsonl.gz")
    if not _has_gold(found["dev"]):
        raise DataError(f"{place / 'dev.jsonl.gz'} has no gold entities, so no system can be scored")
    notes = []
    scored = {"dev": found["dev"], "test": found["test"]}
    if not _has_gold(found["test"]):
        del scored["test"]
        notes.append("the gold of test is not known, so scores are on dev")
    if "train" in found:
        fit = found["train"].with_entities(None)
    else:
        documents = [document for split in ("dev", "test") for document in found[split]]
        fit = Corpus.from_documents(documents, types).with_entities(None)
        notes.append("train has no votes, so systems are fitted on the votes of dev and test, without gold")
    return DataSet(name, folder, chosen, fit, found["dev"], found["test"], scored, tuple(notes))


def read_meta(folder: Path, name: str) -> dict[str, Any]:
    """What `meta.json` says of a data set: its types, its sources and their subsets."""
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    path = folder / "weak" / name / "meta.json"
    if not path.is_file():
        raise UsageError(f"{path} is missing: the data set {name} is not in this folder")
    try:
        meta: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}") from None
    return meta


def _has_gold(corpus: Corpus) -> bool:
    return corpus.entities is not None and bool(corpus.entities.ran.any())
