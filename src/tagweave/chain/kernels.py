r"""Compiled recursions over packed sentences; `posterior` and `differentiable` are the faces of this module.

Sentences go through the scaled recursions first, many side by side (`lanes`). One in which scaling loses something is
computed again here, alone and in log space, which is slower and always exact.

Every kernel takes `potentials`, the tuple of start [1 or sentences, labels], transitions [1 or tokens, labels, labels]
and evidence [tokens, labels], all of one float type, as logarithms. A first axis of one means: shared by all.
"""

from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from tagweave.chain import lanes as side_by_side
from tagweave.chain.compiling import FloatArray, Potentials, compiled
from tagweave.chain.lanes import Lanes

# What `forward_backward` does with the pair marginals: nothing, one sum, one sum per sentence, one matrix per token.
NO_PAIRS, PAIRS_SUMMED, PAIRS_BY_SENTENCE, PAIRS_BY_TOKEN = range(4)

# Most sentences side by side; fewest, where that many need more room than this, which is about that of a second cache.
MOST, FEWEST, ROOM = 48, 4, 1 << 17


@compiled
def longest_sentence(offsets: NDArray[np.int64]) -> int:
    """The number of tokens of the longest sentence."""
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@compiled
def of_sentence(potentials: Potentials, offsets: NDArray[np.int64], s: int) -> Potentials:
    """Start [labels], transitions [1 or tokens, labels, labels] and evidence [tokens, labels] of sentence `s`."""
    start, transitions, evidence = potentials
    first, last = offsets[s], offsets[s + 1]
    own_transitions = transitions if transitions.shape[0] == 1 else transitions[first:last]
    return start[s if start.shape[0] > 1 else 0], own_transitions, evidence[first:last]


@compiled
def _log_sum(values: FloatArray) -> float:
    """The logarithm of the sum of the exponentials of some values; minus infinity where all are, NaN where one is."""
    top, total = -inf, 0.0
    for value in values:
        total += value
        if value > top:
            top = value
    if top == -inf:
        return total
    total = 0.0
    for value in values:
        total += exp(value - top)
    return top + log(total)


@compiled
def _forward_in_log_space(potentials: Potentials, step: int, alpha: FloatArray) -> float:
    """Fill `alpha` with logarithms; return the log-partition, which may be minus infinity or NaN."""
    start, transitions, evidence = potentials
    length, labels = evidence.shape
    terms, logarithm = np.empty(labels), 0.0
    for t in range(length):
        for j in range(labels):
            for i in range(labels if t > 0 else 0):
                terms[i] = alpha[t - 1, i] + transitions[t * step, i, j]
            alpha[t, j] = evidence[t, j] + (_log_sum(terms) if t > 0 else start[j])
        total = _log_sum(alpha[t])
        if not total > -inf:
            return total
        for j in range(labels):
            alpha[t, j] -= total
        logarithm += total
    return logarithm


@compiled
def _backward_in_log_space(
    potentials: Potentials, step: int, alpha: FloatArray, future: FloatArray, marginals: FloatArray
) -> None:
    """Fill `future` with logarithms, and the marginals."""
    _, transitions, evidence = potentials
    length, labels = evidence.shape
    terms, beta = np.empty(labels), np.zeros(labels)
    for t in range(length - 1, -1, -1):
        for i in range(labels):
            marginals[t, i] = exp(alpha[t, i] + beta[i])
            future[t, i] = evidence[t, i] + beta[i]
        if t == 0:
            break
        for i in range(labels):
            for j in range(labels):
                terms[j] = transitions[t * step, i, j] + future[t, j]
            beta[i] = _log_sum(terms)
        for i in range(labels):
            terms[i] = alpha[t - 1, i] + beta[i]
        total = _log_sum(terms)
        for i in range(labels):
            beta[i] -= total
            future[t, i] -= total


@compiled
def _pairs_in_log_space(
    potentials: Potentials, step: int, alpha: FloatArray, future: FloatArray, pairs: FloatArray, pair_step: int
) -> None:
    """Add the pair marginals of one sentence to `pairs[t * pair_step]`."""
    transitions = potentials[1]
    length, labels = alpha.shape
    for t in range(1, length):
        for i in range(labels):
            for j in range(labels):
                pairs[t * pair_step, i, j] += exp(alpha[t - 1, i] + transitions[t * step, i, j] + future[t, j])


@compiled
def _expected_score(own: Potentials, step: int, marginals: FloatArray, pairs: FloatArray) -> float:
    """The expected score of one sentence."""
    start, transitions, evidence = own
    length, labels = evidence.shape
    expected = 0.0
    for t in range(length):
        for j in range(labels):
            if marginals[t, j] > 0:
                expected += marginals[t, j] * (evidence[t, j] + (start[j] if t == 0 else 0.0))
            for i in range(labels if t > 0 else 0):
                if pairs[t, i, j] > 0:
                    expected += pairs[t, i, j] * transitions[t * step, i, j]
    return expected


@compiled
def expected_scores(
    potentials: Potentials,
    offsets: NDArray[np.int64],
    marginals: FloatArray,
    pairs: FloatArray,
    results: NDArray[np.float64],
) -> None:
    """Fill `results` [sentences] with the expected score of each sentence, from its marginals and pairs by token."""
    step = 0 if potentials[1].shape[0] == 1 else 1
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        own = of_sentence(potentials, offsets, s)
        results[s] = _expected_score(own, step, marginals[first:last], pairs[first:last])


@compiled
def _in_log_space(
    potentials: Potentials,
    offsets: NDArray[np.int64],
    s: int,
    mode: int,
    results: tuple[NDArray[np.float64], FloatArray, FloatArray],
) -> None:
    """What `forward_backward` does, for sentence `s`, one way or the other."""
    log_partitions, marginals, pairs = results
    own, step = of_sentence(potentials, offsets, s), 0 if potentials[1].shape[0] == 1 else 1
    first, last = offsets[s], offsets[s + 1]
    alpha, future = np.empty(own[2].shape), np.empty(own[2].shape)
    log_partitions[s] = _forward_in_log_space(own, step, alpha)
    if not log_partitions[s] > -inf:
        marginals[first:last] = 0.0
        return
    _backward_in_log_space(own, step, alpha, future, marginals[first:last])
    if mode == PAIRS_BY_TOKEN:
        _pairs_in_log_space(own, step, alpha, future, pairs[first:last], 1)
    elif mode != NO_PAIRS:
        _pairs_in_log_space(own, step, alpha, future, pairs[s if mode == PAIRS_BY_SENTENCE else 0 :], 0)


@compiled
def _longest_first(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sentences that have a token, in the order of their lengths."""
    lengths = offsets[1:] - offsets[:-1]
    order = np.argsort(-lengths, kind="mergesort")
    return order[: np.count_nonzero(lengths)]


@compiled
def _going(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many sentences have a token at each place; lengths go down."""
    going = np.empty(lengths[0], np.int64)
    n = len(lengths)
    for t in range(lengths[0]):
        while lengths[n - 1] <= t:
            n -= 1
        going[t] = n
    return going


@compiled
def _add_pairs(lanes: Lanes, own_moves: bool, mode: int, room: FloatArray, pairs: FloatArray) -> None:
    """Add the pair marginals of sentences that are not lost to the sum, or to those of each sentence."""
    labels = lanes.alpha.shape[1]
    sums = room[: labels * labels * len(lanes.sentences)].reshape(labels * labels, len(lanes.sentences))
    side_by_side.sum_pairs(lanes, own_moves, sums)
    for lane in range(len(lanes.sentences)):
        if not lanes.lost[lane]:
            own = pairs[lanes.sentences[lane] if mode == PAIRS_BY_SENTENCE else 0]
            for i in range(labels):
                for j in range(labels):
                    own[i, j] += sums[i * labels + j, lane]


@compiled
def forward_backward(
    potentials: Potentials,
    offsets: NDArray[np.int64],
    mode: int,
    results: tuple[NDArray[np.float64], FloatArray, FloatArray],
) -> None:
    """One forward and one backward pass over every sentence.

    Args:
        potentials: start, transitions, evidence (see the module).
        offsets: where sentences begin and end, [sentences + 1].
        mode: one of `NO_PAIRS`, `PAIRS_SUMMED`, `PAIRS_BY_SENTENCE`, `PAIRS_BY_TOKEN`.
        results: filled with log-partitions [sentences], marginals [tokens, labels] and pair marginals [1 or sentences
            or tokens, labels, labels]; pairs must come as zeros. A sentence without any possible path gets minus
            infinity and zeros.
    """
    transitions = potentials[1]
    log_partitions, marginals, pairs = results
    log_partitions[:] = 0.0
    labels, own_moves = marginals.shape[1], transitions.shape[0] > 1
    order = _longest_first(offsets)
    shared, shift = np.empty((1, labels * labels, 1)), 0.0
    if not own_moves:
        top, taken = np.zeros(1), np.zeros(1)
        shared[0, :, 0] = transitions[0].reshape(-1)
        side_by_side.take_out(shared[0], 1, top, taken)
        shift = taken[0]
    begun = 0
    while begun < len(order):
        length = offsets[order[begun] + 1] - offsets[order[begun]]
        size = length * labels * (2 + (labels if own_moves else 0))
        count = min(len(order) - begun, min(MOST, max(FEWEST, ROOM // size)))
        sentences = order[begun : begun + count]
        shape = (length, labels, count)
        lanes = Lanes(
            sentences,
            offsets[sentences],
            _going(offsets[sentences + 1] - offsets[sentences]),
            np.empty(shape),
            np.empty(shape),
            np.empty((length, labels * labels, count)) if own_moves else shared,
            np.empty((side_by_side.NUMBERS, count)),
            np.empty(count, np.bool_),
        )
        room = np.empty(labels * labels * count)
        side_by_side.forward(potentials, lanes)
        side_by_side.log_likelihoods(lanes, shift, log_partitions)
        beta = room[: labels * count].reshape(labels, count)
        side_by_side.backward(lanes, own_moves, beta, marginals)
        if mode == PAIRS_BY_TOKEN:
            side_by_side.store_pairs(lanes, own_moves, pairs)
        elif mode != NO_PAIRS:
            _add_pairs(lanes, own_moves, mode, room, pairs)
        for lane in range(count):
            if lanes.lost[lane]:
                _in_log_space(potentials, offsets, sentences[lane], mode, results)
        begun += count
