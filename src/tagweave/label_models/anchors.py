"""Where learning starts and what holds it: statistics of the votes under the labels of a vote on spans.

Plain likelihood drifts: on real votes it keeps growing while the labels get worse. The models here are therefore tied
to an anchor: the labels of `SpanVote`, and how each source votes under them. The anchor gives the first values, and as
pseudo-counts of Dirichlet priors it bounds how far the votes can pull them away.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.labels import LabelSet, StateSpace
from tagweave.observations import Observations, observe
from tagweave.parts import each, first

if TYPE_CHECKING:
    from tagweave.label_models.span_vote import SpanVote

_FLOOR = 1e-4
"""Pseudo-count of every vote and legal move, so that nothing unseen is impossible."""

_RIGHT = 0.8
"""Share of the right label in the pseudo-counts of a row: a label that the anchor never has must not fit any vote."""


@dataclass(frozen=True)
class Counts:
    """Numbers of events, or pseudo-counts, of a chain with several sources.

    Attributes:
        start: of shape [labels].
        transitions: of shape [labels, labels] (from, to); 0 where a move is illegal.
        emissions: of shape [sources, labels, labels] (source, hidden, observed).
    """

    start: NDArray[np.float64]
    transitions: NDArray[np.float64]
    emissions: NDArray[np.float64]

    @classmethod
    def none(cls, labels: int, sources: int) -> "Counts":
        """No event yet."""
        return cls(np.zeros(labels), np.zeros((labels, labels)), np.zeros((sources, labels, labels)))

    def __add__(self, other: "Counts") -> "Counts":
        """Sums of both."""
        return Counts(self.start + other.start, self.transitions + other.transitions, self.emissions + other.emissions)

    def normalised(self) -> "Counts":
        """Rows that sum to one."""
        return Counts(*(counts / counts.sum(axis=-1, keepdims=True) for counts in self.arrays()))

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """All three."""
        return self.start, self.transitions, self.emissions


def anchor_vote(parts: Iterable[Corpus]) -> "SpanVote":
    """The vote on spans that gives the anchor, fitted on a corpus in parts; it takes sources as they come."""
    from tagweave.label_models.span_vote import SpanVote

    head = first(_head, parts)
    vote = SpanVote(trust=1.0)
    return vote.fit_parts(parts if head.coarse else [head])  # how frequent types are settles coarse ones only


def _head(part: Corpus) -> Corpus:
    """No documents, with all names; in a form that can be sent."""
    none = part.subset([])
    return replace(none, coarse=dict(none.coarse), sources=dict(none.sources), links=dict(none.links))


def anchor_labels(corpus: Corpus, state_space: StateSpace, vote: "SpanVote | None" = None) -> NDArray[np.int16]:
    """Label numbers that a vote on spans gives, of shape [tokens].

    Args:
        corpus: documents with votes.
        state_space: of the labels.
        vote: the vote, fitted on the whole of which the corpus is a part; None fits it on the corpus.
    """
    entities = (vote or anchor_vote([corpus])).predict_proba(corpus).annotations()
    return entities.labels(corpus.offsets, LabelSet(corpus.types, state_space))


def count(labels: NDArray[np.int16], observations: Observations) -> Counts:
    """How often labels start, follow each other, and meet each vote.

    Args:
        labels: label numbers of shape [tokens].
        observations: votes on the same tokens.
    """
    size, offsets = len(observations.labels), observations.offsets
    first = offsets[:-1][np.diff(offsets) > 0]
    later = np.ones(len(labels), bool)
    later[first] = False
    places = np.flatnonzero(later)
    pairs = labels[places - 1].astype(np.int64) * size + labels[places]
    moves = np.bincount(pairs, minlength=size * size).reshape(size, size).astype(np.float64)
    start = np.bincount(labels[first], minlength=size).astype(np.float64)
    emissions, done = np.zeros((len(observations.sources), size, size)), 0
    for part in observations.batches():
        rows = slice(done, done + int(part.offsets[-1]))
        emissions += part.counts(np.eye(size)[labels[rows]])
        done = rows.stop
    return Counts(start, moves, emissions)


def _anchored(state_space: StateSpace, vote: "SpanVote", part: Corpus) -> Counts:
    return count(anchor_labels(part, state_space, vote), observe(part, state_space, "never"))


def anchor(parts: Iterable[Corpus], state_space: StateSpace, strength: float, smoothing: float) -> Counts:
    """Pseudo-counts around the labels of a vote on spans.

    Silence is counted as a vote for O here, whatever it means to the model: a source of one type is silent on the
    entities of the others, and that is what tells the types apart.

    Args:
        parts: of a corpus with votes.
        state_space: of the labels.
        strength: weight of the anchor's counts; 1 gives it the weight of the corpus itself.
        smoothing: pseudo-counts of every row of a source: mostly of the right label, if the source knows it, and the
            rest as the source votes overall.
    """
    vote = anchor_vote(parts)
    labels = LabelSet(vote.labels.types, state_space)
    counted = Counts.none(len(labels), len(vote.sources_ or ()))
    for more in each(partial(_anchored, state_space, vote), parts):
        counted = counted + more
    said = counted.emissions.sum(axis=1, keepdims=True)
    spread = said / np.maximum(said.sum(axis=2, keepdims=True), 1e-300)
    right = np.eye(len(labels)) * (said > 0)
    mixed = _RIGHT * right + (1 - _RIGHT * right.sum(axis=2, keepdims=True)) * spread
    emissions = strength * counted.emissions + smoothing * mixed + _FLOOR
    return Counts(
        np.where(labels.legal_starts, strength * counted.start + 0.1, 0),
        np.where(labels.legal_moves, strength * counted.transitions + 0.1, 0),
        emissions,
    )
