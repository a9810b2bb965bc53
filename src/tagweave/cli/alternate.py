"""`tagweave alternate`: label model and tagger in turn, CHMM-ALT and every other pair in one command."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Coarse, Dev, Settings, Sources


def alternate(
    train: Annotated[
        Path,
        typer.Argument(metavar="TRAIN|PLAN.toml", help="Documents with votes, or a TOML file with the whole plan."),
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the run; `predict` takes it.")] = None,
    label_model: Annotated[str | None, typer.Option(metavar="NAME", help="Label model. [default: chmm]")] = None,
    tagger: Annotated[str | None, typer.Option(metavar="NAME", help="Tagger. [default: bert]")] = None,
    encoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encoder of tagger and label model. [default: default]")
    ] = None,
    sources: Sources = None,
    dev: Dev = None,
    rounds: Annotated[int | None, typer.Option(min=0, help="Most rounds of phase II. [default: 10]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in DIR.")] = False,
    coarse: Coarse = [],  # noqa: B006
    seed: Annotated[int | None, typer.Option(help="Seed of everything with chance in it. [default: 0]")] = None,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Train label model and tagger in turn, and keep the best round in DIR.

    Settings are those of the tables data, label_model, tagger and alternate of a plan: `--set tagger.epochs=3`.
    """
    from tagweave.cli.plans import read_plan

    plan = read_plan(
        train,
        {
            "data": {"out": out, "sources": sources, "dev": dev, "coarse": tuple(coarse) or None},
            "label_model": {"kind": label_model, "encoder": encoder, "seed": seed},
            "tagger": {"kind": tagger, "encoder": encoder, "seed": seed},
            "alternate": {"rounds": rounds},
        },
        settings,
    )
    plan.run(resume)
