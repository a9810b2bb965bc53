"""`tagweave annotate`: sources over a file."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.config import parse_pairs


def annotate(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="A file or folder in any format that can be read; `-` is standard input."),
    ],
    sources: Annotated[Path, typer.Option(metavar="FILE", help="The sources: a Python file, which is run, or TOML.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON lines with votes (.jsonl, .jsonl.gz), or `-`.")],
    processes: Annotated[int, typer.Option(metavar="N", min=1, help="How many processes share the work.")] = 1,
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
) -> None:
    """Let sources vote on all documents of a file.

    What each source did and how long it took is printed on standard error. Documents are worked on as a stream, so that
    memory does not grow with the file.
    """
    from tagweave.annotating import annotate_file

    report = annotate_file(
        source,
        sources,
        out,
        processes=processes,
        resume=resume,
        tolerant=tolerant,
        time_limit=time_limit,
        format=from_format,
        **parse_pairs(settings),
    )
    typer.echo(report.table().text(), err=True)
