"""The generative model of independent sources on single tokens, learned by exact EM.

A token has a hidden label, and each source votes on it by itself: with some probability it speaks at all (propensity),
and if it does, it is right with some probability (accuracy), else it says one of the wrong labels, all equally likely.
That is learned without gold: a source that often agrees with the others must be accurate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import UsageError
from tagweave.label_models.base import LabelModel, not_fitted
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.independent import balance_table, infer_tokens, posterior
from tagweave.observations import Observations, Probabilities, observe
from tagweave.progress import track
from tagweave.report import Cell, Table
from tagweave.soft_labels import SoftLabels

_FLOOR = 1e-4
"""Pseudo-count of each label, so that none is impossible."""


@dataclass(frozen=True)
class Judged:
    """Numbers of tokens, or pseudo-counts, behind the parameters.

    Attributes:
        balance: tokens of each label, of shape [labels].
        right: votes of each source for the true label, of shape [sources, labels], or [sources, 1] for all labels.
        wrong: votes for another label, of the same shape.
    """

    balance: NDArray[np.float64]
    right: NDArray[np.float64]
    wrong: NDArray[np.float64]

    def __add__(self, other: "Judged") -> "Judged":
        """Sums of both."""
        return Judged(self.balance + other.balance, self.right + other.right, self.wrong + other.wrong)

    def pooled(self) -> "Judged":
        """The votes on all labels together."""
        return Judged(self.balance, self.right.sum(axis=1, keepdims=True), self.wrong.sum(axis=1, keepdims=True))


@dataclass(kw_only=True)
class NaiveBayes(LabelModel):
    r"""Sources that vote on each token independently of each other, given its label, as in Snorkel.

    \[ p(y, x) = \pi_y \prod_k \begin{cases} 1 - \beta_k & \text{source } k \text{ abstains} \\
       \beta_k \, \alpha_{ky} & x_k = y \\ \beta_k \, (1 - \alpha_{ky}) / (L - 1) & \text{else} \end{cases} \]

    over the \(L\) labels of a token, with the class balance \(\pi\), and of each source \(k\) its propensity
    \(\beta_k\) to speak and its accuracy \(\alpha_{ky}\). This is the generative model of Ratner et al. (VLDB 2017,
    section 2.2) without dependencies between sources. Theirs is learned by Gibbs sampling; with independent sources the
    sum over labels has a closed form, so here expectation maximisation learns it exactly. With Beta priors on the
    accuracies and a Dirichlet prior on the balance the objective never falls. An accuracy for each label is what
    Safranchik et al. (AAAI 2020) call naive Bayes; their penalty on the norm of the weights is a Beta prior here.

    What abstaining means follows from `silence`. With `token` a source that is silent where nobody speaks votes O, and
    only its silence beside the vote of another is abstaining; so votes for O and for entities never meet, and what is
    learned is whom to believe about types. The propensity does not depend on the label: abstaining moves no label, and
    shows in the likelihood and the tables only. With `never` the sources that are silent outvote those that see an
    entity.

    Spans that cross those of other sources are left out first (`without_crossings`). A source that gives a
    probability for every label is taken at its word, by Bayes' rule (`Observations.likelihoods`).

    Use it when you want the classical baseline of weak supervision. `HMM` knows the same and how labels follow each
    other. In the bio state space the model treats I after B like any other mistake and loses to a majority vote. It
    costs a second.

    Attributes:
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        accuracies: one accuracy for each source and label, or one for each source (`source`).
        prior_accuracy: mean of the prior of each accuracy, and its first value; above chance, it is what tells the
            labels apart.
        strength: weight of that prior, 1 for as many pseudo-votes as the source has votes for the label. One more is
            always there, for labels that a source never votes for.
        balance_strength: pseudo-tokens of each label in the prior of the class balance.
        probabilities: how a source is read that gives a probability for every label.

    Raises:
        UsageError: a setting is out of range.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 1, "PER")], "b": [Span(0, 1, "PER"), Span(2, 3, "LOC")], "c": [Span(0, 1, "LOC")]}
    >>> tokens = ["Ada", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> model = NaiveBayes(accuracies="source").fit(corpus)
    >>> [span[:3] for span in model.predict(corpus)[0].entities]
    [(0, 1, 'PER'), (2, 3, 'LOC')]
    """

    name: ClassVar[str] = "naive-bayes"

    iterations: int = 50
    tolerance: float = 1e-6
    accuracies: Literal["source", "label"] = "label"
    prior_accuracy: float = 0.9
    strength: float = 0.1
    balance_strength: float = 1.0
    probabilities: Probabilities = "posteriors"
    balance_: NDArray[np.float64] | None = field(default=None, init=False, repr=False)
    propensities_: NDArray[np.float64] | None = field(default=None, init=False, repr=False)
    emissions_: NDArray[np.float64] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.prior_accuracy < 1:
            raise UsageError(f"prior_accuracy is {self.prior_accuracy}: it must be more than 0 and less than 1")
        if min(self.strength, self.balance_strength) < 0:
            raise UsageError("strength and balance_strength are weights: they must not be negative")

    def _fit(self, corpus: Corpus, dev: Corpus | None) -> None:
        observations = self._observe(corpus)
        fixed = observations.likelihoods()
        size, tokens = len(observations.labels), int(observations.offsets[-1])
        said = np.array([observations.source(source).sum(axis=0) for source in range(len(observations.sources))])
        priors = self._priors(said)
        voted = said.sum(axis=1)
        self.propensities_ = voted / max(tokens, 1)
        speaking = _log_binomial(np.delete(voted, list(fixed)), tokens)
        self._take(np.full(size, 1 / size), np.full_like(priors.right, self.prior_accuracy), fixed)
        for iteration in track(range(self.iterations), "EM", self.iterations):
            counted, log_likelihood = self._expect(observations)
            self._record(iteration, log_likelihood + speaking, priors, list(fixed))
            if self.converged:
                break
            balance, right, wrong = vars(priors + counted).values()
            self._take(balance / balance.sum(), right / (right + wrong), fixed)

    def _observe(self, corpus: Corpus) -> Observations:
        return observe(without_crossings(corpus), self.state_space, self.silence, self.probabilities)

    def _priors(self, said: NDArray[np.float64]) -> Judged:
        """Pseudo-counts from how often each source says each label, of shape [sources, labels]."""
        votes = self.strength * said + 1
        balance = np.full(said.shape[1], self.balance_strength + _FLOOR)
        return self._shared(Judged(balance, self.prior_accuracy * votes, (1 - self.prior_accuracy) * votes))

    def _shared(self, judged: Judged) -> Judged:
        return judged.pooled() if self.accuracies == "source" else judged

    def _expect(self, observations: Observations) -> tuple[Judged, float]:
        """The E-step: expected numbers of events, and the log-likelihood of what those who speak say."""
        balance, emissions = self.learned()
        empty = np.zeros(emissions.shape[:2])
        counted, log_likelihood = Judged(np.zeros_like(balance), empty, empty), 0.0
        for part in observations.batches():
            probabilities, log_sums = posterior(np.log(balance) + part.log_evidence(emissions))
            counted += judge(part, probabilities, emissions)
            log_likelihood += float(log_sums.sum())
        return self._shared(counted), log_likelihood

    def _record(self, iteration: int, log_likelihood: float, priors: Judged, fixed: list[int]) -> None:
        """Note the log-likelihood, and the objective: the same with the log of the priors."""
        balance, emissions = self.learned()
        accurate = np.delete(accuracies_of(emissions)[:, : priors.right.shape[1]], fixed, axis=0)
        right, wrong = (np.delete(counts, fixed, axis=0) for counts in (priors.right, priors.wrong))
        objective = log_likelihood + float((priors.balance * np.log(balance)).sum())
        objective += float((right * np.log(accurate) + wrong * np.log(1 - accurate)).sum())
        self.history_.append({"iteration": iteration, "log_likelihood": log_likelihood, "objective": objective})

    @property
    def converged(self) -> bool:
        """Whether the last two iterations of the fit were as good as each other; else `iterations` was the limit."""
        if len(self.history_) < 2:
            return False
        before, now = (record["objective"] for record in self.history_[-2:])
        return now - before < self.tolerance * abs(before)

    def _take(
        self,
        balance: NDArray[np.float64],
        accuracies: NDArray[np.float64],
        fixed: Mapping[int, NDArray[np.float64]],
    ) -> None:
        self.balance_, self.emissions_ = balance, emissions_of(accuracies, len(balance))
        for source, matrix in fixed.items():
            self.emissions_[source] = matrix

    def learned(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Class balance of shape [labels], and what sources say given that they speak.

        The latter has shape [sources, labels, labels] (source, hidden, observed); the accuracies are its diagonals.
        """
        if self.balance_ is None or self.emissions_ is None:
            raise not_fitted(self.name)
        return self.balance_, self.emissions_

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = self._observe(corpus)
        balance, emissions = self.learned()
        return infer_tokens(np.log(balance) + observations.log_evidence(emissions), corpus, observations.labels)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Class balance, propensities and emissions."""
        balance, emissions = self.learned()
        return {"balance": balance, "propensities": np.asarray(self.propensities_), "emissions": emissions}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self.balance_, self.emissions_ = parameters["balance"], parameters["emissions"]
        self.propensities_ = parameters["propensities"]

    def tables(self) -> list[Table]:
        """How often each source speaks and how often it is then right, and the class balance."""
        balance, emissions = self.learned()
        rows: list[tuple[Cell, ...]] = [
            (name, *(100 * float(value) for value in (speaks, *accurate)))
            for name, speaks, accurate in zip(
                self._fitted()[1], np.asarray(self.propensities_), accuracies_of(emissions), strict=True
            )
        ]
        title = "How often a source speaks, and how often it is then right where the label is ..., in percent"
        return [Table(title, ("", "speaks", *self.labels.names), tuple(rows)), balance_table(balance, self.labels)]


def emissions_of(accuracies: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Probability of each vote under each label: right with the accuracy, else uniform over the other labels.

    Args:
        accuracies: of shape [sources, labels], or [sources, 1] where one holds for all labels.
        labels: how many there are.

    Returns:
        Of shape [sources, labels, labels] (source, hidden, observed).

    >>> emissions_of(np.array([[0.8]]), 3)[0].round(2).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    wrong = (1 - accuracies) / max(labels - 1, 1)
    return np.where(np.eye(labels, dtype=bool), accuracies[:, :, None], wrong[:, :, None])


def accuracies_of(emissions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The diagonal of each source's matrix, of shape [sources, labels]."""
    return np.diagonal(emissions, axis1=1, axis2=2)


def judge(observations: Observations, probabilities: NDArray[np.float64], emissions: NDArray[np.float64]) -> Judged:
    r"""Expected numbers of right and wrong votes by true label.

    A vote that is spread over labels, with weights \(x_j\), is right with probability
    \(x_i \Phi_{ii} / \sum_j x_j \Phi_{ij}\) where the label is \(i\).

    Args:
        observations: votes.
        probabilities: of each label on each token, of shape [tokens, labels].
        emissions: of shape [sources, labels, labels] (source, hidden, observed).
    """
    accurate = accuracies_of(emissions)
    right, total = np.zeros_like(accurate), np.zeros_like(accurate)
    hard, patterns = observations.hard, observations.patterns
    counted = observations.pattern_counts(probabilities)
    chances = np.einsum("kij,pj->kip", emissions[hard], patterns)
    right[hard] = (counted * accurate[hard][:, :, None] * patterns.T / chances).sum(axis=2)
    total[hard] = counted.sum(axis=2)
    for column, source in enumerate(observations.soft_positions):
        said = observations.soft[:, column].astype(np.float64)
        voted = said.sum(axis=1) > 0
        said, weights = said[voted], probabilities[voted]
        right[source] = (weights * said * accurate[source] / (said @ emissions[source].T)).sum(axis=0)
        total[source] = weights.sum(axis=0)
    return Judged(probabilities.sum(axis=0), right, np.maximum(total - right, 0))


def _log_binomial(voted: NDArray[np.float64], tokens: int) -> float:
    """Log-probability that sources speak on just these numbers of tokens, at the propensities that fit best."""
    numbers = np.concatenate([voted, tokens - voted])
    numbers = numbers[numbers > 0]
    return float((numbers * np.log(numbers / tokens)).sum())
