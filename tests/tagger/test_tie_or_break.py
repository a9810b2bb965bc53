"""Gaps and stretches: what spans teach and what it costs, against plain Python; how outputs are read."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels
from tagweave.tagger.distant_spans import DistantSpans
from tagweave.tagger.tie_or_break import TieOrBreak, decode, output_names

TYPES = 2
OUTPUTS = len(output_names(("A", "B")))
OFFSETS = np.array([0, 9, 9, 12, 13, 15])
SPANS = [(0, 2, {1}), (2, 4, set()), (4, 5, {1, 2}), (6, 8, {2}), (9, 10, set()), (10, 12, {1}), (12, 13, set())]
RAN = [True, True, True, True, False]


def spans(rows: Sequence[tuple[int, int, set[int]]] = SPANS, ran: Sequence[bool] = RAN) -> DistantSpans:
    allowed = np.array([[kind in kinds for kind in range(1, TYPES + 1)] for _, _, kinds in rows], bool)
    starts, ends = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    return DistantSpans(starts, ends, allowed.reshape(-1, TYPES), np.array(ran))


def draw(words: int = 15, seed: int = 0) -> torch.Tensor:
    return torch.randn(words, OUTPUTS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def log_softmax(scores: Sequence[float]) -> list[float]:
    total = math.log(sum(map(math.exp, scores)))
    return [score - total for score in scores]


def slow_loss(
    rows: list[list[float]], there: Sequence[int], outside_weight: float, smoothing: float, vanished: Sequence[int] = ()
) -> float:
    """The loss word by word and span by span, of the words that are there and known."""
    usable = [word for word in there if word not in vanished and RAN[document_of(word)]]
    loss = 0.0
    for word in usable:
        state = gap_before(word)
        if state is not None and word - 1 in usable:
            target = float(state == "Break") * (1 - smoothing) + smoothing / 2
            probability = 1 / (1 + math.exp(-(rows[word][0] + rows[word - 1][1])))
            loss -= target * math.log(probability) + (1 - target) * math.log(1 - probability)
    for first, end, kinds in stretches():
        if first not in usable or end - 1 not in usable:
            continue
        kind_count = TYPES + 1
        scores = [rows[first][2 + kind] + rows[end - 1][2 + kind_count + kind] for kind in range(kind_count)]
        inner = dict(zip(sorted(kinds), log_softmax([scores[kind] for kind in sorted(kinds)]), strict=True))
        for kind, log_probability in enumerate(log_softmax(scores)):
            target = (math.exp(inner[kind]) if kind in inner else 0.0) * (1 - smoothing) + smoothing / kind_count
            loss -= (outside_weight if kind == 0 else 1.0) * target * log_probability
    return loss


def document_of(word: int) -> int:
    return int(np.searchsorted(OFFSETS, word, side="right")) - 1


def span_of(word: int) -> tuple[int, int, set[int]] | None:
    return next((span for span in SPANS if span[0] <= word < span[1]), None)


def gap_before(word: int) -> str | None:
    """Tie, Break, or None where the gap is open or the edge of a document."""
    if word in OFFSETS:
        return None
    left, right = span_of(word - 1), span_of(word)
    if left is not None and left is right:
        return "Tie" if left[2] else None
    if (left and left[2]) or (right and right[2]):
        return "Break"
    return None if left or right else "Break"


def stretches() -> list[tuple[int, int, set[int]]]:
    found = [span for span in SPANS if span[2]]
    for word in range(int(OFFSETS[-1])):
        before = None if word in OFFSETS else span_of(word - 1)
        after = None if word + 1 in OFFSETS else span_of(word + 1)
        if span_of(word) is None and not any(side and not side[2] for side in (before, after)):
            found.append((word, word + 1, {0}))
    return found


PARTS = {
    "all": list(range(15)),
    "windows in another order": [6, 7, 8, 0, 1, 2, 3],
    "a span cut in two": [0, 4, 5, 6, 10, 11],
    "one word": [5],
}


@pytest.mark.parametrize("there", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize(("outside_weight", "smoothing"), [(1.0, 0.0), (0.3, 0.2)])
def test_the_loss_is_that_of_plain_python(there: list[int], outside_weight: float, smoothing: float) -> None:
    outputs = draw()
    learned = TieOrBreak.of(spans(), OFFSETS, outside_weight, smoothing)
    loss, weight = learned.loss(np.array([0]), np.array(there), outputs[there])
    assert loss.item() == pytest.approx(slow_loss(outputs.tolist(), there, outside_weight, smoothing), rel=1e-10)
    assert weight == sum(RAN[document_of(word)] for word in there)


def test_words_that_vanish_are_not_learned_from() -> None:
    outputs, vanished, every = draw(), [1, 5], list(range(15))
    learned = TieOrBreak.of(spans(), OFFSETS)
    learned.known[vanished] = False
    loss, weight = learned.loss(np.array([0]), np.arange(15), outputs)
    assert loss.item() == pytest.approx(slow_loss(outputs.tolist(), every, 1, 0, vanished), rel=1e-10)
    assert weight == 11


def test_parts_of_a_corpus_cost_what_the_whole_costs() -> None:
    outputs, learned = draw(), TieOrBreak.of(spans(), OFFSETS)
    whole = learned.loss(np.array([0]), np.arange(15), outputs)
    borders = ((0, 9), (9, 13), (13, 15))
    parts = [learned.loss(np.array([0]), np.arange(*ends), outputs[slice(*ends)]) for ends in borders]
    assert sum(loss.item() for loss, _ in parts) == pytest.approx(whole[0].item(), rel=1e-10)
    assert sum(weight for _, weight in parts) == whole[1]


def test_gradients_are_finite_and_reach_the_choice_among_allowed_types() -> None:
    outputs = draw(1).requires_grad_()
    learned = TieOrBreak.of(spans([(0, 1, {1, 2})], [True]), np.array([0, 1]))
    loss, _ = learned.loss(np.array([0]), np.arange(1), outputs)
    loss.backward()
    assert outputs.grad is not None
    assert torch.isfinite(outputs.grad).all()
    base = outputs.detach()
    step = 1e-6
    for column in range(2, OUTPUTS):
        moved = base.clone()
        moved[0, column] += step
        above = learned.loss(np.array([0]), np.arange(1), moved)[0].item()
        assert outputs.grad[0, column].item() == pytest.approx((above - loss.item()) / step, abs=1e-4)


def test_nothing_known_costs_nothing() -> None:
    learned = TieOrBreak.of(spans([], [False]), np.array([0, 4]))
    loss, weight = learned.loss(np.array([0]), np.arange(4), draw(4))
    assert (loss.item(), weight) == (0.0, 0.0)


def test_other_targets_have_another_fingerprint() -> None:
    others = (SPANS, SPANS[1:], [(0, 2, {2}), *SPANS[1:]])
    prints = {TieOrBreak.of(spans(rows), OFFSETS).fingerprint() for rows in others}
    assert len(prints) == 3


def outputs_for(gaps: Sequence[float], kinds: Sequence[int]) -> Any:  # noqa: ANN401
    """Outputs with those scores of a Break before each word, which as first and last word of a stretch want a type."""
    outputs = np.zeros((len(gaps), OUTPUTS), np.float32)
    outputs[:, 0] = gaps
    for row, kind in enumerate(kinds):
        outputs[row, 2 + kind] = outputs[row, 2 + TYPES + 1 + kind] = 4
    return outputs


@pytest.mark.parametrize(
    ("gaps", "kinds", "offsets", "entities"),
    [
        ([5, -5, 5], [1, 1, 0], [0, 3], [[(0, 2, 1)]]),
        ([5, 5, 5], [1, 1, 2], [0, 3], [[(0, 1, 1), (1, 2, 1), (2, 3, 2)]]),
        ([-5, -5, -5], [2, 2, 2], [0, 3], [[(0, 3, 2)]]),
        ([-5, -5, -5], [1, 2, 2], [0, 1, 3], [[(0, 1, 1)], [(0, 2, 2)]]),
        ([-5, -5, -5], [0, 0, 0], [0, 3], [[]]),
        ([-5], [1], [0, 0, 1, 1], [[], [(0, 1, 1)], []]),
        ([], [], [0], []),
        ([], [], [0, 0], [[]]),
    ],
    ids=["tie", "neighbours", "no break", "edges of documents", "none", "empty documents", "no document", "no word"],
)
def test_decoding(
    gaps: list[float], kinds: list[int], offsets: list[int], entities: list[list[tuple[int, int, int]]]
) -> None:
    soft = SoftLabels(("A", "B"), np.array(offsets), decode(outputs_for(gaps, kinds), np.array(offsets), 0.5))
    soft.check([str(number) for number in range(len(offsets) - 1)])
    found = soft.annotations()
    names = ("O", "A", "B")
    expected = [[(start, end, names[kind]) for start, end, kind in row] for row in entities]
    assert [[span[:3] for span in found.document(d, names) or ()] for d in range(len(offsets) - 1)] == expected


def test_both_words_speak_of_their_gap_and_the_threshold_decides() -> None:
    outputs = outputs_for([0, 1, 0], [1, 1, 1])
    outputs[0, 1] = -2
    begins = LabelSet(("A", "B")).begins
    for threshold, breaks in ((0.5, [True, False, True]), (0.2, [True, True, True]), (0.6, [True, False, False])):
        assert begins[decode(outputs, np.array([0, 3]), threshold).argmax(axis=1)].tolist() == breaks


def test_rows_are_the_types_of_the_stretch() -> None:
    outputs = draw(2).numpy().astype(np.float32)
    outputs[:, :2] = [[0, -9], [0, 0]]
    rows = decode(outputs, np.array([0, 2]), 0.5)
    expected = np.exp(log_softmax((outputs[0, 2:5] + outputs[1, 5:]).tolist()))
    np.testing.assert_allclose(rows[0], [expected[0], expected[1], 0, expected[2], 0], rtol=1e-5)
    np.testing.assert_allclose(rows[1], [expected[0], 0, expected[1], 0, expected[2]], rtol=1e-5)
