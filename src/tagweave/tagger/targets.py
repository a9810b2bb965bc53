"""What a tagger learns of each word, and the loss that it learns it by."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
        corpus.soft_labels.check(corpus.ids)
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


def digest(*arrays: NDArray[Any]) -> bytes:
    """The SHA-256 of the content of arrays, which may be larger than memory."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.digest()


class Objective(Protocol):
    """What a tagger learns from a corpus, and how a batch of words is scored.

    Attributes:
        known: words that teach something, of shape [words].
    """

    known: NDArray[np.bool_]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Words that teach that there is an entity, of shape [words]; windows without any are read less often."""

    def loss(
        self, windows: NDArray[np.int64], words: NDArray[np.int64], outputs: "torch.Tensor"
    ) -> "tuple[torch.Tensor, float]":
        """Summed loss of a batch, and what it weighs.

        Args:
            windows: numbers of the windows in the batch.
            words: numbers of the words that belong to them, window by window, of shape [words].
            outputs: what the classifier says of each of these words, of shape [words, outputs].
        """

    def after(self, step: int) -> None:
        """Told after each step of the optimiser; the first is 1."""

    def fingerprint(self) -> bytes:
        """A digest of what is learned: a training only goes on if it is the same."""


@dataclass(eq=False)
class SoftTargets:
    """The expected cross-entropy of each known word under its soft label."""

    rows: NDArray[np.float32]
    """Label probabilities of shape [words, labels]."""
    known: NDArray[np.bool_]
    outside_weight: float = 1.0
    """Weight of the label O."""

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Words that are more likely in an entity than not."""
        inside: NDArray[np.bool_] = self.rows[:, 0] < 0.5
        return inside

    def loss(
        self, windows: NDArray[np.int64], words: NDArray[np.int64], outputs: "torch.Tensor"
    ) -> "tuple[torch.Tensor, float]":
        """See `Objective.loss`."""
        rows = outputs.new_tensor(self.rows[words] * self.known[words, None])
        weights = outputs.new_ones(outputs.shape[1])
        weights[0] = self.outside_weight
        loss, weight = soft_cross_entropy(outputs, rows, weights)
        return loss, float(weight)

    def after(self, step: int) -> None:
        """Nothing changes from step to step."""

    def fingerprint(self) -> bytes:
        """Targets and which of them are known."""
        return digest(self.rows, self.known)


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
