"""`tagweave aggregate`: let the sources vote, and write the denoised labels."""

from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Coarse, Dev, Seed, Settings, Sources, choose, read_dev, store_corpus


def aggregate(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Documents with votes; their gold is not looked at.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="Label model: hmm, chmm, majority-vote, ...")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the labels go; `-` is standard output.")],
    sources: Sources = None,
    state_space: Annotated[
        str | None, typer.Option(metavar="io|bio", help="Hidden labels. [default: the model's own]")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Encoder of models on embeddings: a folder, a name, or `default`."),
    ] = None,
    dev: Dev = None,
    apply: Annotated[Path | None, typer.Option(metavar="FILE", help="Documents to label. [default: TRAIN]")] = None,
    save: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the fitted model in this folder.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print on stderr what the model learned.")] = False,
    coarse: Coarse = [],  # noqa: B006
    seed: Seed = 0,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Fit a label model on the votes in TRAIN and write its labels.

    Each line of the output has id, tokens, entities as [start, end, type, score], and the probability of every label
    on every token. With models whose statistics add up (hmm, dawid-skene, naive-bayes, matrix-completion, votes) memory
    does not grow with the file; what is in it is then held in the folder for temporary files (TMPDIR).
    """
    from tagweave import progress
    from tagweave.cli.scores import show_scores
    from tagweave.config import parse_pairs
    from tagweave.label_models import create_label_model
    from tagweave.labelling import needs_all, write_labels

    chosen = choose(parse_pairs(settings), state_space=state_space, encoder=encoder)
    label_model = create_label_model(model, choose(chosen, seed=seed))
    whole = needs_all(out)
    corpus = store_corpus(train, sources, coarse, whole=whole or not label_model.adds_up)
    held_out = None if dev is None else read_dev(dev, sources, coarse)
    label_model.fit(corpus, held_out)
    if save is not None:
        label_model.save(save)
    if show:
        for table in label_model.tables():
            progress.say(f"{table.text()}\n")
    if held_out is not None:
        show_scores({model: label_model.predict(held_out)}, held_out)
    target = corpus if apply is None else store_corpus(apply, sources, coarse, whole=whole)
    write_labels(label_model.predict_parts(target), out, len(target))
