"""Events of the linked HMM: what rules say under the labels, their probabilities and expected numbers."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.chain import forward_backward
from tagweave.corpus import Corpus
from tagweave.label_models.inference import Potentials
from tagweave.label_models.links import DIFFERENT, SAME, same_label
from tagweave.observations import ABSTAIN, Observations

_BATCH_TOKENS = 200_000
"""Most tokens whose pairs of labels are held at once."""


class Events(NamedTuple):
    """Numbers of events, pseudo-counts, or probabilities; the last axis of each array is what may happen.

    Where a source gives judgements (`Observations.posteriors`), `judgements` holds its likelihood of each label and 0.
    """

    start: NDArray[np.float64]
    """First label, of shape [labels]."""
    transitions: NDArray[np.float64]
    """Next label by label, of shape [labels, labels]."""
    judgements: NDArray[np.float64]
    """Right or wrong vote of a rule by true label, of shape [rules, labels, 2]."""
    speaking: NDArray[np.float64]
    """Vote or silence of a rule, of shape [rules, 2]."""
    link_judgements: NDArray[np.float64]
    """Right or wrong link of a linking rule, of shape [linking rules, 2]."""
    link_speaking: NDArray[np.float64]
    """Link or silence of a linking rule, of shape [linking rules, 2]."""

    def plus(self, other: "Events") -> "Events":
        """Sums of both."""
        return Events(*(a + b for a, b in zip(self, other, strict=True)))

    def normalised(self) -> "Events":
        """Probabilities."""
        return Events(*(array / np.maximum(array.sum(axis=-1, keepdims=True), 1e-300) for array in self))


class Evidence(NamedTuple):
    """What rules and linking rules say (`tagweave.label_models.links.link_votes`) on some tokens."""

    rules: Observations
    links: NDArray[np.int8]

    def batches(self) -> Iterator["Evidence"]:
        """Consecutive documents."""
        done = 0
        for rules in self.rules.batches(_BATCH_TOKENS):
            rows = slice(done, done + int(rules.offsets[-1]))
            yield Evidence(rules, self.links[rows])
            done = rows.stop


def emissions(judgements: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of each vote given that a rule votes: `right` for the true label, `wrong` spread over all others.

    Args:
        judgements: right and wrong, of shape [rules, labels, 2].

    Returns:
        Of shape [rules, labels, labels] (rule, hidden, observed).

    >>> emissions(np.array([[[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]]]))[0].round(2).tolist()
    [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.25, 0.25, 0.5]]
    """
    size = judgements.shape[1]
    right = np.eye(size, dtype=bool)
    spread: NDArray[np.float64] = np.where(right, judgements[..., :1], judgements[..., 1:] / max(size - 1, 1))
    return spread


def link_evidence(
    votes: NDArray[np.int8], judgements: NDArray[np.float64], same: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Log-probability of what linking rules say, given that they speak, for each pair of labels.

    Args:
        votes: `SAME`, `DIFFERENT` or 0, of shape [tokens, linking rules].
        judgements: probability of right and wrong, of shape [linking rules, 2].
        same: which pairs are the same label, of shape [labels, labels].

    Returns:
        Of shape [tokens, labels, labels] (token, label before, label).
    """
    logs = np.log(judgements)
    if_same = (votes == SAME) @ logs[:, 0] + (votes == DIFFERENT) @ logs[:, 1]
    if_different = (votes == SAME) @ logs[:, 1] + (votes == DIFFERENT) @ logs[:, 0]
    evidence: NDArray[np.float64] = np.where(same, if_same[:, None, None], if_different[:, None, None])
    return evidence


def right_votes(
    observations: Observations, learned: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Expected numbers of right and wrong votes.

    A vote that is spread over several labels is right as far as the label is what it most likely stands for, given the
    label and the rule: this keeps EM exact for coarse types and for spans with probabilities.

    Args:
        observations: votes.
        learned: probabilities of right and wrong, of shape [rules, labels, 2].
        weights: probability of each label on each token, of shape [tokens, labels].

    Returns:
        Of shape [rules, labels, 2].
    """
    tables, expected = emissions(learned), np.zeros_like(learned)
    patterns = observations.patterns
    meant = learned[observations.hard, :, :1] * patterns.T
    share = meant / np.einsum("kij,pj->kip", tables[observations.hard], patterns)
    counted = observations.pattern_counts(weights)
    expected[observations.hard, :, 0] = (counted * share).sum(axis=2)
    expected[observations.hard, :, 1] = (counted * (1 - share)).sum(axis=2)
    for column, position in enumerate(observations.soft_positions):
        said = observations.soft[:, column].astype(np.float64)
        voted = said.sum(axis=1) > 0
        said = np.maximum(said[voted], 1e-6)
        share = learned[position, :, 0] * said / (said @ tables[position].T)
        expected[position, :, 0] = (weights[voted] * share).sum(axis=0)
        expected[position, :, 1] = (weights[voted] * (1 - share)).sum(axis=0)
    return expected


def potentials(learned: Events, evidence: Evidence) -> Potentials:
    """The chain of labels given what all rules say; silence, which says nothing of the labels, is left out."""
    with np.errstate(divide="ignore"):
        start, transitions = np.log(learned.start), np.log(learned.transitions)
    if evidence.links.any():
        same = same_label(evidence.rules.labels)
        transitions = transitions + link_evidence(evidence.links, learned.link_judgements, same)
    return Potentials(start, transitions, evidence.rules.log_evidence(emissions(learned.judgements)))


def expect(learned: Events, evidence: Evidence, in_order: bool) -> tuple[Events, float]:
    """The E-step: expected numbers of events, but for speaking, and the log-likelihood of votes given who speaks.

    Args:
        learned: probabilities.
        evidence: what rules say.
        in_order: whether labels follow each other; False counts every label among the first ones.
    """
    expected, log_likelihood = Events(*(np.zeros_like(array) for array in learned)), 0.0
    same = same_label(evidence.rules.labels)
    for part in evidence.batches():
        by_token = bool(part.links.any())
        offsets = part.rules.offsets
        posterior = forward_backward(*potentials(learned, part), offsets, pairs="token" if by_token else "sum")
        pairs, marginals = np.asarray(posterior.pair_marginals), posterior.marginals.astype(np.float64)
        first = marginals[offsets[:-1][np.diff(offsets) > 0]] if in_order else marginals
        moves = pairs.sum(axis=0) if by_token else pairs
        agreement = pairs[:, same].sum(axis=1) if by_token else np.zeros(len(part.links))
        found = expected._replace(
            start=first.sum(axis=0),
            transitions=moves if in_order else np.zeros_like(moves),
            judgements=right_votes(part.rules, learned.judgements, marginals),
            speaking=np.zeros_like(learned.speaking),
            link_judgements=right_links(part.links, agreement),
            link_speaking=np.zeros_like(learned.link_speaking),
        )
        expected = expected.plus(found)
        log_likelihood += float(posterior.log_partition.sum())
    return expected, log_likelihood


def right_links(votes: NDArray[np.int8], agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected numbers of right and wrong links, of shape [linking rules, 2].

    Args:
        votes: `SAME`, `DIFFERENT` or 0, of shape [tokens, linking rules].
        agreement: probability that a token's label is the same as the one before, of shape [tokens].
    """
    said_same, said_different = (votes == SAME).astype(np.float64), (votes == DIFFERENT).astype(np.float64)
    right = agreement @ said_same + (1 - agreement) @ said_different
    return np.stack([right, (votes != 0).sum(axis=0) - right], axis=1)


def weighted_logs(counts: Events, learned: Events) -> float:
    """The sum of counts times the logarithms of probabilities; what was not counted may be impossible."""
    total = 0.0
    for number, probability in zip(counts, learned, strict=True):
        total += float((number[number > 0] * np.log(probability[number > 0])).sum())
    return total


def speaking(corpus: Corpus, observations: Observations) -> NDArray[np.float64]:
    """How many tokens each source votes on, and is silent on though it ran, of shape [sources, 2]."""
    voted = np.empty(len(observations.sources))
    voted[observations.hard] = (observations.votes != ABSTAIN).sum(axis=0)
    voted[observations.soft_positions] = (observations.soft.sum(axis=2) > 0).sum(axis=0)
    lengths = np.diff(corpus.offsets)
    ran = [lengths[c.ran].sum() if isinstance(c, Annotations) else lengths.sum() for c in corpus.sources.values()]
    return np.stack([voted, np.array(ran) - voted], axis=1)


def link_speaking(corpus: Corpus, names: tuple[str, ...], votes: NDArray[np.int8]) -> NDArray[np.float64]:
    """On how many pairs each linking rule speaks, and is silent though it ran, of shape [linking rules, 2]."""
    pairs = np.maximum(np.diff(corpus.offsets) - 1, 0)
    ran = [pairs[corpus.links[name].ran].sum() if name in corpus.links else 0 for name in names]
    spoken = (votes != 0).sum(axis=0)
    return np.stack([spoken, np.array(ran, np.int64) - spoken], axis=1).astype(np.float64)
