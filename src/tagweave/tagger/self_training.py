r"""A student that learns from the labels of a teacher, which is an earlier state of itself.

For the words of a batch the teacher gives probabilities \(p\). They are sharpened, and labels that are frequent in the
batch are held back (Xie et al., ICML 2016); the student \(s\) learns the words \(S\) that are certain enough:

\[ q_{tc} \propto p_{tc}^2 / f_c, \quad f_c = \sum_t p_{tc}, \qquad S = \{t : \max_c q_{tc} > \tau\}, \qquad
L = \frac{1}{|S|} \sum_{t \in S} KL(q_t \,\|\, s_t) \]
"""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import kl_div, one_hot

from tagweave.corpus import Corpus
from tagweave.encoder import WordPieces
from tagweave.encoder.frozen import KeptStates
from tagweave.encoder.windows import Windows
from tagweave.tagger.model import Tagger
from tagweave.tagger.targets import digest, targets
from tagweave.team import team


def sharpened(probabilities: Tensor) -> Tensor:
    """Probabilities squared, over the frequency of each label among the words, and normalised by word.

    Words of all processes that train together count for the frequencies.

    Args:
        probabilities: of shape [words, labels].

    >>> sharpened(torch.tensor([[0.9, 0.1], [0.6, 0.4]]))
    tensor([[0.9643, 0.0357],
            [0.4286, 0.5714]])
    """
    frequencies = team().add_tensor(probabilities.sum(0))
    weighted = probabilities.square() / frequencies.clamp_min(torch.finfo(probabilities.dtype).tiny)
    return weighted / weighted.sum(1, keepdim=True)


def self_training_loss(outputs: Tensor, taught: Tensor, confidence: float, *, hard: bool) -> tuple[Tensor, float]:
    """Summed divergence of the student from the teacher over the words that are learned, and how many they are.

    Args:
        outputs: scores of the student, of shape [words, labels].
        taught: scores of the teacher, of shape [words, labels].
        confidence: a word is learned if the largest of its sharpened probabilities is above it.
        hard: learn the teacher's likeliest label of every word instead.
    """
    probabilities = taught.softmax(1)
    if hard:
        labels = one_hot(probabilities.argmax(1), probabilities.shape[1]).to(outputs.dtype)
    else:
        labels = sharpened(probabilities)
    learned = labels.amax(1) > confidence
    loss = kl_div(outputs[learned].log_softmax(1), labels[learned], reduction="sum")
    return loss, float(learned.sum())


class SelfTraining:
    """What a student learns from a teacher, which becomes the student every so many steps.

    Args:
        student: what is trained.
        teacher: a tagger with the labels and the settings of the student.
        corpus: what the windows are cut from. Its labels only say which windows hold entities.
        period: steps after which the teacher is replaced.
        confidence, hard: see `self_training_loss`.
    """

    def __init__(
        self, student: Tagger, teacher: Tagger, corpus: Corpus, *, period: int, confidence: float, hard: bool
    ) -> None:
        self._student, self._teacher, self._corpus = student, teacher, corpus
        self._period, self._confidence, self._hard = period, confidence, hard
        rows, labelled = targets(corpus)
        self.known = np.ones(len(rows), bool)
        """The teacher labels every word."""
        self.inside: NDArray[np.bool_] = labelled & (rows[:, 0] < 0.5)
        """Words that stage 1 took to be in an entity."""

    @cached_property
    def _read(self) -> tuple[WordPieces, Windows, KeptStates | None]:
        """The pieces and windows that the student is trained on, and what the frozen layers say of them."""
        pieces = self._teacher.encoder_.pieces(self._corpus.tokens)
        windows = self._teacher._windows(pieces, self._corpus.offsets)
        return pieces, windows, self._teacher._states(pieces, windows)

    def loss(self, windows: NDArray[np.int64], words: NDArray[np.int64], outputs: Tensor) -> tuple[Tensor, float]:
        """See `Objective.loss`."""
        with torch.no_grad():
            pieces, cut, kept = self._read
            taught = self._teacher._logits(pieces, cut, windows, kept)[1] if len(windows) else outputs
        known = torch.from_numpy(self.known[words]).to(outputs.device)
        return self_training_loss(outputs[known], taught[known], self._confidence, hard=self._hard)

    def after(self, step: int) -> None:
        """The teacher becomes the student."""
        if step % self._period == 0:
            self._teacher.model_.load_state_dict(self._student.model_.state_dict())

    def fingerprint(self) -> bytes:
        """Which words have entities and are learned."""
        return digest(self.inside, self.known)
