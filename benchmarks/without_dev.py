"""What CHMM reaches where nothing is chosen on dev: as if sources were witnesses of their own, and by default.

    python benchmarks/without_dev.py            # three minutes; $TAGWEAVE_DATA names the data sets
    python benchmarks/without_dev.py --small    # seconds, on the demo corpus alone

Prints strict F1 on dev, the mean over seeds, of two settings: silence is no vote beside others and votes weigh as much
as they say, and what CHMM does by itself. Sources are the paper's, all that there are of CoNLL-2003, and crowds, which
are made up: annotators of CoNLL-2003's dev who know nothing of each other. Each of them misses 30 percent of the
entities, gives 12 percent another type and 8 percent another end, and marks a word at random in 15 percent of the
sentences.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tagweave.annotations import Span
from tagweave.benchmark.datasets import DATASETS, data_folder, load_dataset
from tagweave.corpus import Corpus, Document
from tagweave.demo.corpus import read_demo
from tagweave.evaluation import evaluate
from tagweave.label_models import ConditionalHMM
from tagweave.report import Table

SETTINGS: dict[str, dict[str, Any]] = {'silence="token", weight=1': {"silence": "token", "weight": 1.0}, "default": {}}


class Case(NamedTuple):
    """What is fitted, and what is scored."""

    name: str
    fit: Corpus
    dev: Corpus


def crowd(corpus: Corpus, size: int, seed: int = 0) -> Case:
    """A corpus with gold as a crowd would annotate it."""
    chance = np.random.default_rng(seed)
    documents = []
    for document in corpus:
        sources = {f"annotator {number}": annotated(document, corpus.types, chance) for number in range(size)}
        documents.append(replace(document, sources=sources))
    voted = Corpus.from_documents(documents, corpus.types)
    return Case(f"crowd of {size}", voted.with_entities(None), voted)


def annotated(document: Document, types: tuple[str, ...], chance: np.random.Generator) -> list[Span]:
    """What one annotator marks."""
    found: list[Span] = []
    for start, end, kind, *_ in document.entities or ():
        drawn = chance.random()
        if drawn < 0.3:
            continue
        if drawn < 0.42:
            kind = str(chance.choice([other for other in types if other != kind]))
        elif drawn < 0.5:
            end = end - 1 if end - start > 1 else min(end + 1, len(document.tokens))
        found.append(Span(start, end, kind))
    if chance.random() < 0.15:
        place = int(chance.integers(len(document.tokens)))
        found.append(Span(place, place + 1, str(chance.choice(types))))
    return found


def cases(small: bool) -> Iterator[Case]:
    if small:
        yield crowd(read_demo("dev"), 3)
        return
    folder = data_folder(None)
    for name in DATASETS:
        data = load_dataset(folder, name)
        yield Case(name, data.fit, data.dev)
    data = load_dataset(folder, "conll-2003", "all")
    yield Case("conll-2003, all sources", data.fit, data.dev)
    for size in (3, 5):
        yield crowd(data.dev.subset(np.arange(2000)), size)


def f1(case: Case, settings: dict[str, Any], seeds: int) -> float:
    """In percent, the mean over seeds."""
    models = [ConditionalHMM(seed=seed, **settings).fit(case.fit) for seed in range(seeds)]
    found = [evaluate(case.dev, model.predict(case.dev.with_entities(None)), bootstrap=0).f1 for model in models]
    return 100 * float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    seeds = 1 if arguments.small else arguments.seeds
    rows = [
        (case.name, *(f"{f1(case, settings, seeds):.1f}" for settings in SETTINGS.values()))
        for case in cases(arguments.small)
    ]
    print(Table("CHMM without dev", ("votes", *SETTINGS), tuple(rows)).text())


if __name__ == "__main__":
    main()
