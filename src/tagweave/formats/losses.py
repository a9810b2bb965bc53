"""What a format cannot hold: noted in one way by all writers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tagweave.corpus import Corpus
from tagweave.formats.problems import Problems

Part = Literal["entities", "sources", "links", "soft_labels", "scores", "groups"]
"""Part of a corpus; `scores` are those of the entities."""


def report_losses(corpus: Corpus, problems: Problems, format: str, holds: Sequence[Part] = ()) -> None:
    """Note which parts of a corpus a format cannot hold.

    Args:
        corpus: what is to be written.
        problems: where the losses are noted.
        format: what cannot hold them, in the plural: `columns`.
        holds: the parts that it can hold.

    >>> from tagweave import Document, Span
    >>> problems = Problems("out.txt")
    >>> corpus = Corpus.from_documents([Document("d", ["Oslo"], sources={"map": [Span(0, 1, "LOC")]})])
    >>> report_losses(corpus, problems, "plain text")
    >>> problems.summary()
    'out.txt: 1 sources left out, which plain text cannot hold (first: map)'
    """
    for part, title, names in (
        ("entities", "sets of entities", ["entities"] if corpus.entities is not None else []),
        ("sources", "sources", [*corpus.sources]),
        ("links", "linking rules", [*corpus.links]),
        ("soft_labels", "tables of soft labels", ["soft labels"] if corpus.soft_labels is not None else []),
        ("groups", "columns of groups", ["groups"] if corpus.groups is not None else []),
    ):
        if names and part not in holds:
            problems.add(part, f"{title} left out, which {format} cannot hold", None, ", ".join(names), len(names))
    scored = corpus.entities is not None and corpus.entities.scores is not None
    if scored and "entities" in holds and "scores" not in holds:
        problems.add("scores", f"columns of scores left out, which {format} cannot hold", None, "scores of entities")


def held_by_tags(corpus: Corpus, problems: Problems, format: str) -> Corpus:
    """The corpus with what one tag a token can hold, and a note on what it cannot."""
    report_losses(corpus, problems, format, ("entities", "groups"))
    plain = replace(corpus, sources={}, links={}, soft_labels=None)
    if corpus.entities is None:
        return plain
    entities = corpus.entities.without_overlaps()
    lost = len(corpus.entities) - len(entities)
    if lost:
        problems.add("overlap", "entities left out that overlap a longer one", None, "the longest stays", lost)
    unknown = [corpus.id_list[index] for index in np.flatnonzero(~corpus.entities.ran)]
    if unknown:
        title = "documents whose entities nobody told, written as documents without any"
        problems.add("unlabelled", title, unknown[0], "all O", len(unknown))
    return replace(plain, entities=entities)
