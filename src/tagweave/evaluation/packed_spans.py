"""`PackedSpans`: spans of many documents on one line of tokens, the form in which they are compared."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations


@dataclass(frozen=True, eq=False)
class PackedSpans:
    """Distinct spans, sorted by start, end and type, so that nothing depends on the order in which they were listed.

    Attributes:
        starts, ends: packed tokens (all documents end to end), half-open, each of shape [spans].
        types: type numbers of shape [spans].
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    types: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of spans."""
        return len(self.starts)

    @classmethod
    def from_columns(cls, starts: NDArray[np.integer], ends: NDArray[np.integer], types: NDArray[np.integer]) -> Self:
        """Sorted spans without doubles."""
        columns = np.stack([starts, ends, types]).astype(np.int64)
        columns = columns[:, np.lexsort(columns[::-1])]
        new = np.ones(columns.shape[1], bool)
        new[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
        return cls(*columns[:, new])

    @classmethod
    def from_annotations(
        cls, annotations: Annotations, offsets: NDArray[np.int64], type_numbers: NDArray[np.integer]
    ) -> Self:
        """The entities of an annotator; votes for O are left out.

        Args:
            annotations: over documents that start at `offsets`.
            offsets: of shape [documents + 1].
            type_numbers: the number to use for each type number of the annotations.
        """
        entity = annotations.type_ids > 0
        base = offsets[annotations.documents[entity]]
        types = type_numbers[annotations.type_ids[entity]]
        return cls.from_columns(base + annotations.starts[entity], base + annotations.ends[entity], types)

    def found_in(self, other: "PackedSpans") -> NDArray[np.bool_]:
        """Which of these spans are among the others, of shape [spans]."""
        width = 1 + max(int((spans.ends - spans.starts).max(initial=0)) for spans in (self, other))
        types = 1 + max(int(spans.types.max(initial=0)) for spans in (self, other))
        keys = [(spans.starts * width + spans.ends - spans.starts) * types + spans.types for spans in (self, other)]
        return np.isin(keys[0], keys[1])

    def documents(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """The document of each span, of shape [spans]."""
        return np.searchsorted(offsets, self.starts, side="right") - 1

    def covered(self, tokens: int) -> NDArray[np.bool_]:
        """Which packed tokens lie in a span, of shape [tokens]."""
        opened = np.bincount(self.starts, minlength=tokens + 1) - np.bincount(self.ends, minlength=tokens + 1)
        return np.asarray(np.cumsum(opened)[:-1] > 0)
