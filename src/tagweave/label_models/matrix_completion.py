"""Accuracies of sources from how often they agree: the completion of a matrix of second moments.

If sources vote independently given the label, how often two of them give each pair of votes is a product of what each
does by itself. A matrix with one row a source and vote therefore has low rank, apart from the blocks of a source with
itself. Fitting that product to the counts gives every source's confusion without looking at a token a second time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import DataError, UsageError, unknown_name
from tagweave.label_models.assignment import assign
from tagweave.label_models.base import LabelModel, not_fitted
from tagweave.label_models.crossings import without_crossings
from tagweave.label_models.independent import balance_table, infer_tokens
from tagweave.label_models.majority_vote import vote_shares
from tagweave.label_models.minimising import Array, minimise
from tagweave.label_models.restoring import Axis
from tagweave.label_models.tables import confusion_tables
from tagweave.labels import LabelSet
from tagweave.observations import Observations, each_batch, likelihoods, observe
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels
from tagweave.stored import observed

_FEWEST = 3
"""Sources that agreement needs to tell who is right: two that disagree may each be wrong."""

_BATCH_TOKENS = 10_000
"""Tokens whose votes are laid out as indicators at once."""


@dataclass(kw_only=True)
class MatrixCompletion(LabelModel):
    r"""The label model of Snorkel: what each source says under each label, from second moments of the votes.

    With \(\mu_{(k,j),y} = p(x_k = j \mid y)\), class balance \(p\), \(P = \mathrm{diag}(p)\), and \(o\) and \(O\)
    the means of the indicators of votes and of their products,

    \[ \min_\mu \; \lVert (O - \mu P \mu^\top) \odot M \rVert^2 + \lVert \mu p - o \rVert^2
       + \lambda \lVert \mu - \mu_0 \rVert^2 \]

    where \(M\) is 0 on the block of each source with itself and 1 elsewhere. This is the estimator of Ratner et al.
    (AAAI 2019, section 4.2) in the form of the `snorkel` package, for sources that are independent given the label. A
    vote that is spread over labels counts in parts. The posterior of a token multiplies the balance and the
    \(\mu\) of the votes on it; a source that abstains says nothing.

    Where it departs from the package: the penalty \(\lambda\) is applied once (there the optimiser decays the weights
    towards zero as well); L-BFGS runs to a minimum, where there a fixed number of gradient steps starts from values
    times a random number, so nothing here is random; \(\mu_0\) agrees with the first moments, while there every wrong
    vote starts as impossible; the balance defaults to an estimate, not to equal shares. As there, \(\mu\) is clamped
    into (0, 1) at the end, and columns of equal balance are put in the order that gives sources most right votes.

    Second moments determine \(\mu\) for two labels, but for more of them only up to a rotation, and rare labels
    hardly count in them. \(\lambda\) decides what the votes leave open, and without it the model falls far under a
    majority vote on CoNLL-2003; the default was chosen on dev and keeps rare labels near \(\mu_0\).

    Spans that cross those of other sources are left out first (`without_crossings`). A source that gives a
    probability for every label is taken at its word, by Bayes' rule (`tagweave.observations.likelihoods`), and is not
    part of the matrix.

    Use it to compare with Snorkel, or for large corpora: it reads the votes once. It costs well under a second.

    Attributes:
        iterations: most steps of L-BFGS.
        tolerance: relative gain of a step under which it stops.
        precision: first value of the probability that a vote is right, the same for every source.
        pull: the penalty \(\lambda\) on what departs from the first values.
        class_balance: probability of each label on a token, by name; O is the rest. None takes the shares of the
            votes (as `MajorityVote` has them) in the corpus of the fit, with one more token for each label.

    Raises:
        DataError: fewer than three sources vote.
        UsageError: a setting is out of range.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 1, "PER")], "b": [Span(0, 1, "PER"), Span(2, 3, "LOC")], "c": [Span(0, 1, "LOC")]}
    >>> tokens = ["Ada", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> [span[:3] for span in MatrixCompletion().fit(corpus).predict(corpus)[0].entities]
    [(0, 1, 'PER'), (2, 3, 'LOC')]
    """

    adds_up: ClassVar[bool] = True
    name: ClassVar[str] = "matrix-completion"

    iterations: int = 1000
    tolerance: float = 1e-8
    precision: float = 0.9
    pull: float = 1.0
    class_balance: dict[str, float] | None = None
    balance_: Array | None = field(default=None, init=False, repr=False)
    emissions_: Array | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.precision < 1:
            raise UsageError(f"precision is {self.precision}: it must be more than 0 and less than 1")
        if self.pull < 0:
            raise UsageError(f"pull is {self.pull}: a penalty must not be negative")

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        said = observed(self._observe, parts)
        fixed = likelihoods(said)
        size, sources = len(self.labels), len(self._fitted()[1])
        voting = np.setdiff1d(np.arange(sources), list(fixed))
        seen = count_moments(said, voting, size)
        _check_voters(seen.first.reshape(-1, size))
        balance = self._balance(said)
        start = first_values(seen.first, balance, self.precision)
        least = min(0.01, 10.0 ** -np.ceil(np.log10(max(seen.tokens, 1))))
        learned = np.clip(in_order(self._minimise(seen, balance, start), balance), least, 1 - least)
        self.balance_, self.emissions_ = balance, np.ones((sources, size, size))
        self.emissions_[voting] = learned.reshape(-1, size, size).transpose(0, 2, 1)
        for source, matrix in fixed.items():
            self.emissions_[source] = matrix

    def _observe(self, corpus: Corpus) -> Observations:
        return observe(without_crossings(corpus), self.state_space, self.silence_, self.probabilities)

    def _balance(self, said: Iterable[Observations]) -> Array:
        if self.class_balance is not None:
            return _given_balance(self.class_balance, self.labels)
        total = np.ones(len(self.labels))
        for shares_of_batch in each_batch(_shares, said):
            total += shares_of_batch
        shares: Array = total / total.sum()
        return shares

    def _minimise(self, seen: "Moments", balance: Array, start: Array) -> Array:
        best = start
        for iteration, (point, value) in enumerate(minimise(lambda x: loss(x, seen, balance, start, self.pull), start)):
            self.history_.append({"iteration": iteration, "loss": value})
            best = point
            if iteration == self.iterations or self.converged:
                break
        return best

    @property
    def converged(self) -> bool:
        """Whether the last step gained next to nothing; else `iterations` was the limit, or no step gained."""
        if len(self.history_) < 2:
            return False
        before, now = (record["loss"] for record in self.history_[-2:])
        return before - now < self.tolerance * before

    def learned(self) -> tuple[Array, Array]:
        """Class balance of shape [labels], and how probable each vote of each source is under each label.

        The latter has shape [sources, labels, labels] (source, hidden, observed); what is left to one in a row is
        the probability that the source abstains.
        """
        if self.balance_ is None or self.emissions_ is None:
            raise not_fitted(self.name)
        return self.balance_, self.emissions_

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = self._observe(corpus)
        balance, emissions = self.learned()
        return infer_tokens(np.log(balance) + observations.log_evidence(emissions), corpus, observations.labels)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Class balance and emissions."""
        return dict(zip(("balance", "emissions"), self.learned(), strict=True))

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {"balance": ("labels",), "emissions": ("sources", "labels", "labels")}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self.balance_, self.emissions_ = parameters["balance"], parameters["emissions"]

    def tables(self) -> list[Table]:
        """What each source says under each label, and the class balance."""
        balance, emissions = self.learned()
        return [*confusion_tables(self._fitted()[1], emissions, self.labels), balance_table(balance, self.labels)]


class Moments(NamedTuple):
    """Means of the indicators of votes, of shape [sources * labels], and of their products, twice that shape."""

    first: Array
    second: Array
    tokens: int
    """Over which they are."""


def count_moments(parts: Iterable[Observations], voting: NDArray[np.integer], labels: int) -> Moments:
    """Moments of some sources' votes, in one pass.

    Args:
        parts: votes on the tokens of parts of a corpus.
        voting: places of the sources.
        labels: how many labels there are.
    """
    size, tokens = len(voting) * labels, 0
    first, second = np.zeros(size), np.zeros((size, size))
    for found in each_batch(partial(_sums, voting), parts, _BATCH_TOKENS):
        tokens += found.tokens
        first += found.first
        second += found.second
    return Moments(first / max(tokens, 1), second / max(tokens, 1), tokens)


def _sums(voting: NDArray[np.integer], part: Observations) -> Moments:
    """Sums instead of means."""
    said = np.hstack([np.empty((int(part.offsets[-1]), 0)), *(part.source(int(source)) for source in voting)])
    return Moments(said.sum(axis=0), said.T @ said, len(said))


def _shares(part: Observations) -> Array:
    """Sum of the shares of the votes, of shape [labels]."""
    shares: Array = vote_shares(part).sum(axis=0)
    return shares


def first_values(first: Array, balance: Array, precision: float) -> Array:
    """Probability of each vote under each label, if every vote is right equally often and else as the labels are.

    Args:
        first: share of tokens with each vote, of shape [sources * labels].
        balance: of shape [labels].
        precision: probability that a vote is right.

    Returns:
        Of shape [sources * labels, labels]; times the balance it sums to `first`, but where it was capped at one.

    >>> first_values(np.array([0.4, 0.3]), np.array([0.5, 0.5]), 0.75).round(2).tolist()
    [[0.6, 0.2], [0.15, 0.45]]
    """
    size = len(balance)
    wrong = (1 - precision) / np.maximum(1 - balance, 1e-12)
    factors = np.where(np.eye(size, dtype=bool), precision / balance, wrong[:, None])
    return np.minimum(first.reshape(-1, size, 1) * factors, 1).reshape(-1, size)


def loss(point: Array, seen: Moments, balance: Array, start: Array, pull: float) -> tuple[float, Array]:
    """How badly some probabilities of votes explain the moments, and the gradient.

    Args:
        point: of shape [sources * labels, labels].
        seen: what is to be explained.
        balance: of shape [labels].
        start: what `pull` draws to, of the shape of `point`.
        pull: weight of the squared distance from `start`.
    """
    size = len(balance)
    pairs = seen.second - (point * balance) @ point.T
    blocks = pairs.reshape(len(point) // size, size, -1, size)
    own = np.arange(len(blocks))
    blocks[own, :, own] = 0
    single, moved = point @ balance - seen.first, point - start
    value = float((pairs**2).sum() + (single**2).sum() + pull * (moved**2).sum())
    return value, -4 * (pairs @ point) * balance + 2 * np.outer(single, balance) + 2 * pull * moved


def in_order(point: Array, balance: Array) -> Array:
    """Columns put in the order that gives the sources most right votes; only those of equal balance change places.

    The moments cannot tell such columns apart.

    Args:
        point: of shape [sources * labels, labels].
        balance: of shape [labels].

    >>> in_order(np.array([[0.1, 0.6], [0.8, 0.2]]), np.array([0.5, 0.5])).tolist()
    [[0.6, 0.1], [0.2, 0.8]]
    """
    size = len(balance)
    said = point.reshape(-1, size, size).sum(axis=0)
    columns, left = np.arange(size), list(range(size))
    while left:
        group = [label for label in left if np.isclose(balance[label], balance[left[0]])]
        left = [label for label in left if label not in group]
        columns[group] = np.array(group)[assign(-said[np.ix_(group, group)])]
    return point[:, columns]


def _check_voters(said: Array) -> None:
    voters = int((said.sum(axis=1) > 0).sum())
    if voters < _FEWEST:
        raise DataError(
            f"matrix completion learns from agreement among at least {_FEWEST} sources, but {voters} vote in this "
            "corpus (not counted: sources that give a probability for every label); add sources or use naive-bayes"
        )


def _given_balance(shares: Mapping[str, float], labels: LabelSet) -> Array:
    names = labels.names[1:]
    for name in shares:
        if name not in names:
            raise unknown_name("label in class_balance", name, names)
    missing = [name for name in names if name not in shares]
    if missing:
        raise UsageError(f"class_balance has no share for {', '.join(missing)}: give one for each label but O")
    found = np.array([1 - sum(shares.values()), *(shares[name] for name in names)])
    if (found <= 0).any():
        raise UsageError(f"class_balance is {dict(shares)}: shares must be more than 0 and leave some of 1 for O")
    return found
