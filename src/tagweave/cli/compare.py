"""`tagweave compare`: label models side by side on your own votes."""

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagweave.cli.options import Coarse, Dev, Seed, Settings, Sources, read_corpus, read_dev, tell
from tagweave.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from tagweave.label_models import LabelModel


def compare(
    weak: Annotated[Path, typer.Argument(metavar="WEAK", help="Documents with votes; all models are fitted on them.")],
    models: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Label models. [default: all that need neither gold nor an encoder]"),
    ] = None,
    dev: Dev = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    sources: Sources = None,
    coarse: Coarse = [],  # noqa: B006
    encoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encoder of models on embeddings. [default: default]")
    ] = None,
    seed: Seed = 0,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Fit label models on the same votes and print time and scores of each, or their agreement without gold.

    Scores are on the dev documents, or on the gold in WEAK where that has some; no model is fitted on gold. A setting
    names its model: `--set hmm.silence=never`.
    """
    from tagweave.comparison import compare as compare_models
    from tagweave.config import parse_pairs

    corpus = read_corpus(weak, sources, coarse)
    held_out = None if dev is None else read_dev(dev, sources, coarse)
    chosen = _label_models(models, parse_pairs(settings), encoder, seed)
    found = compare_models(corpus, chosen, held_out)
    tell(json.dumps(found.to_json(), ensure_ascii=False, indent=1) if as_json else found.text())


def _label_models(
    names: str | None, settings: dict[str, Any], encoder: str | None, seed: int
) -> "dict[str, LabelModel]":
    from tagweave.label_models import LABEL_MODELS, create_label_model

    chosen = _default() if names is None else [name.strip() for name in names.split(",") if name.strip()]
    for name, own in settings.items():
        if name not in chosen:
            raise unknown_name("label model in --set", name, chosen)
        if not isinstance(own, dict):
            raise UsageError(f"--set {name}={own}: write MODEL.KEY=VALUE, as in hmm.silence=never")
    found = {}
    for name in chosen:
        known = {f.name for f in fields(LABEL_MODELS[name])} if name in LABEL_MODELS else set()
        given = {"seed": seed} | ({"encoder": encoder} if encoder is not None and "encoder" in known else {})
        found[name] = create_label_model(name, {**given, **settings.get(name, {})})
    return found


def _default() -> Iterable[str]:
    from tagweave.label_models import LABEL_MODELS

    return [
        name
        for name, model in sorted(LABEL_MODELS.items())
        if not model.uses_gold and "encoder" not in {f.name for f in fields(model)}
    ]
