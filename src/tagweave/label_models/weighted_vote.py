"""Weighted vote: a vote on each token in which some sources count more than others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.errors import UsageError, unknown_name
from tagweave.label_models.base import not_fitted
from tagweave.label_models.majority_vote import MajorityVote
from tagweave.label_models.restoring import Axis
from tagweave.observations import Observations, each_batch, observe
from tagweave.report import Table
from tagweave.stored import observed
from tagweave.vote_kernels import as_shares


@dataclass(kw_only=True)
class WeightedVote(MajorityVote):
    r"""A majority vote in which the vote of each source counts by a weight, given or learned without gold.

    The probability of label \(j\) on token \(t\) is \(\sum_k w_k x_{tkj} / \sum_k w_k \sum_i x_{tki}\). Ties, and
    tokens without votes, are settled as in `MajorityVote`. A learned weight is how often a source agrees with the
    weighted vote of the others:

    \[ w_k = \frac{\bar w + \sum_t \sum_j x_{tkj} m^{-k}_{tj}}{1 + \sum_t \sum_j x_{tkj}} \]

    where \(m^{-k}_t\) is the label that the other sources vote for on token \(t\), or equal parts of those that tie.
    The sums are over tokens where the source and another one vote, and one of them for an entity: agreement on O alone
    is cheap. \(\bar w\) is the agreement of all sources together, so that one which nobody can judge counts as others
    do. All weights are 1 in the first round. With a vote that includes the source's own this is Wawa of crowd-kit
    (Ustalov et al., 2024); leaving it out keeps a source that mostly speaks alone from confirming itself.

    Use it when you know what your sources are worth, or when good and bad sources outvote each other and a model with
    confusion matrices is more than you want to explain. In the bio state space small differences of weights settle the
    many ties between B and I, which a majority vote settles for I; better stay with io. It costs a second.

    Attributes:
        weights: what the vote of a source counts, from 0, by name; sources that are not named count 1. Empty to learn
            all weights.
        rounds: how many times weights are learned, each time by the vote with the weights before.
        weights_: weight of each source.

    Raises:
        UsageError: at `fit`, `weights` names a source that the corpus does not have, or is negative or not a number.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "LOC")]}
    >>> corpus = Corpus.from_documents([Document("d0", ["Ada", "Lovelace", "ran"], sources=votes)])
    >>> model = WeightedVote(weights={"a": 3, "b": 1}).fit(corpus)
    >>> model.predict_proba(corpus).probabilities[0].round(2).tolist()
    [0.0, 0.25, 0.0, 0.75, 0.0]
    >>> [span[:3] for span in model.predict(corpus)[0].entities]
    [(0, 2, 'PER')]
    """

    name: ClassVar[str] = "weighted-vote"

    weights: dict[str, float] = field(default_factory=dict)
    rounds: int = 1
    weights_: NDArray[np.float64] | None = field(default=None, init=False, repr=False)

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        names = self._fitted()[1]
        if self.weights:
            self.weights_ = _given(self.weights, names)
            return
        said = observed(partial(observe, state_space=self.state_space, silence=self.silence_), parts)
        weights = np.ones(len(names))
        for round_ in range(self.rounds):
            learned = agreements(said, weights)
            self.history_.append({"round": round_ + 1, "change": float(np.abs(learned - weights).max())})
            weights = learned
        self.weights_ = weights

    def _weights(self) -> NDArray[np.float64]:
        if self.weights_ is None:
            raise not_fitted(self.name)
        return self.weights_

    def parameters(self) -> dict[str, NDArray[Any]]:
        """The weights."""
        return {"weights": self._weights()}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {"weights": ("sources",)}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self.weights_ = parameters["weights"]

    def tables(self) -> list[Table]:
        """The weights."""
        rows = tuple(zip(self._fitted()[1], map(float, self._weights()), strict=True))
        return [Table("What the vote of each source counts", ("source", "weight"), rows, decimals=3)]


def agreements(parts: Iterable[Observations], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each source agrees with the weighted vote of the others, see `WeightedVote`.

    Args:
        parts: votes on the tokens of parts of a corpus.
        weights: what the vote of each source counts, of shape [sources].

    Returns:
        Agreement of each source, from 0 to 1, of shape [sources].
    """
    agreed, judged = np.zeros(len(weights)), np.zeros(len(weights))
    for more_agreed, more_judged in each_batch(partial(_agreed, weights), parts):
        agreed += more_agreed
        judged += more_judged
    mean = agreed.sum() / judged.sum() if judged.any() else 1.0
    return (agreed + mean) / (judged + 1)


def _agreed(weights: NDArray[np.float64], part: Observations) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many votes of each source agree with that of the others, and how many there are."""
    agreed, judged = np.zeros(len(weights)), np.zeros(len(weights))
    total = np.zeros((int(part.offsets[-1]), len(part.labels)))
    for k, weight in enumerate(weights):
        total += weight * part.source(k)
    for k, weight in enumerate(weights):
        said = part.source(k)
        others = np.maximum(total - weight * said, 0)
        rows = said.any(axis=1) & (others.sum(axis=1) > _NOTHING)
        rows &= (said[:, 1:].sum(axis=1) > 0) | (others[:, 1:].sum(axis=1) > _NOTHING)
        shares = as_shares(others[rows])
        winners = np.isclose(shares, shares.max(axis=1, keepdims=True, initial=0)).astype(np.float64)
        agreed[k] = (said[rows] * winners / winners.sum(axis=1, keepdims=True)).sum()
        judged[k] = said[rows].sum()
    return agreed, judged


_NOTHING = 1e-9
"""Votes of less weight are rounding errors of a difference."""


def _given(weights: Mapping[str, float], sources: tuple[str, ...]) -> NDArray[np.float64]:
    for name, weight in weights.items():
        if name not in sources:
            raise unknown_name("source", name, sources)
        if not 0 <= weight < np.inf:
            raise UsageError(f"the weight of source {name!r} is {weight}; a weight is a number from 0")
    return np.array([float(weights.get(name, 1.0)) for name in sources])
