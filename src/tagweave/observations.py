"""`Observations`: what every source says on every token, in the state space of a label model.

Votes are packed small integers. A vote is a *pattern*: a distribution over labels. The first patterns are the labels
themselves (one-hot), then follow the ones that a coarse type spreads over its members. `ABSTAIN` is no vote at all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import AlignmentError, unknown_name
from tagweave.labels import LabelSet, StateSpace
from tagweave.parts import each
from tagweave.soft_labels import SoftLabels
from tagweave.vote_kernels import count, gather, speaks_anyone, speaks_in, vote_outside

Result = TypeVar("Result")

ABSTAIN = -1
"""The vote of a source that says nothing."""

_LEAST = 1e-6
"""Probabilities are read as at least this: no source can rule a label out."""

Silence = Literal["never", "token", "sentence", "document", "sentence-strict", "document-strict", "always"]
"""Where the silence of a source means that it abstains; everywhere else silence is a vote for O.

- `never`: silence is always a vote for O.
- `token`: a source abstains on a token where it is silent and another source votes for an entity.
- `sentence`: a source that is silent in a whole sentence abstains there, if another source votes for an entity in it.
- `document`: the same over all sentences of a group.
- `sentence-strict`: a source that is silent in a whole sentence abstains there, also if all others are silent too.
- `document-strict`: the same over all sentences of a group. This is what skweak does, with groups as its documents.
- `always`: silence is never a vote.

A source that did not run on a document always abstains there.
"""


Probabilities = Literal["posteriors", "votes"]
"""How a source is read that gives a probability for every label on every token, as a tagger does.

- `posteriors`: at its word (`tagweave.label_models.confusion.ConfusionModel`, or `likelihoods`).
- `votes`: as a vote that is spread over labels, with a confusion matrix like any other source.
"""


@dataclass(frozen=True, eq=False)
class Observations:
    """Votes of all sources on packed tokens.

    Attributes:
        labels: the state space.
        sources: names, in the order of the corpus.
        hard: which of the sources the columns of `votes` are; the others are those of `soft`, in order.
        offsets: tokens of document `d` are `offsets[d]:offsets[d + 1]`, of shape [documents + 1].
        votes: pattern numbers or `ABSTAIN`, int8 of shape [tokens, hard sources].
        patterns: the meaning of each pattern number, of shape [patterns, labels]; rows sum to one.
        soft: probabilities of shape [tokens, soft sources, labels]; a row of zeros is no vote.
        posteriors: which of the sources are judgements with the frequencies of labels in them, see `Probabilities`.
    """

    labels: LabelSet
    sources: tuple[str, ...]
    hard: NDArray[np.int64]
    offsets: NDArray[np.int64]
    votes: NDArray[np.int8]
    patterns: NDArray[np.float64]
    soft: NDArray[np.float32]
    posteriors: NDArray[np.int64]

    @property
    def soft_positions(self) -> NDArray[np.int64]:
        """Which of the sources the columns of `soft` are."""
        return np.setdiff1d(np.arange(len(self.sources)), self.hard)

    def source(self, index: int) -> NDArray[np.float64]:
        """What one source says as distributions of shape [tokens, labels]; rows of zeros where it abstains."""
        if index not in self.hard:
            column = int(np.searchsorted(self.soft_positions, index))
            return self.soft[:, column].astype(np.float64)
        table = np.vstack([self.patterns, np.zeros(len(self.labels))])
        rows: NDArray[np.float64] = table[self.votes[:, np.searchsorted(self.hard, index)]]
        return rows

    def batches(self, tokens: int = 1_000_000) -> Iterator["Observations"]:
        """Views of consecutive documents, of at most `tokens` tokens each or one longer document."""
        first = 0
        while first < len(self.offsets) - 1:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + tokens, side="right")) - 1
            last = max(last, first + 1)
            rows = slice(int(self.offsets[first]), int(self.offsets[last]))
            offsets = self.offsets[first : last + 1] - self.offsets[first]
            yield replace(self, offsets=offsets, votes=self.votes[rows], soft=self.soft[rows])
            first = last

    def log_evidence(self, emissions: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Log-probability of the votes under each label: \(\log \varphi_i = \sum_k \log \sum_j \Phi_{kij} x_{kj}\).

        Li et al. (2021), equation for the observation likelihood. A source that abstains contributes nothing.

        Args:
            emissions: of shape [sources, labels, labels] (source, hidden, observed); rows sum to one, or are the
                `likelihoods` of a source that gives posteriors.

        Returns:
            Log-probabilities of shape [tokens, labels].
        """
        tables = np.log(np.einsum("kij,pj->kpi", emissions[self.hard], self.patterns))
        evidence = gather(self.votes, tables)
        for column, position in enumerate(self.soft_positions):
            said = self.soft[:, column].astype(np.float64)
            voted = said.sum(axis=1) > 0
            evidence[voted] += np.log(np.maximum(said[voted], _LEAST) @ emissions[position].T)
        return evidence

    def of_votes(self) -> "Observations":
        """The same without what `posteriors` say."""
        if not len(self.posteriors):
            return self
        soft = self.soft.copy()
        soft[:, np.isin(self.soft_positions, self.posteriors)] = 0
        return replace(self, soft=soft)

    def log_judgement(self) -> NDArray[np.float64]:
        """Log-probability of each label in what `posteriors` say, the sum over them, of shape [tokens, labels]."""
        said = self.soft[:, np.isin(self.soft_positions, self.posteriors)].astype(np.float64)
        logs: NDArray[np.float64] = np.log(np.maximum(said, _LEAST)).sum(axis=1)
        return logs

    def pattern_counts(self, weights: NDArray[np.floating]) -> NDArray[np.float64]:
        """Expected number of times that each hard source voted a pattern where the label was `i`.

        Args:
            weights: probability of each label on each token, of shape [tokens, labels].

        Returns:
            Of shape [hard sources, labels, patterns].
        """
        return count(self.votes, weights, len(self.patterns))

    def of_no_token(self) -> "Observations":
        """The same of no token: what the parts of a corpus have in common."""
        return replace(self, offsets=self.offsets[:1], votes=self.votes[:0], soft=self.soft[:0])

    def counts(self, weights: NDArray[np.floating]) -> NDArray[np.float64]:
        """Expected number of times that a source said `j` where the label was `i`.

        Args:
            weights: probability of each label on each token, of shape [tokens, labels].

        Returns:
            Of shape [sources, labels, labels] (source, hidden, observed). A spread vote counts in parts.
        """
        counted = self.pattern_counts(weights)
        size = len(self.labels)
        expected = np.empty((len(self.sources), size, size))
        expected[self.hard] = np.einsum("kip,pj->kij", counted, self.patterns)
        expected[self.soft_positions] = np.einsum("ti,tkj->kij", weights, self.soft.astype(np.float64))
        return expected


def each_batch(
    function: Callable[[Observations], Result], parts: Iterable[Observations], tokens: int = 1_000_000
) -> Iterator[Result]:
    """What a function says of each batch of each part, in order; see `Observations.batches`."""
    return chain.from_iterable(each(partial(_in_batches, function, tokens), parts))


def _in_batches(function: Callable[[Observations], Result], tokens: int, part: Observations) -> list[Result]:
    return list(map(function, part.batches(tokens)))


def likelihoods(parts: Iterable[Observations]) -> dict[int, NDArray[np.float64]]:
    r"""What posteriors say by Bayes' rule, as emissions: \(p(x \mid z = i) \propto x_i / p(z = i)\).

    The probabilities of a tagger are no noisy votes but a judgement that has the frequencies of labels in it. Dividing
    these out leaves what the tagger saw. The frequencies are the means of its own probabilities.

    Args:
        parts: what is observed in the parts of a corpus.

    Returns:
        For each of `posteriors` a diagonal matrix, of shape [labels, labels]; its largest entry is one.
    """
    total: dict[int, NDArray[np.float64]] = {}
    tokens = 0
    for more, said in each(_said_softly, parts):
        tokens += more
        for position, rows in said.items():
            total[position] = total.get(position, 0.0) + rows
    frequencies = {p: said / tokens + _LEAST if tokens else np.ones(len(said)) for p, said in total.items()}
    return {position: np.diag(found.min() / found) for position, found in frequencies.items()}


def _said_softly(part: Observations) -> tuple[int, dict[int, NDArray[np.float64]]]:
    """Number of tokens, and the sums of the probabilities of each of `posteriors`."""
    columns = {p: part.soft[:, np.searchsorted(part.soft_positions, p)] for p in map(int, part.posteriors)}
    return len(part.soft), {position: soft.sum(axis=0, dtype=np.float64) for position, soft in columns.items()}


def observe(
    corpus: Corpus,
    state_space: StateSpace = "io",
    silence: Silence = "token",
    probabilities: Probabilities = "posteriors",
) -> Observations:
    """The votes of a corpus's sources in a state space.

    Overlapping spans of one source are settled first (`Annotations.without_overlaps`). A source whose spans all or in
    part carry a probability is soft: a span of probability p gives p to its label and 1 - p to O. A coarse type is
    spread evenly over its members.

    Args:
        corpus: documents and sources.
        state_space: `io` or `bio`.
        silence: what silence means, see `Silence`.
        probabilities: how soft labels are read, see `Probabilities`.

    >>> from tagweave.corpus import Corpus, Document
    >>> from tagweave.annotations import Span
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(1, 2, "PER")], "c": None}
    >>> corpus = Corpus.from_documents([Document("d0", ["Ada", "Lovelace", "ran"], sources=votes)])
    >>> observe(corpus).votes.tolist()
    [[1, -1, -1], [1, 1, -1], [0, 0, -1]]
    """
    if silence not in get_args(Silence):
        raise unknown_name("scope of silence", silence, get_args(Silence))
    labels = LabelSet(corpus.types, state_space)
    patterns, first, inside = _patterns(labels, corpus.coarse)
    hard = {n: c for n, c in corpus.sources.items() if isinstance(c, Annotations) and c.scores is None}
    soft = {n: c for n, c in corpus.sources.items() if n not in hard}
    votes = np.full((int(corpus.offsets[-1]), len(hard)), ABSTAIN, np.int8)
    for column, annotations in enumerate(hard.values()):
        _paint(corpus, annotations.without_overlaps(), first, inside, votes[:, column])
    said = np.zeros((len(votes), len(soft), len(labels)), np.float32)
    for column, source in enumerate(soft.values()):
        said[:, column] = _soft(corpus, source, patterns, (first, inside))
    ran = [_ran(corpus, column) for column in (*hard.values(), *soft.values())]
    document = np.repeat(np.arange(len(corpus), dtype=np.int32), np.diff(corpus.offsets))
    settle_silence(corpus, document, silence, votes, said, np.array(ran, bool).reshape(len(ran), len(corpus)).T)
    positions = np.flatnonzero([name in hard for name in corpus.sources])
    judged = [isinstance(c, SoftLabels) and probabilities == "posteriors" for c in corpus.sources.values()]
    posteriors = np.flatnonzero(judged)
    return Observations(labels, tuple(corpus.sources), positions, corpus.offsets, votes, patterns, said, posteriors)


def _patterns(
    labels: LabelSet, coarse: Mapping[str, Sequence[str]]
) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]:
    """Patterns, and the pattern number of a span's first and later tokens by type number."""
    rows, first, inside = [*np.eye(len(labels))], [*labels.first], [*labels.inside]
    for members in coarse.values():
        numbers = [1 + labels.types.index(name) for name in members]
        for column, table in ((labels.first, first), (labels.inside, inside)):
            table.append(len(rows))
            rows.append(np.bincount(column[numbers], minlength=len(labels)) / len(numbers))
    if len(rows) > np.iinfo(np.int8).max:
        raise AlignmentError(f"{len(rows)} labels and coarse types are more than the {np.iinfo(np.int8).max} allowed")
    return np.array(rows), np.array(first, np.int8), np.array(inside, np.int8)


def _paint(
    corpus: Corpus, spans: Annotations, first: NDArray[np.int8], inside: NDArray[np.int8], votes: NDArray[np.int8]
) -> None:
    """Write the pattern number of each span's tokens into `votes`, of shape [tokens]."""
    base = corpus.offsets[spans.documents]
    tokens, rows = _covered(base + spans.starts, base + spans.ends)
    votes[tokens] = inside[spans.type_ids[rows]]
    votes[base + spans.starts] = first[spans.type_ids]


def _covered(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All tokens under some spans, and the span of each."""
    lengths = ends - starts
    rows = np.repeat(np.arange(len(starts)), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[rows] + within, rows


def _soft(
    corpus: Corpus,
    source: Annotations | SoftLabels,
    patterns: NDArray[np.float64],
    numbers: tuple[NDArray[np.int8], NDArray[np.int8]],
) -> NDArray[np.float32]:
    """Probabilities of a soft source, of shape [tokens, labels]; rows of zeros where it is silent."""
    if isinstance(source, SoftLabels):
        return source.probabilities if patterns.shape[1] == source.probabilities.shape[1] else source.io()
    votes = np.full(int(corpus.offsets[-1]), ABSTAIN, np.int8)
    spans = source.without_overlaps()
    _paint(corpus, spans, *numbers, votes)
    base = corpus.offsets[spans.documents]
    tokens, rows = _covered(base + spans.starts, base + spans.ends)
    scores = np.ones(len(spans)) if spans.scores is None else np.where(np.isnan(spans.scores), 1, spans.scores)
    said = np.zeros((len(votes), patterns.shape[1]), np.float32)
    said[tokens] = scores[rows, None] * patterns[votes[tokens]]
    said[tokens, 0] += 1 - scores[rows]
    return said


def _ran(corpus: Corpus, column: Annotations | SoftLabels) -> NDArray[np.bool_]:
    return column.ran if isinstance(column, Annotations) else np.ones(len(corpus), bool)


def settle_silence(
    corpus: Corpus,
    document: NDArray[np.integer],
    silence: Silence,
    votes: NDArray[np.int8],
    soft: NDArray[np.float32],
    ran: NDArray[np.bool_],
) -> None:
    """Turn the silence of sources into votes for O where `silence` says so, in place.

    Args:
        corpus: its groups are larger documents.
        document: document number of each token (or candidate), of shape [tokens].
        silence: what silence means.
        votes: of shape [tokens, hard sources], `ABSTAIN` where a source is silent.
        soft: of shape [tokens, soft sources, labels], zeros where a source is silent.
        ran: whether a source ran, hard sources first, of shape [documents, sources].
    """
    if silence == "always":
        return
    unit, _, strict = silence.partition("-")
    hard, speaking = votes.shape[1], soft[:, :, 1:].sum(axis=2) > 0.5
    may = ran
    if unit in ("sentence", "document"):
        found = np.concatenate([speaks_in(votes, document, len(ran)), _anywhere(speaking, document, len(ran))], axis=1)
        if unit == "document":
            groups = corpus.group_numbers
            found = _anywhere(found, groups, int(groups.max(initial=-1)) + 1)[groups]
        may = ran & (found if strict else found | ~found.any(axis=1, keepdims=True))
    spoken_for = speaks_anyone(votes) | speaking.any(axis=1) if silence == "token" else None
    vote_outside(votes, document, np.ascontiguousarray(may[:, :hard]), spoken_for)
    for column in range(soft.shape[1]):
        silent = ~soft[:, column].any(axis=1) & may[document, hard + column]
        soft[silent if spoken_for is None else silent & ~spoken_for, column, 0] = 1


def _anywhere(mask: NDArray[np.bool_], scope: NDArray[np.integer], scopes: int) -> NDArray[np.bool_]:
    """For each column, whether the mask holds somewhere in a scope, of shape [scopes, columns]."""
    found = np.zeros((scopes, mask.shape[1]), bool)
    for column in range(mask.shape[1]):
        found[scope[mask[:, column]], column] = True
    return found
