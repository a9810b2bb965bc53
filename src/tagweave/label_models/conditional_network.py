r"""The network of the conditional HMM: transitions and emissions of every token from its embedding.

Li et al. (ACL 2021), equations mlp-1 and mlp-2, with one linear layer for each. The layers start at zero, and their
outputs are added to the logarithms of an anchor's statistics, so the first values are those statistics exactly.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tagweave.label_models.anchors import Counts
from tagweave.label_models.conditional_layers import Places, log_likelihoods, log_moves
from tagweave.label_models.projection import project
from tagweave.labels import LabelSet

_LEAST = 1e-6
"""A probability is read as at least this, so that what votes never say stays possible."""


@dataclass(frozen=True)
class Shape:
    """What the network is made of.

    Attributes:
        width: numbers of an embedding.
        context: neighbours on each side whose embeddings a token also sees.
        chained: whether a label depends on the one before it (token-wise transitions), or on the token alone.
        by_move: whether a token moves every transition by itself, or only the label that it leads to.
        token_emissions: whether emissions depend on the token.
        edge: probability that an entity goes on where the sources begin or cease to speak.
    """

    width: int
    context: int
    chained: bool
    by_move: bool
    token_emissions: bool
    edge: float


class Batch(NamedTuple):
    """Tokens of some documents, end to end.

    Attributes:
        features: embeddings of a whole corpus in half precision, of shape [tokens of the corpus, width].
        rows: which of them are those of the batch, of shape [tokens].
        offsets: of shape [documents + 1].
        own: share of the network in what is expected of a token; the rest is that of a tagger, and in `evidence`.
        weight: weight of the votes, with token-wise emissions; else it is in `evidence`.
        missed: probability of an entity that all sources miss, or None where silence is a vote like others.
        evidence: log-probability of what does not depend on the embedding, of shape [tokens, labels].
        said: votes as distributions of shape [tokens, sources, labels], rows of zeros where there is none; only for
            token-wise emissions.
        silent: where all sources that ran are silent, of shape [tokens].
    """

    features: NDArray[np.float16]
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    own: float
    weight: float
    missed: float | None
    evidence: Tensor
    said: NDArray[np.float32]
    silent: NDArray[np.bool_]


class Potentials(NamedTuple):
    """Logarithms for `tagweave.chain`: [documents, labels], [tokens, labels, labels], [tokens, labels]."""

    start: Tensor
    transitions: Tensor
    evidence: Tensor


class ConditionalNetwork(nn.Module):
    """Potentials of a chain from embeddings and votes.

    Attributes:
        scale: mean and inverse deviation of embeddings, of shape [2, width]; the layers see what is normalised by it.
    """

    base: Tensor
    legal: Tensor
    base_emissions: Tensor
    scale: Tensor

    def __init__(self, shape: Shape, labels: LabelSet, statistics: Counts, scale: NDArray[np.float32]) -> None:
        super().__init__()
        self.shape, size, sources = shape, len(labels), len(statistics.emissions)
        same_type = labels.type_ids[:, None] == labels.type_ids[None, :]
        entity = torch.from_numpy(labels.type_ids > 0)
        self.begins = entity & torch.from_numpy(~(same_type & ~labels.begins[None, :]))
        self.goes_on = entity & ~self.begins
        legal = torch.from_numpy(labels.legal_moves)
        moves = torch.from_numpy(statistics.transitions).float()
        if not shape.chained:
            moves = torch.from_numpy(statistics.start).float().expand(size, size)
        self.register_buffer("base", moves.log().masked_fill(~legal, -torch.inf) if shape.chained else moves.log())
        self.register_buffer("legal", torch.zeros(size, size).masked_fill(~legal, -torch.inf))
        self.register_buffer("base_emissions", torch.from_numpy(statistics.emissions).float().clamp_min(1e-6).log())
        self.register_buffer("scale", torch.from_numpy(scale))
        self.bias = nn.Parameter(torch.zeros(size, size) if shape.chained else torch.zeros(size))
        outputs = size * size if shape.by_move and shape.chained else size
        self.to_moves = nn.Linear(shape.width, outputs * (2 * shape.context + 1), bias=False)
        nn.init.zeros_(self.to_moves.weight)
        if shape.token_emissions:
            self.to_emissions = nn.Linear(shape.width, sources * size * size)
            nn.init.zeros_(self.to_emissions.weight)
            nn.init.zeros_(self.to_emissions.bias)

    def forward(self, batch: Batch) -> Potentials:
        """The potentials of a batch."""
        scores = self._scores(batch)
        moves = self._moves(batch, scores[:, : len(self.to_moves.weight)])
        first = batch.offsets[:-1]
        filled = np.diff(batch.offsets) > 0
        start = moves.new_zeros(len(first), moves.shape[-1])
        start[torch.from_numpy(filled)] = moves[torch.from_numpy(first[filled]), 0]
        evidence = batch.evidence
        if self.shape.token_emissions:
            base = self.base_emissions + self.to_emissions.bias.view_as(self.base_emissions)
            voted = log_likelihoods(scores[:, len(self.to_moves.weight) :], base, batch.said)
            evidence = evidence + batch.weight * voted
        return Potentials(start, moves, evidence)

    def penalty(self) -> Tensor:
        """Half the squared size of the weights that see embeddings."""
        total = self.to_moves.weight.square().sum()
        if self.shape.token_emissions:
            total = total + self.to_emissions.weight.square().sum()
        return total / 2

    def _scores(self, batch: Batch) -> Tensor:
        """What the layers make of the normalised embeddings, of shape [tokens, outputs of all layers]."""
        weights = self.to_moves.weight
        if self.shape.token_emissions:
            weights = torch.cat([weights, self.to_emissions.weight])
        mean, inverse = self.scale
        weights = weights * inverse
        products: Tensor = project(batch.features, batch.rows, weights) - weights @ mean
        return products

    def _moves(self, batch: Batch, scores: Tensor) -> Tensor:
        """What each label after each label adds, of shape [tokens, labels, labels]."""
        moves = log_moves(scores, self.base + self.bias, Places.of(batch.offsets), self.shape.context)
        if batch.own < 1:
            moves = moves.masked_fill(moves.isinf(), 0) * batch.own + self.legal
        elif not self.shape.chained:
            moves = moves + self.legal
        return moves if batch.missed is None else moves + self._silence(batch, batch.missed)

    def _silence(self, batch: Batch, missed: float) -> Tensor:
        """What the silence of all sources adds: an entity missed costs once, not for each of its tokens."""
        silent = batch.silent
        before = np.roll(silent, 1)
        first = batch.offsets[:-1][np.diff(batch.offsets) > 0]
        before[first] = silent[first]
        costs = torch.stack([math.log(max(missed, _LEAST)) * self.begins, math.log(self.shape.edge) * self.goes_on])
        kinds = torch.stack([costs.new_zeros(costs[0].shape), costs[0], costs[1], costs.sum(0)])
        return kinds[torch.from_numpy(silent + 2 * (silent != before))]
