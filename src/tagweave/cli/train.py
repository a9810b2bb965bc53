"""`tagweave train`: a tagger from labelled documents."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Dev, Encoder, Seed, Settings, check_no_stream, choose, read_dev, reserve


def train(
    context: typer.Context,
    labelled: Annotated[
        Path, typer.Argument(metavar="LABELLED", help="Documents with soft labels (or entities), as aggregate writes.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the tagger.")],
    kind: Annotated[str, typer.Option("--tagger", metavar="NAME", help="What kind of tagger.")] = "bert",
    start: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Start from this trained tagger: fine-tune it.")
    ] = None,
    encoder: Encoder = "default",
    dev: Dev = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what a run that was ended left.")] = False,
    seed: Seed = 0,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Train a tagger on soft labels and save it as a Hugging Face folder.

    After each epoch the state of the training is kept in DIR.unfinished, until the end.

    In several processes, on one machine or more: `torchrun --nproc-per-node 2 -m tagweave train ...`
    """
    from tagweave import progress
    from tagweave.cli.scores import show_scores
    from tagweave.config import parse_pairs
    from tagweave.stored.labelling import store
    from tagweave.tagger import create_tagger, forget
    from tagweave.team import join

    unfinished = Path(f"{os.path.realpath(out)}.unfinished")
    tagger = create_tagger(kind, choose(parse_pairs(settings), encoder=encoder, seed=seed))
    with join() as processes:
        check_no_stream(processes.size, labelled, dev)
        if processes.first:
            reserve(context, folder=out)
            if not resume and forget(unfinished):
                progress.say("what an unfinished run left is overwritten; --resume would go on with it")
        held_out = None if dev is None else read_dev(dev)
        tagger.fit(store(labelled).whole(), held_out, folder=unfinished, resume=resume, start_from=start)
        if processes.first:
            tagger.save(out)
            forget(unfinished)
            if held_out is not None:
                show_scores({"tagger": tagger.predict(held_out)}, held_out)
