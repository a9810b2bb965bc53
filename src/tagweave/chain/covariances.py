"""Compiled covariances of labels and pairs of labels with the score of the path: the slopes of the entropy."""

import numpy as np
from numpy.typing import NDArray

from tagweave.chain.compiling import FloatArray, Potentials, compiled
from tagweave.chain.kernels import longest_sentence, of_sentence


@compiled
def _centre_past(potentials: Potentials, step: int, marginals: FloatArray, pairs: FloatArray, past: FloatArray) -> None:
    """Fill `past[t, j]`: the expected score of tokens 0..t given that token `t` has label `j`, less its mean."""
    start, transitions, evidence = potentials
    length, labels = evidence.shape
    for t in range(length):
        mean = 0.0
        for j in range(labels):
            total, mass = 0.0, 0.0
            for i in range(labels if t > 0 else 0):
                if pairs[t, i, j] > 0:
                    mass += pairs[t, i, j]
                    total += pairs[t, i, j] * (past[t - 1, i] + transitions[t * step, i, j])
            past[t, j] = 0.0
            if marginals[t, j] > 0 and (t == 0 or mass > 0):
                past[t, j] = evidence[t, j] + (start[j] if t == 0 else total / mass)
            mean += marginals[t, j] * past[t, j]
        for j in range(labels):
            past[t, j] -= mean


@compiled
def _step_back(local: FloatArray, pairs: FloatArray, past: FloatArray, future: FloatArray, before: FloatArray) -> None:
    """Replace the pair marginals of one token by covariances, and `future` by that of the token before.

    Args:
        local: score of this token and of the move to it, [labels, labels].
        pairs: pair marginals of this token, replaced.
        past: centred expected score up to the token before, by its label.
        future: centred expected score after this token, by its label; replaced.
        before: room to work in, [labels].
    """
    labels = len(past)
    local_mean, future_mean = 0.0, 0.0
    for i in range(labels):
        before[i], mass = 0.0, 0.0
        for j in range(labels):
            if pairs[i, j] > 0:
                mass += pairs[i, j]
                before[i] += pairs[i, j] * (local[i, j] + future[j])
                local_mean += pairs[i, j] * local[i, j]
        future_mean += before[i]
        if mass > 0:
            before[i] /= mass
    for i in range(labels):
        for j in range(labels):
            if pairs[i, j] > 0:
                pairs[i, j] *= past[i] + local[i, j] - local_mean + future[j]
    for i in range(labels):
        future[i] = before[i] - future_mean


@compiled
def _covariances(potentials: Potentials, step: int, marginals: FloatArray, pairs: FloatArray, past: FloatArray) -> None:
    """Replace marginals and pair marginals of one sentence by covariances with the score, from its end to its start."""
    _, transitions, evidence = potentials
    length, labels = evidence.shape
    future, before, local = np.zeros(labels), np.empty(labels), np.empty((labels, labels))
    for t in range(length - 1, -1, -1):
        for j in range(labels):
            marginals[t, j] *= past[t, j] + future[j]
        if t > 0:
            for i in range(labels):
                for j in range(labels):
                    local[i, j] = transitions[t * step, i, j] + evidence[t, j]
            _step_back(local, pairs[t], past[t - 1], future, before)


@compiled
def score_covariances(
    potentials: Potentials, offsets: NDArray[np.int64], marginals: FloatArray, pairs: FloatArray
) -> None:
    r"""Replace marginals and pair marginals (one matrix per token) by covariances with the score of the path.

    An entry \(p(a)\) for a label or a pair of labels \(a\) becomes \(p(a) (E[s \mid a] - E[s])\), where \(s\) is the
    sum of all potentials along the path. Conditional means come from a first-order recursion in each direction; they
    are centred at each token, so that the length of the sentence costs no precision.
    """
    _, transitions, evidence = potentials
    step = 0 if transitions.shape[0] == 1 else 1
    past = np.empty((longest_sentence(offsets), evidence.shape[1]))
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        if first < last:
            own = of_sentence(potentials, offsets, s)
            _centre_past(own, step, marginals[first:last], pairs[first:last], past[: last - first])
            _covariances(own, step, marginals[first:last], pairs[first:last], past[: last - first])
