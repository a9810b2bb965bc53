"""Relaxed matching of predicted and gold spans, with the four schemes of SemEval 2013 task 9.1.

Predicted and gold spans that share a token are matched one to one. Then each scheme judges the matched pairs:

- `strict`: correct with the same boundaries and type, otherwise incorrect;
- `exact`: correct with the same boundaries, whatever the type, otherwise incorrect;
- `partial`: correct with the same boundaries, otherwise partial, which counts half; types do not matter;
- `type`: correct with the same type, otherwise incorrect; boundaries do not matter.

A gold span without a partner is missed, a predicted one without a partner is spurious. The best overlap (shared tokens
over tokens of either) is matched first; ties go to the pair of one type, then to the leftmost gold span, then to the
leftmost predicted one. For `type`, pairs of one type go before all others. So the result does not depend on the order
in which spans are listed.

Source: Segura-Bedmar et al. (2013), SemEval-2013 task 9; the names are those of nervaluate, which matches in the order
of the predictions and so may pair spans differently where several overlap.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagweave.evaluation.packed_spans import PackedSpans


@dataclass(frozen=True)
class Matching:
    """How the spans were judged under one scheme.

    >>> matching = Matching(correct=1, incorrect=0, partial=1, missed=1, spurious=0)
    >>> matching.possible, matching.actual, matching.precision, matching.recall
    (3, 2, 0.75, 0.5)
    """

    correct: int
    incorrect: int
    partial: int
    missed: int
    spurious: int

    @property
    def possible(self) -> int:
        """Number of gold spans."""
        return self.correct + self.incorrect + self.partial + self.missed

    @property
    def actual(self) -> int:
        """Number of predicted spans."""
        return self.correct + self.incorrect + self.partial + self.spurious

    @property
    def precision(self) -> float:
        """Correct spans and half of the partial ones, over predicted spans; 0.0 when there are none."""
        return (self.correct + 0.5 * self.partial) / max(self.actual, 1)

    @property
    def recall(self) -> float:
        """Correct spans and half of the partial ones, over gold spans; 0.0 when there are none."""
        return (self.correct + 0.5 * self.partial) / max(self.possible, 1)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0.0 when both are."""
        return (2 * self.correct + self.partial) / max(self.actual + self.possible, 1)


def relaxed_matching(gold: PackedSpans, predicted: PackedSpans) -> dict[str, Matching]:
    """The judgement of every scheme: `strict`, `exact`, `partial`, `type`.

    >>> gold = PackedSpans.from_columns(np.array([0, 14]), np.array([12, 17]), np.array([1, 2]))
    >>> predicted = PackedSpans.from_columns(np.array([0]), np.array([17]), np.array([1]))
    >>> relaxed_matching(gold, predicted)["type"]
    Matching(correct=1, incorrect=0, partial=0, missed=1, spurious=0)
    """
    rows, columns = overlapping_pairs(gold, predicted)
    shared = np.minimum(gold.ends[rows], predicted.ends[columns])
    shared -= np.maximum(gold.starts[rows], predicted.starts[columns])
    lengths = (gold.ends - gold.starts)[rows] + (predicted.ends - predicted.starts)[columns]
    overlap = shared / (lengths - shared)
    exact = overlap == 1
    same_type = gold.types[rows] == predicted.types[columns]
    by_overlap = _one_to_one(rows, columns, np.lexsort((columns, rows, ~same_type, -overlap)))
    by_type = _one_to_one(rows, columns, np.lexsort((columns, rows, -overlap, ~same_type)))

    def judged(pairs: NDArray[np.int64], correct: NDArray[np.bool_], half: bool = False) -> Matching:
        good = int(correct[pairs].sum())
        other = len(pairs) - good
        return Matching(
            good, 0 if half else other, other if half else 0, len(gold) - len(pairs), len(predicted) - len(pairs)
        )

    return {
        "strict": judged(by_overlap, exact & same_type),
        "exact": judged(by_overlap, exact),
        "partial": judged(by_overlap, exact, half=True),
        "type": judged(by_type, same_type),
    }


def overlapping_pairs(gold: PackedSpans, predicted: PackedSpans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the gold and predicted spans that share a token, as two arrays of shape [pairs].

    Predicted spans are looked up by their starts, one class of lengths (powers of two) after the other: a single span
    over a whole document then does not make every other one a candidate.
    """
    lengths = predicted.ends - predicted.starts
    classes = np.frexp(lengths)[1]
    pairs = []
    for number in np.unique(classes):
        members = np.flatnonzero(classes == number)
        starts = predicted.starts[members]
        first = np.searchsorted(starts, gold.starts - lengths[members].max(), side="right")
        counts = np.searchsorted(starts, gold.ends, side="left") - first
        rows = np.repeat(np.arange(len(gold)), counts)
        columns = members[np.arange(len(rows)) + np.repeat(first - np.cumsum(counts) + counts, counts)]
        kept = predicted.ends[columns] > gold.starts[rows]
        pairs.append(np.stack([rows[kept], columns[kept]]))
    rows, columns = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), np.int64)
    return rows, columns


def _one_to_one(rows: NDArray[np.int64], columns: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs that stay when, in the given order, each takes a gold and a predicted span that are still free."""
    taken_rows: set[int] = set()
    taken_columns: set[int] = set()
    kept = []
    for pair, row, column in zip(order.tolist(), rows[order].tolist(), columns[order].tolist(), strict=True):
        if row not in taken_rows and column not in taken_columns:
            taken_rows.add(row)
            taken_columns.add(column)
            kept.append(pair)
    return np.array(kept, np.int64)
