"""Scores of every stage of the main job on one data set, one JSON file a seed.

    python benchmarks/main_results.py laptop-review --seed 0 --out results/

reads the folder that TAGWEAVE_DATA names. Epochs and rounds are chosen on dev; test is only scored. A run that
was killed goes on when the same command is given again.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

from tagweave import progress
from tagweave.alternate import AlternateTraining
from tagweave.corpus import Corpus
from tagweave.evaluation import evaluate
from tagweave.formats import read
from tagweave.label_models import HMM, ConditionalHMM, ConditionalIID, LabelModel, MajorityVote, SpanVote
from tagweave.storage import write_json
from tagweave.tagger import Tagger

Splits = dict[str, Corpus]


def load(folder: Path, sources: str) -> tuple[Corpus, Splits]:
    """The corpus to fit on, and those to score; the votes of dev and test alone where train has none."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    names, types = meta[f"{sources}_sources"], meta["entity_types"]
    found = {
        split: read(folder / f"{split}.jsonl.gz", types=types).select_sources(names)
        for split in ("train", "dev", "test")
        if (folder / f"{split}.jsonl.gz").exists()
    }
    scored = {split: corpus for split, corpus in found.items() if split != "train"}
    if "train" in found:
        return found["train"], scored
    documents = [document for corpus in scored.values() for document in corpus]
    return Corpus.from_documents(documents, types), scored


def scores(predict: Any, splits: Splits) -> dict[str, Any]:  # noqa: ANN401
    """Percent on each split that has gold."""
    found = {}
    for split, corpus in splits.items():
        if corpus.entities is not None and corpus.entities.ran.any():
            result = evaluate(corpus, predict(corpus.with_entities(None)), bootstrap=0)
            values = (result.precision, result.recall, result.f1)
            found[split] = dict(zip(("precision", "recall", "f1"), (round(100 * v, 2) for v in values), strict=True))
    return found


def main() -> None:
    """Run one data set with one seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--sources", default="recommended", choices=("recommended", "all", "paper"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--gold-free", action="store_true", help="choose nothing on dev")
    parser.add_argument("--label-models-only", action="store_true")
    parser.add_argument("--frozen-layers", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=4e-4)
    options = parser.parse_args()
    progress.show()
    train, splits = load(Path(os.environ["TAGWEAVE_DATA"]) / "weak" / options.dataset, options.sources)
    dev = None if options.gold_free else splits["dev"]
    layers = (2, 4, 6) if options.encoder == "default" else (4, 8, 12)
    conditional = {"encoder": options.encoder, "layers": layers, "seed": options.seed}
    models: list[LabelModel] = [MajorityVote(), SpanVote(), HMM(), ConditionalIID(**conditional)]
    name = f"{options.dataset}-{options.sources}-{Path(options.encoder).name}-{options.seed}"
    name += "-gold-free" if options.gold_free else ""
    rows: dict[str, Any] = {}

    def note(stage: str, predict: Any, started: float) -> None:  # noqa: ANN401
        rows[stage] = {**scores(predict, splits), "seconds": round(time.monotonic() - started, 1)}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        settings = {key: str(value) for key, value in vars(options).items() if key != "out"}
        write_json(
            options.out / f"{name}.json", {"settings": settings, "peak_gigabytes": round(peak, 2), "stages": rows}
        )
        progress.say(f"{stage}: {rows[stage]}")

    options.out.mkdir(parents=True, exist_ok=True)
    for model in [*models, *([ConditionalHMM(**conditional)] if options.label_models_only else [])]:
        started = time.monotonic()
        note(model.name, model.fit(train, dev).predict, started)
    if options.label_models_only:
        return
    training = AlternateTraining(
        label_model=ConditionalHMM(**conditional),
        tagger=Tagger(
            encoder=options.encoder,
            learning_rate=options.learning_rate,
            epochs=3,
            empty_share=0.4,
            frozen_layers=options.frozen_layers,
            seed=options.seed,
        ),
        rounds=options.rounds,
    )
    started = time.monotonic()
    for found in training.run(train, dev, folder=options.out / name, resume=True):
        for output in ("label-model", "tagger"):
            note(f"round {found.number}, {output}", lambda corpus, o=output: found.predict(corpus, o), started)  # noqa: B023


if __name__ == "__main__":
    main()
