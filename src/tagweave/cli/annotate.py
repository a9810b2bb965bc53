"""`tagweave annotate`: sources over a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tagweave.cli.options import Address, Engine, Processes, tell, whole_file
from tagweave.config import parse_pairs


def annotate(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="A file or folder in any format that can be read; `-` is standard input."),
    ],
    sources: Annotated[Path, typer.Option(metavar="FILE", help="The sources: a Python file, which is run, or TOML.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON lines with votes (.jsonl, .jsonl.gz), or `-`; or a folder.")
    ],
    processes: Processes = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what a run that was ended left.")] = False,
    tolerant: Annotated[
        bool, typer.Option("--tolerant", help="A source that fails on a document abstains there and is counted.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long a source may take for a document; 0 is no limit.")
    ] = 60.0,
    from_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Format of IN. [default: by its name]")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="An option of reading; may be repeated.")
    ] = [],  # noqa: B006
    engine: Engine = "local",
    address: Address = "auto",
) -> None:
    """Let sources vote on all documents of a file, or of all shards in a folder.

    What each source did and how long it took is printed on standard error. Documents are worked on as a stream, so that
    memory does not grow with the file. A folder of shards (.jsonl, .jsonl.gz, .parquet) becomes a folder of shards of
    the same names; what is done there already stays.
    """
    from tagweave.annotating import annotate_file
    from tagweave.folders import annotate_folder, is_folder_of_shards

    chosen: dict[str, Any] = {"processes": processes, "tolerant": tolerant, "time_limit": time_limit}
    options = parse_pairs(settings)
    if from_format is None and is_folder_of_shards(source):
        report = annotate_folder(source, sources, out, engine=engine, address=address, options=options, **chosen)
    else:
        whole_file(source, engine)
        report = annotate_file(source, sources, out, resume=resume, format=from_format, **chosen, **options)
    tell(report.table().text(), err=True)
