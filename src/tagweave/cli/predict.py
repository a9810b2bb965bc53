"""`tagweave predict`: label documents with a trained tagger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagweave.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from tagweave.corpus import Corpus

OUTPUTS = ("tagger", "label-model")


def predict(
    model: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `train` or `alternate` wrote.")],
    documents: Annotated[Path, typer.Argument(metavar="FILE", help="Documents to label.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the labels go; `-` is standard output.")],
    output: Annotated[
        str,
        typer.Option(metavar="tagger|label-model", help="`label-model` reads the votes in FILE too."),
    ] = "tagger",
) -> None:
    """Label documents with a trained tagger, which needs no sources; or with the label model that it taught."""
    from tagweave.formats import read, write

    if output not in OUTPUTS:
        raise unknown_name("output", output, OUTPUTS)
    write(_predict(model, read(documents), output).select_sources([]), out)


def _predict(model: Path, corpus: "Corpus", output: str) -> "Corpus":
    from tagweave.alternate import is_alternate, load_round
    from tagweave.tagger import Tagger

    if is_alternate(model):
        found = load_round(model)[0]
        return found.predict(corpus, "tagger" if output == "tagger" else "label-model")
    if output != "tagger":
        raise UsageError(f"{model} holds a tagger only: --output {output} needs a folder that `alternate` wrote")
    return Tagger.load(model).predict(corpus)
