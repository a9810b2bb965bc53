"""How much sources say, and how far they agree, token by token and span by span."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.evaluation import span_column
from tagweave.labels import LabelSet

ABSTAIN = -1
"""The vote of a source that says nothing on a token."""

_NONE = np.iinfo(np.int16).max


class Participation(NamedTuple):
    """Fractions of all tokens, as Snorkel's analysis names them, each of shape [sources]."""

    coverage: NDArray[np.float64]
    """The source votes."""
    overlaps: NDArray[np.float64]
    """The source votes, and another one too."""
    conflicts: NDArray[np.float64]
    """The source votes, and another one votes otherwise."""


class Pair(NamedTuple):
    """How far two sources agree.

    Attributes:
        first, second: their names.
        agreement: of the tokens on which both vote, the fraction with the same label; None if there is none.
        overlap: of the spans that either marks, the fraction that both mark (the Jaccard index); None if there is none.
    """

    first: str
    second: str
    agreement: float | None
    overlap: float | None


@dataclass(frozen=True, eq=False)
class Votes:
    """The votes of all sources of a corpus.

    Attributes:
        sources: names.
        labels: BIO label of each source on each token, or `ABSTAIN`, of shape [sources, tokens]. Where spans of one
            source overlap, the longest counts. Coarse types have labels of their own, from `fine` on.
        fine: number of labels that are of no coarse type.
        spans: a number for each span with its place and type, sorted, by source; votes for O are none.
    """

    sources: tuple[str, ...]
    labels: NDArray[np.int16]
    fine: int
    spans: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, corpus: Corpus) -> "Votes":
        """The votes of a corpus; a vote for O is a vote, silence is none."""
        label_set = LabelSet((*corpus.types, *corpus.coarse), "bio")
        columns = [span_column(column, corpus) for column in corpus.sources.values()]
        labels = np.full((len(columns), int(corpus.offsets[-1])), ABSTAIN, np.int16)
        for row, column in zip(labels, columns, strict=True):
            kept = column.without_overlaps()
            spoken = _covered(kept, corpus.offsets)
            row[spoken] = kept.labels(corpus.offsets, label_set)[spoken]
        longest = 1 + int(max((column.ends.max(initial=0) for column in columns), default=0))
        keys = tuple(_keys(column, corpus.offsets, longest, len(corpus.vocabulary)) for column in columns)
        return cls(tuple(corpus.sources), labels, 1 + 2 * len(corpus.types), keys)

    def participation(self) -> Participation:
        """Coverage, overlaps and conflicts of each source; labels of coarse types conflict with nothing.

        >>> from tagweave.annotations import Span
        >>> from tagweave.corpus import Document
        >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(1, 2, "PER")]}
        >>> corpus = Corpus.from_documents([Document("d", ["Ada", "Byron", "wrote", "."], sources=votes)])
        >>> [part.tolist() for part in Votes.of(corpus).participation()]
        [[0.5, 0.25], [0.25, 0.25], [0.25, 0.25]]
        """
        spoken, tokens = self.labels >= 0, max(self.labels.shape[1], 1)
        settled = spoken & (self.labels < self.fine)
        shared = spoken.sum(axis=0) > 1
        disputed = self.disputed()
        return Participation(
            spoken.sum(axis=1) / tokens,
            (spoken & shared).sum(axis=1) / tokens,
            (settled & disputed).sum(axis=1) / tokens,
        )

    def disputed(self) -> NDArray[np.bool_]:
        """Tokens on which sources vote for different labels, of shape [tokens]."""
        settled = (self.labels >= 0) & (self.labels < self.fine)
        highest = np.where(settled, self.labels, np.int16(ABSTAIN)).max(axis=0, initial=ABSTAIN)
        lowest = np.where(settled, self.labels, np.int16(_NONE)).min(axis=0, initial=_NONE)
        return np.asarray((highest >= 0) & (lowest < highest))

    def pairs(self) -> Iterator[Pair]:
        """Every two sources."""
        for first, second in combinations(range(len(self.sources)), 2):
            both = (self.labels[first] >= 0) & (self.labels[second] >= 0)
            same = both & (self.labels[first] == self.labels[second])
            common = len(np.intersect1d(self.spans[first], self.spans[second], assume_unique=True))
            either = len(self.spans[first]) + len(self.spans[second]) - common
            yield Pair(
                self.sources[first],
                self.sources[second],
                int(same.sum()) / int(both.sum()) if both.any() else None,
                common / either if either else None,
            )


def _covered(column: Annotations, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which tokens lie in a span, votes for O included, of shape [tokens]."""
    base, tokens = offsets[column.documents], int(offsets[-1])
    opened = np.bincount(base + column.starts, minlength=tokens + 1)
    closed = np.bincount(base + column.ends, minlength=tokens + 1)
    return np.asarray(np.cumsum(opened - closed)[:-1] > 0)


def _keys(column: Annotations, offsets: NDArray[np.int64], longest: int, types: int) -> NDArray[np.int64]:
    entity = column.type_ids > 0
    starts = offsets[column.documents[entity]] + column.starts[entity]
    lengths = (column.ends - column.starts)[entity].astype(np.int64)
    return np.unique((starts * longest + lengths) * types + column.type_ids[entity])
