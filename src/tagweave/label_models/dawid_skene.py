"""The model of Dawid and Skene: a confusion matrix a source, tokens that do not depend on each other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.anchors import Counts, anchor
from tagweave.label_models.confusion import ConfusionModel
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.independent import balance_table, infer_tokens, posterior
from tagweave.label_models.majority_vote import vote_shares
from tagweave.label_models.restoring import Axis
from tagweave.labels import StateSpace
from tagweave.observations import Observations, each_batch
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels

_FLOOR = 1e-10
"""Pseudo-count of every event, so that no token is impossible."""


@dataclass(kw_only=True)
class DawidSkene(ConfusionModel):
    r"""Sources with confusion matrices on single tokens (Dawid and Skene, 1979).

    \[ p(z, x) = \prod_t \pi_{z_t} \prod_k \sum_j \Phi_{k z_t j} x_{tkj} \]

    with the share \(\pi\) of each label: the `HMM` without its chain. Learned by expectation maximisation with
    Dirichlet priors; the likelihood with the priors never falls. Sources that abstain on a token say nothing there. A
    source that gives a probability for every label is taken at its word (`ConfusionModel`).

    The published model starts from a majority vote and has no priors. It then cannot tell types apart for which sources
    of one type each vote: it learns that these say their type whatever the entity is, and loses half of the F1 on
    BC5CDR. Here first values and priors come from the anchor of the other models (`tagweave.label_models.anchors`),
    under which a source of one type is silent on the entities of the others. The published model is
    `DawidSkene(start="votes", smoothing=0)`.

    Use it when labels of neighbours tell nothing about each other, or to see what the chain of the `HMM` is worth. It
    costs seconds.

    Attributes:
        start: where learning starts: from the anchor, which is then also the prior, or from the shares of the votes.
        smoothing: pseudo-counts of each row of each source; with the anchor mostly of the right label, else uniform.
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        strength: weight of the anchor in the priors, 1 for as much as the corpus has; the votes have none.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")], "c": [Span(3, 4, "LOC")]}
    >>> tokens = ["Ada", "Lovelace", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> [span[:3] for span in DawidSkene().fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """

    name: ClassVar[str] = "dawid-skene"

    state_space: StateSpace = "bio"
    start: Literal["anchor", "votes"] = "anchor"

    def _begin(self, parts: Iterable[Corpus], said: Iterable[Observations]) -> tuple[Counts, Counts]:
        if self.start == "anchor":
            priors = anchor(parts, self.state_space, self.strength, self.smoothing)
            priors = _without_chain(priors.start + priors.transitions.sum(axis=0), priors.emissions)
            return priors, priors.normalised()
        size, sources = len(self.labels), len(self._fitted()[1])
        priors = _without_chain(np.full(size, _FLOOR), np.full((sources, size, size), self.smoothing / size + _FLOOR))
        counted = priors
        for votes in each_batch(_votes, said):
            counted = counted + votes
        return priors, counted.normalised()

    def _expect(self, part: Observations) -> tuple[Counts, float]:
        probabilities, log_likelihood = posterior(self._log_weights(part))
        shares = self._own_share(part) * probabilities.sum(axis=0)
        return _without_chain(shares, self.chosen_["weight"] * part.counts(probabilities)), float(log_likelihood.sum())

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = self._observe(without_crossings(corpus))
        return infer_tokens(self._log_weights(observations), corpus, observations.labels)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Shares of the labels, and emissions."""
        learned = self.learned()
        return {"shares": learned.start, "emissions": learned.emissions}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {"shares": ("labels",), "emissions": ("sources", "labels", "labels")}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self._take(_without_chain(parameters["shares"], parameters["emissions"]), [])

    def tables(self) -> list[Table]:
        """The confusion of each source, and the shares of the labels."""
        return [*super().tables(), balance_table(self.learned().start, self.labels)]


def _votes(part: Observations) -> Counts:
    """Counts under the shares of the votes."""
    shares = vote_shares(part)
    return _without_chain(shares.sum(axis=0), part.counts(shares))


def _without_chain(shares: NDArray[np.float64], emissions: NDArray[np.float64]) -> Counts:
    """Counts of a model without moves: what a chain has for the first token is here for every token."""
    return Counts(shares, np.zeros((0, len(shares))), emissions)
