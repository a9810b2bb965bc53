"""SwellShark: first candidate spans, then a generative model of the votes on each, then the best set of spans."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import UsageError, unknown_name
from tagweave.label_models.anchors import anchor_labels
from tagweave.label_models.base import not_fitted
from tagweave.label_models.beliefs import Beliefs, Counts, count, emissions, errors, likelihoods
from tagweave.label_models.candidates import (
    Candidates,
    Generator,
    Overlap,
    noun_phrases,
    observe_candidates,
    parts_of_speech,
    source_places,
    span_votes,
)
from tagweave.label_models.independent import balance_table, posterior
from tagweave.label_models.intervals import best_spans, label_probabilities, span_marginals
from tagweave.label_models.iterative import IterativeModel
from tagweave.label_models.restoring import Axis
from tagweave.labels import LabelSet
from tagweave.observations import Observations
from tagweave.pipelines import DEFAULT
from tagweave.progress import track
from tagweave.report import Cell, Table
from tagweave.soft_labels import SoftLabels

Propensity = Literal["source", "class"]
"""Whether a source speaks equally often whatever a candidate is, or silence is evidence."""

_LEAST = 1e-12
"""Probabilities of classes are read as at least this where they are compared."""


@dataclass(kw_only=True)
class SwellShark(IterativeModel):
    r"""Candidate spans, whose classes (O or a type) explain the votes of sources; then the best set of candidates.

    \[ p(y_i, x_i) = \pi_{y_i} \prod_k p(x_{ik} \mid y_i), \qquad p(x_k \mid y) = \begin{cases}
       1 - \beta_{ky} & \text{silence} \\ \beta_{ky} \, \alpha_k & x_k = y \\
       \beta_{ky} \, (1 - \alpha_k) \, r_{k x_k} / (1 - r_{ky}) & \text{else} \end{cases} \]

    with the balance \(\pi\) of the classes, and of each source its accuracy \(\alpha_k\), its propensity to speak
    \(\beta_{ky}\), and the shares \(r_k\) of its votes: it errs as it votes. A source votes for the type of a candidate
    that is exactly its span; where a span of it overlaps the candidate otherwise it votes O, for entities do not
    overlap; else it is silent. Expectation maximisation is exact, with Beta and Dirichlet priors: the objective never
    falls.

    The entities are the candidates without overlap with the largest sum of \(\log p(y) - \log p(\text{O})\), by
    weighted interval scheduling. The same weights make a distribution over all sets of candidates without overlap,
    \(p(S) \propto \prod_{(i, y) \in S} p_i(y) / p_i(\text{O})\). Soft labels are its exact marginals: B is the
    probability that a candidate of the set starts at the token, I that one goes on over it, O that none covers it. So
    rows sum to one.

    After Fries et al. (2017, arXiv:1704.06360), whose candidates come from noun phrases or are tuned by hand. They
    learn by Gibbs sampling, here the sum over classes is closed; their penalty is a prior here, whose mean is how
    sources vote on the spans of `SpanVote`: without it, short pieces of entities come out as entities
    (strength=0: 13 points lower on dev of NCBI-Disease). Their sources err evenly over the classes; erring as a source
    votes is better where sources know one type each (BC5CDR, CoNLL-2003).

    A source that gives a probability for every label on every token, as a tagger does, makes its most probable
    entities candidates, and is taken at its word by Bayes' rule: \(p(x_k \mid y) \propto q_k(y) / \bar q_k(y)\), where
    \(q_k(y)\) is the probability of exactly this span and type
    (`tagweave.label_models.candidates.span_probabilities`) and \(\bar q_k\) its mean over the candidates of the fit.

    With `sources` only spans that somebody votes for are candidates, so the accuracies are those on such spans.

    The hidden states are spans, so `state_space` changes nothing. For `silence`, read "candidate" for "token".

    Use it when sources know boundaries, and contradict each other in what a span is. It costs a second, and with noun
    phrases the time of spaCy's tagger (some 5,000 tokens a second).

    Attributes:
        candidates: `sources` takes the spans of all sources. `noun-phrases` takes all stretches of up to `longest`
            tokens in the chunks `(JJ|NN|VBG|CD|HYPH)*NN+`, and of the sources only the entities of those that give
            probabilities. Entities that are no candidate cannot be found.
        overlap: what a source says of a candidate that one of its spans overlaps: `outside` for a vote for O, or
            `abstain`.
        propensity: one propensity for each source, so that silence is no evidence, or one for each source and class,
            which is better with noun phrases.
        longest: most tokens of a piece of a noun phrase.
        pipeline: spaCy pipeline that finds parts of speech.
        accuracy: mean of the prior of accuracies, in so far as the anchor does not say more.
        smoothing: weight of that prior, in votes.
        strength: weight of the anchor in the priors, 1 for as much as the corpus has.
        iterations: most iterations of EM.
        tolerance: relative gain of the objective under which it stops.

    Raises:
        UsageError: a setting is out of range or unknown.
        MissingExtraError: noun phrases are asked for and spaCy is not installed.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> names = [Span(0, 2, "PER")]
    >>> votes = {"a": names, "b": names, "c": [Span(1, 2, "PER")], "d": [Span(3, 4, "LOC")]}
    >>> tokens = ["Ada", "Lovelace", "left", "Oslo"]
    >>> corpus = Corpus.from_documents([Document(f"d{i}", tokens, sources=votes) for i in range(9)])
    >>> [span[:3] for span in SwellShark().fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """

    name: ClassVar[str] = "swellshark"

    candidates: Generator = "sources"
    overlap: Overlap = "outside"
    propensity: Propensity = "source"
    longest: int = 6
    pipeline: str = DEFAULT
    accuracy: float = 0.8
    smoothing: float = 10.0
    strength: float = 3.0
    beliefs_: Beliefs | None = field(default=None, init=False, repr=False)
    emissions_: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 0)), init=False, repr=False)
    _parsed: tuple[Any, NDArray[np.int64], NDArray[np.int8]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name, known in (("candidates", Generator), ("overlap", Overlap), ("propensity", Propensity)):
            if getattr(self, name) not in get_args(known):
                raise unknown_name(name, getattr(self, name), get_args(known))
        if not 0 < self.accuracy < 1:
            raise UsageError(f"accuracy is {self.accuracy}: it must be more than 0 and less than 1")
        if not (self.smoothing > 0 and self.strength >= 0 and self.longest >= 1):
            raise UsageError("smoothing must be more than 0, strength not negative, and longest at least 1")

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        [corpus] = parts
        candidates = self._candidates(corpus, self._features(corpus))
        observations = observe_candidates(corpus, candidates, self.silence_, self.overlap)
        wrong, fixed = errors(observations), likelihoods(observations)
        priors = self._priors(observations, _anchor(corpus, candidates), wrong)
        self._take(priors.most_probable(), wrong, fixed)
        for iteration in track(range(self.iterations), "EM", self.iterations):
            classes, log_likelihood = posterior(self._log_weights(observations))
            objective = float(log_likelihood.sum()) + priors.log_prior(self.learned())
            self.history_.append(
                {"iteration": iteration, "log_likelihood": float(log_likelihood.sum()), "objective": objective}
            )
            if self.converged:
                break
            expected = self._shared(count(observations, classes, self.emissions_))
            self._take(priors.plus(expected).most_probable(), wrong, fixed)

    def _priors(self, observations: Observations, anchor: NDArray[np.int64], wrong: NDArray[np.float64]) -> Counts:
        """Pseudo-counts: some by the settings, and how sources vote on the candidates that the anchor has."""
        size, sources = len(observations.labels), len(observations.sources)
        right = self.smoothing * self.accuracy
        floor = Counts(
            np.ones(size),
            np.tile([right, self.smoothing - right], (sources, 1)),
            np.full((sources, size, 2), 0.5),
        )
        tables = emissions(floor.most_probable(), wrong)
        return floor.plus(self._shared(count(observations, np.eye(size)[anchor], tables).times(self.strength)))

    def _shared(self, counts: Counts) -> Counts:
        return counts.shared() if self.propensity == "source" else counts

    def _take(self, beliefs: Beliefs, wrong: NDArray[np.float64], fixed: Mapping[int, NDArray[np.float64]]) -> None:
        tables = emissions(beliefs, wrong)
        for source, weights in fixed.items():
            tables[source] = np.eye(len(weights), len(weights) + 1) * weights[:, None]
            beliefs.accuracy[source] = beliefs.propensity[source] = np.nan
        self.beliefs_, self.emissions_ = beliefs, tables

    def learned(self) -> Beliefs:
        """Balance, accuracies and propensities; NaN for sources that are taken at their word."""
        if self.beliefs_ is None:
            raise not_fitted(self.name)
        return self.beliefs_

    def _log_weights(self, observations: Observations) -> NDArray[np.float64]:
        return np.log(self.learned().balance) + observations.log_evidence(self.emissions_)

    def _features(self, corpus: Corpus) -> NDArray[np.int8] | None:
        """Parts of speech, where candidates are noun phrases; those of the last corpus are kept."""
        if self.candidates == "sources":
            return None
        if self._parsed is not None:
            tokens, offsets, kinds = self._parsed
            if np.array_equal(offsets, corpus.offsets) and tokens.equals(corpus.tokens):
                return kinds
        kinds = parts_of_speech(corpus, self.pipeline)
        self._parsed = corpus.tokens, corpus.offsets, kinds
        return kinds

    def _candidates(self, corpus: Corpus, kinds: NDArray[np.int8] | None) -> Candidates:
        if kinds is None:
            return Candidates.of(source_places(corpus), corpus.offsets)
        pieces = noun_phrases(kinds, corpus.offsets, self.longest)
        return Candidates.of([pieces, *source_places(corpus, soft_only=True)], corpus.offsets)

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        candidates = self._candidates(corpus, features)
        observations = observe_candidates(corpus, candidates, self.silence_, self.overlap)
        logs = np.log(np.maximum(posterior(self._log_weights(observations))[0], _LEAST))
        gains, tokens = logs[:, 1:] - logs[:, :1], int(corpus.offsets[-1])
        places = candidates.starts, candidates.ends
        rows = label_probabilities(*places, span_marginals(*places, gains, tokens), tokens)
        soft = SoftLabels(corpus.types, corpus.offsets, rows.astype(np.float32))
        return soft, _entities(corpus, candidates, gains)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Balance, accuracies, propensities and emissions."""
        return {**self.learned()._asdict(), "emissions": self.emissions_}

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        return {
            "balance": ("classes",),
            "accuracy": ("sources",),
            "propensity": ("sources", "classes"),
            "emissions": ("sources", "classes", "votes"),
        }

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        self.beliefs_ = Beliefs(*(parameters[name] for name in Beliefs._fields))
        self.emissions_ = parameters["emissions"]

    def tables(self) -> list[Table]:
        """How often each source is right, and how often it speaks, and the balance of classes.

        A source that is taken at its word has neither.
        """
        learned, labels = self.learned(), LabelSet(self._fitted()[0], "io")
        rows: list[tuple[Cell, ...]] = []
        for name, right, speaks in zip(self._fitted()[1], learned.accuracy, learned.propensity, strict=True):
            rows.append((name, *(None if np.isnan(value) else 100 * float(value) for value in (right, *speaks))))
        title = "How often a source is right, and speaks on candidates that are ..., in percent"
        return [Table(title, ("", "right", *labels.names), tuple(rows)), balance_table(learned.balance, labels)]


def _anchor(corpus: Corpus, candidates: Candidates) -> NDArray[np.int64]:
    """Class of each candidate by the vote on spans, of shape [candidates]."""
    spans = Annotations.from_labels(anchor_labels(corpus, "bio"), corpus.offsets, LabelSet(corpus.types))
    return np.maximum(span_votes(spans, corpus.offsets, candidates, "abstain")[0], 0).astype(np.int64)


def _entities(corpus: Corpus, candidates: Candidates, gains: NDArray[np.float64]) -> Annotations:
    """The best set of candidates; a type that comes first in the alphabet wins ties."""
    order = np.argsort(np.array(corpus.types))
    best = order[np.round(gains[:, order], 9).argmax(axis=1)] if gains.size else np.zeros(len(gains), np.int64)
    highest = gains.max(axis=1, initial=-np.inf)
    chosen = best_spans(candidates.starts, candidates.ends, highest, int(corpus.offsets[-1]))
    rows = np.flatnonzero(chosen)
    documents = np.searchsorted(candidates.offsets, rows, side="right") - 1
    base = corpus.offsets[documents]
    return Annotations(
        ran=np.ones(len(corpus), bool),
        offsets=np.searchsorted(documents, np.arange(len(corpus) + 1)).astype(np.int64),
        starts=(candidates.starts[rows] - base).astype(np.int32),
        ends=(candidates.ends[rows] - base).astype(np.int32),
        type_ids=(1 + best[rows]).astype(np.int16),
    )
