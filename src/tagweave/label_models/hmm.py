"""The hidden Markov model of many sources, learned by exact EM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave import chain
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.anchors import Counts, anchor
from tagweave.label_models.base import LabelModel, not_fitted
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.inference import Decoder, Potentials, infer
from tagweave.label_models.tables import confusion_tables, transition_table
from tagweave.labels import StateSpace
from tagweave.observations import Observations, Probabilities, observe
from tagweave.progress import track
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels


@dataclass(kw_only=True)
class HMM(LabelModel):
    r"""A hidden Markov model whose labels are hidden and whose sources are independent given the label.

    \[ p(z, x) = p(z_1) \prod_{t>1} \Psi_{z_{t-1} z_t} \prod_t \prod_k \sum_j \Phi_{k z_t j} x_{tkj} \]

    The model of Lison et al. (ACL 2020) with the M-step of Li et al. (2021, appendix A.2), learned by expectation
    maximisation with Dirichlet priors: the likelihood with the priors never falls. First values and priors come from
    an anchor, see `tagweave.label_models.anchors`. Sources that abstain on a token say nothing there. A source that
    gives a probability for every label is taken at its word, by Bayes' rule (`Observations.likelihoods`).

    Use it when sources contradict each other: it learns whom to believe about what. It costs seconds.

    Attributes:
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        strength: weight of the anchor in the priors, 1 for as much as the corpus has.
        smoothing: pseudo-counts of each row of each source, spread as the source votes overall.
        decoding: entities from the best path (Viterbi) or from the most probable label of each token.
        probabilities: whether a source that gives a probability for every label is taken at its word, or its
            probabilities are noisy votes like others (Li et al. 2021).

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
    iterations: int = 20
    tolerance: float = 1e-6
    strength: float = 1.0
    smoothing: float = 1.0
    decoding: Decoder = "viterbi"
    probabilities: Probabilities = "posteriors"
    statistics_: Counts | None = field(default=None, init=False, repr=False)

    def _fit(self, corpus: Corpus, dev: Corpus | None) -> None:
        corpus = without_crossings(corpus)
        observations = observe(corpus, self.state_space, self.silence, self.probabilities)
        priors = anchor(corpus, self.state_space, self.strength, self.smoothing)
        fixed = observations.likelihoods()
        self._take(priors.normalised(), fixed)
        for iteration in track(range(self.iterations), "EM", self.iterations):
            expected, log_likelihood = self._expect(observations)
            self._record(iteration, log_likelihood, priors, list(fixed))
            if self.converged:
                break
            self._take((priors + expected).normalised(), fixed)

    def _expect(self, observations: Observations) -> tuple[Counts, float]:
        """The E-step: expected numbers of events, and the log-likelihood."""
        learned = self.learned()
        with np.errstate(divide="ignore"):
            start, transitions = np.log(learned.start), np.log(learned.transitions)
        expected, log_likelihood = Counts(*(np.zeros_like(array) for array in learned.arrays())), 0.0
        for part in observations.batches():
            evidence = part.log_evidence(learned.emissions)
            posterior = chain.forward_backward(start, transitions, evidence, part.offsets, pairs="sum")
            first = part.offsets[:-1][np.diff(part.offsets) > 0]
            moves = np.asarray(posterior.pair_marginals)
            expected += Counts(posterior.marginals[first].sum(axis=0), moves, part.counts(posterior.marginals))
            log_likelihood += float(posterior.log_partition.sum())
        return expected, log_likelihood

    def _record(self, iteration: int, log_likelihood: float, priors: Counts, fixed: list[int]) -> None:
        """Note the log-likelihood, and the objective: the same with the log of the priors."""
        objective = log_likelihood
        for counts, learned in zip(priors.arrays(), self.learned().arrays(), strict=True):
            if counts.ndim == 3:
                counts, learned = np.delete(counts, fixed, axis=0), np.delete(learned, fixed, axis=0)
            objective += float((counts[counts > 0] * np.log(learned[counts > 0])).sum())
        self.history_.append({"iteration": iteration, "log_likelihood": log_likelihood, "objective": objective})

    @property
    def converged(self) -> bool:
        """Whether the last two iterations of the fit were as good as each other; else `iterations` was the limit."""
        if len(self.history_) < 2:
            return False
        before, now = (record["objective"] for record in self.history_[-2:])
        return now - before < self.tolerance * abs(before)

    def _take(self, learned: Counts, fixed: Mapping[int, NDArray[np.float64]]) -> None:
        for source, emissions in fixed.items():
            learned.emissions[source] = emissions
        self.statistics_ = learned

    def learned(self) -> Counts:
        """Start, transitions and emissions; rows sum to one."""
        if self.statistics_ is None:
            raise not_fitted(self.name)
        return self.statistics_

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = observe(without_crossings(corpus), self.state_space, self.silence, self.probabilities)
        parameters = self.learned()
        with np.errstate(divide="ignore"):
            start, transitions = np.log(parameters.start), np.log(parameters.transitions)
        evidence = observations.log_evidence(parameters.emissions)
        return infer(Potentials(start, transitions, evidence), corpus, observations.labels, self.decoding)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Start, transitions and emissions."""
        return dict(zip(("start", "transitions", "emissions"), self.learned().arrays(), strict=True))

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self._take(Counts(parameters["start"], parameters["transitions"], parameters["emissions"]), {})

    def tables(self) -> list[Table]:
        """The confusion of each source, and the transitions."""
        learned, labels = self.learned(), self.labels
        confusion = confusion_tables(self._fitted()[1], learned.emissions, labels)
        return [*confusion, transition_table(learned.start, learned.transitions, labels)]
