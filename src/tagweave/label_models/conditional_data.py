"""What the conditional HMM reads: votes and embeddings of a corpus, batch by batch."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.inference import own_share
from tagweave.labels import StateSpace
from tagweave.observations import ABSTAIN, Observations, observe

if TYPE_CHECKING:
    from tagweave.label_models.conditional_hmm import ConditionalModel
    from tagweave.label_models.conditional_network import Batch


class ConditionalData:
    """Votes and embeddings of a corpus, cut into batches for a model."""

    def __init__(self, model: "ConditionalModel", corpus: Corpus, features: NDArray[Any]) -> None:
        self._model, self._corpus, self._features = model, corpus, features
        corpus = without_crossings(corpus)
        observations = observe(corpus, model.state_space, model.silence_, model.probabilities)
        self._silent = _all_silent(corpus, model.state_space)
        if model.missed is not None:
            votes = np.where(self._silent[:, None], ABSTAIN, observations.votes).astype(np.int8)
            observations = replace(observations, votes=votes)
        self._observations = observations
        self._smoothed = _smoothed(corpus, observations) if model.observation_smoothing is not None else None
        emissions = model.learned().emissions
        self._judged = observations.log_judgement()
        self._voted = observations.of_votes().log_evidence(emissions)
        if model.emissions == "token":
            self._voted[:] = 0

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """Documents in random order, cut into batches."""
        chance = np.random.default_rng([self._model.seed, epoch])
        return self._cut(chance.permutation(len(self._corpus)))

    def in_order(self) -> list[NDArray[np.int64]]:
        """Documents in their order, cut into batches."""
        return self._cut(np.arange(len(self._corpus)))

    def _cut(self, documents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if not len(documents):
            return []
        lengths = np.diff(self._corpus.offsets)[documents]
        place = np.cumsum(lengths) - lengths
        return np.split(documents, np.flatnonzero(np.diff(place // self._model.batch_tokens)) + 1)

    def batch(self, documents: NDArray[np.int64]) -> "Batch":
        """Everything about some documents."""
        import torch

        from tagweave.label_models.conditional_network import Batch

        lengths = np.diff(self._corpus.offsets)[documents]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.repeat(self._corpus.offsets[documents] - offsets[:-1], lengths) + np.arange(offsets[-1])
        chosen = self._model.chosen_
        evidence = chosen["weight"] * self._voted[rows] + chosen["trust"] * self._judged[rows]
        return Batch(
            self._features,
            rows,
            offsets,
            own_share(chosen["trust"], len(self._observations.posteriors)),
            chosen["weight"],
            chosen.get("missed"),
            torch.from_numpy(evidence).float(),
            self._said(rows).astype(np.float32),
            self._silent[rows],
        )

    def _said(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Votes as distributions, of shape [rows, sources, labels]; empty where emissions are shared."""
        observations, size = self._observations, len(self._observations.labels)
        if self._model.emissions == "shared":
            return np.zeros((len(rows), 0, size))
        part = replace(observations, votes=observations.votes[rows], soft=observations.soft[rows])
        said = np.stack([part.source(k) for k in range(len(part.sources))], axis=1)
        if self._smoothed is not None:
            epsilon = self._model.observation_smoothing or 0.0
            spread = np.array([epsilon, *[(1 - epsilon) / size] * (size - 1)])
            said[self._smoothed[rows]] = spread / spread.sum()
        said[:, observations.posteriors] = 0
        return said

    def mean_votes(self) -> float:
        """How many sources vote for an entity on a token, the mean over tokens with such a vote; 1 where there is none.

        Sources that are taken at their word do not count.
        """
        observations = self._observations.of_votes()
        votes = (observations.votes > 0).sum(axis=1) + (observations.soft[:, :, 1:].sum(axis=2) > 0.5).sum(axis=1)
        return float(votes[votes > 0].mean()) if votes.any() else 1.0

    def loss(self, documents: NDArray[np.int64]) -> "tuple[Any, float]":
        """The negative objective of some documents, summed, and their tokens."""
        from tagweave.chain.differentiable import entropy, log_partition

        batch, network = self.batch(documents), self._model._network()
        potentials = network.forward(batch)
        chain = (potentials.start, potentials.transitions, potentials.evidence, batch.offsets)
        objective = log_partition(*chain).sum()
        if self._model.sharpening:
            objective = objective - self._model.sharpening * entropy(*chain).sum()
        tokens = float(batch.offsets[-1])
        return self._model.pull * tokens * network.penalty() - objective, tokens

    def describe(self, documents: NDArray[np.int64]) -> str:
        """The ids of the documents in a batch."""
        return ", ".join(repr(self._corpus.ids[int(index)].as_py()) for index in documents)


def _all_silent(corpus: Corpus, state_space: StateSpace) -> NDArray[np.bool_]:
    """Tokens on which sources ran and none says anything, of shape [tokens]."""
    votes = observe(corpus, state_space, "always").votes
    ran = [column.ran for column in corpus.sources.values() if isinstance(column, Annotations)]
    somebody = np.any(ran, axis=0) if ran else np.zeros(len(corpus), bool)
    silent: NDArray[np.bool_] = np.repeat(somebody, np.diff(corpus.offsets)) & (votes == ABSTAIN).all(axis=1)
    return silent


def _smoothed(corpus: Corpus, observations: Observations) -> NDArray[np.bool_]:
    """Where a source abstains because another one speaks, of shape [tokens, sources]."""
    never = observe(corpus, observations.labels.state_space, "never")
    abstains = np.zeros((len(never.votes), len(never.sources)), bool)
    abstains[:, never.hard] = (observations.votes == ABSTAIN) & (never.votes != ABSTAIN)
    return abstains
