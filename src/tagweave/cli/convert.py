"""`tagweave convert`: from one format to another."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.config import create, parse_pairs


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file or folder to read; `-` is standard input.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="What to write; `-` is standard output.")],
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN. [default: by its name]")
    ] = None,
    to_format: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT. [default: by its name]")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="An option of reading; may be repeated.")
    ] = [],  # noqa: B006
    write_settings: Annotated[
        list[str], typer.Option("--write-set", metavar="KEY=VALUE", help="An option of writing; may be repeated.")
    ] = [],  # noqa: B006
) -> None:
    """Read documents in one format and write them in another; what the other cannot hold is reported."""
    from tagweave.formats import format_of, read, read_batches, write, write_batches

    reader, writer = format_of(source, from_format), format_of(target, to_format)
    reading, writing = parse_pairs(settings), parse_pairs(write_settings)
    create(reader.read_options, reading)
    create(writer.write_options, writing)
    if writer.write_batches is None:
        write(read(source, format=reader.name, **reading), target, format=writer.name, **writing)
    else:
        write_batches(read_batches(source, format=reader.name, **reading), target, format=writer.name, **writing)
