"""The generative model of independent sources on single tokens, learned by exact EM.

A token has a hidden label, and each source votes on it by itself: with some probability it speaks at all (propensity),
and if it does, it is right with some probability (accuracy), else it says one of the wrong labels, all equally likely.
That is learned without gold: a source that often agrees with the others must be accurate.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import UsageError
from tagweave.label_models.anchors import Counts
from tagweave.label_models.base import not_fitted
from tagweave.label_models.confusion import ConfusionModel
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.independent import balance_table, infer_tokens, posterior
from tagweave.label_models.restoring import Axis
from tagweave.label_models.tables import at_its_word
from tagweave.observations import Observations
from tagweave.parts import each
from tagweave.report import Cell, Table
from tagweave.soft_labels import SoftLabels

_FLOOR = 1e-4
"""Pseudo-count of each label, so that none is impossible."""


@dataclass(kw_only=True)
class NaiveBayes(ConfusionModel):
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
    learned is whom to believe about types. The propensity does not depend on the label, so abstaining moves no label:
    propensities are plain shares, shown in the tables, and the recorded likelihood is that of the votes given who
    speaks. With `never` the sources that are silent outvote those that see an entity.

    Spans that cross those of other sources are left out first (`without_crossings`). A source that gives a
    probability for every label is taken at its word (`ConfusionModel`).

    Use it when you want the classical baseline of weak supervision. `HMM` knows the same and how labels follow each
    other. In the bio state space the model treats I after B like any other mistake and loses to a majority vote. It
    costs a second.

    Attributes:
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        accuracies: one accuracy for each source and label, or one for each source (`source`).
        prior_accuracy: mean of the prior of each accuracy, and its first value; above chance, it is what tells the
            labels apart.
        strength: weight of that prior, 1 for as many pseudo-votes as the source has votes for the label.
        smoothing: pseudo-votes that are always there, for labels that a source never votes for.
        balance_strength: pseudo-tokens of each label in the prior of the class balance.

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

    strength: float = 0.1
    accuracies: Literal["source", "label"] = "label"
    prior_accuracy: float = 0.9
    balance_strength: float = 1.0
    propensities_: NDArray[np.float64] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.prior_accuracy < 1:
            raise UsageError(f"prior_accuracy is {self.prior_accuracy}: it must be more than 0 and less than 1")
        if min(self.strength, self.balance_strength) < 0 or self.smoothing <= 0:
            raise UsageError("strength and balance_strength must not be negative, and smoothing must be more than 0")

    def _begin(self, parts: Iterable[Corpus], said: Iterable[Observations]) -> tuple[Counts, Counts]:
        tokens, total = 0, np.zeros((len(self._fitted()[1]), len(self.labels)))
        for more, votes in each(_votes, said):
            tokens += more
            total += votes
        self.propensities_ = total.sum(axis=1) / max(tokens, 1)
        votes = self.strength * total + self.smoothing
        balance = np.full(total.shape[1], self.balance_strength + _FLOOR)
        priors = self._counts(balance, self.prior_accuracy * votes, (1 - self.prior_accuracy) * votes)
        return priors, priors.normalised()

    def _expect(self, part: Observations) -> tuple[Counts, float]:
        probabilities, log_sums = posterior(self._log_weights(part))
        right, wrong = judge(part, probabilities, self.learned().emissions)
        balance = self._own_share(part) * probabilities.sum(axis=0)
        weight = self.chosen_["weight"]
        return self._counts(balance, weight * right, weight * wrong), float(log_sums.sum())

    def _counts(self, balance: NDArray[np.float64], right: NDArray[np.float64], wrong: NDArray[np.float64]) -> Counts:
        """Counts whose rows, normalised, give the accuracies; one accuracy for all labels has the same in each row."""
        if self.accuracies == "source":
            right, wrong = (np.broadcast_to(n.mean(axis=1, keepdims=True), n.shape) for n in (right, wrong))
        return Counts(balance, np.zeros((0, len(balance))), confusion(right, wrong))

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = self._observe(without_crossings(corpus))
        return infer_tokens(self._log_weights(observations), corpus, observations.labels)

    def propensities(self) -> NDArray[np.float64]:
        """How often each source speaks, as a share of the tokens, of shape [sources]."""
        if self.propensities_ is None:
            raise not_fitted(self.name)
        return self.propensities_

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Class balance, emissions (their diagonals are the accuracies), propensities."""
        learned = self.learned()
        return {"balance": learned.start, "emissions": learned.emissions, "propensities": self.propensities()}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {
            "balance": ("labels",),
            "emissions": ("sources", "labels", "labels"),
            "propensities": ("sources",),
        }

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        balance = parameters["balance"]
        self._take(Counts(balance, np.zeros((0, len(balance))), parameters["emissions"]), [])
        self.propensities_ = parameters["propensities"]

    def tables(self) -> list[Table]:
        """How often each source speaks and how often it is then right, and the class balance.

        A source that is taken at its word has no accuracy.
        """
        learned = self.learned()
        rows: list[tuple[Cell, ...]] = []
        for name, speaks, matrix in zip(self._fitted()[1], self.propensities(), learned.emissions, strict=True):
            judged = at_its_word(matrix)
            rows.append((name, 100 * float(speaks), *(None if judged else 100 * float(p) for p in np.diag(matrix))))
        title = "How often a source speaks, and how often it is then right where the label is ..., in percent"
        table = Table(title, ("", "speaks", *self.labels.names), tuple(rows))
        return [table, balance_table(learned.start, self.labels)]


def _votes(part: Observations) -> tuple[int, NDArray[np.float64]]:
    """Number of tokens, and how often each source says each label, of shape [sources, labels]."""
    sources = range(len(part.sources))
    return int(part.offsets[-1]), np.array([part.source(source).sum(axis=0) for source in sources], np.float64)


def confusion(right: NDArray[np.float64], wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    """Right votes on the diagonal, wrong ones spread evenly over the other labels of the row.

    Args:
        right: of shape [sources, labels].
        wrong: of the same shape.

    Returns:
        Of shape [sources, labels, labels] (source, hidden, observed).

    >>> confusion(np.array([[6.0, 1.0, 0.0]]), np.array([[2.0, 0.0, 4.0]]))[0].tolist()
    [[6.0, 1.0, 1.0], [0.0, 1.0, 0.0], [2.0, 2.0, 0.0]]
    """
    labels = right.shape[1]
    spread = wrong / max(labels - 1, 1)
    return np.where(np.eye(labels, dtype=bool), right[:, :, None], spread[:, :, None])


def judge(
    observations: Observations, probabilities: NDArray[np.float64], emissions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Expected numbers of right and wrong votes by true label; none of sources that are taken at their word.

    A vote that is spread over labels, with weights \(x_j\), is right with probability
    \(x_i \Phi_{ii} / \sum_j x_j \Phi_{ij}\) where the label is \(i\).

    Args:
        observations: votes.
        probabilities: of each label on each token, of shape [tokens, labels].
        emissions: of shape [sources, labels, labels] (source, hidden, observed).

    Returns:
        Right and wrong ones, each of shape [sources, labels].
    """
    accurate = np.diagonal(emissions, axis1=1, axis2=2)
    right, total = np.zeros_like(accurate), np.zeros_like(accurate)
    hard, patterns = observations.hard, observations.patterns
    counted = observations.pattern_counts(probabilities)
    chances = np.einsum("kij,pj->kip", emissions[hard], patterns)
    right[hard] = (counted * accurate[hard][:, :, None] * patterns.T / chances).sum(axis=2)
    total[hard] = counted.sum(axis=2)
    for column, source in enumerate(observations.soft_positions):
        if source in observations.posteriors:
            continue
        said = observations.soft[:, column].astype(np.float64)
        voted = said.sum(axis=1) > 0
        said, weights = said[voted], probabilities[voted]
        right[source] = (weights * said * accurate[source] / (said @ emissions[source].T)).sum(axis=0)
        total[source] = weights.sum(axis=0)
    return right, np.maximum(total - right, 0)
