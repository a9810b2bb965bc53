r"""The recursions in torch, for any device: all sentences at once, padded, in log space.

Tensors are [sentences, longest, ...]; padding stands at the end and is never read. Shared potentials keep an axis of
one. No gradient flows through these functions: they are explicit forward and backward passes (appendix A.1 of Li et
al., 2021), one step of the loop per token of the longest sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Padding:
    """Where packed tokens stand in a padded tensor."""

    sentence: Tensor
    """Number of the sentence of each token, [tokens]."""

    place: Tensor
    """Place of each token in its sentence, [tokens]."""

    mask: Tensor
    """True where a token is, [sentences, longest]."""

    @classmethod
    def of(cls, offsets: Tensor) -> "Padding":
        """The padding of packed sentences that begin and end at `offsets`, [sentences + 1]."""
        lengths = offsets.diff()
        numbers = torch.arange(len(lengths), device=offsets.device)
        sentence = torch.repeat_interleave(numbers, lengths)
        place = torch.arange(len(sentence), device=offsets.device) - offsets[sentence]
        longest = int(lengths.max()) if len(lengths) else 0
        return cls(sentence, place, torch.arange(longest, device=offsets.device) < lengths[:, None])

    def pad(self, packed: Tensor) -> Tensor:
        """[tokens, ...] to [sentences, longest, ...], zeros where no token is."""
        padded = packed.new_zeros((*self.mask.shape, *packed.shape[1:]))
        padded[self.sentence, self.place] = packed
        return padded

    def pack(self, padded: Tensor) -> Tensor:
        """[sentences, longest, ...] to [tokens, ...]."""
        return padded[self.sentence, self.place]


@dataclass(frozen=True, eq=False)
class PaddedChain:
    """Padded potentials, as logarithms."""

    start: Tensor
    """[1 or sentences, labels]."""

    transitions: Tensor
    """[1 or sentences, 1 or longest, labels, labels], from and to."""

    evidence: Tensor
    """[sentences, longest, labels]."""

    mask: Tensor
    """True where a token is, [sentences, longest]."""

    def moves(self, t: int) -> Tensor:
        """The transitions to token `t`, [1 or sentences, labels, labels]."""
        return self.transitions[:, t if self.transitions.shape[1] > 1 else 0]


def forward(chain: PaddedChain) -> tuple[Tensor, Tensor]:
    r"""Log-partitions [sentences], and \(\log p(z_t = i \mid x_{0..t})\), zero in the padding."""
    sentences, longest, labels = chain.evidence.shape
    row = chain.evidence.new_zeros((sentences, labels))
    log_partition, rows = chain.evidence.new_zeros(sentences), []
    for t in range(longest):
        active = chain.mask[:, t]
        before = chain.start if t == 0 else torch.logsumexp(row[:, :, None] + chain.moves(t), 1)
        row = torch.where(active[:, None], before + chain.evidence[:, t], 0.0)
        total = torch.where(active, torch.logsumexp(row, 1), 0.0)
        log_partition = log_partition + total
        row = torch.where(active[:, None], row - _finite(total)[:, None], 0.0)
        rows.append(row)
    return log_partition, torch.stack(rows, 1) if rows else chain.evidence


def backward(chain: PaddedChain, alpha: Tensor) -> Iterator[tuple[int, Tensor, Tensor | None]]:
    r"""Yield \((t, p(z_t \mid x), p(z_{t-1}, z_t \mid x))\) from the last place to the first; no pair at place 0.

    What stands in the padding, and in sentences without a possible path, means nothing.
    """
    beta = torch.zeros_like(alpha[:, 0]) if alpha.shape[1] else alpha
    for t in range(alpha.shape[1] - 1, -1, -1):
        marginal = torch.exp(alpha[:, t] + beta)
        if t == 0:
            yield t, marginal, None
            return
        active = chain.mask[:, t, None]
        future = chain.evidence[:, t] + beta
        before = torch.logsumexp(chain.moves(t) + future[:, None, :], 2)
        total = _finite(torch.logsumexp(alpha[:, t - 1] + before, 1))[:, None]
        yield t, marginal, torch.exp(alpha[:, t - 1, :, None] + chain.moves(t) + (future - total)[:, None, :])
        beta = torch.where(active, before - total, 0.0)


def posterior(chain: PaddedChain, by_token: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Log-partitions [sentences], marginals, and pair marginals by token or summed over each sentence.

    Pair marginals are [sentences, longest, labels, labels] or [sentences, labels, labels]. A sentence without a
    possible path has the log-partition minus infinity and zeros.
    """
    log_partition, alpha = forward(chain)
    sentences, longest, labels = chain.evidence.shape
    possible = log_partition > -torch.inf
    marginals = torch.zeros_like(chain.evidence)
    pairs = marginals.new_zeros((sentences, longest, labels, labels) if by_token else (sentences, labels, labels))
    for t, marginal, pair in backward(chain, alpha):
        real = (chain.mask[:, t] & possible)[:, None]
        marginals[:, t] = torch.where(real, marginal, 0.0)
        if pair is not None:
            pair = torch.where(real[:, None], pair, 0.0)
            if by_token:
                pairs[:, t] = pair
            else:
                pairs += pair
    return log_partition, marginals, pairs


def score_covariances(chain: PaddedChain, marginals: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Expected scores [sentences], and covariances of labels and of pairs with the score, from marginals by token.

    See `tagweave.chain.covariances`, which does the same in a compiled kernel.
    """
    longest = marginals.shape[1]
    expected = marginals.new_zeros(len(marginals))
    past: list[Tensor] = []
    local_scores: list[Tensor] = []
    for t in range(longest):
        if t == 0:
            row = torch.where(marginals[:, 0] > 0, chain.start + chain.evidence[:, 0], 0.0)
            expected = expected + (marginals[:, 0] * row).sum(1)
            local_scores.append(torch.zeros_like(pairs[:, 0]))
        else:
            pair = pairs[:, t]
            local = torch.where(pair > 0, chain.moves(t) + chain.evidence[:, t, None, :], 0.0)
            expected = expected + (pair * local).sum((1, 2))
            row = _ratio((pair * (past[-1][:, :, None] + local)).sum(1), pair.sum(1))
            local_scores.append(local)
        past.append(row - (marginals[:, t] * row).sum(1, keepdim=True))
    labels_out, pairs_out = torch.zeros_like(marginals), torch.zeros_like(pairs)
    future = torch.zeros_like(marginals[:, 0]) if longest else marginals
    for t in range(longest - 1, -1, -1):
        labels_out[:, t] = marginals[:, t] * (past[t] + future)
        if t > 0:
            pair, local = pairs[:, t], local_scores[t]
            mean = (pair * local).sum((1, 2))[:, None, None]
            pairs_out[:, t] = pair * (past[t - 1][:, :, None] + local - mean + future[:, None, :])
            sums = (pair * (local + future[:, None, :])).sum(2)
            future = _ratio(sums, pair.sum(2)) - sums.sum(1, keepdim=True)
    return expected, labels_out, pairs_out


def _finite(values: Tensor) -> Tensor:
    """Zero in place of minus infinity, so that subtracting it from minus infinity is not NaN."""
    return torch.where(values == -torch.inf, 0.0, values)


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Zero over zero is zero."""
    return numerator / torch.where(denominator > 0, denominator, 1.0)
