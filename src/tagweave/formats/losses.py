"""What a format cannot hold: noted in one way by all writers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tagweave.annotations import Annotations
from tagweave.corpus import Column, Corpus
from tagweave.formats.problems import Problems
from tagweave.soft_labels import SoftLabels

Part = Literal["entities", "sources", "links", "soft_labels", "scores", "groups"]
"""Part of a corpus; `scores` are those of the entities."""

VotePart = Literal["outside", "scores", "soft", "not_run", "overlaps"]
"""What votes may have besides spans: votes for O, scores, probabilities of all labels, documents on which a source did
not run (which differs from silence), and spans that overlap others of the same source."""


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
    unknown = [corpus.id_list[index] for index in np.flatnonzero(~corpus.entities.ran)]
    if unknown:
        title = "documents whose entities nobody told, written as documents without any"
        problems.add("unlabelled", title, unknown[0], "all O", len(unknown))
    return without_nested(plain, problems)


def without_nested(corpus: Corpus, problems: Problems) -> Corpus:
    """The corpus with entities that do not overlap, and a note on those that are left out."""
    if corpus.entities is None:
        return corpus
    entities = corpus.entities.without_overlaps()
    lost = len(corpus.entities) - len(entities)
    if lost:
        problems.add("overlap", "entities left out that overlap a longer one", None, "the longest stays", lost)
    return replace(corpus, entities=entities)


def held_votes(corpus: Corpus, problems: Problems, format: str, holds: Sequence[VotePart] = ()) -> Corpus:
    """The corpus with what a format with sources can hold of their votes, and notes on what it cannot.

    Args:
        corpus: what is to be written.
        problems: where the losses are noted.
        format: what cannot hold them, in the plural.
        holds: what the format can hold besides spans.

    >>> from tagweave import Document, Span
    >>> problems = Problems("out.json")
    >>> corpus = Corpus.from_documents([Document("d", ["in"], sources={"stop": [Span(0, 1, "O")]})])
    >>> held_votes(corpus, problems, "files of that kind")[0].sources
    {'stop': []}
    >>> problems.summary()
    'out.json: 1 votes for O left out, which files of that kind cannot hold (first: stop)'
    """
    votes = _HeldVotes(corpus, problems, format, holds)
    return replace(corpus, sources={name: votes.column(name, column) for name, column in corpus.sources.items()})


class _HeldVotes:
    """What stays of the votes of single sources."""

    def __init__(self, corpus: Corpus, problems: Problems, format: str, holds: Sequence[VotePart]) -> None:
        self._corpus = corpus
        self._problems = problems
        self._format = format
        self._holds = holds

    def column(self, name: str, column: Column) -> Column:
        if isinstance(column, SoftLabels):
            if "soft" in self._holds:
                return column
            self._lost("soft_sources", "sources with probabilities, of which only the best spans are written", name, 1)
            column = replace(column.annotations(), scores=None)
        if "not_run" not in self._holds:
            silent = np.flatnonzero(~column.ran)
            title = "documents on which a source did not run, written as if it had found nothing"
            self._lost("not_run", title, name, len(silent))
            column = replace(column, ran=np.ones_like(column.ran))
        return self._spans(name, column)

    def _spans(self, name: str, column: Annotations) -> Annotations:
        if "outside" not in self._holds:
            kept = column.type_ids > 0
            self._lost("votes_o", f"votes for O left out, which {self._format} cannot hold", name, int((~kept).sum()))
            column = column.where(kept)
        if "overlaps" not in self._holds:
            apart = column.without_overlaps()
            title = "votes left out that overlap a longer one of the same source"
            self._lost("overlap", title, name, len(column) - len(apart))
            column = apart
        if "scores" not in self._holds and column.scores is not None:
            scored = int((~np.isnan(column.scores)).sum())
            title = f"scores of votes left out, which {self._format} cannot hold"
            self._lost("vote_scores", title, name, scored)
            column = replace(column, scores=None)
        return column

    def _lost(self, kind: str, title: str, source: str, count: int) -> None:
        if count:
            self._problems.add(kind, title, None, source, count)
