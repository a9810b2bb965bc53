r"""Distant supervision: which spans a corpus's sources, or the soft labels of a label model, give to learn from.

Where spans of sources overlap, the set that covers most in the longest pieces counts: it maximises

\[ \sum_i (r_i - l_i)^2 \]

over the sets of spans `[l_i, r_i)` without overlap, document by document. Of sets that are equal, the one with more
words under typed spans counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import DataError, unknown_name
from tagweave.label_models.intervals import best_spans


@dataclass(frozen=True, eq=False)
class DistantSpans:
    """Spans without overlap, to learn from.

    Attributes:
        starts, ends: words of the corpus, half-open, in order, each of shape [spans].
        allowed: which types each may have, of shape [spans, types]; a row without any is a phrase of unknown type,
            which may be no entity at all.
        ran: whether anything is known of a document, of shape [documents].
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    ran: NDArray[np.bool_]

    @property
    def typed(self) -> NDArray[np.bool_]:
        """Which spans have a type, of shape [spans]."""
        return np.asarray(self.allowed.any(axis=1))

    def longest(self, offsets: NDArray[np.int64]) -> Self:
        """The spans that are left when no two may share a word; spans of the same words are one.

        Args:
            offsets: where each document starts, of shape [documents + 1].

        >>> spans = DistantSpans(
        ...     np.array([0, 1, 1]), np.array([2, 4, 4]), np.array([[1, 0], [1, 0], [0, 1]], bool), np.ones(1, bool)
        ... )
        >>> kept = spans.longest(np.array([0, 4]))
        >>> kept.starts.tolist(), kept.ends.tolist(), kept.allowed.tolist()
        ([1], [4], [[True, True]])
        """
        places, rows = np.unique(np.stack([self.starts, self.ends]), axis=1, return_inverse=True)
        allowed = np.zeros((places.shape[1], self.allowed.shape[1]), bool)
        np.logical_or.at(allowed, rows.ravel(), self.allowed)
        starts, ends = places
        lengths = (ends - starts).astype(np.float64)
        bonus = 0.5 / (1 + np.diff(offsets).max(initial=0))
        gains = lengths**2 + bonus * lengths * allowed.any(axis=1)
        kept = best_spans(starts, ends, gains, int(offsets[-1]))
        return replace(self, starts=starts[kept], ends=ends[kept], allowed=allowed[kept])


def spans_of_sources(corpus: Corpus, core: Sequence[str] | None = None, full: Sequence[str] = ()) -> DistantSpans:
    """What sources give to learn.

    Votes for O are left out: a word that no span covers is taken for no entity anyway.

    Args:
        corpus: with sources.
        core: sources whose spans are entities of their types; several types on the same words, and coarse types, allow
            each of them. None takes all that are not in `full`.
        full: sources whose spans are phrases of unknown type, whatever type they carry.

    Raises:
        UsageError: the corpus has no such source.
        DataError: the corpus has no source for `core`.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 1, "LOC")], "b": [Span(0, 1, "LOC"), Span(2, 4, "LOC")]}
    >>> corpus = Corpus.from_documents([Document("d", ["Oslo", "has", "trams", "too"], sources=votes)])
    >>> spans = spans_of_sources(corpus, full=["b"])
    >>> spans.starts.tolist(), spans.ends.tolist(), spans.typed.tolist()
    ([0, 2], [1, 4], [True, False])
    """
    for name in (*(core or ()), *full):
        if name not in corpus.sources:
            raise unknown_name("source", name, corpus.sources)
    typed = [name for name in corpus.sources if name not in full] if core is None else list(core)
    if not typed:
        raise DataError("no source of the corpus is left for typed spans: all of its sources are named as full")
    types = _types_of_numbers(corpus)
    columns = [_spans_of(corpus, name) for name in (*typed, *full)]
    parts = [
        _placed(column, corpus.offsets, types if number < len(typed) else np.zeros_like(types))
        for number, column in enumerate(columns)
    ]
    ran = np.logical_or.reduce([column.ran for column in columns[: len(typed)]])
    starts, ends = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    allowed = np.concatenate([part[2] for part in parts])
    return DistantSpans(starts, ends, allowed, ran).longest(corpus.offsets)


def spans_of_entities(corpus: Corpus, certain: float) -> DistantSpans:
    """What soft labels, or else the entities, give to learn.

    Args:
        corpus: with soft labels or entities. A document without entities (None) is unknown.
        certain: where the most probable label of a word is less probable than this, the word, and an entity that it
            lies in, is of unknown type.

    Raises:
        DataError: there are neither soft labels nor entities.
        LabelError: a row of the soft labels is no probability distribution; the message names document and token.

    >>> from tagweave.corpus import Document
    >>> from tagweave.soft_labels import SoftLabels
    >>> rows = np.array([[0.1, 0.9, 0], [1, 0, 0], [0.6, 0.4, 0]], np.float32)
    >>> corpus = Corpus.from_documents([Document("d", ["Oslo", "has", "trams"])], types=["LOC"])
    >>> soft = SoftLabels(("LOC",), corpus.offsets, rows)
    >>> spans = spans_of_entities(corpus.with_entities(None, soft), certain=0.7)
    >>> spans.starts.tolist(), spans.ends.tolist(), spans.typed.tolist()
    ([0, 2], [1, 3], [True, False])
    """
    doubtful = np.zeros(int(corpus.offsets[-1]), bool)
    if corpus.soft_labels is not None:
        corpus.soft_labels.check(corpus.id_list)
        soft_labels = corpus.soft_labels.with_types(corpus.types)
        doubtful = soft_labels.probabilities.max(axis=1) < certain
        column = soft_labels.annotations()
    elif corpus.entities is not None:
        column = corpus.entities.without_overlaps()
    else:
        raise DataError("the corpus has no sources, soft labels or entities, so there is nothing to learn")
    starts, ends, allowed = _placed(column, corpus.offsets, _types_of_numbers(corpus))
    before = np.concatenate([[0], np.cumsum(doubtful)])
    allowed &= (before[ends] == before[starts])[:, None]
    steps = np.bincount(starts, minlength=len(before)) - np.bincount(ends, minlength=len(before))
    alone = np.flatnonzero(doubtful & (np.cumsum(steps)[:-1] == 0))
    order = np.argsort(np.concatenate([starts, alone]), kind="stable")
    return DistantSpans(
        np.concatenate([starts, alone])[order],
        np.concatenate([ends, alone + 1])[order],
        np.concatenate([allowed, np.zeros((len(alone), allowed.shape[1]), bool)])[order],
        column.ran,
    )


def _spans_of(corpus: Corpus, name: str) -> Annotations:
    column = corpus.sources[name]
    if not isinstance(column, Annotations):
        column = column.with_types(corpus.types).annotations()
    return column.where(column.type_ids > 0)


def _placed(
    column: Annotations, offsets: NDArray[np.int64], types: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Starts and ends of spans in the corpus, and which types they may have."""
    base = offsets[column.documents]
    return base + column.starts, base + column.ends, types[column.type_ids]


def _types_of_numbers(corpus: Corpus) -> NDArray[np.bool_]:
    """Which types each type number allows, of shape [numbers, types]: its own, those that a coarse type stands for."""
    coarse = [[name in group for name in corpus.types] for group in corpus.coarse.values()]
    own = np.eye(len(corpus.types) + 1, len(corpus.types), k=-1, dtype=bool)
    return np.concatenate([own, np.array(coarse, bool).reshape(-1, len(corpus.types))])
