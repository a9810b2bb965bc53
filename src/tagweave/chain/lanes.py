r"""The scaled recursions over many sentences side by side, each in a lane of its own.

One sentence gives a processor little to do at once: each token waits for the one before it, and a matrix of a handful
of labels does not fill its registers. So sentences of similar length lie side by side, the last axis of every array,
and each step is a loop over that axis. Arithmetic of one lane never meets another's: a sentence has the same results
in any company.

Lanes are in order of length, the longest first, so those that still go on at a token are always the first `n` ones,
and nothing is computed for the others.

Probabilities are normalised at each token. That is exact as long as nothing that matters falls below the smallest
double, and the backward pass proves it: a state whose forward probability is under 1e-120 can only matter where its
backward factor is over 1e90. A lane in which that happens, or in which a whole token is that unlikely, is marked as
lost, and `kernels` computes its sentence in log space.

For a sentence with tokens \(t = 0 .. n-1\) these arrays are left behind:

- `alpha[t, i]` \(= p(z_t = i \mid x_{0..t})\),
- `future[t, j]` \(\propto p(x_{t..n-1} \mid z_t = j)\), such that
- `alpha[t - 1, i] * moves[t, i, j] * future[t, j]` \(= p(z_{t-1} = i, z_t = j \mid x)\).
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.chain.compiling import FloatArray, Potentials, compiled_as_written
from tagweave.chain.exponentials import exponentiate

# The products of a few factors within these bounds are normal double precision numbers.
SMALLEST = 1e-120
LARGEST = 1e90

LN2 = 0.6931471805599453
EXPONENT, MANTISSA = 0x7FF, 0xFFFFFFFFFFFFF


class Lanes(NamedTuple):
    """Sentences side by side.

    Attributes:
        sentences: their numbers, the longest first, of shape [lanes].
        first: their first tokens, of shape [lanes].
        going: how many have a token at each place, of shape [longest].
        alpha, future: of shape [longest, labels, lanes].
        moves: probabilities, up to a factor for each token, of shape [longest, labels * labels, lanes]; without lanes,
            of shape [1, labels * labels, 1], where all tokens share them.
        numbers: room for one number a lane, of shape [rows, lanes].
        lost: where scaling loses something, of shape [lanes].
    """

    sentences: NDArray[np.int64]
    first: NDArray[np.int64]
    going: NDArray[np.int64]
    alpha: FloatArray
    future: FloatArray
    moves: FloatArray
    numbers: FloatArray
    lost: NDArray[np.bool_]


# Rows of `numbers`.
TOP, TOTAL, PRODUCT, POWER, TAKEN = range(5)
NUMBERS = 5


@compiled_as_written
def take_out(rows: FloatArray, n: int, top: FloatArray, taken: FloatArray) -> None:
    """Turn `rows` [values, lanes] to exponentials less the largest of each lane, which is added to `taken` [lanes]."""
    for lane in range(n):
        top[lane] = -inf
    for k in range(rows.shape[0]):
        for lane in range(n):
            top[lane] = max(top[lane], rows[k, lane])
    for lane in range(n):
        taken[lane] += top[lane]
        top[lane] = top[lane] if top[lane] > -inf else 0.0
    for k in range(rows.shape[0]):
        for lane in range(n):
            rows[k, lane] -= top[lane]
    if n == rows.shape[1]:
        exponentiate(rows.reshape(-1))
    else:
        for k in range(rows.shape[0]):
            exponentiate(rows[k, :n])


@compiled_as_written
def _load(values: FloatArray, first: NDArray[np.int64], t: int, n: int, rows: FloatArray) -> None:
    """Fill `rows` [values, lanes] with what `values` [tokens, values] has at place `t` of the first `n` sentences."""
    for lane in range(n):
        token = first[lane] + t
        for k in range(rows.shape[0]):
            rows[k, lane] = values[token, k]


@compiled_as_written
def _load_start(start: FloatArray, sentences: NDArray[np.int64], row: FloatArray) -> None:
    for lane in range(row.shape[1]):
        s = sentences[lane] if start.shape[0] > 1 else 0
        for j in range(row.shape[0]):
            row[j, lane] = start[s, j]


@compiled_as_written
def _move(before: FloatArray, moves: FloatArray, row: FloatArray, n: int) -> None:
    """Fill `row` with the probabilities after a move; moves [labels * labels, lanes], or [.., 1] if shared."""
    labels = row.shape[0]
    for j in range(labels):
        for lane in range(n):
            row[j, lane] = 0.0
    for i in range(labels):
        for j in range(labels):
            if moves.shape[1] > 1:
                for lane in range(n):
                    row[j, lane] += before[i, lane] * moves[i * labels + j, lane]
            else:
                move = moves[i * labels + j, 0]
                for lane in range(n):
                    row[j, lane] += before[i, lane] * move


@compiled_as_written
def _normalise(row: FloatArray, weights: FloatArray, n: int, numbers: FloatArray, lost: NDArray[np.bool_]) -> None:
    """Multiply `row` [labels, lanes] by weights, scale it to sums of one, and keep what it summed to.

    That is kept as a product between one and two, times a power of two.
    """
    for lane in range(n):
        numbers[TOTAL, lane] = 0.0
    for j in range(row.shape[0]):
        for lane in range(n):
            row[j, lane] *= weights[j, lane]
            numbers[TOTAL, lane] += row[j, lane]
    for lane in range(n):
        lost[lane] |= not numbers[TOTAL, lane] >= SMALLEST
    for lane in range(n):
        bits = np.float64(numbers[PRODUCT, lane] * numbers[TOTAL, lane]).view(np.int64)
        numbers[POWER, lane] += float(((bits >> 52) & EXPONENT) - 1023)
        numbers[PRODUCT, lane] = np.int64((bits & MANTISSA) | (1023 << 52)).view(np.float64)
        numbers[TOTAL, lane] = 1.0 / numbers[TOTAL, lane]
    for j in range(row.shape[0]):
        for lane in range(n):
            row[j, lane] *= numbers[TOTAL, lane]


@compiled_as_written
def forward(potentials: Potentials, lanes: Lanes) -> None:
    """Fill `alpha` and, with factors of the evidence, `future`; and `moves` where they are of the token."""
    start, transitions, evidence = potentials
    own_moves = transitions.shape[0] > 1
    flat = transitions.reshape(transitions.shape[0], -1)
    top, taken = lanes.numbers[TOP], lanes.numbers[TAKEN]
    lanes.numbers[PRODUCT, :] = 1.0
    lanes.numbers[POWER, :] = 0.0
    taken[:] = 0.0
    lanes.lost[:] = False
    for t in range(len(lanes.going)):
        n = lanes.going[t]
        row, weights = lanes.alpha[t], lanes.future[t]
        _load(evidence, lanes.first, t, n, weights)
        take_out(weights, n, top, taken)
        if t == 0:
            _load_start(start, lanes.sentences, row)
            take_out(row, n, top, taken)
        elif own_moves:
            moves = lanes.moves[t]
            _load(flat, lanes.first, t, n, moves)
            take_out(moves, n, top, taken)
            _move(lanes.alpha[t - 1], moves, row, n)
        else:
            _move(lanes.alpha[t - 1], lanes.moves[0], row, n)
        _normalise(row, weights, n, lanes.numbers, lanes.lost)


@compiled_as_written
def log_likelihoods(lanes: Lanes, shift: float, results: NDArray[np.float64]) -> None:
    """Logarithms of what was taken out and normalised; `shift` was taken out of shared moves. NaN is lost."""
    length = len(lanes.going)
    for lane in range(len(lanes.sentences)):
        while length > 0 and lanes.going[length - 1] <= lane:
            length -= 1
        kept = log(lanes.numbers[PRODUCT, lane]) + lanes.numbers[POWER, lane] * LN2
        value = kept + lanes.numbers[TAKEN, lane] + (length - 1) * shift
        results[lanes.sentences[lane]] = value
        lanes.lost[lane] |= not value > -inf


@compiled_as_written
def backward(lanes: Lanes, own_moves: bool, beta: FloatArray, marginals: FloatArray) -> None:
    r"""Turn `future` from factors of the evidence into what the module text says, and fill the marginals.

    `beta[i]` is \(p(x_{t+1..n-1} \mid z_t = i) / p(x_{t+1..n-1} \mid x_{0..t})\); appendix A.1 of Li et al. (2021).
    """
    longest, labels = len(lanes.going), lanes.alpha.shape[1]
    for t in range(longest - 1, -1, -1):
        n, after = lanes.going[t], lanes.going[t + 1] if t + 1 < longest else 0
        for i in range(labels):
            for lane in range(after, n):
                beta[i, lane] = 1.0
        _store_marginals(lanes.alpha[t], beta, lanes.first, t, n, marginals)
        if t > 0:
            row = lanes.future[t]
            for j in range(labels):
                for lane in range(n):
                    row[j, lane] *= beta[j, lane]
            _move_back(row, lanes.moves[t if own_moves else 0], beta, n)
            _normalise_back(row, lanes.alpha[t - 1], beta, n, lanes.numbers[TOTAL], lanes.lost)


@compiled_as_written
def _move_back(row: FloatArray, moves: FloatArray, beta: FloatArray, n: int) -> None:
    """Fill `beta` with what is to come before a move."""
    labels = row.shape[0]
    for i in range(labels):
        for lane in range(n):
            beta[i, lane] = 0.0
        for j in range(labels):
            if moves.shape[1] > 1:
                for lane in range(n):
                    beta[i, lane] += row[j, lane] * moves[i * labels + j, lane]
            else:
                move = moves[i * labels + j, 0]
                for lane in range(n):
                    beta[i, lane] += row[j, lane] * move


@compiled_as_written
def _normalise_back(
    row: FloatArray, before: FloatArray, beta: FloatArray, n: int, total: FloatArray, lost: NDArray[np.bool_]
) -> None:
    """Scale such that probabilities before and what is to come sum to one, and see whether anything was lost."""
    labels = row.shape[0]
    for lane in range(n):
        total[lane] = 0.0
    for i in range(labels):
        for lane in range(n):
            total[lane] += before[i, lane] * beta[i, lane]
    for lane in range(n):
        lost[lane] |= not total[lane] >= SMALLEST
    for lane in range(n):
        total[lane] = 1.0 / total[lane]
    for i in range(labels):
        for lane in range(n):
            row[i, lane] *= total[lane]
        for lane in range(n):
            beta[i, lane] *= total[lane]
        for lane in range(n):
            lost[lane] |= (beta[i, lane] > LARGEST) & (before[i, lane] < SMALLEST)


@compiled_as_written
def _store_marginals(
    row: FloatArray, beta: FloatArray, first: NDArray[np.int64], t: int, n: int, marginals: FloatArray
) -> None:
    for lane in range(n):
        token = first[lane] + t
        for i in range(row.shape[0]):
            marginals[token, i] = row[i, lane] * beta[i, lane]


@compiled_as_written
def sum_pairs(lanes: Lanes, own_moves: bool, sums: FloatArray) -> None:
    """Fill `sums` [labels * labels, lanes] with the pair marginals of each sentence."""
    labels = lanes.alpha.shape[1]
    sums[:] = 0.0
    for t in range(1, len(lanes.going)):
        n, before, row = lanes.going[t], lanes.alpha[t - 1], lanes.future[t]
        moves = lanes.moves[t if own_moves else 0]
        for i in range(labels):
            for j in range(labels):
                k = i * labels + j
                if own_moves:
                    for lane in range(n):
                        sums[k, lane] += before[i, lane] * row[j, lane] * moves[k, lane]
                else:
                    for lane in range(n):
                        sums[k, lane] += before[i, lane] * row[j, lane]
    if not own_moves:
        for k in range(labels * labels):
            for lane in range(sums.shape[1]):
                sums[k, lane] *= lanes.moves[0, k, 0]


@compiled_as_written
def store_pairs(lanes: Lanes, own_moves: bool, pairs: FloatArray) -> None:
    """Fill `pairs` [tokens, labels, labels] of the sentences that are not lost, but of their first tokens."""
    for t in range(1, len(lanes.going)):
        moves = lanes.moves[t if own_moves else 0]
        _store_pairs(lanes.alpha[t - 1], moves, lanes.future[t], lanes, t, pairs)


@compiled_as_written
def _store_pairs(
    before: FloatArray, moves: FloatArray, row: FloatArray, lanes: Lanes, t: int, pairs: FloatArray
) -> None:
    labels = before.shape[0]
    for lane in range(lanes.going[t]):
        if lanes.lost[lane]:
            continue
        token, place = lanes.first[lane] + t, lane if moves.shape[1] > 1 else 0
        for i in range(labels):
            for j in range(labels):
                pairs[token, i, j] = before[i, lane] * moves[i * labels + j, place] * row[j, lane]
