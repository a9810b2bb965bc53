"""Label sets: the labels that tokens carry, and how they turn into spans and back.

A corpus knows entity *types* (`PER`, `LOC`). Tokens carry *labels*. A `LabelSet` lays labels over types in one of two
state spaces: `bio` (`O`, `B-PER`, `I-PER`, ...) or `io` (`O`, `PER`, ...). Label 0 is always `O`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tagweave.errors import unknown_name

StateSpace = Literal["io", "bio"]
Decoding = Literal["lenient", "strict"]

OUTSIDE = "O"


@dataclass(frozen=True)
class LabelSet:
    """The labels of a state space over some entity types.

    Args:
        types: names of the entity types; type number `i` (from 1) is `types[i - 1]`, number 0 is O.
        state_space: `bio` tells the first token of an entity from the others, `io` does not.

    >>> LabelSet(("PER", "LOC"), "bio").names
    ('O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC')
    >>> LabelSet(("PER", "LOC"), "io").names
    ('O', 'PER', 'LOC')
    """

    types: tuple[str, ...]
    state_space: StateSpace = "bio"

    def __post_init__(self) -> None:
        if self.state_space not in get_args(StateSpace):
            raise unknown_name("state space", self.state_space, get_args(StateSpace))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the labels, in order."""
        if self.state_space == "io":
            return (OUTSIDE, *self.types)
        return (OUTSIDE, *(f"{prefix}-{name}" for name in self.types for prefix in "BI"))

    def __len__(self) -> int:
        """Number of labels, O included."""
        return 1 + len(self.types) * (2 if self.state_space == "bio" else 1)

    @cached_property
    def type_ids(self) -> NDArray[np.int16]:
        """Entity type number of each label (0 for O), of shape [labels]."""
        repeats = 2 if self.state_space == "bio" else 1
        return np.concatenate([[0], np.repeat(np.arange(1, len(self.types) + 1), repeats)]).astype(np.int16)

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """Which labels open an entity by themselves (the B labels), of shape [labels]."""
        mask = np.zeros(len(self), bool)
        if self.state_space == "bio":
            mask[1::2] = True
        return mask

    @cached_property
    def first(self) -> NDArray[np.int16]:
        """Label of the first token of an entity, by type number; entry 0 is O. Of shape [types + 1]."""
        return self._by_type(0)

    @cached_property
    def inside(self) -> NDArray[np.int16]:
        """Label of the later tokens of an entity, by type number; entry 0 is O. Of shape [types + 1]."""
        return self._by_type(1)

    def _by_type(self, position: int) -> NDArray[np.int16]:
        numbers = np.arange(len(self.types) + 1)
        if self.state_space == "io":
            return numbers.astype(np.int16)
        return np.where(numbers == 0, 0, 2 * numbers - 1 + position).astype(np.int16)

    @cached_property
    def legal_moves(self) -> NDArray[np.bool_]:
        """Which label may follow which, of shape [labels, labels] (from, to): no I-X but after B-X or I-X."""
        same_type = self.type_ids[:, None] == self.type_ids[None, :]
        legal: NDArray[np.bool_] = same_type | self.legal_starts[None, :]
        return legal

    @cached_property
    def legal_starts(self) -> NDArray[np.bool_]:
        """Which labels may open a sentence, of shape [labels]: all but the I labels."""
        if self.state_space == "io":
            return np.ones(len(self), bool)
        legal: NDArray[np.bool_] = self.begins | (self.type_ids == 0)
        return legal


def decode(
    labels: NDArray[np.integer], offsets: NDArray[np.int64], label_set: LabelSet, mode: Decoding = "lenient"
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int16]]:
    """Spans of a packed sequence of labels.

    An entity starts at a B label, or at an entity label whose predecessor is of another type (`lenient`, the rules of
    conlleval). With `strict` what does not start with B is no entity (IOB2 as seqeval reads it).

    Args:
        labels: label numbers of shape [tokens].
        offsets: where each document starts, of shape [documents + 1].
        label_set: what the numbers mean.
        mode: `lenient` or `strict`; the same in the io state space.

    Returns:
        span offsets of shape [documents + 1], then starts and ends (tokens within the document, half-open) and type
        numbers, each of shape [spans].

    >>> labels = LabelSet(("PER", "LOC"))
    >>> decode(np.array([1, 2, 0, 3, 2]), np.array([0, 5]), labels)[1:3]
    (array([0, 3, 4], dtype=int32), array([2, 4, 5], dtype=int32))
    """
    types = label_set.type_ids[labels]
    begins = label_set.begins[labels]
    document_start = np.zeros(len(labels) + 1, bool)
    document_start[offsets] = True
    same_as_previous = np.zeros(len(labels) + 1, bool)
    same_as_previous[1:-1] = types[1:] == types[:-1]
    same_as_previous[1:-1] &= ~begins[1:]
    same_as_previous &= ~document_start
    first = np.flatnonzero((types > 0) & ~same_as_previous[:-1])
    last = np.flatnonzero((types > 0) & ~same_as_previous[1:])
    if mode == "strict" and label_set.state_space == "bio":
        kept = begins[first]
        first, last = first[kept], last[kept]
    document = np.searchsorted(offsets, first, side="right") - 1
    span_offsets = np.searchsorted(document, np.arange(len(offsets))).astype(np.int64)
    base = offsets[document]
    return span_offsets, (first - base).astype(np.int32), (last + 1 - base).astype(np.int32), types[first]
