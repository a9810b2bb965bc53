"""Print each source's precision, recall and F1 on a file with votes and gold, beside figures published for it.

    python examples/compare_sources.py WEAK.jsonl [--published published.json] [--given GIVEN.jsonl.gz]

`published.json` maps names of sources to [precision, recall, F1]; `--given` is another file with votes of sources of
the same names (perhaps on other tokens, but of the same documents), which is scored in the same way.
"""

import argparse
import json
from pathlib import Path

import tagweave
from tagweave.evaluation import source_scores
from tagweave.report import Cell, Table


def cells(path: Path) -> dict[str, tuple[Cell, ...]]:
    """Precision, recall and F1 of each source in percent."""
    return {name: score.cells()[:3] for name, score in source_scores(tagweave.read(path)).items()}


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weak", type=Path)
    parser.add_argument("--given", type=Path)
    parser.add_argument("--published", type=Path)
    arguments = parser.parse_args()
    ours = cells(arguments.weak)
    columns = ["source", "P", "R", "F1"]
    others: list[dict[str, tuple[Cell, ...]]] = []
    if arguments.given is not None:
        columns += ["given P", "given R", "given F1"]
        others.append(cells(arguments.given))
    if arguments.published is not None:
        columns += ["paper P", "paper R", "paper F1"]
        others.append({name: tuple(row) for name, row in json.loads(arguments.published.read_text()).items()})
    names = list(tagweave.read(arguments.weak).sources)
    rows = tuple(
        (name, *ours[name], *(cell for other in others for cell in other.get(name, (None,) * 3))) for name in names
    )
    print(Table("", tuple(columns), rows, decimals=1).markdown())


if __name__ == "__main__":
    main()
