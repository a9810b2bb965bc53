"""Entities from scores of labels: those of the likeliest sequence in which an entity begins with B."""

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.chain import best_path
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels


def legal_scores(labels: LabelSet) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scores that only say what is legal: 0, or minus infinity for an entity that goes on where none has begun.

    Returns:
        Scores of first labels, of shape [labels], and of moves (from, to), of shape [labels, labels].
    """
    with np.errstate(divide="ignore"):
        return np.log(labels.legal_starts.astype(np.float32)), np.log(labels.legal_moves.astype(np.float32))


def likeliest_entities(
    start: NDArray[np.floating], moves: NDArray[np.floating], scores: NDArray[np.floating], soft_labels: SoftLabels
) -> Annotations:
    """The entities of the sequence of labels with the highest sum of scores, in each document.

    Taking the most probable label of each word by itself would break entities up where the tagger is unsure.

    Args:
        start: scores of a document's first label, of shape [labels].
        moves: scores of neighbours (from, to), of shape [labels, labels].
        scores: of the labels of each word, of shape [words, labels].
        soft_labels: of the same words; the entities' scores come from them.

    >>> rows = np.array([[0.4, 0.3, 0.3], [0.1, 0.3, 0.6]], np.float32)
    >>> soft_labels = SoftLabels(("PER",), np.array([0, 2]), rows)
    >>> entities = likeliest_entities(*legal_scores(soft_labels.labels), np.log(rows), soft_labels)
    >>> entities.starts.tolist(), entities.ends.tolist()  # I is likely, so the word before is more likely B than O
    ([0], [2])
    """
    path = best_path(start, moves, scores, soft_labels.offsets)
    return soft_labels.scored(Annotations.from_labels(path, soft_labels.offsets, soft_labels.labels))
