r"""The hidden Markov model with tagging rules and linking rules (Safranchik et al., AAAI 2020), learned by exact EM.

Three numbers say all about a rule: how often it speaks, how often it is right, and that where it is wrong all wrong
votes are alike. A linking rule gives its evidence on a pair of neighbours, that is, on a move of the chain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import UsageError
from tagweave.label_models.base import not_fitted
from tagweave.label_models.inference import Decoder, Potentials, infer
from tagweave.label_models.iterative import IterativeModel
from tagweave.label_models.linked_events import (
    Events,
    Evidence,
    expect,
    link_speaking,
    potentials,
    speaking,
    weighted_logs,
)
from tagweave.label_models.links import link_votes, where_linked
from tagweave.label_models.restoring import Axis
from tagweave.label_models.tables import transition_table
from tagweave.labels import StateSpace
from tagweave.observations import likelihoods, observe
from tagweave.progress import track
from tagweave.report import Cell, Table
from tagweave.soft_labels import SoftLabels

_FLOOR = 0.01
"""Pseudo-count of every outcome, so that nothing is impossible."""


@dataclass(kw_only=True)
class LinkedHMM(IterativeModel):
    r"""A hidden Markov model with linking rules, which say of neighbouring tokens that their labels agree or differ.

    \[ p(z, \Lambda, \Gamma) = p(z_1) \prod_{t>1} T_{z_{t-1} z_t} \, p(\Gamma_t \mid z_{t-1}, z_t)
       \prod_t \prod_j p(\Lambda_{tj} \mid z_t) \]

    Rule \(j\) votes on a token with probability \(\beta_j\), whatever the label; its vote is right with probability
    \(\alpha_{j z}\), and else one of the other labels, all alike. Linking rule \(l\) speaks of a pair with probability
    \(\delta_l\) and is right with probability \(\gamma_l\). This is the model of Safranchik et al. (AAAI 2020), section
    3. They learn it by stochastic gradients with penalties; here every step of expectation maximisation is in closed
    form, with Beta and Dirichlet priors, and the objective never falls. As published, the priors hold accuracies near
    `accuracy`, and start and transitions near equal shares: a chain that knows how rare entities are would overrule
    each single vote. They are Beta and Dirichlet, because the published norm is not smooth at its very start.

    As published, silence is no vote: `silence="always"`. That needs sources that vote O on most tokens, else nothing
    tells where entities end. Without them take the default: silence is a vote for O but where another source votes for
    an entity, on the token or on one that linking rules tie to it.

    Sources that give a probability for every label are taken at their word, by Bayes' rule. A corpus without any links
    is read as if the linking rules were silent. In the bio state space a link says that the second token continues the
    entity of the first (`tagweave.label_models.links.same_label`).

    Use it when there are rules for what belongs together, such as phrases of a field, hyphens, or runs of capitals. It
    costs a second.

    Attributes:
        chain: whether labels follow each other; False makes it naive Bayes on tokens, without links. In the bio state
            space illegal moves are then only forbidden in what comes out.
        links: whether linking rules count; False makes it a hidden Markov model.
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.
        accuracy: first accuracy of rules and linking rules, and mean of its prior.
        accuracy_prior: weight of that prior, as a share of the votes of each rule: 1 for as many votes as it has.
        balance_prior: weight of equal shares in the priors of start and transitions, 1 for the tokens of the corpus.
        decoding: entities from the best path (Viterbi) or from the most probable label of each token.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"core": [Span(1, 2, "Disease")], "stop": [Span(2, 4, "O")], "words": [Span(1, 2, "Disease")]}
    >>> tokens, links = ["breast", "cancer", "was", "found"], {"phrases": [Span(0, 2, "same")]}
    >>> documents = [Document(f"d{i}", tokens, sources=votes, links=links) for i in range(9)]
    >>> corpus = Corpus.from_documents(documents)
    >>> [span[:3] for span in LinkedHMM().fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'Disease')]
    >>> [span[:3] for span in LinkedHMM(links=False).fit(corpus).predict(corpus)[0].entities]
    [(1, 2, 'Disease')]
    """

    name: ClassVar[str] = "linked-hmm"

    state_space: StateSpace = "io"
    chain: bool = True
    links: bool = True
    accuracy: float = 0.9
    accuracy_prior: float = 1.0
    balance_prior: float = 10.0
    decoding: Decoder = "viterbi"
    learned_: Events | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.accuracy < 1:
            raise UsageError(f"accuracy is {self.accuracy}; it must be between 0 and 1, and neither")
        for name in ("accuracy_prior", "balance_prior"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; a weight must not be negative")

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        [corpus] = parts
        evidence = self._evidence(corpus)
        fixed = likelihoods([evidence.rules])
        spoken = self._spoken(corpus, evidence)
        priors = self._priors(evidence, spoken)
        self.learned_ = self._settled(priors, fixed)
        for iteration in track(range(self.iterations), "EM", self.iterations):
            expected, log_likelihood = expect(self.learned(), evidence, self.chain)
            self._record(iteration, log_likelihood + weighted_logs(spoken, self.learned()), priors, list(fixed))
            if self.converged:
                break
            self.learned_ = self._settled(priors.plus(expected).plus(spoken), fixed)

    def _record(self, iteration: int, log_likelihood: float, priors: Events, fixed: list[int]) -> None:
        """Note the log-likelihood, and the objective: the same with the log of the priors."""
        judgements = priors.judgements.copy()
        judgements[fixed] = 0
        objective = log_likelihood + weighted_logs(priors._replace(judgements=judgements), self.learned())
        self.history_.append({"iteration": iteration, "log_likelihood": log_likelihood, "objective": objective})

    def _settled(self, counts: Events, fixed: Mapping[int, NDArray[np.float64]]) -> Events:
        """The M-step: the most probable parameters."""
        learned = counts.normalised()
        for source, judged in fixed.items():
            learned.judgements[source] = np.stack([np.diag(judged), np.zeros(len(judged))], axis=1)
        if not self.chain:
            learned = learned._replace(transitions=np.tile(learned.start, (len(learned.start), 1)))
        return learned

    def learned(self) -> Events:
        """Probabilities of all events; see `Events`."""
        if self.learned_ is None:
            raise not_fitted(self.name)
        return self.learned_

    def _evidence(self, corpus: Corpus) -> Evidence:
        rules = observe(corpus, self.state_space, self.silence_, self.probabilities)
        links = link_votes(corpus, self._linking)
        if self.silence_ == "token":
            spoken = observe(corpus, self.state_space, "always", self.probabilities)
            rules = where_linked(links, spoken, rules)
        return Evidence(rules, links)

    @property
    def _linking(self) -> tuple[str, ...]:
        """The linking rules that count."""
        return self.links_ if self.chain and self.links else ()

    def _spoken(self, corpus: Corpus, evidence: Evidence) -> Events:
        """How often every rule speaks, which does not depend on the labels."""
        size, rules, linking = len(evidence.rules.labels), len(evidence.rules.sources), len(self._linking)
        return Events(
            start=np.zeros(size),
            transitions=np.zeros((size, size)),
            judgements=np.zeros((rules, size, 2)),
            speaking=speaking(corpus, evidence.rules),
            link_judgements=np.zeros((linking, 2)),
            link_speaking=link_speaking(corpus, self._linking, evidence.links),
        )

    def _priors(self, evidence: Evidence, spoken: Events) -> Events:
        """Pseudo-counts; those of labels grow with the corpus, those of judgements with the votes of the rule."""
        labels, tokens, documents = evidence.rules.labels, len(evidence.links), len(evidence.rules.offsets) - 1
        starts, moves = labels.legal_starts, labels.legal_moves
        first = documents
        if not self.chain:
            starts, moves, first = np.ones_like(starts), np.zeros_like(moves), tokens
        share = self.balance_prior / len(labels)
        shares = np.array([self.accuracy, 1 - self.accuracy])
        return Events(
            start=np.where(starts, share * first + _FLOOR, 0),
            transitions=np.where(moves, share * tokens / len(labels) + _FLOOR, 0),
            judgements=spoken.judgements + self.accuracy_prior * spoken.speaking[:, None, :1] * shares + _FLOOR,
            speaking=np.ones_like(spoken.speaking),
            link_judgements=self.accuracy_prior * spoken.link_speaking[:, :1] * shares + _FLOOR,
            link_speaking=np.ones_like(spoken.link_speaking),
        )

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        evidence = self._evidence(corpus)
        labels = evidence.rules.labels
        start, transitions, votes = potentials(self.learned(), evidence)
        legal = Potentials(
            np.where(labels.legal_starts, start, -np.inf), np.where(labels.legal_moves, transitions, -np.inf), votes
        )
        return infer(legal, corpus, labels, self.decoding)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Probabilities of all events."""
        return self.learned()._asdict()

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {
            "start": ("labels",),
            "transitions": ("labels", "labels"),
            "judgements": ("sources", "labels", 2),
            "speaking": ("sources", 2),
            "link_judgements": ("links", 2),
            "link_speaking": ("links", 2),
        }

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self.learned_ = Events(**parameters)

    def tables(self) -> list[Table]:
        """How often each rule speaks and is right, the same of linking rules, and the transitions."""
        learned, labels = self.learned(), self.labels
        right = np.where(learned.judgements[..., 1] > 0, learned.judgements[..., 0], np.nan)
        speaks = np.where(np.isnan(right[:, :1]), np.nan, learned.speaking[:, :1])
        rules = Table(
            "How often a rule votes, and is right where the label is ..., in percent",
            ("rule", "votes", *labels.names),
            _named(self._fitted()[1], np.hstack([speaks, right])),
        )
        links = Table(
            "How often a linking rule speaks, and is right, in percent",
            ("linking rule", "speaks", "right"),
            _named(self._linking, np.stack([learned.link_speaking[:, 0], learned.link_judgements[:, 0]], axis=1)),
        )
        moves = transition_table(learned.start, learned.transitions, labels)
        return [rules, *([links] if self._linking else []), moves]


def _named(names: tuple[str, ...], rows: NDArray[np.float64]) -> tuple[tuple[Cell, ...], ...]:
    """Rows of a table in percent; nothing where a source is taken at its word."""
    percent = 100 * rows
    return tuple(
        (name, *(None if np.isnan(value) else float(value) for value in row))
        for name, row in zip(names, percent, strict=True)
    )
