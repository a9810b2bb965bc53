r"""The recursions as Triton kernels, for CUDA: packed sentences where they lie, in log space.

Sentences of similar length go together, as many as make a block of 256 pairs of labels: a program holds the values of
a step as [sentences, from, to] in registers and takes its sentences token by token. There are two kernels. The first
goes forward and leaves \(\log p(z_t = i \mid x_{0..t})\) behind; the second goes back, and computes marginals and
pair marginals as it goes. Labels are padded to a power of two, in registers only, with minus infinity.

Why in log space: the processor's kernel works with scaled probabilities, and sentences in which that loses something
are computed again. It has the range of doubles; in single precision that would be many sentences, and a program that
waits for one of its sentences to be done again waits with all of them. Exponentials, the price of log space, are
instructions of their own on a graphics card, so that time goes to memory instead.

Why in the float type of the potentials: most cards have a few units for double precision only. What is normalised at
each token is near zero where it matters, so float32 keeps probabilities to about 1e-6; what sums over tokens, the
log-partition and the pair marginals of a sentence, is float64. Scores of a token that lie thousands apart are rounded
to what float32 has for such numbers; give float64 for more.

The module needs the package triton, which comes with torch for CUDA. With `TRITON_INTERPRET=1` in the environment
before triton is imported, the same kernels run on tensors of the processor, very slowly.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

PAIRS_OF_A_BLOCK = 256
"""Pairs of labels of all sentences of a program: a few numbers for each thread of a warp."""

PAIRS_OF_A_WARP = 1024
"""More pairs than these go to more than one warp."""


@triton.jit
def _finite(values: tl.tensor) -> tl.tensor:
    """Zero in place of minus infinity, so that subtracting it from minus infinity is not NaN."""
    return tl.where(values == float("-inf"), 0.0, values)


@triton.jit
def _log_sum(values: tl.tensor, axis: tl.constexpr) -> tl.tensor:
    """The logarithm of the sum of exponentials along an axis; minus infinity where all are, NaN where one is."""
    top = _finite(tl.max(values, axis))
    return top + tl.log(tl.sum(tl.exp(values - tl.expand_dims(top, axis)), axis))


@triton.jit
def sentences_of_program(
    offsets: tl.tensor, order: tl.tensor, sentences: tl.tensor, block: tl.constexpr
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Whether there are so many sentences; their numbers, first tokens and lengths; each of shape [block]."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    there = place < sentences
    sentence = tl.load(order + place, mask=there, other=0)
    first = tl.load(offsets + sentence, mask=there, other=0)
    return there, sentence, first, tl.load(offsets + sentence + 1, mask=there, other=0) - first


@triton.jit
def pairs_of_labels(labels: tl.constexpr, width: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """Where the entries of a matrix are, and which of them are no padding, [1, from, to]."""
    label = tl.arange(0, width)
    real = (label[:, None] < labels) & (label[None, :] < labels)
    return (label[:, None] * labels + label[None, :])[None, :, :], real[None, :, :]


@triton.jit
def load_moves(
    transitions: tl.tensor,
    token: tl.tensor,
    going: tl.tensor,
    labels: tl.constexpr,
    width: tl.constexpr,
    by_token: tl.constexpr,
) -> tl.tensor:
    """Transitions to a token of each sentence, [sentences or 1, from, to], minus infinity in the padding."""
    pair, real = pairs_of_labels(labels, width)
    if by_token:
        places = token[:, None, None] * (labels * labels) + pair
        return tl.load(transitions + places, mask=going[:, None, None] & real, other=float("-inf"))
    else:
        return tl.load(transitions + pair, mask=real, other=float("-inf"))


@triton.jit
def _forward(
    start: tl.tensor,
    start_step: tl.tensor,
    transitions: tl.tensor,
    evidence: tl.tensor,
    offsets: tl.tensor,
    order: tl.tensor,
    sentences: tl.tensor,
    log_partitions: tl.tensor,
    alpha: tl.tensor,
    labels: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    by_token: tl.constexpr,
) -> None:
    """Log-partitions, and logarithms of the label of each token given the tokens up to it."""
    there, sentence, first, length = sentences_of_program(offsets, order, sentences, block)
    longest = tl.max(length, 0)
    label = tl.arange(0, width)
    real = (label < labels)[None, :]

    row = tl.load(
        start + sentence[:, None] * start_step + label[None, :], mask=there[:, None] & real, other=float("-inf")
    )
    shared = load_moves(transitions, first, there, labels, width, False) if not by_token else 0.0
    total_so_far = tl.zeros([block], tl.float64)
    t = tl.zeros_like(longest)
    while t < longest:
        going = t < length
        token = first + t
        here = going[:, None] & real
        scores = tl.load(evidence + token[:, None] * labels + label[None, :], mask=here, other=float("-inf"))
        top = _finite(tl.max(scores, 1))
        if t > 0:
            moves = load_moves(transitions, token, going, labels, width, True) if by_token else shared
            row = _log_sum(row[:, :, None] + moves, 1)
        row = row + (scores - top[:, None])
        total = _log_sum(row, 1)
        row = row - _finite(total)[:, None]
        tl.store(alpha + token[:, None] * labels + label[None, :], row, mask=here)
        total_so_far += tl.where(going, top.to(tl.float64) + total.to(tl.float64), 0.0)
        t += 1
    tl.store(log_partitions + sentence, total_so_far, mask=there)


@triton.jit
def _backward(
    transitions: tl.tensor,
    evidence: tl.tensor,
    offsets: tl.tensor,
    order: tl.tensor,
    sentences: tl.tensor,
    log_partitions: tl.tensor,
    alpha: tl.tensor,
    marginals: tl.tensor,
    pairs: tl.tensor,
    labels: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
    by_token: tl.constexpr,
    keep_pairs: tl.constexpr,
) -> None:
    """Marginals and pair marginals, from what `_forward` left behind; zeros for a sentence without a possible path."""
    there, sentence, first, length = sentences_of_program(offsets, order, sentences, block)
    possible = (tl.load(log_partitions + sentence, mask=there, other=0.0) > float("-inf"))[:, None]
    longest = tl.max(length, 0)
    label = tl.arange(0, width)
    real = (label < labels)[None, :]
    pair, real_pair = pairs_of_labels(labels, width)

    shared = load_moves(transitions, first, there, labels, width, False) if not by_token else 0.0
    t = longest - 1
    cell = (first + t)[:, None] * labels + label[None, :]
    row = tl.load(alpha + cell, mask=(t < length)[:, None] & real, other=float("-inf"))
    beta = tl.zeros_like(row)
    counts = tl.zeros([block, width, width], tl.float64)
    while t > 0:
        going = t < length
        here = going[:, None] & real
        tl.store(marginals + cell, tl.where(possible, tl.exp(row + beta), 0.0), mask=here)
        scores = tl.load(evidence + cell, mask=here, other=float("-inf"))
        future = scores - _finite(tl.max(scores, 1))[:, None] + beta
        moves = load_moves(transitions, first + t, going, labels, width, True) if by_token else shared
        through = moves + future[:, None, :]
        before = _log_sum(through, 2)
        cell -= labels
        row = tl.load(alpha + cell, mask=(t <= length)[:, None] & real, other=float("-inf"))
        total = _finite(_log_sum(row + before, 1))[:, None]
        both = tl.where(possible[:, :, None], tl.exp(row[:, :, None] + through - total[:, :, None]), 0.0)
        if keep_pairs:
            matrix = (first + t)[:, None, None] * (labels * labels)
            tl.store(pairs + matrix + pair, both, mask=going[:, None, None] & real_pair)
        else:
            counts += both.to(tl.float64)
        beta = tl.where(going[:, None], before - total, 0.0)
        t -= 1
    begun = length > 0
    tl.store(marginals + cell, tl.where(possible, tl.exp(row + beta), 0.0), mask=begun[:, None] & real)
    if not keep_pairs:
        own = sentence[:, None, None] * (labels * labels)
        tl.store(pairs + own + pair, counts, mask=there[:, None, None] & real_pair)


class Layout(NamedTuple):
    """How sentences are spread over programs."""

    order: Tensor
    """Numbers of the sentences, the longest first."""

    width: int
    """Labels, padded to a power of two."""

    block: int
    """Sentences of a program."""

    warps: int
    """Groups of 32 threads of a program."""

    @classmethod
    def of(cls, offsets: Tensor, labels: int) -> "Layout":
        """The layout for sentences that begin and end at `offsets`."""
        width = max(2, triton.next_power_of_2(labels))
        block = max(1, PAIRS_OF_A_BLOCK // width**2)
        warps = min(8, max(1, width**2 // PAIRS_OF_A_WARP))
        return cls(torch.argsort(offsets.diff(), descending=True), width, block, warps)

    @property
    def grid(self) -> tuple[int]:
        """How many programs there are."""
        return (triton.cdiv(len(self.order), self.block),)

    def constants(self, labels: int, by_token: bool) -> dict[str, int | bool]:
        """What all kernels are compiled for."""
        sizes = {"labels": labels, "width": self.width, "block": self.block}
        return {**sizes, "by_token": by_token, "num_warps": self.warps}


def log_partition(start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Tensor) -> Tensor:
    """Log-partitions alone, [sentences] in float64; see `forward_backward`."""
    return _go_forward(start, transitions, evidence, offsets, Layout.of(offsets, evidence.shape[1]))[0]


def forward_backward(
    start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Tensor, keep_pairs: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partitions, marginals and pair marginals of every sentence, as `posterior.run` gives them.

    Args:
        start, transitions, evidence, offsets: see `tagweave.chain.posterior`; contiguous, of one float type, float32
            or float64, and on one device.
        keep_pairs: whether pair marginals are those of each token [tokens, labels, labels], in the type of the
            potentials and zero at a sentence's first token, or sums over each sentence [sentences, labels, labels] in
            float64.

    A sentence without a possible path has the log-partition minus infinity and zeros.
    """
    tokens, labels = evidence.shape
    layout = Layout.of(offsets, labels)
    log_partitions, alpha = _go_forward(start, transitions, evidence, offsets, layout)
    marginals = torch.empty_like(evidence)
    rows, kind = (tokens, evidence.dtype) if keep_pairs else (len(layout.order), torch.float64)
    pairs = evidence.new_zeros((rows, labels, labels), dtype=kind)
    if tokens:
        given = (transitions, evidence, offsets, layout.order, len(layout.order), log_partitions, alpha)
        constants = layout.constants(labels, transitions.dim() == 3)
        with torch.cuda.device(evidence.get_device()):
            _backward[layout.grid](*given, marginals, pairs, **constants, keep_pairs=keep_pairs)
    return log_partitions, marginals, pairs


def _go_forward(
    start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Tensor, layout: Layout
) -> tuple[Tensor, Tensor]:
    """Log-partitions [sentences], and logarithms of each label given the tokens up to it [tokens, labels]."""
    tokens, labels = evidence.shape
    log_partitions = evidence.new_zeros(len(layout.order), dtype=torch.float64)
    alpha = torch.empty_like(evidence)
    if tokens:
        step = labels if start.dim() == 2 else 0
        given = (start, step, transitions, evidence, offsets, layout.order, len(layout.order))
        with torch.cuda.device(evidence.get_device()):
            _forward[layout.grid](*given, log_partitions, alpha, **layout.constants(labels, transitions.dim() == 3))
    return log_partitions, alpha
