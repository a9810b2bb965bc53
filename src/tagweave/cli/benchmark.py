"""`tagweave benchmark`: published tables, made anew."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagweave.cli.command import Command
from tagweave.cli.options import tell
from tagweave.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from tagweave.benchmark.cells import Cell

app = typer.Typer(help="Published tables, made anew on the same data.", no_args_is_help=True)


class _Sources(StrEnum):
    PAPER = "paper"
    RECOMMENDED = "recommended"
    ALL = "all"


@app.callback()
def _group() -> None:
    """Published tables, made anew on the same data."""


@app.command(cls=Command)
def paper(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results; what is in it is not run again.")],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the data sets. [default: $TAGWEAVE_DATA]")
    ] = None,
    datasets: Annotated[str | None, typer.Option(metavar="A,B,...", help="Data sets. [default: all four]")] = None,
    systems: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Systems, as in chmm-alt or hmm+bert. [default: the paper's]")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each system that has chance in it.")] = 1,
    sources: Annotated[_Sources, typer.Option(help="Which sources vote.")] = _Sources.PAPER,
    gold_free: Annotated[bool, typer.Option("--gold-free", help="Choose nothing on dev.")] = False,
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="A folder, a Hugging Face name, or `default` for the embedded MiniLM.")
    ] = "default",
    only_tables: Annotated[
        bool, typer.Option("--only-tables", help="Run nothing; make tables and figures of what is there.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the page of results goes, with its figures. [default: DIR/results.md]"
        ),
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run again what was made with other settings.")] = False,
) -> None:
    """The tables of Li et al. (ACL 2021): every system on the same votes, beside the published numbers.

    A run that was broken off goes on when the same command is given again. Results are in DIR/cells, one file a run;
    tables are made of all of them.
    """
    from tagweave.benchmark.datasets import DATASETS, data_folder
    from tagweave.benchmark.facts import keep_facts
    from tagweave.benchmark.page import render
    from tagweave.benchmark.running import Summary, plan, run
    from tagweave.benchmark.systems import DEFAULT_SYSTEMS

    chosen = list(DATASETS) if datasets is None else _names(datasets)
    for name in chosen:
        if name not in DATASETS:
            raise unknown_name("data set", name, DATASETS)
    cells = plan(
        chosen,
        DEFAULT_SYSTEMS if systems is None else _names(systems),
        encoder=encoder,
        sources=sources.value,
        gold_free=gold_free,
        seeds=seeds,
    )
    summary = Summary()
    if not only_tables:
        folder = data_folder(data)
        keep_facts(folder, out, chosen)
        summary = run(cells, folder, out, rerun=rerun)
    for cell in summary.stale:
        tell(f"{_shown(cell)}: made with other settings; --rerun makes it anew", err=True)
    for cell, reason in summary.failed.items():
        tell(f"{_shown(cell)}: {reason}", err=True)
    if only_tables or summary.finished or summary.stale:
        tell(f"the results are in {render(out, page)}", err=True)
    if summary.failed:
        raise typer.Exit(1)


def _shown(cell: "Cell") -> str:
    return f"{cell.dataset}/{cell.name}"


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{text!r} holds no name")
    return names
