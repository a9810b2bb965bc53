"""The hidden Markov model of many sources, learned by exact EM."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave import chain
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.anchors import Counts, anchor
from tagweave.label_models.confusion import ConfusionModel
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.inference import Decoder, Potentials, infer, weighted
from tagweave.label_models.source_priors import SourcePriors, observed, source_priors
from tagweave.label_models.tables import transition_table
from tagweave.labels import StateSpace
from tagweave.observations import Observations, observe
from tagweave.parts import mapped
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels


@dataclass(kw_only=True)
class HMM(ConfusionModel):
    r"""A hidden Markov model whose labels are hidden and whose sources are independent given the label.

    \[ p(z, x) = p(z_1) \prod_{t>1} \Psi_{z_{t-1} z_t} \prod_t \prod_k \sum_j \Phi_{k z_t j} x_{tkj} \]

    The model of Lison et al. (ACL 2020) with the M-step of Li et al. (2021, appendix A.2), learned by expectation
    maximisation with Dirichlet priors: the likelihood with the priors never falls. First values and priors come from
    an anchor, see `tagweave.label_models.anchors`. Sources that abstain on a token say nothing there. A source that
    gives a probability for every label is taken at its word (`ConfusionModel`).

    With `source_priors` the precision and recall of each source, set by hand, take the place of the anchor, as in
    Lison et al. (`tagweave.label_models.source_priors` has the formula). Their model is

        HMM(source_priors={...}, silence="never", iterations=10, probabilities="votes", only_observed=True)

    but for their BILU labels, a start drawn by chance where its mean is taken here, and votes with priors of 1, which
    ruled the other labels out. The model of skweak (Lison et al., 2021) has `silence="document-strict"`.

    Use it when sources contradict each other: it learns whom to believe about what. It costs seconds.

    Attributes:
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        strength: weight of the anchor in the priors, 1 for as much as the corpus has.
        smoothing: pseudo-counts of each row of each source, spread as the source votes overall.
        decoding: entities from the best path (Viterbi) or from the most probable label of each token.
        source_priors: precision and recall of every source, `{"names": (0.9, 0.6)}`, or by entity type,
            `{"names": {"PER": (0.9, 0.6)}}`; empty for the anchor. A source that is taken at its word needs none.
        prior_strength: pseudo-counts of each row of a source under `source_priors`.
        only_observed: whether a label that no source votes for on a token is impossible there; where all sources
            abstain every label is possible.

    Raises:
        UsageError: at `fit`, `source_priors` has a name or number that cannot be, or lacks a source.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")], "c": [Span(3, 4, "LOC")]}
    >>> tokens = ["Ada", "Lovelace", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> [span[:3] for span in HMM().fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """

    name: ClassVar[str] = "hmm"

    state_space: StateSpace = "bio"
    decoding: Decoder = "viterbi"
    source_priors: SourcePriors = field(default_factory=dict)
    prior_strength: float = 1000.0
    only_observed: bool = False

    def _begin(self, parts: Iterable[Corpus], said: Iterable[Observations]) -> tuple[Counts, Counts]:
        if self.source_priors:
            never = partial(observe, state_space=self.state_space, silence="never", probabilities=self.probabilities)
            priors = source_priors(mapped(never, parts), self.source_priors, self.prior_strength)
        else:
            priors = anchor(parts, self.state_space, self.strength, self.smoothing)
        return priors, priors.normalised()

    def _potentials(self, observations: Observations) -> Potentials:
        learned = self.learned()
        with np.errstate(divide="ignore"):
            start, transitions = np.log(learned.start), np.log(learned.transitions)
        evidence = self._log_evidence(observations)
        if self.only_observed:
            evidence[~observed(observations)] = -np.inf
        own = self._own_share(observations)
        return Potentials(weighted(start, own), weighted(transitions, own), evidence)

    def _expect(self, part: Observations) -> tuple[Counts, float]:
        posterior = chain.forward_backward(*self._potentials(part), part.offsets, pairs="sum")
        first, own = part.offsets[:-1][np.diff(part.offsets) > 0], self._own_share(part)
        moves = np.asarray(posterior.pair_marginals)
        starts = posterior.marginals[first].sum(axis=0)
        votes = self.chosen_["weight"] * part.counts(posterior.marginals)
        counted = Counts(own * starts, own * moves, votes)
        return counted, float(posterior.log_partition.sum())

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = self._observe(without_crossings(corpus))
        return infer(self._potentials(observations), corpus, observations.labels, self.decoding)

    def tables(self) -> list[Table]:
        """The confusion of each source, and the transitions."""
        learned = self.learned()
        return [*super().tables(), transition_table(learned.start, learned.transitions, self.labels)]
