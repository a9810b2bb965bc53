"""Makes `docs/performance.md` and `benchmarks/README.md` of what the benchmarks have recorded.

python benchmarks/pages.py
"""

import json
from pathlib import Path
from typing import Any

from recording import RESULTS, Claim, claims_table

from tagweave.report import Table

ROOT = Path(__file__).parent.parent

ORDER = ("chain", "chmm", "voting", "encoder", "stages", "distributed", "memory", "annotating", "dictionaries")
"""What comes first; others follow by name."""

HEAD = """# Performance

How fast the parts are, what they hold, and what they survive, each figure beside its target and beside what others
reach. The page is written by `python benchmarks/pages.py` from the files that the benchmarks leave in
`benchmarks/results/`; each was made by the command above its tables, on the machine that is named there. Ratios come
from one run, side by side.
"""

README_HEAD = """# Benchmarks

Each script here measures one thing, prints it and records it in `results/`; its docstring says what it compares and
what it needs. `--small` takes seconds and shows that a script works. This page and `docs/performance.md`, which has the
tables and what falls short, are written by `python benchmarks/pages.py`. The paper's tables are another matter: they
come from `tagweave benchmark paper` and lie in `results/paper`.
"""


def main() -> None:
    found = records()
    (ROOT / "docs" / "performance.md").write_text(performance(found), encoding="utf-8")
    (ROOT / "benchmarks" / "README.md").write_text(readme(found), encoding="utf-8")


def records() -> list[dict[str, Any]]:
    """What all benchmarks have recorded."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")]
    return sorted(
        found, key=lambda each: (each["name"] not in ORDER, (*ORDER, each["name"]).index(each["name"]), each["name"])
    )


def performance(found: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    parts = [HEAD, "## All targets\n", scoreboard(found)]
    for each in found:
        title, _, about = each["about"].partition("\n\n")
        parts += [f"## {each['name'].replace('_', ' ').replace('-', ' ').capitalize()}\n", f"{title}\n"]
        if about:
            parts.append(f"{about}\n")
        parts += [f"```sh\n{each['command']}\n```\n", f"{circumstances(each)}\n"]
        if each["claims"]:
            parts.append(f"{claims_table(claims_of(each)).markdown()}\n")
        parts += [f"{table_of(table).markdown()}\n" for table in each["tables"]]
        parts += [f"{note}\n" for note in each["notes"]]
    return "\n".join(parts).rstrip() + "\n"


def readme(found: list[dict[str, Any]]) -> str:
    """The page in the folder of the benchmarks."""
    rows = []
    for each in found:
        met = [claim.met for claim in claims_of(each) if claim.met is not None]
        title = " ".join(each["about"].partition("\n\n")[0].split())
        rows.append((f"`{each['command']}`", title, f"{sum(met)} of {len(met)}" if met else None))
    table = Table("", ("command", "what it measures", "targets met"), tuple(rows))
    return "\n".join([README_HEAD, table.markdown(), "", "## All targets\n", scoreboard(found)]).rstrip() + "\n"


def scoreboard(found: list[dict[str, Any]]) -> str:
    """Every claim with a target."""
    return claims_table([claim for each in found for claim in claims_of(each) if claim.target]).markdown() + "\n"


def circumstances(each: dict[str, Any]) -> str:
    """Machine, date and versions, in one sentence."""
    machine, versions = each["machine"], each["versions"]
    load = "" if each["load"] is None else f", load {each['load']:.1f} at the end"
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "numpy", "numba", "torch") if name in versions)
    return (
        f"{each['date']}, {machine['processor']}, {machine['usable_cores']} of {machine['cores']} cores{load}; {named}."
    )


def claims_of(each: dict[str, Any]) -> list[Claim]:
    return [Claim(**{name: value for name, value in claim.items() if name != "met"}) for claim in each["claims"]]


def table_of(values: dict[str, Any]) -> Table:
    decimals = values["decimals"]
    rows = tuple(tuple(row) for row in values["rows"])
    return Table(
        values["title"], tuple(values["columns"]), rows, decimals if isinstance(decimals, int) else tuple(decimals)
    )


if __name__ == "__main__":
    main()
