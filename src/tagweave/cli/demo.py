"""`tagweave demo`: the main job on the corpus that ships with the package."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Seed, tell


def demo(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the trained models in this folder. [default: keep nothing]")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Train on the gardening corpus that ships with tagweave, and print the scores of each stage.

    477 sentences without gold, labelled by rules and dictionaries; 128 dev and 126 test sentences with gold.
    """
    from tagweave.demo import run_demo

    tell(run_demo(out, seed).text())
