"""`tagweave export`: a tagger for ONNX Runtime."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import reserve


def export(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `train` or `alternate` wrote.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the exported tagger.")],
    int8: Annotated[
        bool, typer.Option("--int8", help="Round weights to 8 bits: much smaller and faster, a little less exact.")
    ] = False,
) -> None:
    """Write a trained tagger for ONNX Runtime; `tagweave predict` takes the folder as any other."""
    from tagweave.alternate import is_alternate, load_round
    from tagweave.tagger import Tagger
    from tagweave.tagger.exporting import export as export_tagger

    reserve(context, folder=out)
    tagger = load_round(model)[0].tagger if is_alternate(model) else Tagger.load(model)
    export_tagger(tagger, out, int8=int8)
