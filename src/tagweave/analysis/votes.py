"""How much sources say, and how far they agree, token by token and span by span: counts that add up over parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.evaluation import span_column
from tagweave.labels import LabelSet
from tagweave.observations import ABSTAIN
from tagweave.soft_labels import SoftLabels

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
        types: spans of each source by type, votes for O first, of shape [sources, 1 + types].
        ran: whether a source ran on any document, of shape [sources].
    """

    sources: tuple[str, ...]
    labels: NDArray[np.int16]
    fine: int
    spans: tuple[NDArray[np.int64], ...]
    types: NDArray[np.int64]
    ran: NDArray[np.bool_]

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
        count = len(corpus.vocabulary)
        types = [np.bincount(column.type_ids, minlength=count) for column in columns]
        ran = [isinstance(column, SoftLabels) or bool(column.ran.any()) for column in corpus.sources.values()]
        fine = 1 + 2 * len(corpus.types)
        return cls(
            tuple(corpus.sources),
            labels,
            fine,
            keys,
            np.reshape(types, (-1, count)).astype(np.int64),
            np.array(ran, bool),
        )

    def disputed(self) -> NDArray[np.bool_]:
        """Tokens on which sources vote for different labels, of shape [tokens]."""
        settled = (self.labels >= 0) & (self.labels < self.fine)
        highest = np.where(settled, self.labels, np.int16(ABSTAIN)).max(axis=0, initial=ABSTAIN)
        lowest = np.where(settled, self.labels, np.int16(_NONE)).min(axis=0, initial=_NONE)
        return np.asarray((highest >= 0) & (lowest < highest))

    def counts(self) -> "Counts":
        """What of them adds up over the parts of a corpus."""
        voted = _ones(self.labels >= 0)
        shared, disputed = voted.sum(axis=0) > 1, self.disputed()
        settled = voted * (self.labels < self.fine)
        same = np.zeros((len(voted), len(voted)))
        for label in np.unique(self.labels[self.labels >= 0]):
            chosen = _ones(self.labels == label)
            same += chosen @ chosen.T
        return Counts(
            self.sources,
            self.labels.shape[1],
            _whole(voted.sum(axis=1, dtype=np.float64)),
            _whole((voted * shared).sum(axis=1, dtype=np.float64)),
            _whole((settled * disputed).sum(axis=1, dtype=np.float64)),
            _whole(voted @ voted.T),
            _whole(same),
            _common(self.spans),
            self.types,
            self.ran,
        )


@dataclass(frozen=True, eq=False)
class Counts:
    """What sources say, in numbers that add up over the parts of a corpus.

    Attributes:
        sources: names.
        tokens: how many there are.
        voted, shared, disputed: tokens on which each source votes, another one too, another one otherwise; of shape
            [sources].
        both, same: tokens on which two sources vote, and give the same label, of shape [sources, sources].
        common: spans that two sources mark, of shape [sources, sources].
        types: spans of each source by type, votes for O first, of shape [sources, 1 + types].
        ran: whether a source ran on any document, of shape [sources].
    """

    sources: tuple[str, ...]
    tokens: int
    voted: NDArray[np.int64]
    shared: NDArray[np.int64]
    disputed: NDArray[np.int64]
    both: NDArray[np.int64]
    same: NDArray[np.int64]
    common: NDArray[np.int64]
    types: NDArray[np.int64]
    ran: NDArray[np.bool_]

    def __add__(self, other: "Counts") -> "Counts":
        """Those of two parts together."""
        own, more = ([getattr(each, field.name) for field in fields(self)[1:]] for each in (self, other))
        return Counts(self.sources, *(a + b for a, b in zip(own, more, strict=True)))

    def participation(self) -> Participation:
        """Coverage, overlaps and conflicts of each source; labels of coarse types conflict with nothing.

        >>> from tagweave.annotations import Span
        >>> from tagweave.corpus import Document
        >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(1, 2, "PER")]}
        >>> corpus = Corpus.from_documents([Document("d", ["Ada", "Byron", "wrote", "."], sources=votes)])
        >>> [part.tolist() for part in Votes.of(corpus).counts().participation()]
        [[0.5, 0.25], [0.25, 0.25], [0.25, 0.25]]
        """
        tokens = max(self.tokens, 1)
        return Participation(self.voted / tokens, self.shared / tokens, self.disputed / tokens)

    def pairs(self) -> Iterator[Pair]:
        """Every two sources."""
        marked = np.diag(self.common)
        for i, j in combinations(range(len(self.sources)), 2):
            both, common = int(self.both[i, j]), int(self.common[i, j])
            either = int(marked[i] + marked[j]) - common
            yield Pair(
                self.sources[i],
                self.sources[j],
                int(self.same[i, j]) / both if both else None,
                common / either if either else None,
            )


def _ones(chosen: NDArray[np.bool_]) -> NDArray[Any]:
    """What is chosen as numbers, of which all sums over tokens are exact."""
    return chosen.astype(np.float32 if chosen.shape[1] < 1 << 24 else np.float64)


def _whole(sums: NDArray[Any]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(sums).astype(np.int64)
    return whole


def _common(spans: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Spans that two sources mark, of shape [sources, sources]."""
    found: NDArray[np.int64] = np.diag([len(own) for own in spans]).astype(np.int64)
    for i, j in combinations(range(len(spans)), 2):
        found[i, j] = found[j, i] = len(np.intersect1d(spans[i], spans[j], assume_unique=True))
    return found


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
