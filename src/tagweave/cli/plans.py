"""The plan of an alternate training: a TOML file, options and `--set`, brought together and checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagweave import progress
from tagweave.cli.options import check_no_stream, choose, read_corpus, read_dev
from tagweave.config import create, parse_pairs, read_toml
from tagweave.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from tagweave.alternate import AlternateTraining, Outcome

TABLES = ("data", "label_model", "tagger", "alternate")


@dataclass(frozen=True)
class Data:
    """The table `data` of a plan.

    Attributes:
        train: documents with votes.
        out: folder of the run.
        dev: documents with votes and gold, or None.
        sources: names with commas between them, or None for all.
        coarse: entries `TYPE=A,B`.
    """

    train: Path
    out: Path
    dev: Path | None = None
    sources: str | None = None
    coarse: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What to train, on what."""

    data: Data
    training: "AlternateTraining"

    def run(self, resume: bool) -> None:
        """Train, with progress and scores on stderr."""
        from tagweave.alternate import best_round
        from tagweave.team import join

        data = self.data
        with join() as processes:
            check_no_stream(processes.size, data.train, data.dev)
            train = read_corpus(data.train, data.sources, data.coarse)
            dev = None if data.dev is None else read_dev(data.dev, data.sources, data.coarse)
            best: Outcome | None = None
            for finished in self.training.run(train, dev, folder=data.out, resume=resume):
                best = best_round([finished] if best is None else [best, finished])
            if best is not None:
                progress.say(_ending(best, data.out))


def _ending(best: "Outcome", folder: Path) -> str:
    """What a run left, and how either output of it is had."""
    predict = f"tagweave predict {folder} FILE.jsonl --out OUT.jsonl"
    commands = {"tagger": predict, "label-model": f"{predict} --output label-model"}
    reads = {"tagger": "its tagger needs no votes", "label-model": "its label model reads the votes of the sources too"}
    lines = [f"round {best.number} is the best and lies in {folder}"]
    for name in sorted(commands, key=lambda name: name != best.output):
        score = f" (F1 {100 * best.f1[name]:.2f} on dev)" if name in best.f1 else ""
        lines.append(f"  {reads[name]}{score}: {commands[name]}")
    return "\n".join(lines)


def read_plan(path: Path, options: Mapping[str, Mapping[str, Any]], settings: Iterable[str]) -> Plan:
    """A plan from a TOML file or a file of documents, options (None where not given) and `key=value` settings.

    Raises:
        UsageError: a table or key is unknown, something is given twice, or train or out is missing.
    """
    tree = read_toml(path) if path.suffix == ".toml" else {"data": {"train": path}}
    for source in (parse_pairs(settings), tree):
        for name, table in source.items():
            if name not in TABLES:
                raise unknown_name("table of a plan", name, TABLES)
            if not isinstance(table, dict):
                raise UsageError(f"{name} is a table with keys, not a value: write {name}.KEY=VALUE")
    merged = {name: {**tree.get(name, {}), **parse_pairs(settings).get(name, {})} for name in TABLES}
    for name in ("label_model", "tagger"):
        if not isinstance(merged[name].get("kind", ""), str):
            raise UsageError(f"{name}.kind must be a name, not {merged[name]['kind']!r}")
    for name, given in options.items():
        merged[name] = choose(merged[name], **_accepted(name, given, merged))
    for key in ("train", "out"):
        if key not in merged["data"]:
            raise UsageError(f"the plan names no {key}: give it as data.{key} in the file or on the command line")
    return Plan(create(Data, merged["data"]), _training(merged))


def _accepted(table: str, given: Mapping[str, Any], merged: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The options of a table, without an encoder for a label model that has none."""
    from tagweave.label_models import LABEL_MODELS

    if table != "label_model":
        return dict(given)
    kind = given.get("kind") or merged["label_model"].get("kind", "chmm")
    known = {f.name for f in fields(LABEL_MODELS[kind])} if kind in LABEL_MODELS else {"encoder"}
    return {name: value for name, value in given.items() if name != "encoder" or "encoder" in known}


def _training(tables: Mapping[str, Mapping[str, Any]]) -> "AlternateTraining":
    from tagweave.alternate import AlternateTraining
    from tagweave.label_models import create_label_model
    from tagweave.tagger import create_tagger

    label_model, tagger = dict(tables["label_model"]), dict(tables["tagger"])
    kind, tagger_kind = label_model.pop("kind", "chmm"), tagger.pop("kind", "bert")
    own = dict(tables["alternate"])
    for name in ("label_model", "tagger"):
        if name in own:
            raise UsageError(f"alternate.{name} is a table of its own: write {name}.KEY=VALUE")
    parts = {"label_model": create_label_model(kind, label_model), "tagger": create_tagger(tagger_kind, tagger)}
    return create(AlternateTraining, {**own, **parts})
