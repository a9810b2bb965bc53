"""`tagweave predict`: label documents with a trained tagger."""

from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `train` or `alternate` wrote.")],
    documents: Annotated[Path, typer.Argument(metavar="FILE", help="Documents to label.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the labels go; `-` is standard output.")],
) -> None:
    """Label documents with a trained tagger; the sources in the file, if any, are not used."""
    from tagweave.formats import read, write
    from tagweave.tagger import Tagger

    tagger = Tagger.load(model)
    write(tagger.predict(read(documents)).select_sources([]), out)
