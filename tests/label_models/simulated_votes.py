"""Tokens with known labels and sources of known accuracy, for tests of models on single tokens."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document

ABSTAIN = -1


class Simulated(NamedTuple):
    """Labels of shape [tokens] and votes of shape [tokens, sources], -1 where a source abstains."""

    labels: NDArray[np.int64]
    votes: NDArray[np.int64]

    def corpus(self, types: tuple[str, ...], length: int = 10) -> Corpus:
        """Documents of single-token spans; a vote for label 0 is a span of type O."""
        names = ("O", *types)
        documents = []
        for number, start in enumerate(range(0, len(self.votes), length)):
            rows = self.votes[start : start + length]
            sources = {
                f"s{k}": [Span(t, t + 1, names[vote]) for t, vote in enumerate(rows[:, k]) if vote >= 0]
                for k in range(rows.shape[1])
            }
            documents.append(Document(f"d{number}", ["w"] * len(rows), sources=sources))
        return Corpus.from_documents(documents, types)


def simulate(
    balance: tuple[float, ...],
    accuracies: tuple[float, ...],
    propensities: tuple[float, ...],
    tokens: int = 6000,
    seed: int = 0,
) -> Simulated:
    """Independent tokens; a source speaks with its propensity and is right with its accuracy, else says any other."""
    chance = np.random.default_rng(seed)
    size = len(balance)
    labels = chance.choice(size, p=balance, size=tokens)
    votes = np.full((tokens, len(accuracies)), ABSTAIN)
    for k, (accuracy, propensity) in enumerate(zip(accuracies, propensities, strict=True)):
        other = (labels + chance.integers(1, size, size=tokens)) % size
        said = np.where(chance.random(tokens) < accuracy, labels, other)
        votes[:, k] = np.where(chance.random(tokens) < propensity, said, ABSTAIN)
    return Simulated(labels, votes)
