r"""Products of frozen embeddings with weights, straight from the half-precision rows that lie on disk.

A layer on frozen embeddings has few outputs, so its products read much and compute little: to gather the rows of a
batch, widen them to single precision, normalise them and hand them to a matrix product goes over memory six times.
Here rows are widened one group at a time, in the processor's nearest cache, where all outputs use them. Normalisation
goes into the weights: \((e - m) \circ s \cdot w = e \cdot (s \circ w) - m \cdot (s \circ w)\).
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tagweave.chain.compiling import FloatArray, compiled
from tagweave.chain.threads import run_blocks, thread_limit

BLOCK = 1024
"""Rows of a block, for one thread. Gradients are summed by block, then over blocks in their order."""

_TOGETHER, _OUTPUTS = 8, 3
"""Rows that are widened at once; outputs whose sums are kept in registers at once."""


def project(features: NDArray[np.float16], rows: NDArray[np.int64], weights: Tensor) -> Tensor:
    """The products of some rows with all weights, with a gradient for the weights.

    Args:
        features: of shape [tokens, width], each row contiguous.
        rows: numbers of rows, of shape [chosen].
        weights: of shape [outputs, width], on the processor.

    Returns:
        Of shape [chosen, outputs], of the float type of the weights. A row that is not finite gives NaN.

    >>> features = np.array([[1, 2], [3, 4]], np.float16)
    >>> project(features, np.array([1, 1, 0]), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    tensor([[3., 7.],
            [3., 7.],
            [1., 3.]])
    """
    return cast(Tensor, _Projection.apply(weights, features.view(np.uint16), rows))  # type: ignore[no-untyped-call]


def moments(features: NDArray[np.float16]) -> NDArray[np.float64]:
    """Sums and sums of squares of each column, of shape [2, width].

    >>> moments(np.array([[1, 2], [3, 4]], np.float16)).tolist()
    [[4.0, 6.0], [10.0, 20.0]]
    """
    bits = features.view(np.uint16)
    sums = np.zeros((-(-len(bits) // BLOCK), 2, bits.shape[1]))
    _run_blocks(lambda own, block: _add_moments(bits[own], sums[block]), len(bits))
    total: NDArray[np.float64] = sums.sum(axis=0)
    return total


class _Projection(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, bits: NDArray[np.uint16], rows: NDArray[np.int64]) -> Tensor:  # noqa: ANN401
        groups = np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % _TOGETHER)])
        ctx.data = bits, groups
        outputs = len(weights)
        matrix = nn.functional.pad(weights, (0, 0, 0, -outputs % _OUTPUTS)).numpy()
        products = np.empty((len(groups), len(matrix)), matrix.dtype)
        _run_blocks(lambda own, _: _products(bits, groups[own], matrix, products[own]), len(groups))
        return torch.from_numpy(products)[: len(rows), :outputs]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        bits, groups = ctx.data
        outputs = slopes.shape[1]
        given = nn.functional.pad(slopes, (0, -outputs % _OUTPUTS, 0, len(groups) - len(slopes))).numpy()
        sums = np.zeros((-(-len(groups) // BLOCK), given.shape[1], bits.shape[1]), given.dtype)
        _run_blocks(lambda own, block: _add_products(bits, groups[own], given[own], sums[block]), len(groups))
        return torch.from_numpy(sums.sum(0)[:outputs]), None, None


def _run_blocks(work: Callable[[slice, int], None], rows: int) -> None:
    """Call `work` with the rows and the number of every block, in several threads."""
    threads = min(thread_limit(), torch.get_num_threads())
    run_blocks(lambda block: work(slice(block * BLOCK, (block + 1) * BLOCK), block), -(-rows // BLOCK), threads)


@compiled
def _widen(halves: NDArray[np.uint16], bits: NDArray[np.uint32], values: FloatArray) -> None:
    """Half-precision numbers in single precision; `bits` and `values` are the same memory."""
    for k in range(len(halves)):
        half = np.uint32(halves[k])
        size = half & np.uint32(0x7FFF)
        moved = ((half ^ size) << np.uint32(16)) | (size << np.uint32(13))
        # Infinity and NaN, which have the highest exponent, become NaN.
        bits[k] = moved if size < np.uint32(0x7C00) else np.uint32(0x7FC00000)
    for k in range(len(values)):
        values[k] *= np.float32(2.0**112)


@compiled
def _products(halves: NDArray[np.uint16], rows: NDArray[np.int64], weights: FloatArray, products: FloatArray) -> None:
    """Fill `products` [rows, outputs]; rows are a multiple of eight, and outputs of three."""
    outputs, width = weights.shape
    values = np.empty((_TOGETHER, width), np.float32)
    bits, zero = values.view(np.uint32), weights.dtype.type(0)
    for first in range(0, len(rows), _TOGETHER):
        for k in range(_TOGETHER):
            _widen(halves[rows[first + k]], bits[k], values[k])
        for j in range(0, outputs, _OUTPUTS):
            u, v, w = weights[j], weights[j + 1], weights[j + 2]
            for half in range(0, _TOGETHER, 4):
                a, b, c, d = values[half], values[half + 1], values[half + 2], values[half + 3]
                au = bu = cu = du = av = bv = cv = dv = aw = bw = cw = dw = zero
                for k in range(width):
                    au, bu, cu, du = au + a[k] * u[k], bu + b[k] * u[k], cu + c[k] * u[k], du + d[k] * u[k]
                    av, bv, cv, dv = av + a[k] * v[k], bv + b[k] * v[k], cv + c[k] * v[k], dv + d[k] * v[k]
                    aw, bw, cw, dw = aw + a[k] * w[k], bw + b[k] * w[k], cw + c[k] * w[k], dw + d[k] * w[k]
                t = first + half
                products[t, j], products[t, j + 1], products[t, j + 2] = au, av, aw
                products[t + 1, j], products[t + 1, j + 1], products[t + 1, j + 2] = bu, bv, bw
                products[t + 2, j], products[t + 2, j + 1], products[t + 2, j + 2] = cu, cv, cw
                products[t + 3, j], products[t + 3, j + 1], products[t + 3, j + 2] = du, dv, dw


@compiled
def _add_products(halves: NDArray[np.uint16], rows: NDArray[np.int64], slopes: FloatArray, sums: FloatArray) -> None:
    """Add what `slopes` [rows, outputs] times the rows is to `sums` [outputs, width]."""
    outputs, width = sums.shape
    values = np.empty((_TOGETHER, width), np.float32)
    bits = values.view(np.uint32)
    for first in range(0, len(rows), _TOGETHER):
        for k in range(_TOGETHER):
            _widen(halves[rows[first + k]], bits[k], values[k])
        for j in range(0, outputs, _OUTPUTS):
            u, v, w = sums[j], sums[j + 1], sums[j + 2]
            for half in range(0, _TOGETHER, 4):
                a, b, c, d = values[half], values[half + 1], values[half + 2], values[half + 3]
                t = first + half
                au, bu, cu, du = slopes[t, j], slopes[t + 1, j], slopes[t + 2, j], slopes[t + 3, j]
                j1, j2 = j + 1, j + 2
                av, bv, cv, dv = slopes[t, j1], slopes[t + 1, j1], slopes[t + 2, j1], slopes[t + 3, j1]
                aw, bw, cw, dw = slopes[t, j2], slopes[t + 1, j2], slopes[t + 2, j2], slopes[t + 3, j2]
                for k in range(width):
                    ak, bk, ck, dk = a[k], b[k], c[k], d[k]
                    u[k] += ak * au + bk * bu + ck * cu + dk * du
                    v[k] += ak * av + bk * bv + ck * cv + dk * dv
                    w[k] += ak * aw + bk * bw + ck * cw + dk * dw


@compiled
def _add_moments(halves: NDArray[np.uint16], sums: FloatArray) -> None:
    """Add the rows and their squares to `sums` [2, width]."""
    values = np.empty(halves.shape[1], np.float32)
    bits = values.view(np.uint32)
    for row in range(len(halves)):
        _widen(halves[row], bits, values)
        for k in range(len(values)):
            value = float(values[k])
            sums[0, k] += value
            sums[1, k] += value * value
