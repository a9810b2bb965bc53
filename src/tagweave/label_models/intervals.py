r"""Sets of spans that share no token, as a distribution: the weight of a set is the product of those of its spans.

\[ p(S) = \frac{1}{Z} \prod_{(i, y) \in S} w_{iy}, \qquad \text{no two spans in } S \text{ overlap} \]

A token under no span of the set costs nothing. That is a semi-Markov chain, so the best set and all marginals come from
one pass forwards and one backwards over the tokens. Documents may lie end to end: no span reaches over their border, so
one pass over all of them gives what a pass over each would give.
"""

import numba
import numpy as np
from numpy.typing import NDArray


def best_spans(
    starts: NDArray[np.int64], ends: NDArray[np.int64], gains: NDArray[np.float64], tokens: int
) -> NDArray[np.bool_]:
    """The spans of the set with the largest sum of gains: weighted interval scheduling.

    Args:
        starts, ends: half-open spans, of shape [spans], in order of their starts.
        gains: what each span adds, of shape [spans]; spans that add nothing are left out.
        tokens: number of tokens.

    Returns:
        Mask of shape [spans].

    >>> best_spans(np.array([0, 0, 1]), np.array([2, 1, 2]), np.array([1.0, 0.6, 0.6]), 2).tolist()
    [False, True, True]
    """
    chosen: NDArray[np.bool_] = _best(starts, ends, gains, tokens, np.searchsorted(starts, np.arange(tokens + 1)))
    return chosen


def span_marginals(
    starts: NDArray[np.int64], ends: NDArray[np.int64], log_weights: NDArray[np.float64], tokens: int
) -> NDArray[np.float64]:
    """Probability that a random set has each span with each type.

    Args:
        starts, ends: half-open spans, of shape [spans], in order of their starts.
        log_weights: logarithms of the weights, of shape [spans, types].
        tokens: number of tokens.

    Returns:
        Of shape [spans, types].

    >>> span_marginals(np.array([0, 0]), np.array([1, 2]), np.log([[1.0], [2.0]]), 2).ravel().tolist()
    [0.25, 0.5]
    """
    with np.errstate(divide="ignore"):
        totals = np.logaddexp.reduce(log_weights, axis=1)
    first = np.searchsorted(starts, np.arange(tokens + 1))
    before, after = _forward(starts, ends, totals, tokens), _backward(ends, totals, tokens, first)
    outside = before[starts] + after[ends] - after[0]
    marginals: NDArray[np.float64] = np.minimum(np.exp(outside[:, None] + log_weights), 1)
    return marginals


def label_probabilities(
    starts: NDArray[np.int64], ends: NDArray[np.int64], marginals: NDArray[np.float64], tokens: int
) -> NDArray[np.float64]:
    """BIO probabilities of the tokens from the marginals of spans, of shape [tokens, 1 + 2 * types].

    Args:
        starts, ends: half-open spans, of shape [spans].
        marginals: of shape [spans, types], see `span_marginals`.
        tokens: number of tokens.

    >>> label_probabilities(np.array([0, 0]), np.array([1, 2]), np.array([[0.25], [0.5]]), 2).tolist()
    [[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]
    """
    steps = np.zeros((tokens + 1, marginals.shape[1]))
    probabilities = np.zeros((tokens, 1 + 2 * marginals.shape[1]))
    np.add.at(probabilities[:, 1::2], starts, marginals)
    longer = ends - starts > 1
    np.add.at(steps, starts[longer] + 1, marginals[longer])
    np.subtract.at(steps, ends[longer], marginals[longer])
    probabilities[:, 2::2] = np.clip(np.cumsum(steps[:-1], axis=0), 0, 1)
    taken = probabilities.sum(axis=1, keepdims=True)
    probabilities /= np.maximum(taken, 1)
    probabilities[:, 0] = 1 - np.minimum(taken[:, 0], 1)
    return probabilities


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _best(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    gains: NDArray[np.float64],
    tokens: int,
    first: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Best sums from each token to the end, then the spans that make up the best."""
    best = np.zeros(tokens + 1)
    choice = np.full(tokens + 1, -1)
    for token in range(tokens - 1, -1, -1):
        best[token] = best[token + 1]
        for row in range(first[token], first[token + 1]):
            total = gains[row] + best[ends[row]]
            if gains[row] > 0 and total > best[token]:
                best[token] = total
                choice[token] = row
    chosen = np.zeros(len(starts), np.bool_)
    token = 0
    while token < tokens:
        row = choice[token]
        if row < 0:
            token += 1
        else:
            chosen[row] = True
            token = ends[row]
    return chosen


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _forward(
    starts: NDArray[np.int64], ends: NDArray[np.int64], totals: NDArray[np.float64], tokens: int
) -> NDArray[np.float64]:
    """Log of the summed weights of all sets that end by each token; spans in order of their starts."""
    sums = np.full(tokens + 1, -np.inf)
    sums[0] = 0.0
    row = 0
    for token in range(tokens):
        sums[token + 1] = np.logaddexp(sums[token + 1], sums[token])
        while row < len(starts) and starts[row] == token:
            sums[ends[row]] = np.logaddexp(sums[ends[row]], sums[token] + totals[row])
            row += 1
    return sums


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _backward(
    ends: NDArray[np.int64], totals: NDArray[np.float64], tokens: int, first: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log of the summed weights of all sets that start at each token or later."""
    sums = np.zeros(tokens + 1)
    for token in range(tokens - 1, -1, -1):
        sums[token] = sums[token + 1]
        for row in range(first[token], first[token + 1]):
            sums[token] = np.logaddexp(sums[token], totals[row] + sums[ends[row]])
    return sums
