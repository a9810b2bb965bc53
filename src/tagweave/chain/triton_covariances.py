"""Covariances of labels and pairs of labels with the score of the path, as Triton kernels: the slopes of the entropy.

What `tagweave.chain.covariances` does on the processor, laid out as in `tagweave.chain.triton_kernels`. The entropy is
a small difference of large numbers, so its callers give float64.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tagweave.chain.triton_kernels import Layout, load_moves, pairs_of_labels, sentences_of_program


@triton.jit
def _ratio(numerator: tl.tensor, denominator: tl.tensor) -> tl.tensor:
    """Zero over zero is zero."""
    return numerator / tl.where(denominator > 0, denominator, 1.0)


@triton.jit
def _load_pairs(
    pairs: tl.tensor, token: tl.tensor, going: tl.tensor, labels: tl.constexpr, width: tl.constexpr
) -> tl.tensor:
    """Pair marginals of a token of each sentence, [sentences, from, to], zero in the padding."""
    pair, real = pairs_of_labels(labels, width)
    return tl.load(pairs + token[:, None, None] * (labels * labels) + pair, mask=going[:, None, None] & real, other=0.0)


@triton.jit
def _scores(pairs: tl.tensor, moves: tl.tensor, scores: tl.tensor) -> tl.tensor:
    """Score of a token and of the move to it, [sentences, from, to], zero for moves that never happen."""
    return tl.where(pairs > 0, moves + scores[:, None, :], 0.0)


@triton.jit
def _centre_past(
    start: tl.tensor,
    start_step: tl.tensor,
    transitions: tl.tensor,
    evidence: tl.tensor,
    offsets: tl.tensor,
    order: tl.tensor,
    sentences: tl.tensor,
    marginals: tl.tensor,
    pairs: tl.tensor,
    past: tl.tensor,
    expected: tl.tensor,
    labels: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    by_token: tl.constexpr,
) -> None:
    """Expected scores of sentences; `past[t, j]`: that of tokens 0..t given that `t` has label `j`, less its mean."""
    there, sentence, first, length = sentences_of_program(offsets, order, sentences, block)
    longest = tl.max(length, 0)
    label = tl.arange(0, width)
    real = (label < labels)[None, :]
    cell = first[:, None] * labels + label[None, :]
    shared = load_moves(transitions, first, there, labels, width, False) if not by_token else 0.0

    here = (length > 0)[:, None] & real
    probability = tl.load(marginals + cell, mask=here, other=0.0)
    row = tl.load(start + sentence[:, None] * start_step + label[None, :], mask=here, other=0.0)
    row = tl.where(probability > 0, row + tl.load(evidence + cell, mask=here, other=0.0), 0.0)
    mean = tl.sum(probability * row, 1)
    total = mean
    row -= mean[:, None]
    tl.store(past + cell, row, mask=here)
    t = tl.zeros_like(longest) + 1
    while t < longest:
        cell += labels
        going = t < length
        here = going[:, None] & real
        probability = tl.load(marginals + cell, mask=here, other=0.0)
        both = _load_pairs(pairs, first + t, going, labels, width)
        moves = load_moves(transitions, first + t, going, labels, width, True) if by_token else shared
        local = _scores(both, moves, tl.load(evidence + cell, mask=here, other=0.0))
        total += tl.sum(tl.sum(both * local, 2), 1)
        row = _ratio(tl.sum(both * (row[:, :, None] + local), 1), tl.sum(both, 1))
        row -= tl.sum(probability * row, 1)[:, None]
        tl.store(past + cell, row, mask=here)
        t += 1
    tl.store(expected + sentence, total, mask=there)


@triton.jit
def _covariances(
    transitions: tl.tensor,
    evidence: tl.tensor,
    offsets: tl.tensor,
    order: tl.tensor,
    sentences: tl.tensor,
    marginals: tl.tensor,
    pairs: tl.tensor,
    past: tl.tensor,
    of_labels: tl.tensor,
    of_pairs: tl.tensor,
    labels: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    by_token: tl.constexpr,
) -> None:
    """Covariances with the score: of labels, and of pairs by token or, if transitions are shared, by sentence."""
    there, sentence, first, length = sentences_of_program(offsets, order, sentences, block)
    longest = tl.max(length, 0)
    label = tl.arange(0, width)
    real = (label < labels)[None, :]
    pair, real_pair = pairs_of_labels(labels, width)
    shared = load_moves(transitions, first, there, labels, width, False) if not by_token else 0.0

    t = longest - 1
    cell = (first + t)[:, None] * labels + label[None, :]
    here = (t < length)[:, None] & real
    row = tl.load(past + cell, mask=here, other=0.0)
    future = tl.zeros_like(row)
    sums = tl.zeros([block, width, width], tl.float64)
    while t > 0:
        going = t < length
        here = going[:, None] & real
        tl.store(of_labels + cell, tl.load(marginals + cell, mask=here, other=0.0) * (row + future), mask=here)
        both = _load_pairs(pairs, first + t, going, labels, width)
        moves = load_moves(transitions, first + t, going, labels, width, True) if by_token else shared
        local = _scores(both, moves, tl.load(evidence + cell, mask=here, other=0.0))
        cell -= labels
        row = tl.load(past + cell, mask=(t <= length)[:, None] & real, other=0.0)
        mean = tl.sum(tl.sum(both * local, 2), 1)[:, None, None]
        slopes = both * (row[:, :, None] + local - mean + future[:, None, :])
        if by_token:
            matrix = (first + t)[:, None, None] * (labels * labels)
            tl.store(of_pairs + matrix + pair, slopes, mask=going[:, None, None] & real_pair)
        else:
            sums += slopes
        ahead = tl.sum(both * (local + future[:, None, :]), 2)
        before = _ratio(ahead, tl.sum(both, 2)) - tl.sum(ahead, 1)[:, None]
        future = tl.where(going[:, None], before, 0.0)
        t -= 1
    here = (length > 0)[:, None] & real
    tl.store(of_labels + cell, tl.load(marginals + cell, mask=here, other=0.0) * (row + future), mask=here)
    if not by_token:
        own = sentence[:, None, None] * (labels * labels)
        tl.store(of_pairs + own + pair, sums, mask=there[:, None, None] & real_pair)


def score_covariances(
    potentials: tuple[Tensor, Tensor, Tensor], offsets: Tensor, marginals: Tensor, pairs: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Expected scores [sentences], and covariances of labels and of pairs with the score, from marginals by token.

    Args:
        potentials: start, transitions and evidence as `triton_kernels.forward_backward` takes them.
        offsets: of shape [sentences + 1].
        marginals: of shape [tokens, labels].
        pairs: of shape [tokens, labels, labels].

    Covariances of pairs are [tokens, labels, labels], or sums over each sentence where transitions are shared. All are
    zero for a sentence without a possible path.
    """
    start, transitions, evidence = potentials
    tokens, labels = evidence.shape
    layout = Layout.of(offsets, labels)
    by_token, sentences = transitions.dim() == 3, len(layout.order)
    expected, past, of_labels = evidence.new_zeros(sentences), torch.empty_like(evidence), torch.empty_like(evidence)
    of_pairs = evidence.new_zeros((tokens if by_token else sentences, labels, labels))
    if tokens:
        step = labels if start.dim() == 2 else 0
        given, places = (transitions, evidence, offsets, layout.order, sentences), (marginals, pairs, past)
        constants = layout.constants(labels, by_token)
        with torch.cuda.device(evidence.get_device()):
            _centre_past[layout.grid](start, step, *given, *places, expected, **constants)
            _covariances[layout.grid](*given, *places, of_labels, of_pairs, **constants)
    return expected, of_labels, of_pairs
