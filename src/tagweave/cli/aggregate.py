"""`tagweave aggregate`: let the sources vote, and write the denoised labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagweave.cli.options import (
    Address,
    Coarse,
    Dev,
    Engine,
    Processes,
    Seed,
    Settings,
    Sources,
    choose,
    coarse_types,
    open_corpus,
    read_dev,
    reserve,
    whole_file,
)

if TYPE_CHECKING:
    from tagweave.label_models import LabelModel
    from tagweave.stored import StoredCorpus
    from tagweave.stored.frames import Frame
    from tagweave.stored.spread import SpreadCorpus


def aggregate(
    context: typer.Context,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Documents with votes, or a folder of shards.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="Label model: hmm, chmm, majority-vote, ...")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the labels go; `-` is standard output; or a folder.")
    ],
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
    processes: Processes = 1,
    engine: Engine = "local",
    address: Address = "auto",
) -> None:
    """Fit a label model on the votes in TRAIN, whose gold is not looked at, and write its labels.

    Each line of the output has id, tokens, entities as [start, end, type, score], and the probability of every label
    on every token. With models whose statistics add up (hmm, dawid-skene, naive-bayes, matrix-completion, votes) memory
    does not grow with the file; what is in it is then held in the folder for temporary files (TMPDIR).

    With such a model TRAIN can be a folder of shards (.jsonl, .jsonl.gz, .parquet). Each worker reads some of them and
    counts their votes; what is learned is the same as in one process. A folder that is labelled becomes a folder of
    shards of the same names; what is done there already stays.
    """
    from tagweave import progress
    from tagweave.cli.scores import show_scores
    from tagweave.config import parse_pairs
    from tagweave.folders import check_out, is_folder_of_shards, label_folder
    from tagweave.label_models import create_label_model
    from tagweave.stored.labelling import needs_all

    chosen = choose(parse_pairs(settings), state_space=state_space, encoder=encoder)
    label_model = create_label_model(model, choose(chosen, seed=seed))
    workers: dict[str, Any] = {"processes": processes, "engine": engine, "address": address}
    target = train if apply is None else apply
    if is_folder_of_shards(target):
        check_out(target, out)
    elif not is_folder_of_shards(train):
        whole_file(train, engine, processes)
    whole = not is_folder_of_shards(target) and needs_all(out)
    reserve(context, file=None if is_folder_of_shards(target) else out, folder=save)
    with open_corpus(train, sources, coarse, whole=whole or not label_model.adds_up, **workers) as corpus:
        held_out = None if dev is None else read_dev(dev, sources, coarse)
        label_model.fit(corpus, held_out)
        if save is not None:
            label_model.save(save)
        if show:
            for table in label_model.tables():
                progress.say(f"{table.text()}\n")
        if held_out is not None:
            show_scores({model: label_model.predict(held_out)}, held_out)
        frame = _label(label_model, corpus, out) if apply is None else None
    if apply is not None:
        with open_corpus(apply, sources, coarse, whole=whole, **workers) as documents:
            frame = _label(label_model, documents, out)
    if frame is not None:
        label_folder(label_model, target, out, frame=frame, coarse=coarse_types(coarse), **workers)


def _label(model: "LabelModel", corpus: "StoredCorpus | SpreadCorpus", out: Path) -> "Frame | None":
    """Label the documents of a file; or what their shards have in common, to be labelled one by one."""
    from tagweave.stored import StoredCorpus
    from tagweave.stored.labelling import write_labels

    if not isinstance(corpus, StoredCorpus):
        model.check_groups(corpus)
        return corpus.frame
    write_labels(model.predict_parts(corpus), out, len(corpus))
    return None
