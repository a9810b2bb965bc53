"""`tagweave embed`: make the embeddings that label models read, before they are asked for."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Address, Encoder, Engine, Processes


def embed(
    documents: Annotated[
        Path, typer.Argument(metavar="FILE", help="Documents, or a folder of shards, which count as one file.")
    ],
    encoder: Encoder = "default",
    layers: Annotated[
        str, typer.Option(metavar="N,N,...", help="Layers of the encoder side by side, as the label model has them.")
    ] = "2,4,6",
    processes: Processes = 1,
    engine: Engine = "local",
    address: Address = "auto",
) -> None:
    """Embed all words of some documents, in as many processes as you like or on a Ray cluster.

    The embeddings are kept in `embeddings` of the cache folder, `$TAGWEAVE_CACHE` or `~/.cache/tagweave`, where the
    models chmm and chmm-iid find them when they learn from these documents. A run that was ended goes on with the same
    command.
    """
    from tagweave.config import convert
    from tagweave.encoder.embeddings import embed
    from tagweave.folders import words_of
    from tagweave.progress import say

    chosen = convert("layers", layers, tuple[int, ...])
    words = words_of(documents)
    rows = embed(words, encoder, layers=chosen, processes=processes, engine=engine, address=address)
    say(f"{documents}: {rows.shape[0]:,} words are embedded, {rows.shape[1]:,} numbers each")
