"""`tagweave convert`: from one format to another."""

from pathlib import Path
from typing import Annotated

import typer


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file to read; `-` is standard input.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A file to write; `-` is standard output.")],
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN. [default: by its name]")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT. [default: by its name]")
    ] = None,
) -> None:
    """Read documents in one format and write them in another; what the other cannot hold is reported."""
    from tagweave.formats import read, write

    write(read(source, format=from_format), target, format=to_format)
