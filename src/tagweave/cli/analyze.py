"""`tagweave analyze`: what each source is worth."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tagweave.cli.options import Coarse, Settings, Sources, store_corpus, tell


def analyze(
    weak: Annotated[Path, typer.Argument(metavar="WEAK", help="Documents with votes, with or without gold.")],
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Gold for some of the documents, joined by their ids.")
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Label model that judges the sources without gold; `none` for no model.")
    ] = "hmm",
    described_by: Annotated[
        Path | None, typer.Option(metavar="SOURCES", help="The file of the sources, for a line on each of them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    examples: Annotated[int, typer.Option(min=0, help="How many disagreements to show.")] = 10,
    sources: Sources = None,
    coarse: Coarse = [],  # noqa: B006
    settings: Settings = [],  # noqa: B006
) -> None:
    """Print what each source says and how good it is, by gold and by a label model that needs none.

    Coverage, overlaps and conflicts are percentages of tokens. Redundant, silent and harmful sources are named, and the
    sentences on which sources contradict each other most are shown.
    """
    from tagweave.analysis import analyze, with_gold
    from tagweave.config import parse_pairs
    from tagweave.formats import read
    from tagweave.label_models import create_label_model

    judge = None if model == "none" else create_label_model(model, parse_pairs(settings))
    corpus = store_corpus(weak, sources, coarse, whole=judge is not None and not judge.adds_up)
    if gold is not None:
        corpus = with_gold(corpus, read(gold))
    if judge is not None:
        judge.fit(corpus)
    told = None if described_by is None else _descriptions(described_by)
    found = analyze(corpus, judge, examples=examples, descriptions=told)
    tell(json.dumps(found.to_json(), ensure_ascii=False, indent=1) if as_json else found.text())


def _descriptions(path: Path) -> dict[str, str]:
    from tagweave.sources.loading import load_sources

    return {source.name: source.summary for source in load_sources(path)}
