"""What a benchmark found: printed, and kept in `benchmarks/results/NAME.json` for the pages that `pages.py` makes.

A benchmark ends with `record(...)`. Its description on the pages is the docstring of its script, its name the script's.
"""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

from tagweave.benchmark.meter import machine, versions
from tagweave.report import Table
from tagweave.storage import write_json

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Claim:
    """One figure, beside what it should be.

    Attributes:
        what: what was measured, in words.
        measured: the figure; None where it could not be measured here.
        unit: its unit, `times` for ratios.
        target: what it should reach.
        better: whether higher or lower figures are better.
        peer: what it is compared with, and its figure if it has one.
    """

    what: str
    measured: float | None
    unit: str
    target: float | None = None
    better: Literal["higher", "lower"] = "higher"
    peer: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the figure reaches the target; None where one of them is missing."""
        if self.measured is None or self.target is None:
            return None
        return self.measured >= self.target if self.better == "higher" else self.measured <= self.target


def record(
    name: str,
    *,
    claims: Sequence[Claim] = (),
    tables: Sequence[Table] = (),
    notes: Sequence[str] = (),
    keep: bool = True,
    arguments: Sequence[str] | None = None,
) -> None:
    """Print what a benchmark found, and keep it.

    Args:
        name: of the benchmark, that of its script.
        claims: its main figures.
        tables: everything else, with titles.
        notes: what falls short, what was tried; paragraphs in Markdown.
        arguments: of the command that makes the whole of it; None for those of this run.
        keep: whether to write the file; a run with `--small` shows that the script works, and its figures mean nothing.
    """
    for table in tables:
        print(table.text(), end="\n\n")
    if claims:
        print(claims_table(claims).text())
    if not keep:
        return
    import __main__

    found: dict[str, Any] = {
        "name": name,
        "command": " ".join(
            ["python", f"benchmarks/{name}.py", *map(_argument, sys.argv[1:] if arguments is None else arguments)]
        ),
        "about": (__main__.__doc__ or "").strip(),
        "date": date.today().isoformat(),
        "machine": {**machine(with_torch="torch" in sys.modules), "system": platform.system()},
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions(),
        "claims": [{**asdict(claim), "met": claim.met} for claim in claims],
        "tables": [{**asdict(table), "records": table.records()} for table in tables],
        "notes": list(notes),
    }
    RESULTS.mkdir(exist_ok=True)
    write_json(RESULTS / f"{name}.json", found)


def claims_table(claims: Sequence[Claim]) -> Table:
    """The claims as a table."""
    rows = [
        (
            claim.what,
            figure(claim.measured),
            f"{'at least' if claim.better == 'higher' else 'at most'} {figure(claim.target)}" if claim.target else None,
            claim.unit,
            {True: "yes", False: "no", None: None}[claim.met],
            claim.peer or None,
        )
        for claim in claims
    ]
    return Table("", ("what", "measured", "target", "unit", "met", "beside"), tuple(rows))


def figure(value: float | None) -> str | None:
    """A figure with three digits that count."""
    if value is None:
        return None
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _argument(text: str) -> str:
    """An argument as it may be shown: of a path that leads anywhere, only the last part."""
    return Path(text).name if os.path.isabs(text) else text
