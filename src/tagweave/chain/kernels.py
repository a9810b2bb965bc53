r"""Compiled recursions over packed sentences; `posterior` and `differentiable` are the faces of this module.

A sentence goes through the scaled recursions first: probabilities, normalised at each token. They are fast, and exact
as long as nothing that matters falls below the smallest double. The backward pass proves that: a state whose forward
probability is under 1e-120 can only matter where its backward factor is over 1e90. A sentence in which that happens, or
in which a whole token is that unlikely, is computed again in log space, which is slower and always exact.

Both ways leave the same three arrays behind (as logarithms in log space). For a sentence with tokens \(t = 0 .. n-1\):

- `alpha[t, i]` \(= p(z_t = i \mid x_{0..t})\),
- `future[t, j]` \(\propto p(x_{t..n-1} \mid z_t = j)\), such that
- `alpha[t - 1, i] * moves[t, i, j] * future[t, j]` \(= p(z_{t-1} = i, z_t = j \mid x)\).

Every kernel takes `potentials`, the tuple of start [1 or sentences, labels], transitions [1 or tokens, labels, labels]
and evidence [tokens, labels], all of one float type, as logarithms. A first axis of one means: shared by all.
"""

from math import exp, factorial, floor, inf, log, nan

import numpy as np
from numpy.typing import NDArray

from tagweave.chain.compiling import FloatArray, Potentials, compiled, compiled_as_written

# What `forward_backward` does with the pair marginals: nothing, one sum, one sum per sentence, one matrix per token.
NO_PAIRS, PAIRS_SUMMED, PAIRS_BY_SENTENCE, PAIRS_BY_TOKEN = range(4)

# The products of a few factors within these bounds are normal double precision numbers.
SMALLEST = 1e-120
LARGEST = 1e90

# For `exponentiate`: the logarithm of about the smallest normal double; one over log(2); log(2) as a number with so
# few digits that a thousand times it is exact, and the rest of log(2); one over the factorials.
LOWEST = -708.0
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147182464599609375, -1.904654299957767878541823e-9
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / factorial(k) for k in range(2, 14))


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
def _take_out(values: FloatArray, result: FloatArray) -> float:
    """Write `values - top` to `result`, and return `top`, the largest of `values`; both are flat."""
    a = b = c = d = -inf
    whole = len(values) // 4 * 4
    for k in range(0, whole, 4):
        # Four that do not wait for each other.
        v, w, x, y = float(values[k]), float(values[k + 1]), float(values[k + 2]), float(values[k + 3])
        a, b = (v if v > a else a), (w if w > b else b)
        c, d = (x if x > c else c), (y if y > d else d)
    for k in range(whole, len(values)):
        v = float(values[k])
        a = v if v > a else a
    top = max(max(a, b), max(c, d))
    shift = 0.0 if top == -inf else top
    for k in range(len(values)):
        result[k] = values[k] - shift
    return top


@compiled_as_written
def exponentiate(values: FloatArray) -> None:
    r"""Replace numbers up to zero by their exponentials, to the last bit but one; below -708 they count as zero.

    \(e^x = 2^n e^r\) with whole \(n\) and \(|r| \le \log(2) / 2\), and \(e^r\) is its Taylor polynomial of degree 13.
    Without branches and calls the loop does several numbers at a time, which `math.exp` cannot.
    """
    for k in range(len(values)):
        x = values[k]
        kept = LOWEST if x < LOWEST else x
        n = floor(kept * LOG2_E + 0.5)
        r = (kept - n * LN2_HIGH) - n * LN2_LOW
        tail = C8 + r * (C9 + r * (C10 + r * (C11 + r * (C12 + r * C13))))
        power = 1.0 + r * (1.0 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * tail)))))))
        two_to_n = np.int64((np.int64(n) + 1023) << 52).view(np.float64)
        values[k] = 0.0 if x < LOWEST else power * two_to_n


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
def _load_weights(
    potentials: Potentials, moves: FloatArray, weights: FloatArray, start: FloatArray, own_moves: bool
) -> float:
    """Fill the factors of one sentence, each token's largest being one; return the logarithm of what was taken out."""
    start_row, transitions, evidence = potentials
    length = evidence.shape[0]
    taken = _take_out(start_row, start)
    for t in range(length):
        taken += _take_out(evidence[t], weights[t])
        if own_moves and t > 0:
            taken += _take_out(transitions[t].reshape(-1), moves[t].reshape(-1))
    exponentiate(start)
    exponentiate(weights.reshape(-1))
    if own_moves:
        exponentiate(moves[1:length].reshape(-1))
    return taken


@compiled
def _forward(start: FloatArray, moves: FloatArray, step: int, weights: FloatArray, alpha: FloatArray) -> float:
    """Fill `alpha`; return the log-likelihood under the factors, or NaN where a token is too unlikely."""
    length, labels = weights.shape
    logarithm, product = 0.0, 1.0
    for t in range(length):
        row = alpha[t]
        if t == 0:
            row[:] = start
        else:
            before, matrix = alpha[t - 1], moves[t * step]
            for j in range(labels):
                value = 0.0
                for i in range(labels):
                    value += before[i] * matrix[i, j]
                row[j] = value
        total = 0.0
        for j in range(labels):
            row[j] *= weights[t, j]
            total += row[j]
        if not total >= SMALLEST:
            return nan
        scale = 1.0 / total
        for j in range(labels):
            row[j] *= scale
        product *= total
        if product < SMALLEST or product > LARGEST:
            logarithm += log(product)
            product = 1.0
    return logarithm + log(product)


@compiled
def _backward(moves: FloatArray, step: int, alpha: FloatArray, future: FloatArray, marginals: FloatArray) -> bool:
    r"""Turn `future` from factors of the evidence into what the module text says; False where scaling loses something.

    `beta[i]` is \(p(x_{t+1..n-1} \mid z_t = i) / p(x_{t+1..n-1} \mid x_{0..t})\); appendix A.1 of Li et al. (2021).
    """
    length, labels = alpha.shape
    beta = np.empty(labels)
    for j in range(labels):
        beta[j] = 1.0
        marginals[length - 1, j] = alpha[length - 1, j]
    for t in range(length - 1, 0, -1):
        matrix, row, before = moves[t * step], future[t], alpha[t - 1]
        for j in range(labels):
            row[j] *= beta[j]
        total = 0.0
        for i in range(labels):
            value = 0.0
            for j in range(labels):
                value += matrix[i, j] * row[j]
            beta[i] = value
            total += before[i] * value
        if not total >= SMALLEST:
            return False
        scale = 1.0 / total
        for i in range(labels):
            row[i] *= scale
            beta[i] *= scale
            if beta[i] > LARGEST and before[i] < SMALLEST:
                return False
            marginals[t - 1, i] = before[i] * beta[i]
    return True


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
def _add_shared_pairs(
    alpha: FloatArray, moves: FloatArray, future: FloatArray, transitions: FloatArray, pairs: FloatArray
) -> float:
    """Add a sentence's pair marginals to `pairs` [labels, labels]; return the expected sum of its transitions."""
    length, labels = alpha.shape
    counts = np.zeros((labels, labels))
    for t in range(1, length):
        for i in range(labels):
            before = alpha[t - 1, i]
            for j in range(labels):
                counts[i, j] += before * future[t, j]
    expected = 0.0
    for i in range(labels):
        for j in range(labels):
            count = counts[i, j] * moves[i, j]
            if count > 0:
                pairs[i, j] += count
                expected += count * transitions[i, j]
    return expected


@compiled
def _add_own_pairs(
    alpha: FloatArray,
    factors: tuple[FloatArray, FloatArray, int],
    future: FloatArray,
    pairs: FloatArray,
    pair_step: int,
) -> float:
    """The same for transitions by token or pairs by token; factors are (moves, transitions, step)."""
    moves, transitions, step = factors
    length, labels = alpha.shape
    expected = 0.0
    for t in range(1, length):
        matrix, scores, sums, row = moves[t * step], transitions[t * step], pairs[t * pair_step], future[t]
        for i in range(labels):
            before = alpha[t - 1, i]
            for j in range(labels):
                probability = before * matrix[i, j] * row[j]
                sums[i, j] += probability
                expected += probability * (scores[i, j] if probability > 0 else 0.0)
    return expected


@compiled
def _add_pairs_in_log_space(
    alpha: FloatArray,
    factors: tuple[FloatArray, FloatArray, int],
    future: FloatArray,
    pairs: FloatArray,
    pair_step: int,
) -> float:
    """The same where `alpha` and `future` are logarithms."""
    _, transitions, step = factors
    length, labels = alpha.shape
    expected = 0.0
    for t in range(1, length):
        for i in range(labels):
            for j in range(labels):
                score = float(transitions[t * step, i, j])
                probability = exp(alpha[t - 1, i] + score + future[t, j])
                if probability > 0:
                    pairs[t * pair_step, i, j] += probability
                    expected += probability * score
    return expected


@compiled
def _add_pairs(
    alpha: FloatArray,
    factors: tuple[FloatArray, FloatArray, int],
    future: FloatArray,
    pairs: FloatArray,
    pair_step: int,
    scaled: bool,
) -> float:
    """Add a sentence's pair marginals to `pairs[t * pair_step]`; return the expected sum of its transitions."""
    moves, transitions, step = factors
    if not scaled:
        return _add_pairs_in_log_space(alpha, factors, future, pairs, pair_step)
    if step == 0 and pair_step == 0:
        return _add_shared_pairs(alpha, moves[0], future, transitions[0], pairs[0])
    return _add_own_pairs(alpha, factors, future, pairs, pair_step)


@compiled
def _expected_evidence(start: FloatArray, evidence: FloatArray, marginals: FloatArray) -> float:
    """The expected sum of a sentence's start score and evidence."""
    expected = 0.0
    for t in range(evidence.shape[0]):
        for i in range(evidence.shape[1]):
            if marginals[t, i] > 0:
                expected += marginals[t, i] * (evidence[t, i] + (start[i] if t == 0 else 0.0))
    return expected


@compiled
def forward_backward(
    potentials: Potentials,
    offsets: NDArray[np.int64],
    mode: int,
    results: tuple[NDArray[np.float64], NDArray[np.float64], FloatArray, FloatArray],
) -> None:
    """One forward and one backward pass over every sentence.

    Args:
        potentials: start, transitions, evidence (see the module).
        offsets: where sentences begin and end, [sentences + 1].
        mode: one of `NO_PAIRS`, `PAIRS_SUMMED`, `PAIRS_BY_SENTENCE`, `PAIRS_BY_TOKEN`.
        results: filled with log-partitions [sentences], expected scores [sentences] (not with `NO_PAIRS`), marginals
            [tokens, labels] and pair marginals [1 or sentences or tokens, labels, labels]; pairs must come as zeros.
            A sentence without any possible path gets minus infinity and zeros.
    """
    start, transitions, evidence = potentials
    log_partitions, expected_scores, marginals, pairs = results
    longest, labels = longest_sentence(offsets), evidence.shape[1]
    step = 0 if transitions.shape[0] == 1 else 1
    alpha, future = np.empty((longest, labels)), np.empty((longest, labels))
    moves, first_weights = np.empty((longest if step else 1, labels, labels)), np.empty(labels)
    shift = 0.0 if step else _take_out(transitions[0].reshape(-1), moves[0].reshape(-1))
    if step == 0:
        exponentiate(moves.reshape(-1))
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        length = last - first
        log_partitions[s] = expected_scores[s] = 0.0
        if length == 0:
            continue
        own = of_sentence(potentials, offsets, s)
        own_start, own_transitions, own_evidence = own
        a, f, m = alpha[:length], future[:length], marginals[first:last]
        taken = _load_weights(own, moves, f, first_weights, step == 1)
        total = _forward(first_weights, moves, step, f, a) + taken + (length - 1) * shift
        scaled = total > -inf and _backward(moves, step, a, f, m)
        if not scaled:
            total = _forward_in_log_space(own, step, a)
        log_partitions[s] = total
        if not scaled and total > -inf:
            _backward_in_log_space(own, step, a, f, m)
        if not total > -inf:
            for t in range(length):
                for j in range(labels):
                    m[t, j] = 0.0
        elif mode != NO_PAIRS:
            place = first if mode == PAIRS_BY_TOKEN else (s if mode == PAIRS_BY_SENTENCE else 0)
            pair_step = 1 if mode == PAIRS_BY_TOKEN else 0
            expected = _add_pairs(a, (moves, own_transitions, step), f, pairs[place:], pair_step, scaled)
            expected_scores[s] = expected + _expected_evidence(own_start, own_evidence, m)
