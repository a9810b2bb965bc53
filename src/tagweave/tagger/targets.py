"""What a tagger learns of each word, and the loss that it learns it by."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.errors import DataError
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels

if TYPE_CHECKING:
    import torch


def targets(corpus: Corpus, label_smoothing: float = 0.0) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What a tagger learns of each word.

    Args:
        corpus: its soft labels count; without them its entities, as certain labels.
        label_smoothing: share of each target that is spread over all labels.

    Returns:
        probabilities of BIO labels of shape [tokens, labels], and which words are known, of shape [tokens]: those of
        documents without entities (None) are not.

    Raises:
        DataError: there are neither soft labels nor entities.
        LabelError: a row of the soft labels is no probability distribution; the message names document and token.

    >>> from tagweave.corpus import Document
    >>> from tagweave.annotations import Span
    >>> targets(Corpus.from_documents([Document("d", ["Ada", "left"], entities=[Span(0, 1, "PER")])]))[0].tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if not corpus.types:
        raise DataError("the corpus has no entity type, so a tagger has nothing to learn")
    if corpus.soft_labels is not None:
        corpus.soft_labels.check(corpus.id_list)
        rows = corpus.soft_labels.with_types(corpus.types).probabilities
        known = np.ones(len(rows), bool)
    elif corpus.entities is not None:
        labels = corpus.entities.without_overlaps().labels(corpus.offsets, LabelSet(corpus.types))
        rows = SoftLabels.from_labels(labels, corpus.offsets, corpus.types).probabilities
        known = np.repeat(corpus.entities.ran, np.diff(corpus.offsets))
    else:
        raise DataError("the corpus has neither soft labels nor entities: apply a label model to it first")
    if label_smoothing:
        rows = (1 - label_smoothing) * rows + np.float32(label_smoothing / rows.shape[1])
    return rows, known


def soft_cross_entropy(
    logits: "torch.Tensor", target: "torch.Tensor", label_weights: "torch.Tensor"
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Summed expected cross-entropy `-sum_l w_l y_l log p_l`, and the summed weight `sum_l w_l y_l`.

    Their quotient is the ordinary weighted cross-entropy where targets are one-hot.

    Args:
        logits: of shape [words, labels].
        target: probabilities of shape [words, labels].
        label_weights: of shape [labels].
    """
    weighted = target * label_weights
    return -(weighted * logits.log_softmax(dim=1)).sum(), weighted.sum()
