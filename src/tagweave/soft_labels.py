"""`SoftLabels`: a probability for every label on every token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.errors import AlignmentError, LabelError
from tagweave.labels import LabelSet

_LEAST = 1e-6
"""A probability that is tempered is read as at least this: what is thought impossible is only very rare."""

_CHECKED_AT_ONCE = 1 << 18
"""Rows."""

ROW_SUM_TOLERANCE = 1e-3
"""How far a row of probabilities may be from summing to one."""


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """Label probabilities of packed tokens, always over BIO labels, whatever state space the model works in.

    Attributes:
        types: entity types; the columns are the labels of `LabelSet(types, "bio")`.
        offsets: tokens of document `d` are `offsets[d]:offsets[d + 1]`, of shape [documents + 1].
        probabilities: float32 of shape [tokens, labels]; rows sum to one.

    >>> soft = SoftLabels(("PER",), np.array([0, 2]), np.array([[0.1, 0.9, 0], [0.2, 0, 0.8]], np.float32))
    >>> soft.annotations().document(0, ("O", "PER"))
    [Span(start=0, end=2, type='PER', score=0.8500000238418579)]
    """

    types: tuple[str, ...]
    offsets: NDArray[np.int64]
    probabilities: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.probabilities.shape != (int(self.offsets[-1]), len(self.labels)):
            raise AlignmentError(
                f"soft labels have shape {self.probabilities.shape}, but there are {int(self.offsets[-1])} tokens "
                f"and {len(self.labels)} labels"
            )

    @property
    def labels(self) -> LabelSet:
        """The labels of the columns."""
        return LabelSet(self.types, "bio")

    @classmethod
    def from_labels(cls, labels: NDArray[np.integer], offsets: NDArray[np.int64], types: tuple[str, ...]) -> Self:
        """Certain labels: one-hot rows from BIO label numbers of shape [tokens]."""
        return cls(types, offsets, np.eye(len(LabelSet(types)), dtype=np.float32)[labels])

    @classmethod
    def from_io(
        cls,
        types: tuple[str, ...],
        offsets: NDArray[np.int64],
        marginals: NDArray[np.floating],
        staying: NDArray[np.floating] | None = None,
    ) -> Self:
        """BIO probabilities from io marginals: `p(B-X at t) = p(X at t) - p(X at t - 1, X at t)`.

        Args:
            types: entity types.
            offsets: of shape [documents + 1].
            marginals: probability of O and of each type, of shape [tokens, types + 1].
            staying: probability that a token and the one before it both have the type, of shape [tokens, types]. None
                takes neighbours to agree as far as their marginals allow.

        >>> soft = SoftLabels.from_io(("PER",), np.array([0, 2]), np.array([[0.25, 0.75], [0.5, 0.5]]))
        >>> soft.probabilities.tolist()
        [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]
        """
        if staying is None:
            staying = np.zeros_like(marginals[:, 1:])
            staying[1:] = np.minimum(marginals[1:, 1:], marginals[:-1, 1:])
        inside = np.clip(staying, 0, marginals[:, 1:])
        inside[offsets[:-1][np.diff(offsets) > 0]] = 0
        probabilities = np.empty((len(marginals), 1 + 2 * len(types)), np.float32)
        probabilities[:, 0] = marginals[:, 0]
        probabilities[:, 1::2] = marginals[:, 1:] - inside
        probabilities[:, 2::2] = inside
        return cls(types, offsets, probabilities)

    def check(self, ids: Any) -> None:  # noqa: ANN401
        """Raise `LabelError` naming the document and token of the first row that is no probability distribution.

        Args:
            ids: names of the documents: a list, or a column of a corpus.
        """
        for first in range(0, len(self.probabilities), _CHECKED_AT_ONCE):
            rows = self.probabilities[first : first + _CHECKED_AT_ONCE]
            sums = rows.sum(axis=1, dtype=np.float64)
            good = np.isfinite(rows).all(axis=1) & (rows >= 0).all(axis=1) & (np.abs(sums - 1) <= ROW_SUM_TOLERANCE)
            if good.all():
                continue
            row = int(np.flatnonzero(~good)[0])
            document = int(np.searchsorted(self.offsets, first + row, side="right")) - 1
            raise LabelError(
                f"document {str(ids[document])!r}, token {first + row - int(self.offsets[document])}: the label "
                f"probabilities {rows[row].tolist()} are not a distribution (sum {sums[row]:.4f}; they must be finite, "
                "not negative, and sum to one)"
            )

    def document(self, index: int) -> NDArray[np.float32]:
        """Probabilities of one document, of shape [tokens, labels]."""
        return self.probabilities[self.offsets[index] : self.offsets[index + 1]]

    def subset(self, documents: NDArray[np.int64]) -> Self:
        """The soft labels of some documents, in the given order."""
        counts = np.diff(self.offsets)[documents]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.repeat(self.offsets[documents] - offsets[:-1], counts) + np.arange(offsets[-1])
        return replace(self, offsets=offsets, probabilities=self.probabilities[rows])

    def with_types(self, types: tuple[str, ...]) -> Self:
        """The same probabilities with columns for other types, which must hold all types of these."""
        if types == self.types:
            return self
        probabilities = np.zeros((len(self.probabilities), len(LabelSet(types))), np.float32)
        columns = [LabelSet(types).names.index(name) for name in self.labels.names]
        probabilities[:, columns] = self.probabilities
        return replace(self, types=types, probabilities=probabilities)

    def io(self) -> NDArray[np.float32]:
        """Probabilities over the io labels (O, then one column a type), of shape [tokens, types + 1]."""
        begin, inside = self.probabilities[:, 1::2], self.probabilities[:, 2::2]
        return np.concatenate([self.probabilities[:, :1], begin + inside], axis=1)

    def tempered(self, trust: float, rates: Sequence[float]) -> Self:
        r"""The same opinion, held less firmly: \(q_i \propto p_i^\lambda \, r_i^{1 - \lambda}\).

        What tells the labels of a token apart from the usual one is the ratio \(p_i / r_i\); with a trust of
        \(\lambda\) its logarithm counts that many times, so that a certain judgement needs more to be believed than a
        common one.

        Args:
            trust: from 0, where nothing is left but the rates, to 1, where nothing changes.
            rates: how often each label occurs, of shape [labels]; above 0.

        >>> soft = SoftLabels(("PER",), np.array([0, 2]), np.array([[0.1, 0.9, 0], [0.02, 0.98, 0]], np.float32))
        >>> soft.tempered(0.5, [0.9, 0.1, 1e-9]).probabilities[:, :2].round(2)
        array([[0.5, 0.5],
               [0.3, 0.7]], dtype=float32)
        """
        weights = np.maximum(self.probabilities, _LEAST) ** trust * np.asarray(rates, np.float64) ** (1 - trust)
        weights /= weights.sum(axis=1, keepdims=True)
        return replace(self, probabilities=weights.astype(np.float32))

    def annotations(self) -> Annotations:
        """Spans of the most probable label of each token; ties go to the lower label, O first."""
        return self.scored(Annotations.from_labels(self.probabilities.argmax(axis=1), self.offsets, self.labels))

    def scored(self, annotations: Annotations) -> Annotations:
        """The annotations with a score for each span: the mean probability of its type over its tokens."""
        by_type = np.cumsum(np.vstack([np.zeros(len(self.types) + 1), self.io()]), axis=0, dtype=np.float64)
        base = self.offsets[annotations.documents]
        first, last, types = base + annotations.starts, base + annotations.ends, annotations.type_ids
        scores = (by_type[last, types] - by_type[first, types]) / np.maximum(last - first, 1)
        return replace(annotations, scores=np.clip(scores, 0, 1).astype(np.float32))
