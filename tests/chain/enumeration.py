"""The brute force: everything about a chain from a list of all its label sequences.

Nothing here is shared with the package. Costs `labels ** tokens`, so it is for short sentences only.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Exact:
    """What is true of one sentence."""

    log_partition: float
    marginals: Floats
    pairs: Floats
    entropy: float
    best: Integers
    best_score: float


def log(probabilities: Floats) -> Floats:
    """Logarithms, also of zeros."""
    result = np.full(np.shape(probabilities), -np.inf)
    return np.log(probabilities, out=result, where=np.asarray(probabilities) > 0)


def all_sequences(tokens: int, labels: int) -> Integers:
    """All label sequences, the lowest first, [sequences, tokens]."""
    return np.array(list(itertools.product(range(labels), repeat=tokens)), np.int64).reshape(labels**tokens, tokens)


def scores_of(sequences: Integers, start: Floats, transitions: Floats, evidence: Floats) -> Floats:
    """Score of each sequence; transitions are [labels, labels] or [tokens, labels, labels]."""
    total = np.zeros(len(sequences))
    for t in range(len(evidence)):
        matrix = transitions if transitions.ndim == 2 else transitions[t]
        total += start[sequences[:, 0]] if t == 0 else matrix[sequences[:, t - 1], sequences[:, t]]
        total += evidence[t, sequences[:, t]]
    return total


def enumerate_sentence(start: Floats, transitions: Floats, evidence: Floats) -> Exact:
    """Everything about one sentence that has a possible label sequence."""
    tokens, labels = evidence.shape
    sequences = all_sequences(tokens, labels)
    scores = scores_of(sequences, start, transitions, evidence)
    top = scores.max()
    log_partition = top + math.log(math.fsum(np.exp(scores - top)))
    probabilities = np.exp(scores - log_partition)
    marginals, pairs = np.zeros((tokens, labels)), np.zeros((tokens, labels, labels))
    for t in range(tokens):
        np.add.at(marginals[t], sequences[:, t], probabilities)
        if t > 0:
            np.add.at(pairs[t], (sequences[:, t - 1], sequences[:, t]), probabilities)
    possible = probabilities > 0
    entropy = -math.fsum(probabilities[possible] * (scores[possible] - log_partition))
    return Exact(log_partition, marginals, pairs, entropy, sequences[scores.argmax()], top)


def enumerate_sentences(start: Floats, transitions: Floats, evidence: Floats, offsets: Sequence[int]) -> list[Exact]:
    """Everything about every sentence of a packed chain."""
    results = []
    for s, (first, last) in enumerate(itertools.pairwise(offsets)):
        own_transitions = transitions if transitions.ndim == 2 else transitions[first:last]
        own_start = start if start.ndim == 1 else start[s]
        results.append(enumerate_sentence(own_start, own_transitions, evidence[first:last]))
    return results


def evidence_of_votes(votes: Integers, emissions: Floats) -> Floats:
    """Log-probability of the votes [tokens, sources] (-1 is silence) under `emissions[source, label, vote]`."""
    evidence = np.zeros((len(votes), emissions.shape[1]))
    for t, row in enumerate(votes):
        for source, vote in enumerate(row):
            if vote >= 0:
                evidence[t] += log(emissions[source, :, vote])
    return evidence


def likelihood_of_votes(start: Floats, transitions: Floats, votes: Integers, emissions: Floats) -> float:
    """Probability of the votes on one sentence under a multi-source hidden Markov model, from probabilities alone."""
    total = 0.0
    for sequence in itertools.product(range(len(start)), repeat=len(votes)):
        probability = 1.0
        for t, label in enumerate(sequence):
            probability *= start[label] if t == 0 else transitions[sequence[t - 1], label]
            for source, vote in enumerate(votes[t]):
                if vote >= 0:
                    probability *= emissions[source, label, vote]
        total += probability
    return total
