"""What is believed of sources that vote on candidates: how often they speak, how often they are right, how they err.

The votes are those of `tagweave.label_models.candidates.observe_candidates`: classes are O (no entity) and the types,
and the last column of everything that is observed is silence.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.observations import Observations

_RARE = 0.01
"""Pseudo-votes of every source for every class, so that no wrong vote is impossible."""


class Beliefs(NamedTuple):
    """Parameters of a naive Bayes model of votes.

    Attributes:
        balance: share of each class among the candidates, of shape [classes].
        accuracy: probability that a vote of a source is right, of shape [sources].
        propensity: probability that a source votes at all where the class is given, of shape [sources, classes].
    """

    balance: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    propensity: NDArray[np.float64]


class Counts(NamedTuple):
    """Numbers of events, or pseudo-counts of priors.

    Attributes:
        balance: candidates of each class, of shape [classes].
        accuracy: right and wrong votes, of shape [sources, 2].
        propensity: votes and silences by class, of shape [sources, classes, 2].
    """

    balance: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    propensity: NDArray[np.float64]

    def plus(self, other: "Counts") -> "Counts":
        """Sums of both."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, weight: float) -> "Counts":
        """All counts times a weight."""
        return Counts(*(weight * array for array in self))

    def shared(self) -> "Counts":
        """Counts for propensities that are the same for all classes."""
        mean = self.propensity.mean(axis=1, keepdims=True)
        return self._replace(propensity=np.broadcast_to(mean, self.propensity.shape))

    def most_probable(self) -> Beliefs:
        """The M-step: shares."""
        accuracy, propensity = (array[..., 0] / array.sum(axis=-1) for array in (self.accuracy, self.propensity))
        return Beliefs(self.balance / self.balance.sum(), accuracy, propensity)

    def log_prior(self, beliefs: Beliefs) -> float:
        """Log-density of beliefs under Beta and Dirichlet priors with these pseudo-counts, but for a constant.

        NaN, of sources that are taken at their word, has no prior.
        """
        accuracy, propensity = (np.stack([p, 1 - p], axis=-1) for p in (beliefs.accuracy, beliefs.propensity))
        total = 0.0
        for counts, chances in zip(self, (beliefs.balance, accuracy, propensity), strict=True):
            known = ~np.isnan(chances)
            total += float((counts[known] * np.log(chances[known])).sum())
        return total


def errors(observations: Observations) -> NDArray[np.float64]:
    """How each source errs: the shares of its votes, without the true class.

    Returns:
        Probability of each wrong vote by true class, of shape [sources, classes, classes]; the diagonal is zero.
    """
    size = len(observations.labels)
    votes = np.empty((len(observations.sources), size))
    counted = observations.pattern_counts(np.ones((len(observations.votes), 1)))
    votes[observations.hard] = (counted[:, 0] @ observations.patterns)[:, :size]
    votes[observations.soft_positions] = observations.soft[..., :size].sum(axis=0, dtype=np.float64)
    wrong = np.where(np.eye(size, dtype=bool), 0, votes[:, None, :] + _RARE)
    shares: NDArray[np.float64] = wrong / np.maximum(wrong.sum(axis=2, keepdims=True), _RARE)
    return shares


def emissions(beliefs: Beliefs, wrong: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of each vote and of silence, by source and class.

    Args:
        beliefs: parameters.
        wrong: see `errors`.

    Returns:
        Of shape [sources, classes, classes + 1]; the last column is silence, rows sum to one.

    >>> beliefs = Beliefs(np.array([0.5, 0.5]), np.array([0.75]), np.array([[0.4, 0.8]]))
    >>> emissions(beliefs, np.array([[[0.0, 1.0], [1.0, 0.0]]]))[0].round(2).tolist()
    [[0.3, 0.1, 0.6], [0.2, 0.6, 0.2]]
    """
    accuracy = beliefs.accuracy[:, None, None]
    votes = accuracy * np.eye(wrong.shape[1]) + (1 - accuracy) * wrong
    speaks = beliefs.propensity[:, :, None]
    return np.concatenate([speaks * votes, 1 - speaks], axis=2)


def likelihoods(observations: Observations) -> dict[int, NDArray[np.float64]]:
    r"""Sources that give a probability for every label, by Bayes' rule: \(p(x \mid y) \propto x_y / \bar x_y\).

    Returns:
        For each such source the row of \(1 / \bar x_y\), of shape [classes]; the largest entry is one.
    """
    found = {}
    for position in observations.posteriors:
        said = observations.soft[:, np.searchsorted(observations.soft_positions, position), :-1]
        mean = said.mean(axis=0, dtype=np.float64) + 1e-6 if len(said) else np.ones(len(observations.labels))
        found[int(position)] = mean.min() / mean
    return found


def count(observations: Observations, posterior: NDArray[np.float64], tables: NDArray[np.float64]) -> Counts:
    r"""Expected numbers of events.

    A vote that is spread over classes, with weights \(x_v\), counts as a vote for \(v\) in the share
    \(x_v \Phi_{yv} / \sum_u x_u \Phi_{yu}\), which keeps EM exact for coarse types and spans with probabilities.

    Args:
        observations: votes on candidates.
        posterior: probability of each class of each candidate, of shape [candidates, classes].
        tables: see `emissions`.
    """
    counted = np.zeros_like(tables)
    by_pattern, patterns = observations.pattern_counts(posterior), observations.patterns
    for column, source in enumerate(observations.hard):
        counted[source] = tables[source] * ((by_pattern[column] / (tables[source] @ patterns.T)) @ patterns)
    for column, source in enumerate(observations.soft_positions):
        if source not in observations.posteriors:
            said = observations.soft[:, column].astype(np.float64)
            spoken = said.sum(axis=1) > 0
            said, weights = said[spoken], posterior[spoken]
            counted[source] = tables[source] * ((weights / (said @ tables[source].T)).T @ said)
    votes, silent = counted[..., :-1].sum(axis=2), counted[..., -1]
    right = np.trace(counted[..., :-1], axis1=1, axis2=2)
    wrong = np.maximum(votes.sum(axis=1) - right, 0)
    return Counts(posterior.sum(axis=0), np.stack([right, wrong], axis=1), np.stack([votes, silent], axis=2))
