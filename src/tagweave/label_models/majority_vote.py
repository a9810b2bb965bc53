"""Majority vote: every source that speaks on a token has one vote."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.base import LabelModel
from tagweave.labels import LabelSet
from tagweave.observations import Observations, observe
from tagweave.soft_labels import SoftLabels
from tagweave.vote_kernels import as_shares, first_of_the_best, gather


@dataclass(kw_only=True)
class MajorityVote(LabelModel):
    """A vote on each token, without learning.

    The probability of a label is its share of the votes on the token; a token without votes is O. Among labels with
    equally many votes an entity beats O, inside beats begin, and then the type wins whose name comes first in the
    alphabet, so the result does not depend on the order of labels, sources or documents. The tie shows in the
    probabilities.

    In the io state space a vote is for a type, and runs of one type become one entity. With the silence of a source
    taken as abstention where another speaks (`silence="token"`) this is the majority vote of the WRENCH benchmark.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 1, "PER")], "c": [Span(0, 1, "LOC")]}
    >>> corpus = Corpus.from_documents([Document("d0", ["Ada", "Lovelace", "ran"], sources=votes)])
    >>> [span[:3] for span in MajorityVote().fit(corpus).predict(corpus)[0].entities]
    [(0, 2, 'PER')]
    """

    adds_up: ClassVar[bool] = True
    name: ClassVar[str] = "majority-vote"

    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        pass

    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        observations = observe(corpus, self.state_space, self.silence_)
        labels, shares = observations.labels, vote_shares(observations, self._weights())
        order = preference(labels)
        winners = first_of_the_best(shares, order)
        entities = Annotations.from_labels(winners, corpus.offsets, labels)
        if labels.state_space == "io":
            return SoftLabels.from_io(corpus.types, corpus.offsets, shares), entities
        return SoftLabels(corpus.types, corpus.offsets, shares.astype(np.float32)), entities

    def _weights(self) -> NDArray[np.float64] | None:
        """What the vote of each source counts, of shape [sources]; None for one each."""
        return None


def vote_shares(observations: Observations, weights: NDArray[np.floating] | None = None) -> NDArray[np.float64]:
    """The share of the votes on each token that each label has; all for O where nobody votes.

    Args:
        observations: votes on some tokens.
        weights: what the vote of each source counts, of shape [sources]; one each if there are none.

    Returns:
        Of shape [tokens, labels]; rows sum to one.
    """
    share = np.ones(len(observations.sources)) if weights is None else np.asarray(weights, np.float64)
    counts = gather(observations.votes, share[observations.hard, None, None] * observations.patterns)
    for column, position in enumerate(observations.soft_positions):
        counts += share[position] * observations.soft[:, column]
    return as_shares(counts)


def preference(labels: LabelSet) -> NDArray[np.int64]:
    """Label numbers in the order in which they win ties: types by name, inside before begin, O last.

    >>> [LabelSet(("PER", "LOC")).names[number] for number in preference(LabelSet(("PER", "LOC")))]
    ['I-LOC', 'B-LOC', 'I-PER', 'B-PER', 'O']
    """

    def key(number: int) -> tuple[bool, str, bool]:
        type_id = int(labels.type_ids[number])
        return (type_id == 0, "" if type_id == 0 else labels.types[type_id - 1], bool(labels.begins[number]))

    return np.array(sorted(range(len(labels)), key=key), np.int64)
