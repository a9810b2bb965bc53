r"""Tie or Break: where entities begin and end, and of what type they are, are two questions (Shang et al., EMNLP 2018).

The gap before a word is a Tie if the words on both sides are in the same entity, else a Break. What lies between two
Breaks has a type, or None. A word with hidden state `h` says four things: `v h` for a Break before it, `u h` for one
after it, and scores `A h` and `B h` of the types (None first) for a stretch that begins or ends with it:

\[ p(\text{Break before } i) = \sigma(u h_{i-1} + v h_i), \qquad
   p(\text{type of } [l, r)) = \operatorname{softmax}(A h_l + B h_{r-1}) \]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.encoder.classifier import softmax
from tagweave.labels import OUTSIDE
from tagweave.tagger.distant_spans import DistantSpans
from tagweave.tagger.targets import digest

if TYPE_CHECKING:
    import torch

BEFORE, AFTER, TYPES = 0, 1, 2
"""Where among the outputs of a word a Break before it, one after it, and the scores of types stand."""


def output_names(types: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the outputs of a word; O stands for None, which no type may be called.

    >>> output_names(("LOC",))
    ('break before', 'break after', 'first: O', 'first: LOC', 'last: O', 'last: LOC')
    """
    kinds = (OUTSIDE, *types)
    return ("break before", "break after", *(f"{end}: {kind}" for end in ("first", "last") for kind in kinds))


@dataclass(eq=False)
class TieOrBreak:
    """The loss of gaps and stretches: what spans tell of them, and what they leave open.

    Gaps around and inside a phrase of unknown type are open, but for one next to a typed span, which is a Break on
    both of its sides. A stretch teaches a type if both its borders are known Breaks: every typed span, and every word
    under no span that is not beside a phrase of unknown type, which is None.

    Attributes:
        known: words of which anything is known, of shape [words].
        inside: words in a typed span, of shape [words].
        ties: 1 where the gap before a word is a Tie, else 0, of shape [words].
        taught: where the gap before a word is known, of shape [words]; it is not at the first word of a document.
        stretch: number of the stretch that begins with a word, or -1, of shape [words].
        lasts: last word of each stretch, of shape [stretches].
        allowed: which types each stretch may have, None first, of shape [stretches, types + 1].
        outside_weight: weight of a stretch whose type is None.
        label_smoothing: share of each target that is spread over all answers.
    """

    known: NDArray[np.bool_]
    inside: NDArray[np.bool_]
    ties: NDArray[np.bool_]
    taught: NDArray[np.bool_]
    stretch: NDArray[np.int64]
    lasts: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    outside_weight: float = 1.0
    label_smoothing: float = 0.0

    @classmethod
    def of(
        cls,
        spans: DistantSpans,
        offsets: NDArray[np.int64],
        outside_weight: float = 1.0,
        label_smoothing: float = 0.0,
    ) -> Self:
        """What spans teach.

        Args:
            spans: without overlap, in order.
            offsets: where each document starts, of shape [documents + 1].
            outside_weight: weight of a stretch whose type is None.
            label_smoothing: share of each target that is spread over all answers.

        >>> spans = DistantSpans(np.array([0, 3]), np.array([2, 4]), np.array([[True], [False]]), np.ones(1, bool))
        >>> learned = TieOrBreak.of(spans, np.array([0, 6]))
        >>> learned.ties.tolist(), learned.taught.tolist()
        ([False, True, False, False, False, False], [False, True, True, False, False, True])
        >>> learned.stretch.tolist(), learned.lasts.tolist(), learned.allowed.tolist()
        ([0, -1, -1, -1, -1, 1], [1, 5], [[False, True], [True, False]])
        """
        words, typed = int(offsets[-1]), spans.typed
        known = np.repeat(spans.ran, np.diff(offsets))
        starting = np.zeros(words, bool)
        starting[offsets[:-1][np.diff(offsets) > 0]] = True
        inside, open_words = (_covered(spans.starts[rows], spans.ends[rows], words) for rows in (typed, ~typed))
        border = np.zeros(words + 1, bool)
        border[spans.starts[typed]] = border[spans.ends[typed]] = True
        before, after = _shifted(open_words, 1) & ~starting, _shifted(open_words & ~starting, -1)
        taught = known & ~starting & (~(open_words | before) | border[:-1])
        ties = inside.copy()
        ties[spans.starts[typed]] = False
        alone = np.flatnonzero(known & ~inside & ~open_words & ~before & ~after)
        firsts = np.concatenate([spans.starts[typed], alone])
        allowed = np.zeros((len(firsts), spans.allowed.shape[1] + 1), bool)
        allowed[: typed.sum(), 1:] = spans.allowed[typed]
        allowed[typed.sum() :, 0] = True
        order = np.argsort(firsts, kind="stable")
        stretch = np.full(words, -1)
        stretch[firsts[order]] = np.arange(len(order))
        lasts = np.concatenate([spans.ends[typed] - 1, alone])
        return cls(known, inside, ties, taught, stretch, lasts[order], allowed[order], outside_weight, label_smoothing)

    def loss(
        self, windows: NDArray[np.int64], words: NDArray[np.int64], outputs: "torch.Tensor"
    ) -> "tuple[torch.Tensor, float]":
        """Summed loss of the gaps and stretches whose words are all in the batch, and the number of known words."""
        loss = self._loss_of_gaps(words, outputs) + self._loss_of_types(words, outputs)
        return loss, float(self.known[words].sum())

    def _loss_of_gaps(self, words: NDArray[np.int64], outputs: "torch.Tensor") -> "torch.Tensor":
        """Cross-entropy of Tie or Break."""
        import torch

        right = np.flatnonzero(self.taught[words] & self.known[words])
        left = _rows_of(words, words[right] - 1)
        there = (left >= 0) & self.known[words[left]]
        right, left = right[there], left[there]
        scores = outputs[_at(outputs, right), BEFORE] + outputs[_at(outputs, left), AFTER]
        breaks = outputs.new_tensor(~self.ties[words[right]])
        target = breaks * (1 - self.label_smoothing) + self.label_smoothing / 2
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, target, reduction="sum")

    def _loss_of_types(self, words: NDArray[np.int64], outputs: "torch.Tensor") -> "torch.Tensor":
        """Cross-entropy of the types, where several are allowed with the model's own choice among them."""
        first = np.flatnonzero((self.stretch[words] >= 0) & self.known[words])
        stretch = self.stretch[words[first]]
        last = _rows_of(words, self.lasts[stretch])
        there = (last >= 0) & self.known[words[last]]
        first, last, stretch = first[there], last[there], stretch[there]
        kinds = self.allowed.shape[1]
        scores = outputs[_at(outputs, first), TYPES : TYPES + kinds] + outputs[_at(outputs, last), TYPES + kinds :]
        target = scores.masked_fill(~_at(outputs, self.allowed[stretch]), -float("inf")).softmax(dim=1)
        target = target * (1 - self.label_smoothing) + self.label_smoothing / kinds
        weights = outputs.new_ones(kinds)
        weights[0] = self.outside_weight
        losses: torch.Tensor = -weights * target * scores.log_softmax(dim=1)
        return losses.sum()

    def after(self, step: int) -> None:
        """Nothing changes from step to step."""

    def fingerprint(self) -> bytes:
        """Gaps and stretches, and which of them are known."""
        return digest(self.known, self.ties, self.taught, self.stretch, self.lasts, self.allowed)


def decode(outputs: NDArray[np.float32], offsets: NDArray[np.int64], threshold: float) -> NDArray[np.float32]:
    """BIO probabilities of words: those of the types of the stretch that a word lies in.

    Args:
        outputs: of words, of shape [words, outputs], see `output_names`.
        offsets: where each document starts, of shape [documents + 1]; documents begin and end with a Break.
        threshold: a gap is a Break if that is at least so probable; between 0 and 1.

    Returns:
        Of shape [words, 1 + 2 * types]: the first word of a stretch has its types as B, the others have them as I.

    >>> outputs = np.array([[0, -5, 0, 3, 0, 0], [0, 5, 0, 0, 0, 3], [0, 0, 4, 0, 4, 0]], np.float32)
    >>> decode(outputs, np.array([0, 3]), 0.5).argmax(axis=1).tolist()
    [1, 2, 0]
    """
    words, kinds = len(outputs), (outputs.shape[1] - TYPES) // 2
    scores = outputs[:, BEFORE] + np.concatenate([outputs[:1, AFTER], outputs[:-1, AFTER]])
    breaks = scores >= np.log(threshold / (1 - threshold))
    breaks[offsets[:-1][np.diff(offsets) > 0]] = True
    first = np.flatnonzero(breaks)
    last = np.append(first[1:], words)[: len(first)] - 1
    types = softmax(outputs[first, TYPES : TYPES + kinds] + outputs[last, TYPES + kinds :])
    types = types[np.cumsum(breaks) - 1]
    probabilities = np.zeros((words, 2 * kinds - 1), np.float32)
    probabilities[:, 0] = types[:, 0]
    probabilities[:, 1::2] = np.where(breaks[:, None], types[:, 1:], 0)
    probabilities[:, 2::2] = np.where(breaks[:, None], 0, types[:, 1:])
    return probabilities


def _covered(starts: NDArray[np.int64], ends: NDArray[np.int64], words: int) -> NDArray[np.bool_]:
    steps = np.bincount(starts, minlength=words + 1) - np.bincount(ends, minlength=words + 1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def _shifted(marked: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    """Which words have a marked word right before (1) or after them (-1)."""
    found = np.zeros_like(marked)
    if by > 0:
        found[1:] = marked[:-1]
    else:
        found[:-1] = marked[1:]
    return found


def _rows_of(words: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where wanted words stand in a batch, -1 if they do not."""
    order = np.argsort(words, kind="stable")
    place = np.minimum(np.searchsorted(words[order], wanted), len(words) - 1)
    rows = order[place]
    return np.where(words[rows] == wanted, rows, -1)


def _at(outputs: "torch.Tensor", array: "NDArray[np.int64] | NDArray[np.bool_]") -> "torch.Tensor":
    import torch

    return torch.from_numpy(array).to(outputs.device)
