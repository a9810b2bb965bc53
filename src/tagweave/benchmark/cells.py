"""A cell: one system on one data set with one seed, and the file that holds its result."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from tagweave.benchmark.datasets import DATASETS, Sources
from tagweave.benchmark.systems import System, defaults, parse_system
from tagweave.errors import StorageError, unknown_name
from tagweave.storage import read_json

_LONGEST_NAME = 100
State = Literal["missing", "finished", "stale"]


@dataclass(frozen=True)
class Cell:
    """What is run, and with what.

    Attributes:
        dataset: name of a data set.
        system: name of a system, see `tagweave.benchmark.systems`.
        encoder: name of the encoder; it is left out of the file's name where the system has none.
        sources: which sources vote.
        gold_free: nothing is chosen on dev.
        seed: of everything with chance in it.
    """

    dataset: str
    system: str
    encoder: str = "default"
    sources: Sources = "paper"
    gold_free: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for what, name, known in (
            ("data set", self.dataset, DATASETS),
            ("choice of sources", self.sources, get_args(Sources)),
        ):
            if name not in known:
                raise unknown_name(what, name, known)

    @property
    def parsed(self) -> System:
        """The system."""
        return parse_system(self.system)

    @property
    def name(self) -> str:
        """Its name among the cells of its data set.

        >>> Cell("ncbi-disease", "chmm-alt", gold_free=True).name
        'chmm-alt.default.paper.gold-free.0'
        """
        system = self.parsed
        encoder = re.sub(r"[^\w-]+", "_", Path(self.encoder).name)[:_LONGEST_NAME]
        parts = [system.name, encoder if system.has_encoder else "", self.sources]
        return ".".join([*filter(None, parts), *["gold-free"] * self.gold_free, str(self.seed)])

    def path(self, out: Path) -> Path:
        """The file of its result."""
        return out / "cells" / self.dataset / f"{self.name}.json"

    def work(self, out: Path) -> Path:
        """The folder in which an unfinished run is kept."""
        return out / "work" / self.dataset / self.name

    def settings(self) -> dict[str, Any]:
        """Everything that decides about the result, as JSON has it."""
        own = {"dataset": self.dataset, "sources": self.sources, "gold_free": self.gold_free, "seed": self.seed}
        parts = self.parsed.settings(self.encoder, self.seed)
        plain: dict[str, Any] = json.loads(json.dumps({**own, "system": self.parsed.name, **parts}))
        return plain

    def state(self, out: Path) -> State:
        """Whether its result is there, and whether it was made with the settings of today.

        A setting that a part did not have then and that has its default now makes no difference.
        """
        if not self.path(out).is_file():
            return "missing"
        then, now = read_json(self.path(out)).get("settings", {}), self.settings()
        for part, own in now.items():
            if isinstance(own, dict) and isinstance(then.get(part), dict):
                usual = defaults(part, own.get("kind", ""))
                now[part] = {k: v for k, v in own.items() if k in then[part] or k not in usual or usual[k] != v}
        return "finished" if then == now else "stale"

    def to_json(self) -> dict[str, Any]:
        """The attributes by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """A cell from what `to_json` gave."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})


def read_cells(out: Path) -> list[tuple[Cell, dict[str, Any]]]:
    """All results in a folder, with their cells, in the order of their names.

    Raises:
        StorageError: a file is no result of a cell.
    """
    found = []
    for path in sorted((out / "cells").glob("*/*.json")):
        record = read_json(path)
        try:
            found.append((Cell.from_json(record["cell"]), record))
        except (KeyError, TypeError):
            raise StorageError(f"{path} is no result of the benchmark: remove it") from None
    return found
