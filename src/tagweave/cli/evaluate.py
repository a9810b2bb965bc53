"""`tagweave evaluate`: score predictions against gold."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Seed, tell


def evaluate(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="Documents with gold entities.")],
    predicted: Annotated[Path, typer.Argument(metavar="PREDICTED", help="The same documents with predicted entities.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    scheme: Annotated[
        str | None, typer.Option(metavar="NAME", help="Scheme of the tags in files of tags. [default: found out]")
    ] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for the interval of F1; 0 for none.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Print entity precision, recall and F1, joined by document id, with a line that says how they were computed.

    Files of tags are scored twice: read strictly, and leniently. As JSON the strict scores come first, and the lenient
    ones stand under the key `lenient`.
    """
    from tagweave.evaluation import evaluate_files

    first, *further = evaluate_files(gold, predicted, scheme=scheme, bootstrap=bootstrap, seed=seed)
    if as_json:
        found = first.to_json()
        if further:
            found["lenient"] = further[0].to_json()
        tell(json.dumps(found, ensure_ascii=False, indent=1))
    else:
        tell("\n\n".join(scores.text() for scores in (first, *further)))
