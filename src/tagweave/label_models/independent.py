"""From the weights of labels on tokens that do not depend on each other to soft labels and entities."""

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.inference import Potentials, infer
from tagweave.label_models.majority_vote import preference
from tagweave.labels import LabelSet
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels


def posterior(log_weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Probabilities of labels, and the log of what they were divided by: \(p_i = e^{w_i} / \sum_j e^{w_j}\).

    Args:
        log_weights: of shape [tokens, labels]; in each row one is finite.

    Returns:
        Probabilities of shape [tokens, labels], and log-sums of shape [tokens].

    >>> posterior(np.log([[1.0, 3.0]]))[0].tolist()
    [[0.25, 0.75]]
    """
    highest = log_weights.max(axis=1, keepdims=True, initial=-np.inf)
    weights = np.exp(log_weights - highest)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (highest + np.log(total))[:, 0]


def infer_tokens(log_weights: NDArray[np.float64], corpus: Corpus, labels: LabelSet) -> tuple[SoftLabels, Annotations]:
    """Soft labels and entities of a corpus, from the weight of each label on each token.

    In the io state space each token gets its most probable label, and runs of one type become one entity; neighbours
    are taken to agree as far as their probabilities allow (`SoftLabels.from_io`). Labels that are equally probable are
    chosen as in `MajorityVote`. In bio the only tie between tokens is that illegal moves have no probability.

    Args:
        log_weights: of shape [tokens, labels], up to a constant for each token.
        corpus: documents with these tokens.
        labels: meaning of the columns.
    """
    if labels.state_space == "bio":
        with np.errstate(divide="ignore"):
            legal = np.log(labels.legal_starts.astype(np.float64)), np.log(labels.legal_moves.astype(np.float64))
        return infer(Potentials(*legal, log_weights), corpus, labels, "viterbi")
    probabilities = posterior(log_weights)[0]
    order = preference(labels)
    best = np.isclose(probabilities, probabilities.max(axis=1, keepdims=True))
    winners = order[best[:, order].argmax(axis=1)]
    soft = SoftLabels.from_io(corpus.types, corpus.offsets, probabilities)
    return soft, Annotations.from_labels(winners, corpus.offsets, labels)


def balance_table(balance: NDArray[np.floating], labels: LabelSet) -> Table:
    """The probability of each label on a token that nothing is known about."""
    cells = tuple((name, 100 * float(share)) for name, share in zip(labels.names, balance, strict=True))
    return Table("Class balance, in percent", ("", "share"), cells)
