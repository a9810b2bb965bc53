"""Running one cell: fitting its system, scoring it, and what of it is kept while it runs."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from tagweave.alternate import Round, best_round
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.datasets import DataSet, load_dataset
from tagweave.benchmark.dictionaries import FULL, autoner_labels, list_sources
from tagweave.benchmark.meter import Meter, machine, versions
from tagweave.benchmark.scoring import SplitScores, score_splits
from tagweave.benchmark.systems import System
from tagweave.corpus import Corpus
from tagweave.errors import StorageError
from tagweave.label_models import links_from_sources
from tagweave.progress import say
from tagweave.storage import read_json, reserved, write_json
from tagweave.tagger import Tagger

TYPES_OF_DICTIONARIES = {"AspectTerm": "TERM"}
"""What types of the published dictionaries are called in the data sets, where that differs."""


def execute(cell: Cell, data: Path, out: Path) -> dict[str, Any]:
    """Run a cell to its end, and write and return its result; a run that was broken off goes on.

    Raises:
        UsageError: another process is at this cell, or the folder cannot be written.
    """
    with reserved(cell.work(out), ours=True):
        record = _Run(cell, data, out).record()
        cell.path(out).parent.mkdir(parents=True, exist_ok=True)
        write_json(cell.path(out), record, sealed=True)
        shutil.rmtree(cell.work(out))
    return record


class _Run:
    def __init__(self, cell: Cell, data: Path, out: Path) -> None:
        self._cell, self._system, self._settings = cell, cell.parsed, cell.settings()
        self._work = cell.work(out)
        _open(self._work, self._settings)
        self._meter = Meter(self._work)
        self._data = prepare(load_dataset(data, cell.dataset, cell.sources), self._system)
        self._dev = None if cell.gold_free else self._data.dev

    def record(self) -> dict[str, Any]:
        """Everything that the file of the cell holds."""
        result = self._result()
        encoder = None
        if self._system.has_encoder:
            from tagweave.encoder import Encoder

            encoder = {"name": self._cell.encoder, "identity": Encoder.load(self._cell.encoder).identity}
        return {
            "cell": {**self._cell.to_json(), "system": self._system.name},
            "settings": self._settings,
            **result,
            "notes": list(self._data.notes),
            "seconds": self._meter.seconds,
            "peak_gigabytes": self._meter.peak_gigabytes,
            "starts": self._meter.starts,
            "encoder": encoder,
            "versions": versions(),
            "machine": machine(with_torch=self._system.has_encoder),
        }

    def _result(self) -> dict[str, Any]:
        special = self._system.special
        if special == "fine-tuned":
            return self._fine_tuned()
        if special == "dev-only":
            return self._tagger(self._data.dev.select_sources([]), None)
        if special == "supervised":
            return self._tagger(self._data.gold_train, self._dev)
        if special is not None:
            return self._tagger(self._data.fit, self._dev)
        return self._label_model() if self._system.tagger is None else self._alternate()

    def _label_model(self) -> dict[str, Any]:
        self._embed()
        model = self._system.make_label_model(self._cell.encoder, self._cell.seed)
        with self._meter.timed("fit"):
            model.fit(self._data.fit, self._dev)
        with self._meter.timed("score"):
            return {"scores": score_splits(model.predict, self._data.scored, model.uses_gold)}

    def _alternate(self) -> dict[str, Any]:
        rounds = self._rounds()
        last = best_round(rounds)
        output = last.output if self._system.alternate else "tagger"
        kept = read_json(self._work / "rounds.json")["rounds"]
        scores: SplitScores = kept[last.number]["scores"][output]
        return {"scores": scores, "chosen": {"round": last.number, "output": output}, "rounds": kept}

    def _rounds(self) -> list[Round]:
        """The rounds that this process has seen, the best of all among them; scores of all are kept in a file."""
        self._embed()
        path = self._work / "rounds.json"
        kept: list[dict[str, Any]] = read_json(path)["rounds"] if path.exists() else []
        training = self._system.training(self._cell.encoder, self._cell.seed)
        rounds = training.run(self._data.fit, self._dev, folder=self._work / "training", resume=True)
        found: list[Round] = []
        while True:
            with self._meter.timed("fit"):
                last = next(rounds, None)
            if last is None:
                return found
            found.append(last)
            if last.number > len(kept):
                raise StorageError(f"{path} lacks the scores of a finished round: remove {self._work} to start afresh")
            if last.number == len(kept):
                kept.append({"number": last.number, "agreement": last.agreement, "scores": self._scores_of(last)})
                kept[-1]["fit_seconds"] = self._meter.seconds["fit"]
                write_json(path, {"rounds": kept}, sealed=True)

    def _scores_of(self, found: Round) -> dict[str, SplitScores]:
        with self._meter.timed("score"):
            scores = {
                "label-model": score_splits(lambda corpus: found.predict(corpus, "label-model"), self._data.scored),
                "tagger": score_splits(lambda corpus: found.predict(corpus, "tagger"), self._data.scored),
            }
        for output, splits in scores.items():
            say(f"round {found.number}, {output}: " + ", ".join(f"{s} F1 {v['f1']:.2f}" for s, v in splits.items()))
        return scores

    def _tagger(self, corpus: Corpus, dev: Corpus | None, start_from: Tagger | None = None) -> dict[str, Any]:
        """A tagger that learns from a corpus, the epoch chosen by dev."""
        changes = self._system.gold_settings()
        if FULL in corpus.sources:
            changes["full"] = (FULL,)
        tagger = self._system.make_tagger(self._cell.encoder, self._cell.seed, **changes)
        with self._meter.timed("fit"):
            tagger.fit(corpus, dev, folder=self._work / "tagger", resume=True, start_from=start_from)
        with self._meter.timed("score"):
            return {"scores": score_splits(tagger.predict, self._data.scored)}

    def _fine_tuned(self) -> dict[str, Any]:
        """The tagger of the label model's soft labels, then trained on with the gold of dev."""
        weak = self._rounds()[0].tagger
        result = self._tagger(self._data.dev.select_sources([]), None, weak)
        return {**result, "rounds": read_json(self._work / "rounds.json")["rounds"]}

    def _embed(self) -> None:
        """Make the embeddings first, as they are kept for all systems and their time is not that of one."""
        if self._system.label_model is None:
            return
        model = self._system.make_label_model(self._cell.encoder, self._cell.seed)
        layers = model.settings().get("layers")
        if layers is None or "encoder" not in model.settings():
            return
        from tagweave.encoder.embeddings import embed

        with self._meter.timed("embed"):
            for corpus in (self._data.fit, *self._data.scored.values()):
                embed(corpus, self._cell.encoder, layers=layers)


def prepare(data: DataSet, system: System) -> DataSet:
    """The data set as a system reads it."""
    if system.special in ("dev-only", "fine-tuned"):
        data = data.with_dev_to_learn()
    if system.special == "autoner":
        return _with_dictionaries(data)
    if system.label_model == "linked-hmm":
        links = [name for name in data.sources if name.startswith("link-")]
        data = replace(
            data,
            fit=links_from_sources(data.fit, links),
            dev=links_from_sources(data.dev, links),
            scored={split: links_from_sources(corpus, links) for split, corpus in data.scored.items()},
        )
    return data


def _with_dictionaries(data: DataSet) -> DataSet:
    """The data set with matches of the published dictionaries, or where there are none, of sources that are lists."""
    core, full = (data.folder / "raw" / "dictionaries" / f"{data.name}-{kind}.tsv.gz" for kind in ("core", "full"))
    if core.is_file() and full.is_file():
        fit = autoner_labels(data.fit, core, full, rename=TYPES_OF_DICTIONARIES)
        note = "learns from matches of the published dictionaries in place of votes"
    else:
        fit = data.fit.select_sources(list_sources(data.fit))
        note = f"there are no published dictionaries: learns from {', '.join(fit.sources)}"
    return replace(data, fit=fit, notes=(*data.notes, note))


def _open(work: Path, settings: dict[str, Any]) -> None:
    """Start the folder of a run, or go on with it if it is of the same settings."""
    path = work / "settings.json"
    if work.exists() and (not path.is_file() or read_json(path) != settings):
        say(f"{work} holds a run with other settings: it starts afresh")
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    write_json(path, settings, sealed=True)
