r"""The layers of the conditional HMM between products and chain, as torch functions with gradients in closed form.

Over matrices of a handful of labels, torch spends its time on the number of its operations and on softmax along short
axes. Each function here is one compiled pass over the tokens, and one for the gradient; the only arrays that grow with
a batch are those that go in and come out, and the probabilities that the gradient needs.
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from tagweave.chain.compiling import FloatArray, compiled
from tagweave.chain.exponentials import exponentiate
from tagweave.chain.threads import run_blocks, thread_limit

BLOCK = 1024
"""Tokens of a block, for one thread."""


class Places(NamedTuple):
    """Where the document of each token begins and ends, each of shape [tokens]."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64]) -> "Places":
        """Of the tokens of documents that begin and end at `offsets`, of shape [documents + 1]."""
        lengths = np.diff(offsets)
        return cls(np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths))


def log_moves(scores: Tensor, base: Tensor, places: Places, context: int) -> Tensor:
    r"""Log-probabilities of each label after each label, from what a token and its neighbours say.

    \[ m_{tij} = \log \mathrm{softmax}_j \Big(b_{ij} + \sum_{|d| \le c} s_{t+d, c+d, j}\Big) \]

    where neighbours in other documents say nothing.

    Args:
        scores: of shape [tokens, (2 * context + 1) * labels], or with labels squared, for each move by itself.
        base: of shape [labels, labels]; minus infinity forbids a move.
        places: the documents of the tokens.
        context: neighbours on each side.

    Returns:
        Of shape [tokens, labels, labels], with gradients for `scores` and `base`.
    """
    return cast(Tensor, _LogMoves.apply(scores, base, places, context))  # type: ignore[no-untyped-call]


def log_likelihoods(scores: Tensor, base: Tensor, said: NDArray[np.float32]) -> Tensor:
    r"""Log-probability of the votes under each label, where emissions are those of the token.

    \[ \ell_{ti} = \sum_k \log \sum_j \mathrm{softmax}_j (b_{kij} + s_{tkij})\, x_{tkj} \]

    Args:
        scores: of shape [tokens, sources * labels * labels].
        base: of shape [sources, labels, labels].
        said: votes as distributions, of shape [tokens, sources, labels]; a row of zeros is none.

    Returns:
        Of shape [tokens, labels], with gradients for `scores` and `base`.
    """
    return cast(Tensor, _LogLikelihoods.apply(scores, base, said))  # type: ignore[no-untyped-call]


class _LogMoves(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, base: Tensor, places: Places, context: int) -> Tensor:  # noqa: ANN401
        size = len(base)
        given, added = scores.detach().contiguous().numpy(), base.detach().numpy()
        logs = np.empty((len(given), size, size), given.dtype)
        chances = np.empty_like(logs)
        _run(lambda own, _: _fill_moves(given, added, places, context, own, logs, chances), len(given))
        ctx.data = chances, places, context, scores.shape[1] // (2 * context + 1)
        return torch.from_numpy(logs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor, None, None]:  # noqa: ANN401
        chances, places, context, outputs = ctx.data
        given = slopes.contiguous().numpy()
        sums = np.zeros((_blocks(len(given)) + 1, *chances.shape[1:]))
        own_slopes = np.empty((len(given), outputs), given.dtype)
        _run(lambda own, block: _slopes_of_moves(given, chances, own, own_slopes, sums[block]), len(given))
        spread = own_slopes
        if context:
            spread = np.empty((len(given), (2 * context + 1) * outputs), given.dtype)
            _run(lambda own, _: _spread(own_slopes, places, context, own, spread), len(given))
        return torch.from_numpy(spread), torch.from_numpy(sums.sum(0).astype(given.dtype)), None, None


class _LogLikelihoods(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, base: Tensor, said: NDArray[np.float32]) -> Tensor:  # noqa: ANN401
        given, added = scores.detach().contiguous().numpy(), base.detach().numpy()
        logs = np.empty((len(given), base.shape[1]), given.dtype)
        chances = np.empty((len(given), *base.shape), given.dtype)
        _run(lambda own, _: _fill_likelihoods(given, added, said, own, logs, chances), len(given))
        ctx.data = chances, said
        return torch.from_numpy(logs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        chances, said = ctx.data
        given = slopes.contiguous().numpy()
        sums = np.zeros((_blocks(len(given)) + 1, *chances.shape[1:]))
        own_slopes = np.empty_like(chances)
        _run(lambda own, block: _slopes_of_likelihoods(given, chances, said, own, own_slopes, sums[block]), len(given))
        spread = torch.from_numpy(own_slopes.reshape(len(given), -1))
        return spread, torch.from_numpy(sums.sum(0).astype(given.dtype)), None


def _blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)


def _run(work: Callable[[tuple[int, int], int], None], tokens: int) -> None:
    """Call `work` with the first and last token and the number of every block, in several threads."""
    threads = min(thread_limit(), torch.get_num_threads())
    run_blocks(lambda b: work((b * BLOCK, min(tokens, (b + 1) * BLOCK)), b), _blocks(tokens), threads)


@compiled
def _take_tops(rows: FloatArray) -> None:
    """Subtract its largest number from each row."""
    for r in range(rows.shape[0]):
        top = rows[r, 0]
        for j in range(1, rows.shape[1]):
            top = max(top, rows[r, j])
        for j in range(rows.shape[1]):
            rows[r, j] -= top


@compiled
def _log_softmax(rows: FloatArray, chances: FloatArray) -> None:
    """Turn rows of logits into logarithms of probabilities, and fill `chances` with the probabilities."""
    _take_tops(rows)
    chances[:] = rows
    exponentiate(chances.reshape(-1))
    for r in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += chances[r, j]
        logarithm, scale = log(total), 1.0 / total
        for j in range(rows.shape[1]):
            rows[r, j] -= logarithm
            chances[r, j] *= scale


@compiled
def _fill_moves(
    scores: FloatArray,
    base: FloatArray,
    places: Places,
    context: int,
    own: tuple[int, int],
    logs: FloatArray,
    chances: FloatArray,
) -> None:
    """Fill `logs` and `chances` of the tokens `own[0]` up to `own[1]`; see `log_moves`."""
    size, outputs = base.shape[0], scores.shape[1] // (2 * context + 1)
    step = size if outputs > size else 0
    for t in range(own[0], own[1]):
        logs[t] = base
        for d in range(-context, context + 1):
            if places.first[t] <= t + d < places.last[t]:
                part = scores[t + d, (context + d) * outputs : (context + d + 1) * outputs]
                for i in range(size):
                    for j in range(size):
                        logs[t, i, j] += part[i * step + j]
    _log_softmax(logs[own[0] : own[1]].reshape(-1, size), chances[own[0] : own[1]].reshape(-1, size))


@compiled
def _slopes_of_moves(
    slopes: FloatArray, chances: FloatArray, own: tuple[int, int], own_slopes: FloatArray, sums: FloatArray
) -> None:
    """Slopes along what is said about each token, and along the base, for the tokens `own[0]` up to `own[1]`."""
    size = chances.shape[1]
    step = size if own_slopes.shape[1] > size else 0
    for t in range(own[0], own[1]):
        own_slopes[t] = 0.0
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += slopes[t, i, j]
            for j in range(size):
                slope = slopes[t, i, j] - chances[t, i, j] * total
                own_slopes[t, i * step + j] += slope
                sums[i, j] += slope


@compiled
def _spread(slopes: FloatArray, places: Places, context: int, own: tuple[int, int], spread: FloatArray) -> None:
    """Slopes along what each token says about itself and its neighbours."""
    outputs = slopes.shape[1]
    for t in range(own[0], own[1]):
        for d in range(-context, context + 1):
            part = spread[t, (context + d) * outputs : (context + d + 1) * outputs]
            there = places.first[t] <= t - d < places.last[t]
            for j in range(outputs):
                part[j] = slopes[t - d, j] if there else 0.0


@compiled
def _fill_likelihoods(
    scores: FloatArray,
    base: FloatArray,
    said: FloatArray,
    own: tuple[int, int],
    logs: FloatArray,
    chances: FloatArray,
) -> None:
    """Fill `logs` and `chances` of the tokens `own[0]` up to `own[1]`; see `log_likelihoods`."""
    sources, size = base.shape[:2]
    part, flat = chances[own[0] : own[1]], base.reshape(-1)
    for t in range(part.shape[0]):
        row = part[t].reshape(-1)
        for n in range(len(flat)):
            row[n] = scores[own[0] + t, n] + flat[n]
    _take_tops(part.reshape(-1, size))
    exponentiate(part.reshape(-1))
    for t in range(part.shape[0]):
        row = logs[own[0] + t]
        row[:] = 0.0
        for k in range(sources):
            vote, voted = said[own[0] + t, k], 0.0
            for j in range(size):
                voted += vote[j]
            for i in range(size):
                total, agreed = 0.0, 0.0
                for j in range(size):
                    total += part[t, k, i, j]
                    agreed += part[t, k, i, j] * vote[j]
                scale = 1.0 / total
                for j in range(size):
                    part[t, k, i, j] *= scale
                if voted > 0:
                    row[i] += log(agreed * scale)


@compiled
def _slopes_of_likelihoods(
    slopes: FloatArray,
    chances: FloatArray,
    said: FloatArray,
    own: tuple[int, int],
    own_slopes: FloatArray,
    sums: FloatArray,
) -> None:
    """Slopes along scores and base, for the tokens `own[0]` up to `own[1]`; zero where a source abstains."""
    sources, size = chances.shape[1:3]
    for t in range(own[0], own[1]):
        for k in range(sources):
            vote = said[t, k]
            for i in range(size):
                row, result = chances[t, k, i], own_slopes[t, k, i]
                agreed = 0.0
                for j in range(size):
                    agreed += row[j] * vote[j]
                share = slopes[t, i] / agreed if agreed > 0 else 0.0
                for j in range(size):
                    result[j] = row[j] * (share * vote[j] - slopes[t, i]) if agreed > 0 else 0.0
                    sums[k, i, j] += result[j]
