"""Models of confusion matrices, learned by exact EM: what the hidden Markov model and Dawid and Skene's have in common.

Each source votes by a confusion matrix of its own, given the hidden label of the token. The models differ in what ties
the labels together: a chain, or nothing. All else is here: first values and priors, the steps of expectation
maximisation, the record of the objective, sources that are taken at their word.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.label_models.anchors import Counts
from tagweave.label_models.base import not_fitted
from tagweave.label_models.choosing import Group
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.inference import own_share
from tagweave.label_models.iterative import IterativeModel
from tagweave.label_models.restoring import Axis
from tagweave.label_models.tables import confusion_tables
from tagweave.observations import Observations, each_batch, observe
from tagweave.parts import first, mapped
from tagweave.progress import track
from tagweave.report import Table
from tagweave.stored import observed

WEIGHT = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Values of `weight` among which dev chooses."""


@dataclass(kw_only=True)
class ConfusionModel(IterativeModel):
    r"""A label model whose sources vote independently of each other given the label of the token.

    A source that gives a probability \(q_{ti}\) for every label, as a tagger does, is taken at its word: it has no
    matrix, but a share \(\lambda\), its `trust`, in what is expected of a token before any vote. There \(p^{1 -
    \lambda} q_t^\lambda\) takes the place of the model's own \(p\), which is \(p(z_t \mid z_{t-1})\) in a chain; of
    \(n\) such sources each has that share, and the model \(\max(0, 1 - n \lambda)\). As votes such probabilities would
    count twice what both know: how frequent labels are and which follow each other.

    Attributes:
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        strength: weight of the anchor in the priors, 1 for as much as the corpus has.
        smoothing: pseudo-counts of each row of each source.
        weight: weight of the votes, as an exponent of their probability. Sources that repeat each other are no
            independent witnesses, and many of them outvote what neighbours and taggers say; with dev chosen there.
        statistics_: what was learned.
    """

    adds_up: ClassVar[bool] = True
    tempers: ClassVar[bool] = False
    applied: ClassVar[tuple[str, ...]] = ("trust", "weight")
    weighs_silence: ClassVar[bool] = True

    iterations: int = 20
    strength: float = 1.0
    smoothing: float = 1.0
    weight: float = 1.0
    statistics_: Counts | None = field(default=None, init=False, repr=False)

    @abstractmethod
    def _begin(self, parts: Iterable[Corpus], said: Iterable[Observations]) -> tuple[Counts, Counts]:
        """Pseudo-counts of the priors, and first values; neither of them of sources that are taken at their word.

        Args:
            parts: of the corpus.
            said: what is observed in each part.
        """

    @abstractmethod
    def _expect(self, part: Observations) -> tuple[Counts, float]:
        """The E-step on some documents: expected numbers of events, and the log-likelihood."""

    def _observe(self, corpus: Corpus) -> Observations:
        return observe(corpus, self.state_space, self.silence_, self.probabilities)

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        parts = mapped(without_crossings, parts)
        said = observed(self._observe, parts)
        fixed = first(Observations.of_no_token, said).posteriors.tolist()
        priors, begun = self._begin(parts, said)
        self._take(begun, fixed)
        for iteration in track(range(self.iterations), "EM", self.iterations):
            expected, log_likelihood = self._expect_all(said)
            self._record(iteration, log_likelihood, priors, fixed)
            if self.converged:
                break
            self._take((priors + expected).normalised(), fixed)

    def _expect_all(self, said: Iterable[Observations]) -> tuple[Counts, float]:
        expected, log_likelihood = Counts(*(np.zeros_like(array) for array in self.learned().arrays())), 0.0
        for counted, gained in each_batch(self._expect, said):
            expected, log_likelihood = expected + counted, log_likelihood + gained
        return expected, log_likelihood

    def _record(self, iteration: int, log_likelihood: float, priors: Counts, fixed: list[int]) -> None:
        """Note the log-likelihood, and the objective: the same with the log of the priors."""
        objective = log_likelihood
        for counts, learned in zip(priors.arrays(), self.learned().arrays(), strict=True):
            if counts.ndim == 3:
                counts, learned = np.delete(counts, fixed, axis=0), np.delete(learned, fixed, axis=0)
            objective += float((counts[counts > 0] * np.log(learned[counts > 0])).sum())
        self.history_.append({"iteration": iteration, "log_likelihood": log_likelihood, "objective": objective})

    def _take(self, learned: Counts, fixed: Sequence[int]) -> None:
        learned.emissions[list(fixed)] = np.eye(learned.emissions.shape[-1])
        self.statistics_ = learned

    def _log_weights(self, observations: Observations) -> NDArray[np.float64]:
        """The weight of each label on each token, where labels do not depend on each other."""
        return self._own_share(observations) * np.log(self.learned().start) + self._log_evidence(observations)

    def _log_evidence(self, observations: Observations) -> NDArray[np.float64]:
        """Log-probability of the votes under each label, so far as they count, with the share of judgements."""
        votes = self.chosen_["weight"] * observations.of_votes().log_evidence(self.learned().emissions)
        return votes + self.chosen_["trust"] * observations.log_judgement() if len(observations.posteriors) else votes

    def _own_share(self, observations: Observations) -> float:
        return own_share(self.chosen_["trust"], len(observations.posteriors))

    def _choices(self, judged: bool) -> Iterator[Group]:
        yield from super()._choices(judged)
        yield {"weight": WEIGHT}

    def learned(self) -> Counts:
        """Start, transitions and emissions; rows sum to one."""
        if self.statistics_ is None:
            raise not_fitted(self.name)
        return self.statistics_

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Start, transitions and emissions."""
        return dict(zip(("start", "transitions", "emissions"), self.learned().arrays(), strict=True))

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {"start": ("labels",), "transitions": ("labels", "labels"), "emissions": ("sources", "labels", "labels")}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self._take(Counts(parameters["start"], parameters["transitions"], parameters["emissions"]), [])

    def tables(self) -> list[Table]:
        """The confusion of each source."""
        return confusion_tables(self._fitted()[1], self.learned().emissions, self.labels)
