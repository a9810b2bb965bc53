"""Compiled passes over votes, in several threads: what they are evidence for, how often they occur, who is silent.

Neighbouring tokens mostly have the same votes: nobody says anything, or all go on with what they said. What was found
for a token is kept for those after it with the same votes.

Blocks of tokens are cut by their number alone, and what they add up is added in their order, so the number of threads
changes no bit of a result.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tagweave.chain.compiling import FloatArray, compiled
from tagweave.chain.threads import run_blocks, thread_limit

BLOCK = 1 << 16
"""Tokens of a block."""


def gather(votes: NDArray[np.int8], tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of `tables[source, vote]` over the sources that vote, of shape [tokens, labels].

    Args:
        votes: pattern numbers, or less than zero, of shape [tokens, sources].
        tables: of shape [sources, patterns, labels].
    """
    sums = np.empty((len(votes), tables.shape[2]))
    _run(lambda own, _: _gather(votes[own], tables, sums[own]), len(votes))
    return sums


def count(votes: NDArray[np.int8], weights: FloatArray, patterns: int) -> NDArray[np.float64]:
    """Weight of each label under each vote, of shape [sources, labels, patterns].

    Args:
        votes: pattern numbers, or less than zero, of shape [tokens, sources].
        weights: of shape [tokens, labels].
        patterns: how many there are.
    """
    counts = np.zeros((_blocks(len(votes)), votes.shape[1], weights.shape[1], patterns))
    _run(lambda own, block: _count(votes[own], weights[own], counts[block]), len(votes))
    summed: NDArray[np.float64] = counts.sum(axis=0)
    return summed


def speaks_anyone(votes: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Where a source votes for an entity, of shape [tokens]."""
    found = np.empty(len(votes), np.bool_)
    _run(lambda own, _: _speaks_anyone(votes[own], found[own]), len(votes))
    return found


def speaks_in(votes: NDArray[np.int8], document: NDArray[np.integer], documents: int) -> NDArray[np.bool_]:
    """Whether a source votes for an entity anywhere in a document, of shape [documents, sources].

    Args:
        votes: pattern numbers, or less than zero, of shape [tokens, sources].
        document: of each token, of shape [tokens].
        documents: how many there are.
    """
    found = np.zeros((documents, votes.shape[1]), np.bool_)
    _run(lambda own, _: _speaks_in(votes[own], document[own], found), len(votes))
    return found


def vote_outside(
    votes: NDArray[np.int8],
    document: NDArray[np.integer],
    may: NDArray[np.bool_],
    spoken_for: NDArray[np.bool_] | None,
) -> None:
    """Turn silence into votes for O, in place.

    Args:
        votes: pattern numbers, or less than zero for silence, of shape [tokens, sources].
        document: of each token, of shape [tokens].
        may: which sources' silence counts in which document, of shape [documents, sources].
        spoken_for: tokens on which silence counts nowhere, of shape [tokens]; None for none.
    """
    skipped = np.zeros(len(votes), np.bool_) if spoken_for is None else spoken_for
    _run(lambda own, _: _vote_outside(votes[own], document[own], may, skipped[own]), len(votes))


def as_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts of votes, of shape [tokens, labels], as shares; all for O where there are none."""
    shares = np.empty_like(counts)
    _run(lambda own, _: _as_shares(counts[own], shares[own]), len(counts))
    return shares


def first_of_the_best(values: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The column with the highest value of each row; among equal ones, to rounding, the one that `order` has first.

    Args:
        values: of shape [rows, columns], not negative.
        order: of shape [columns].
    """
    best = np.empty(len(values), np.int64)
    _run(lambda own, _: _first_of_the_best(values[own], order, best[own]), len(values))
    return best


def _blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)


def _run(work: Callable[[slice, int], None], tokens: int) -> None:
    """Call `work` with the tokens and the number of every block."""
    run_blocks(lambda b: work(slice(b * BLOCK, (b + 1) * BLOCK), b), _blocks(tokens), thread_limit())


@compiled
def _as_before(votes: NDArray[np.int8], token: int) -> bool:
    """Whether a token has the votes of the one before it."""
    if token == 0:
        return False
    for source in range(votes.shape[1]):
        if votes[token, source] != votes[token - 1, source]:
            return False
    return True


@compiled
def _gather(votes: NDArray[np.int8], tables: FloatArray, sums: FloatArray) -> None:
    for token in range(votes.shape[0]):
        if _as_before(votes, token):
            for label in range(tables.shape[2]):
                sums[token, label] = sums[token - 1, label]
            continue
        for label in range(tables.shape[2]):
            sums[token, label] = 0.0
        for source in range(votes.shape[1]):
            vote = votes[token, source]
            if vote >= 0:
                for label in range(tables.shape[2]):
                    sums[token, label] += tables[source, vote, label]


@compiled
def _count(votes: NDArray[np.int8], weights: FloatArray, counts: FloatArray) -> None:
    labels = weights.shape[1]
    held = np.zeros(labels)
    for token in range(votes.shape[0]):
        if token > 0 and not _as_before(votes, token):
            _add(votes[token - 1], held, counts)
        for label in range(labels):
            held[label] += weights[token, label]
    if votes.shape[0]:
        _add(votes[votes.shape[0] - 1], held, counts)


@compiled
def _add(votes: NDArray[np.int8], held: FloatArray, counts: FloatArray) -> None:
    """Add what is held to the counts of some votes, and hold nothing."""
    for source in range(votes.shape[0]):
        vote = votes[source]
        if vote >= 0:
            for label in range(len(held)):
                counts[source, label, vote] += held[label]
    held[:] = 0.0


@compiled
def _speaks_anyone(votes: NDArray[np.int8], found: NDArray[np.bool_]) -> None:
    for token in range(votes.shape[0]):
        highest = 0
        for source in range(votes.shape[1]):
            highest = max(highest, votes[token, source])
        found[token] = highest > 0


@compiled
def _speaks_in(votes: NDArray[np.int8], document: NDArray[np.integer], found: NDArray[np.bool_]) -> None:
    for token in range(votes.shape[0]):
        for source in range(votes.shape[1]):
            if votes[token, source] > 0:
                found[document[token], source] = True


@compiled
def _vote_outside(
    votes: NDArray[np.int8],
    document: NDArray[np.integer],
    may: NDArray[np.bool_],
    skipped: NDArray[np.bool_],
) -> None:
    for token in range(votes.shape[0]):
        if skipped[token]:
            continue
        for source in range(votes.shape[1]):
            if votes[token, source] < 0 and may[document[token], source]:
                votes[token, source] = 0


@compiled
def _as_shares(counts: FloatArray, shares: FloatArray) -> None:
    for token in range(counts.shape[0]):
        total = 0.0
        for label in range(counts.shape[1]):
            total += counts[token, label]
        for label in range(counts.shape[1]):
            shares[token, label] = counts[token, label] / total if total > 0 else (1.0 if label == 0 else 0.0)


@compiled
def _first_of_the_best(values: FloatArray, order: NDArray[np.int64], best: NDArray[np.int64]) -> None:
    for row in range(values.shape[0]):
        highest = 0.0
        for column in range(values.shape[1]):
            highest = max(highest, values[row, column])
        for column in order:
            if values[row, column] >= highest - 1e-5 * highest:
                best[row] = column
                break
