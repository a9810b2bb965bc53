r"""Log-partition and entropy of label chains as torch functions, with gradients in closed form.

Arguments are those of `tagweave.chain.posterior`, as tensors. Nothing is differentiated through time:

- the slope of \(\log Z\) along a potential is the posterior probability of its label or pair of labels (Fisher's
  identity). So `loss = -log_partition(...).mean()` has the gradient of the expected complete-data log-likelihood with
  the posteriors held fixed, eq. em.q of Li et al. (ACL 2021): one step on it is a step of generalised EM;
- the slope of the entropy is minus the covariance of that label or pair of labels with the score of the path. The
  expected complete-data log-likelihood itself is \(\log Z - H\); its gradient, `log_partition - entropy`, is the one of
  code that does not hold the posteriors fixed.

On the processor the compiled kernel reads the tensors where they lie, and so does the Triton kernel on CUDA. There are
devices without Triton: Apple's, CUDA on Windows, cards older than compute capability 7. On those, sentences are padded
and all of them take each step together, with operations that torch has anywhere. Gradients of gradients are not there.
"""

from importlib.util import find_spec
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from tagweave.chain import compiling, covariances, kernels, padded
from tagweave.chain.posterior import check_shapes, entropies, run
from tagweave.chain.threads import thread_limit

Offsets: TypeAlias = Tensor | NDArray[np.int64]
Potentials: TypeAlias = tuple[Tensor, Tensor, Tensor]
Statistics: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Values [sentences], slopes of labels [tokens, labels], slopes of pairs [sentences or tokens, labels, labels]."""


def log_partition(start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Offsets) -> Tensor:
    r"""\(\log Z\) of every sentence, [sentences]: the log-likelihood, if the chain is a hidden Markov model.

    Args:
        start: [labels], or [sentences, labels].
        transitions: [labels, labels] (from, to), or [tokens, labels, labels] with \(\log p(z_t = j \mid z_{t-1} = i)\)
            at `[t, i, j]`; the entry of a sentence's first token is not used and gets no gradient.
        evidence: [tokens, labels].
        offsets: where sentences begin and end, [sentences + 1].

    Returns:
        [sentences], of the float type of the potentials, float32 at least. Minus infinity, with a gradient of zero, for
        a sentence without a possible path.

    Raises:
        DataError: the shapes do not fit.

    >>> evidence = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    >>> start, transitions = torch.tensor([0.8, 0.2]).log(), torch.full((2, 2), 0.5).log()
    >>> value = log_partition(start, transitions, evidence, torch.tensor([0, 2, 3]))
    >>> value.sum().backward()
    >>> evidence.grad.round(decimals=3)
    tensor([[0.8000, 0.2000],
            [0.5000, 0.5000],
            [0.8000, 0.2000]], dtype=torch.float64)
    """
    potentials, places, kind = _prepare(start, transitions, evidence, offsets)
    wanted = _wants_slopes(start, transitions, evidence)
    ways = {"compiled": log_partition_on_cpu, "triton": log_partition_in_triton, "padded": log_partition_padded}
    statistics = ways[_way(evidence.device)](potentials, places, wanted)
    return _attach((start, transitions, evidence), places, statistics, kind)


def entropy(start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Offsets) -> Tensor:
    """Entropy of the posterior over label sequences of every sentence, in nats, [sentences].

    Arguments and errors are those of `log_partition`. Zero for a sentence without a possible path. The slopes need the
    pair marginals of each token, so memory grows with tokens times labels squared when a gradient is wanted.

    >>> zeros = torch.zeros(2, 2, dtype=torch.float64)
    >>> entropy(zeros[0], zeros, zeros, torch.tensor([0, 2])).exp().round(decimals=3)
    tensor([4.], dtype=torch.float64)
    """
    potentials, places, kind = _prepare(start, transitions, evidence, offsets)
    wanted = _wants_slopes(start, transitions, evidence)
    ways = {"compiled": entropy_on_cpu, "triton": entropy_in_triton, "padded": entropy_padded}
    statistics = ways[_way(evidence.device)](potentials, places, wanted)
    return _attach((start, transitions, evidence), places, statistics, kind)


def log_partition_on_cpu(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """Log-partitions and posterior probabilities from the compiled kernel; pairs only if slopes are wanted."""
    arrays, places = _as_arrays(potentials), offsets.numpy()
    shared = potentials[1].dim() == 2
    mode = (kernels.PAIRS_BY_SENTENCE if shared else kernels.PAIRS_BY_TOKEN) if wanted else kernels.NO_PAIRS
    values, marginals, pairs = run(arrays, places, mode, min(thread_limit(), torch.get_num_threads()))
    return torch.from_numpy(values), torch.from_numpy(marginals), torch.from_numpy(pairs)


def entropy_on_cpu(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """Entropies and their slopes from the compiled kernels; meaningless slopes if none are wanted."""
    arrays, places = _as_arrays(potentials), offsets.numpy()
    threads = min(thread_limit(), torch.get_num_threads())
    log_partitions, marginals, pairs = run(arrays, places, kernels.PAIRS_BY_TOKEN, threads)
    values = entropies(arrays, places, log_partitions, marginals, pairs)
    if wanted:
        covariances.score_covariances(arrays, places, marginals, pairs)
    slopes = -torch.from_numpy(marginals), -torch.from_numpy(pairs)
    return torch.from_numpy(values), *_by_sentence(slopes, offsets, wanted and potentials[1].dim() == 2)


def log_partition_in_triton(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """The same as `log_partition_on_cpu` on a graphics card."""
    from tagweave.chain import triton_kernels

    start, transitions, evidence = (part.contiguous() for part in potentials)
    if not wanted:
        return triton_kernels.log_partition(start, transitions, evidence, offsets), evidence, transitions
    by_token = transitions.dim() == 3
    return triton_kernels.forward_backward(start, transitions, evidence, offsets, keep_pairs=by_token)


def log_partition_padded(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """The same as `log_partition_on_cpu` on the device of the potentials."""
    chain, padding = _as_padded(potentials, offsets)
    by_token = potentials[1].dim() == 3
    if not wanted:
        return padded.forward(chain)[0], chain.evidence, chain.transitions
    values, marginals, pairs = padded.posterior(chain, by_token)
    return values, padding.pack(marginals), padding.pack(pairs) if by_token else pairs


def entropy_in_triton(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """The same as `entropy_on_cpu` on a graphics card, in double precision; `wanted` changes nothing."""
    from tagweave.chain import triton_covariances, triton_kernels

    start, transitions, evidence = (part.double().contiguous() for part in potentials)
    chain = start, transitions, evidence
    log_partitions, marginals, pairs = triton_kernels.forward_backward(*chain, offsets, keep_pairs=True)
    expected, labels, pairs = triton_covariances.score_covariances(chain, offsets, marginals, pairs)
    values = torch.where(log_partitions == -torch.inf, 0.0, (log_partitions - expected).clamp_min(0.0))
    return values, -labels, -pairs


def entropy_padded(potentials: Potentials, offsets: Tensor, wanted: bool) -> Statistics:
    """The same as `entropy_on_cpu` on the device of the potentials; `wanted` changes nothing."""
    chain, padding = _as_padded(potentials, offsets)
    log_partitions, marginals, pairs = padded.posterior(chain, True)
    expected, labels, pairs = padded.score_covariances(chain, marginals, pairs)
    values = torch.where(log_partitions == -torch.inf, 0.0, log_partitions - expected)
    slopes = -padding.pack(labels), -padding.pack(pairs)
    return values, *_by_sentence(slopes, offsets, potentials[1].dim() == 2)


class _WithSlopes(torch.autograd.Function):
    """Numbers per sentence whose slopes along all potentials are known."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        start: Tensor,
        transitions: Tensor,
        evidence: Tensor,
        offsets: Tensor,
        statistics: Statistics,
        kind: torch.dtype,
    ) -> Tensor:
        values, labels, pairs = statistics
        ctx.save_for_backward(offsets, labels, pairs)
        ctx.potentials = [(part.dim(), part.dtype) for part in (start, transitions, evidence)]
        return values.to(kind)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        offsets, labels, pairs = ctx.saved_tensors
        (start_axes, start_kind), (transition_axes, transition_kind), (_, evidence_kind) = ctx.potentials
        lengths = offsets.diff()
        by_token = torch.repeat_interleave(upstream, lengths)
        start_slope = transition_slope = evidence_slope = None
        if ctx.needs_input_grad[0]:
            start_slope = labels.new_zeros((len(lengths), labels.shape[1]))
            start_slope[lengths > 0] = labels[offsets[:-1][lengths > 0]]
            start_slope = _weighted(upstream, start_slope, start_axes == 1).to(start_kind)
        if ctx.needs_input_grad[1]:
            shared = transition_axes == 2
            transition_slope = _weighted(upstream if shared else by_token, pairs, shared).to(transition_kind)
        if ctx.needs_input_grad[2]:
            evidence_slope = _weighted(by_token, labels, False).to(evidence_kind)
        return start_slope, transition_slope, evidence_slope, None, None, None


def _weighted(weights: Tensor, slopes: Tensor, add_up: bool) -> Tensor:
    """Slopes times the weights of their first axis, summed over that axis if `add_up`."""
    weights = weights.to(slopes.dtype)
    if add_up:
        return torch.einsum("s,s...->...", weights, slopes)
    return weights.reshape(-1, *[1] * (slopes.dim() - 1)) * slopes


def _attach(potentials: Potentials, offsets: Tensor, statistics: Statistics, kind: torch.dtype) -> Tensor:
    """The values of `statistics`, tied to the potentials by their slopes."""
    return cast(Tensor, _WithSlopes.apply(*potentials, offsets, statistics, kind))  # type: ignore[no-untyped-call]


def _way(device: torch.device) -> str:
    """Which of the three ways to compute a chain there is on a device."""
    if device.type == "cpu":
        return "compiled"
    if device.type == "cuda" and find_spec("triton") is not None and torch.cuda.get_device_capability(device) >= (7, 0):
        return "triton"
    return "padded"


def _wants_slopes(*potentials: Tensor) -> bool:
    return torch.is_grad_enabled() and any(part.requires_grad for part in potentials)


def _prepare(
    start: Tensor, transitions: Tensor, evidence: Tensor, offsets: Offsets
) -> tuple[Potentials, Tensor, torch.dtype]:
    """Detached potentials of one float type, offsets on their device, and that type; DataError if shapes do not fit."""
    kind = torch.float32
    for part in (start, transitions, evidence):
        kind = torch.promote_types(kind, part.dtype)
    places = torch.as_tensor(offsets, dtype=torch.int64).contiguous()
    check_shapes(tuple(start.shape), tuple(transitions.shape), tuple(evidence.shape), places.cpu().numpy())
    detached = (start.detach().to(kind), transitions.detach().to(kind), evidence.detach().to(kind))
    return detached, places.to(evidence.device), kind


def _as_arrays(potentials: Potentials) -> compiling.Potentials:
    """Potentials as the kernels take them, without a copy where they are contiguous."""
    start, transitions, evidence = (part.contiguous().numpy() for part in potentials)
    return (
        start if start.ndim == 2 else start[np.newaxis],
        transitions if transitions.ndim == 3 else transitions[np.newaxis],
        evidence,
    )


def _as_padded(potentials: Potentials, offsets: Tensor) -> tuple[padded.PaddedChain, padded.Padding]:
    """Padded potentials, in float64 where the device has it."""
    kind = torch.float32 if offsets.device.type == "mps" else torch.float64
    start, transitions, evidence = (part.to(kind) for part in potentials)
    padding = padded.Padding.of(offsets)
    chain = padded.PaddedChain(
        start=start if start.dim() == 2 else start[None],
        transitions=padding.pad(transitions) if transitions.dim() == 3 else transitions[None, None],
        evidence=padding.pad(evidence),
        mask=padding.mask,
    )
    return chain, padding


def _by_sentence(slopes: tuple[Tensor, Tensor], offsets: Tensor, add_up: bool) -> tuple[Tensor, Tensor]:
    """Slopes of labels and pairs, those of pairs summed over each sentence if `add_up`."""
    labels, pairs = slopes
    if not add_up:
        return labels, pairs
    sentence = padded.Padding.of(offsets).sentence
    sums = pairs.new_zeros((len(offsets) - 1, *pairs.shape[1:]))
    return labels, sums.index_add_(0, sentence, pairs)
