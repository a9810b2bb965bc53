"""`Annotations`: the spans of one annotator over all documents, as columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numba
import numpy as np
from numpy.typing import NDArray

from tagweave.labels import LabelSet, decode


class Span(NamedTuple):
    """A typed stretch of tokens, half-open; `type` is `O` for a vote that the tokens are no entity."""

    start: int
    end: int
    type: str
    score: float | None = None


@dataclass(frozen=True, eq=False)
class Annotations:
    """The spans of one annotator (a source, the gold, a model) over all documents of a corpus.

    Attributes:
        ran: whether the annotator ran on the document at all, of shape [documents]. A document on which it ran and
            found nothing has `ran` and no span.
        offsets: spans of document `d` are `offsets[d]:offsets[d + 1]`, of shape [documents + 1].
        starts, ends: tokens within the document, half-open, each of shape [spans].
        type_ids: type numbers of shape [spans]: 0 is a vote for O, `i` is the corpus's `vocabulary[i]`.
        scores: probabilities of shape [spans], NaN where none was given, or None when no span has one.
    """

    ran: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    type_ids: NDArray[np.int16]
    scores: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """Number of spans."""
        return len(self.starts)

    @classmethod
    def from_lists(cls, documents: Iterable[Sequence[Span] | None], vocabulary: Sequence[str]) -> Self:
        """Columns from a list of spans for each document, None where the annotator did not run.

        `vocabulary[i]` is the name of type number `i`, `vocabulary[0]` is `O`.

        >>> column = Annotations.from_lists([[Span(0, 2, "PER")], [], None], ("O", "PER"))
        >>> column.ran.tolist(), column.offsets.tolist(), column.type_ids.tolist()
        ([True, True, False], [0, 1, 1, 1], [1])
        """
        numbers = {name: number for number, name in enumerate(vocabulary)}
        ran: list[bool] = []
        counts: list[int] = []
        rows: list[tuple[int, int, int, float]] = []
        for spans in documents:
            ran.append(spans is not None)
            counts.append(len(spans or ()))
            rows.extend((s.start, s.end, numbers[s.type], np.nan if s.score is None else s.score) for s in spans or ())
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        scores = np.array(columns[3], np.float32)
        return cls(
            ran=np.array(ran, bool),
            offsets=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
            starts=np.array(columns[0], np.int32),
            ends=np.array(columns[1], np.int32),
            type_ids=np.array(columns[2], np.int16),
            scores=None if np.isnan(scores).all() else scores,
        )

    @classmethod
    def from_labels(cls, labels: NDArray[np.integer], offsets: NDArray[np.int64], label_set: LabelSet) -> Self:
        """Spans of packed label numbers, read leniently (see `tagweave.labels.decode`)."""
        span_offsets, starts, ends, type_ids = decode(labels, offsets, label_set)
        return cls(np.ones(len(offsets) - 1, bool), span_offsets, starts, ends, type_ids)

    @classmethod
    def concatenate(cls, parts: Sequence["Annotations"]) -> Self:
        """The annotations of consecutive parts of a corpus, end to end."""
        scores = [np.full(len(p), np.nan, np.float32) if p.scores is None else p.scores for p in parts]
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            ran=np.concatenate([part.ran for part in parts]),
            offsets=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            starts=np.concatenate([part.starts for part in parts]),
            ends=np.concatenate([part.ends for part in parts]),
            type_ids=np.concatenate([part.type_ids for part in parts]),
            scores=None if all(part.scores is None for part in parts) else np.concatenate(scores),
        )

    def document(self, index: int, vocabulary: Sequence[str]) -> list[Span] | None:
        """Spans of one document, None where the annotator did not run."""
        if not self.ran[index]:
            return None
        return list(self._spans(self.offsets[index], self.offsets[index + 1], vocabulary))

    def _spans(self, first: int, last: int, vocabulary: Sequence[str]) -> Iterator[Span]:
        for row in range(first, last):
            score = None if self.scores is None or np.isnan(self.scores[row]) else float(self.scores[row])
            yield Span(int(self.starts[row]), int(self.ends[row]), vocabulary[self.type_ids[row]], score)

    def labels(self, offsets: NDArray[np.int64], label_set: LabelSet) -> NDArray[np.int16]:
        """Label number of each token, of shape [tokens]; the spans must not overlap (`without_overlaps`).

        Args:
            offsets: where each document starts, of shape [documents + 1].
            label_set: labels to use; the types must be the ones that the type numbers are for.
        """
        numbers = np.zeros(int(offsets[-1]), np.int16)
        starts, lengths = offsets[self.documents] + self.starts, self.ends - self.starts
        tokens = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        numbers[tokens] = np.repeat(label_set.inside[self.type_ids], lengths)
        numbers[starts] = label_set.first[self.type_ids]
        return numbers

    @property
    def documents(self) -> NDArray[np.int64]:
        """Document number of each span, of shape [spans]."""
        return np.repeat(np.arange(len(self.ran)), np.diff(self.offsets))

    def subset(self, documents: NDArray[np.int64]) -> Self:
        """The annotations of some documents, in the given order."""
        counts = np.diff(self.offsets)[documents]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.repeat(self.offsets[documents] - offsets[:-1], counts) + np.arange(offsets[-1])
        return self._rows(rows, self.ran[documents], offsets)

    def where(self, kept: NDArray[np.bool_]) -> Self:
        """The spans under a mask of shape [spans]."""
        offsets = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[self.offsets]
        return self._rows(np.flatnonzero(kept), self.ran, offsets)

    def _rows(self, rows: NDArray[np.int64], ran: NDArray[np.bool_], offsets: NDArray[np.int64]) -> Self:
        return replace(
            self,
            ran=ran,
            offsets=offsets,
            starts=self.starts[rows],
            ends=self.ends[rows],
            type_ids=self.type_ids[rows],
            scores=None if self.scores is None else self.scores[rows],
        )

    def with_types(self, numbers: NDArray[np.int16]) -> Self:
        """The same spans with type number `i` replaced by `numbers[i]`."""
        return replace(self, type_ids=numbers[self.type_ids])

    def without_overlaps(self, order: NDArray[np.int64] | None = None) -> Self:
        """The spans that stay when no two may share a token.

        Args:
            order: the rows in the order in which they may take tokens, document by document. By default the longest
                goes first, then the leftmost, then the first type, whatever the order in which spans are listed.

        Exact doubles count once.

        >>> column = Annotations.from_lists([[Span(1, 2, "A"), Span(0, 3, "B"), Span(2, 4, "A")]], ("O", "A", "B"))
        >>> column.without_overlaps().document(0, ("O", "A", "B"))
        [Span(start=0, end=3, type='B', score=None)]
        """
        if order is None:
            order = np.lexsort((self.type_ids, self.starts, self.starts - self.ends, self.documents))
        length = int(self.ends.max(initial=0))
        return self.where(_keep_longest(order, self.documents, self.starts, self.ends, np.zeros(length, np.int64)))


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _keep_longest(
    order: NDArray[np.int64],
    documents: NDArray[np.int64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    taken_by: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Greedy choice in the given order; `taken_by[token]` holds 1 + the document that last took the token."""
    kept = np.zeros(len(order), np.bool_)
    for row in order:
        mark = documents[row] + 1
        free = True
        for token in range(starts[row], ends[row]):
            if taken_by[token] == mark:
                free = False
                break
        if free:
            kept[row] = True
            for token in range(starts[row], ends[row]):
                taken_by[token] = mark
    return kept


_NO_SCORE = float("nan")


class AnnotationsBuilder:
    """Gathers the spans of one annotator, document by document; types are numbered when the columns are built.

    >>> builder = AnnotationsBuilder()
    >>> builder.add(1, [Span(0, 1, "PER")])
    >>> builder.build(2, ("O", "PER")).ran.tolist()
    [False, True]
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._rows: list[tuple[int, int, int, int, float]] = []
        self._ran: list[int] = []
        self._done: list[NDArray[np.float64]] = []

    @property
    def any(self) -> bool:
        """Whether the annotator ran on any document so far."""
        return bool(self._ran)

    def add(self, document: int, spans: Sequence[Span] | None) -> None:
        """The spans of a document, None where the annotator did not run; document numbers must grow."""
        if spans is None:
            return
        self._ran.append(document)
        if not spans:
            return
        for start, end, name, score in spans:
            number = self._names.setdefault(name, len(self._names))
            self._rows.append((document, start, end, number, _NO_SCORE if score is None else score))
        if len(self._rows) > 1 << 16:
            self._flush()

    def _flush(self) -> None:
        self._done.append(np.array(self._rows, np.float64).reshape(-1, 5))
        self._rows = []

    def build(self, documents: int, vocabulary: Sequence[str]) -> Annotations:
        """The columns over that many documents; `vocabulary[i]` is the name of type number `i`."""
        self._flush()
        rows = np.concatenate(self._done)
        ran = np.zeros(documents, bool)
        ran[self._ran] = True
        known = {name: number for number, name in reversed([*enumerate(vocabulary)])}
        numbers = np.array([known[name] for name in self._names], np.int16)
        scores = rows[:, 4].astype(np.float32)
        return Annotations(
            ran=ran,
            offsets=np.searchsorted(rows[:, 0], np.arange(documents + 1)).astype(np.int64),
            starts=rows[:, 1].astype(np.int32),
            ends=rows[:, 2].astype(np.int32),
            type_ids=numbers[rows[:, 3].astype(np.int64)],
            scores=None if np.isnan(scores).all() else scores,
        )
