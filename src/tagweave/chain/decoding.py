"""Compiled search for the best path (Viterbi)."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from tagweave.chain.compiling import FloatArray, Potentials, compiled
from tagweave.chain.kernels import longest_sentence, of_sentence


@compiled
def _best_moves(
    transitions: FloatArray, value: NDArray[np.float64], ahead: NDArray[np.float64], following: NDArray[np.int64]
) -> None:
    """For each label, the label that follows best; replace `value`, the best score of the rest, by that one step back.

    Scores are kept near zero by taking out the largest; `ahead` is room to work in.
    """
    labels, top = len(value), -inf
    for i in range(labels):
        ahead[i] = -inf
        following[i] = 0
        for j in range(labels):
            score = transitions[i, j] + value[j]
            if score > ahead[i]:
                ahead[i] = score
                following[i] = j
        top = max(top, ahead[i])
    for i in range(labels):
        value[i] = ahead[i] - top if top > -inf else -inf


@compiled
def _best_sentence(potentials: Potentials, following: NDArray[np.int64], path: NDArray[np.int64]) -> bool:
    """Write the best path of one sentence to `path`; False where no path is possible.

    The recursion runs from the last token to the first, so that ties can be broken from the first token on.
    """
    start, transitions, evidence = potentials
    length, labels = evidence.shape
    value, ahead = np.zeros(labels), np.empty(labels)
    for t in range(length - 1, -1, -1):
        for j in range(labels):
            value[j] += evidence[t, j] + (start[j] if t == 0 else 0.0)
        if t > 0:
            _best_moves(transitions[t if transitions.shape[0] > 1 else 0], value, ahead, following[t])
    best = 0
    for i in range(labels):
        if value[i] > value[best]:
            best = i
    possible = value[best] > -inf
    for t in range(length):
        best = best if t == 0 else following[t, best]
        path[t] = best
    return bool(possible)


@compiled
def best_path(potentials: Potentials, offsets: NDArray[np.int64], path: NDArray[np.int64]) -> int:
    """Fill `path` [tokens] with the best labels; return the number of a sentence without a possible path, or -1."""
    following = np.empty((longest_sentence(offsets), potentials[2].shape[1]), np.int64)
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        if first < last:
            if not _best_sentence(of_sentence(potentials, offsets, s), following, path[first:last]):
                return s
    return -1
