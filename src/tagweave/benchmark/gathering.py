"""Results of cells, brought together: the mean over seeds of a system on a data set, in one way of running it."""

import statistics
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from tagweave.benchmark.cells import Cell, read_cells
from tagweave.benchmark.datasets import DATASETS
from tagweave.benchmark.systems import DEFAULT_SYSTEMS, parse_system
from tagweave.errors import FormatError, unknown_name

Record = dict[str, Any]


class Way(NamedTuple):
    """A way of running systems.

    Attributes:
        sources: which sources vote.
        gold_free: nothing is chosen on dev.
        encoder: its name, or `""` for cells of systems that have none.
    """

    sources: str
    gold_free: bool
    encoder: str

    def title(self) -> str:
        """In words."""
        chosen = "nothing chosen on dev" if self.gold_free else "chosen on dev"
        names = {"paper": "the paper's sources", "recommended": "the recommended sources", "all": "all sources"}
        return f"{names[self.sources]}, {chosen}, encoder {self.encoder or '-'}"


@dataclass(frozen=True)
class Result:
    """A system on a data set, over seeds.

    Attributes:
        system, dataset: names.
        records: what the cells hold, in the order of the seeds.
    """

    system: str
    dataset: str
    records: tuple[Record, ...]

    @property
    def split(self) -> str:
        """What it is scored on: test, or dev where the gold of test is not known."""
        return "test" if all("test" in record["scores"] for record in self.records) else "dev"

    @property
    def seeds(self) -> int:
        """How many runs there are."""
        return len(self.records)

    def on_seeds_of(self, other: "Result") -> Self:
        """The runs whose seed the other has too, so that two systems differ by no luck; all where one has no chance."""
        seeds = {record["cell"]["seed"] for record in other.records}
        kept = tuple(record for record in self.records if record["cell"]["seed"] in seeds)
        with_chance = all(parse_system(name).has_chance for name in (self.system, other.system))
        return replace(self, records=kept) if kept and with_chance else self

    def mean(self, measure: str = "f1", split: str | None = None) -> float:
        """Mean of a score in percent."""
        return statistics.fmean(self.values(measure, split))

    def deviation(self) -> float | None:
        """Standard deviation of F1 over the seeds; None of a single run."""
        return statistics.stdev(self.values()) if self.seeds > 1 else None

    def values(self, measure: str = "f1", split: str | None = None) -> list[float]:
        """A score of each run."""
        return [float(record["scores"][split or self.split][measure]) for record in self.records]

    def fit_seconds(self) -> float | None:
        """Mean time of fitting, of the runs whose time is known."""
        found = [record["seconds"]["fit"] for record in self.records if "fit" in record["seconds"]]
        return statistics.fmean(found) if found else None

    def peak_gigabytes(self) -> float | None:
        """Most memory that a run took."""
        return max((r["peak_gigabytes"] for r in self.records if r["peak_gigabytes"] is not None), default=None)


@dataclass(frozen=True)
class Results:
    """All results of one way of running.

    Attributes:
        way: how they were run.
        found: by system and data set.
    """

    way: Way
    found: dict[tuple[str, str], Result]

    def get(self, system: str, dataset: str) -> Result | None:
        """A result, or None where there is no cell."""
        return self.found.get((system, dataset))

    @property
    def systems(self) -> list[str]:
        """All systems with a result, the usual ones first and in their order."""
        usual = usual_systems()
        names = {system for system, _ in self.found}
        return [name for name in usual if name in names] + sorted(names - set(usual))

    @property
    def own_systems(self) -> list[str]:
        """Those that were run in this way: systems without an encoder are in all that differ by it."""
        return [name for name in self.systems if not self.way.encoder or parse_system(name).has_encoder]

    @property
    def seeds(self) -> int:
        """Most runs that a system has."""
        return max(result.seeds for result in self.found.values())

    def missing(self) -> list[tuple[str, str]]:
        """The usual systems and data sets without a result."""
        return [(system, d) for system in usual_systems() for d in DATASETS if (system, d) not in self.found]


def usual_systems() -> list[str]:
    """The systems that run by default, by their full names."""
    return [parse_system(name).name for name in DEFAULT_SYSTEMS]


def gather(out: Path) -> list[Results]:
    """The results in a folder, the main way of running first: the paper's sources, chosen on dev.

    Systems without an encoder belong to every way that has the same sources and choices.
    """
    cells = read_cells(out)
    ways: dict[Way, list[tuple[Cell, Record]]] = {}
    for cell, record in cells:
        encoder = cell.encoder if cell.parsed.has_encoder else ""
        ways.setdefault(Way(cell.sources, cell.gold_free, encoder), []).append((cell, record))
    with_encoder = [way for way in ways if way.encoder]
    found = []
    for way, own in ways.items():
        if not way.encoder and any(other[:2] == way[:2] for other in with_encoder):
            continue
        shared = ways.get(way._replace(encoder=""), []) if way.encoder else []
        found.append(Results(way, _results([*own, *shared])))
    order = ["paper", "recommended", "all"]
    found.sort(key=lambda r: (r.way.gold_free, order.index(r.way.sources), r.way.encoder != "default", r.way.encoder))
    return found


def _results(cells: Iterable[tuple[Cell, Record]]) -> dict[tuple[str, str], Result]:
    records: dict[tuple[str, str], list[tuple[int, Record]]] = {}
    for cell, record in cells:
        records.setdefault((cell.parsed.name, cell.dataset), []).append((cell.seed, record))
    return {
        (system, dataset): Result(system, dataset, tuple(r for _, r in sorted(runs, key=lambda run: run[0])))
        for (system, dataset), runs in records.items()
    }


def read_reasons(out: Path) -> Mapping[str, Mapping[str, str]]:
    """Why results differ from the published ones: `reasons.toml`, a table a data set, a text a system.

    Raises:
        UsageError: a data set or system has another name.
        FormatError: the file is no TOML, or a reason is no text.
    """
    path = out / "reasons.toml"
    if not path.is_file():
        return {}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{path}: {error}") from None
    found: dict[str, dict[str, str]] = {}
    for dataset, reasons in tree.items():
        if dataset not in DATASETS:
            raise unknown_name(f"data set in {path.name}", dataset, DATASETS)
        if not isinstance(reasons, dict) or not all(isinstance(text, str) for text in reasons.values()):
            raise FormatError(f'{path}: [{dataset}] must hold lines of the form system = "why"')
        found[dataset] = {parse_system(system).name: text for system, text in reasons.items()}
    return found
