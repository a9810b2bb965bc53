"""`tagweave evaluate`: score predictions against gold."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Seed


def evaluate(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="Documents with gold entities.")],
    predicted: Annotated[Path, typer.Argument(metavar="PREDICTED", help="The same documents with predicted entities.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for the interval of F1; 0 for none.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Print entity precision, recall and F1, joined by document id, with a line that says how they were computed."""
    from tagweave.evaluation import evaluate as score
    from tagweave.formats import read

    scores = score(read(gold), read(predicted), bootstrap=bootstrap, seed=seed)
    typer.echo(json.dumps(scores.to_json(), ensure_ascii=False, indent=1) if as_json else scores.text())
