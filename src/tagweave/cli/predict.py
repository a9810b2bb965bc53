"""`tagweave predict`: label documents with a trained tagger."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Address, Engine, Processes, reserve, whole_file


def predict(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `train` or `alternate` wrote.")],
    documents: Annotated[Path, typer.Argument(metavar="FILE", help="Documents to label, or a folder of shards.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the labels go; `-` is standard output; or a folder.")
    ],
    output: Annotated[
        str,
        typer.Option(metavar="tagger|label-model", help="`label-model` reads the votes in FILE too."),
    ] = "tagger",
    processes: Processes = 1,
    engine: Engine = "local",
    address: Address = "auto",
) -> None:
    """Label documents with a trained tagger, which needs no sources; or with the label model that it taught.

    Documents are read, labelled and written part by part, so that memory does not grow with the file.

    A folder of shards (.jsonl, .jsonl.gz, .parquet) becomes a folder of shards of the same names; what is done there
    already stays.
    """
    from tagweave.folders import Labels, is_folder_of_shards, predict_folder

    if is_folder_of_shards(documents):
        predict_folder(model, documents, out, output, processes=processes, engine=engine, address=address)
    else:
        whole_file(documents, engine, processes)
        reserve(context, file=out)
        Labels(model, output).load()(documents, out)
