"""Span vote: a vote on whole spans, so that boundaries stay as some source drew them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.base import LabelModel
from tagweave.label_models.distinct import distinct_rows
from tagweave.label_models.restoring import Axis
from tagweave.labels import LabelSet
from tagweave.parts import each
from tagweave.soft_labels import SoftLabels


@dataclass(kw_only=True)
class SpanVote(LabelModel):
    """The spans of all sources compete; the winners share no token. Nothing is learned but how frequent a type is.

    With `order="longest"` the longest span wins, then the one that more sources have, then the leftmost, then the type
    that comes first in the alphabet; with `order="votes"` the number of sources comes first. A span on which more
    sources vote O than vote for it does not compete. A span of a coarse type takes the member type that most spans over
    the same tokens have, then the one most frequent in the corpus of the fit.

    A vote on spans has no calibrated probabilities: its soft labels are certain.

    Attributes:
        order: which spans go first.
        frequencies_: spans of each type in the corpus of the fit, of shape [types].

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")], "c": [Span(0, 1, "LOC")]}
    >>> corpus = Corpus.from_documents([Document("d0", ["Ada", "Lovelace", "ran"], sources=votes)])
    >>> SpanVote().fit(corpus).predict(corpus)[0].entities
    [Span(start=0, end=2, type='PER', score=1.0)]
    """

    adds_up: ClassVar[bool] = True
    name: ClassVar[str] = "span-vote"
    _whole: ClassVar[tuple[str, ...]] = ("frequencies",)

    order: Literal["longest", "votes"] = "longest"
    frequencies_: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), init=False, repr=False)

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        types = len(self._fitted()[0])
        self.frequencies_ = np.sum(list(each(partial(_frequencies, types), parts)), axis=0)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """The frequencies."""
        return {"frequencies": self.frequencies_}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {"frequencies": ("types",)}

    def _restore(self, parameters: Any) -> None:  # noqa: ANN401
        self.frequencies_ = parameters["frequencies"]

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        spans, votes = self._candidates(corpus)
        ranks = _alphabetical(corpus.types)[spans.type_ids]
        longest = spans.starts - spans.ends
        keys = (longest, -votes) if self.order == "votes" else (-votes, longest)
        entities = spans.without_overlaps(np.lexsort((ranks, spans.starts, keys[0], keys[1], spans.documents)))
        numbers = entities.labels(corpus.offsets, LabelSet(corpus.types))
        return SoftLabels.from_labels(numbers, corpus.offsets, corpus.types), entities

    def _candidates(self, corpus: Corpus) -> tuple[Annotations, NDArray[np.int64]]:
        """Distinct spans of fine types, and how many sources have each."""
        columns = [_spans(column) for column in corpus.sources.values()]
        starts = np.concatenate([corpus.offsets[column.documents] + column.starts for column in columns])
        lengths = np.concatenate([column.ends - column.starts for column in columns])
        types = np.concatenate([column.type_ids for column in columns])
        (starts, lengths, types), _, votes = distinct_rows(starts, lengths, types)
        documents = np.searchsorted(corpus.offsets, starts, side="right") - 1
        starts = starts - corpus.offsets[documents]
        rows = np.stack([documents, starts, starts + lengths, types], axis=1)
        rows, votes = self._settle_coarse(rows, votes, corpus)
        opposed = _votes_for_outside(rows, votes, corpus.offsets)
        kept = (rows[:, 3] > 0) & (opposed <= votes)
        rows, votes = rows[kept], votes[kept]
        spans = Annotations(
            ran=np.ones(len(corpus), bool),
            offsets=np.searchsorted(rows[:, 0], np.arange(len(corpus) + 1)).astype(np.int64),
            starts=rows[:, 1].astype(np.int32),
            ends=rows[:, 2].astype(np.int32),
            type_ids=rows[:, 3].astype(np.int16),
        )
        return spans, votes

    def _settle_coarse(
        self, rows: NDArray[np.int64], votes: NDArray[np.int64], corpus: Corpus
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give every span of a coarse type one of its members; spans that become equal add up their votes."""
        fine = len(corpus.types)
        if not (rows[:, 3] > fine).any():
            return rows, votes
        rows = rows.copy()
        for row in np.flatnonzero(rows[:, 3] > fine):
            document, start, end, number = rows[row]
            members = [1 + corpus.types.index(name) for name in list(corpus.coarse.values())[number - fine - 1]]
            near = rows[np.searchsorted(rows[:, 0], document) : np.searchsorted(rows[:, 0], document, side="right")]
            over = near[(near[:, 1] < end) & (near[:, 2] > start), 3]
            alphabetical = sorted(members, key=lambda member: corpus.types[member - 1])
            rows[row, 3] = max(alphabetical, key=lambda m: (int((over == m).sum()), int(self.frequencies_[m - 1])))
        rows, inverse = np.unique(rows, axis=0, return_inverse=True)
        return rows, np.bincount(inverse.ravel(), weights=votes, minlength=len(rows)).astype(np.int64)


def _frequencies(types: int, part: Corpus) -> NDArray[np.int64]:
    """How many spans of each type there are, of shape [types]."""
    counts = np.zeros(types + 1, np.int64)
    for spans in map(_spans, part.sources.values()):
        counts += np.bincount(spans.type_ids, minlength=types + 1)[: types + 1]
    return counts[1:]


def _spans(column: Annotations | SoftLabels) -> Annotations:
    return column if isinstance(column, Annotations) else column.annotations()


def _alphabetical(types: tuple[str, ...]) -> NDArray[np.int64]:
    """Rank of each type number by the name of its type."""
    return np.array([0, *(1 + sorted(types).index(name) for name in types)], np.int64)


def _votes_for_outside(
    rows: NDArray[np.int64], votes: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The largest number of sources that vote O on one token of each span, of shape [rows]."""
    outside = np.zeros(int(offsets[-1]), np.int64)
    for row in np.flatnonzero(rows[:, 3] == 0):
        document, start, end, _ = rows[row]
        outside[offsets[document] + start : offsets[document] + end] += votes[row]
    base = offsets[rows[:, 0]]
    edges = np.stack([base + rows[:, 1], base + rows[:, 2]], axis=1).ravel()
    if not len(edges):
        return np.zeros(0, np.int64)
    return np.maximum.reduceat(np.append(outside, 0), edges)[::2]
