"""From the potentials of a chain to soft labels and entities."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave import chain
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels

Decoder = Literal["viterbi", "marginals"]
"""Entities from the best path, or from the most probable label of each token."""


class Potentials(NamedTuple):
    """Logarithms that make a chain; see `tagweave.chain.posterior` for shapes."""

    start: NDArray[np.floating]
    transitions: NDArray[np.floating]
    evidence: NDArray[np.floating]


def own_share(trust: float, judges: int) -> float:
    """What a model's own expectation of a token weighs beside sources that are taken at their word, of `trust` each.

    >>> own_share(0.25, 1), own_share(0.75, 2)
    (0.75, 0.0)
    """
    return max(0.0, 1 - judges * trust)


def weighted(logs: NDArray[np.floating], weight: float) -> NDArray[np.floating]:
    """Logarithms of powers, where what is impossible stays so.

    >>> weighted(np.array([-2.0, -np.inf]), 0.0).tolist()
    [-0.0, -inf]
    """
    products: NDArray[np.floating] = np.where(np.isfinite(logs), weight * np.where(np.isfinite(logs), logs, 0), logs)
    return products


def infer(potentials: Potentials, corpus: Corpus, labels: LabelSet, decoder: Decoder) -> tuple[SoftLabels, Annotations]:
    """Soft labels in BIO, and entities, of the corpus that the potentials are for."""
    posterior = chain.forward_backward(
        *potentials, corpus.offsets, pairs="token" if labels.state_space == "io" else "none"
    )
    if labels.state_space == "io":
        staying = np.diagonal(np.asarray(posterior.pair_marginals), axis1=1, axis2=2)[:, 1:]
        soft = SoftLabels.from_io(corpus.types, corpus.offsets, posterior.marginals, staying)
    else:
        soft = SoftLabels(corpus.types, corpus.offsets, posterior.marginals.astype(np.float32))
    if decoder == "viterbi":
        path = chain.best_path(*potentials, corpus.offsets)
    else:
        path = posterior.marginals.argmax(axis=1)
    return soft, Annotations.from_labels(path, corpus.offsets, labels)
