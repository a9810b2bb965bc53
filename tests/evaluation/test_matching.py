"""Relaxed matching: order does not matter; nervaluate as oracle where its order of matching cannot either."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nervaluate import Evaluator

from tagweave.evaluation.matching import Matching, overlapping_pairs, relaxed_matching
from tagweave.evaluation.packed_spans import PackedSpans

Row = tuple[int, int, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 2)).map(lambda r: (r[0], r[0] + r[1], r[2])),
    max_size=12,
)


def packed(rows: list[Row]) -> PackedSpans:
    return PackedSpans.from_columns(*np.array(rows, np.int64).reshape(-1, 3).T)


@given(ROWS, ROWS, st.randoms())
def test_the_order_of_spans_does_not_matter(gold: list[Row], predicted: list[Row], order: random.Random) -> None:
    before = relaxed_matching(packed(gold), packed(predicted))
    order.shuffle(gold)
    order.shuffle(predicted)
    assert relaxed_matching(packed(gold), packed(predicted)) == before


@given(ROWS, ROWS)
def test_overlapping_pairs_are_all_pairs_that_share_a_token(gold: list[Row], predicted: list[Row]) -> None:
    one, other = packed(gold), packed(predicted)
    expected = [
        (row, column)
        for row in range(len(one))
        for column in range(len(other))
        if one.starts[row] < other.ends[column] and other.starts[column] < one.ends[row]
    ]
    rows, columns = overlapping_pairs(one, other)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


@given(ROWS, ROWS)
def test_strict_is_what_both_have(gold: list[Row], predicted: list[Row]) -> None:
    matching = relaxed_matching(packed(gold), packed(predicted))
    assert matching["strict"].correct == len({*gold} & {*predicted})
    for judged in matching.values():
        assert judged.possible == len({*gold})
        assert judged.actual == len({*predicted})
    assert matching["strict"].correct <= min(matching["exact"].correct, matching["type"].correct)


@st.composite
def separate(draw: st.DrawFn) -> tuple[list[list[Row]], list[list[Row]]]:
    """Sentences of cells of ten tokens with at most one gold and one predicted span in each cell."""
    sides: tuple[list[list[Row]], list[list[Row]]] = [], []
    for _ in range(draw(st.integers(1, 3))):
        cells = draw(st.integers(0, 4))
        for side in sides:
            rows = []
            for cell in range(cells):
                if draw(st.booleans()):
                    start = draw(st.integers(0, 5))
                    end = draw(st.integers(start + 1, 9))
                    rows.append((10 * cell + start, 10 * cell + end, draw(st.integers(0, 1))))
            side.append(rows)
    return sides


@given(separate())
@settings(deadline=None)
def test_agrees_with_nervaluate(sides: tuple[list[list[Row]], list[list[Row]]]) -> None:
    ours = relaxed_matching(
        *(packed([(100 * i + a, 100 * i + b, t) for i, s in enumerate(d) for a, b, t in s]) for d in sides)
    )
    inclusive = [
        [[{"label": "AB"[name], "start": start, "end": end - 1} for start, end, name in rows] for rows in side]
        for side in sides
    ]
    theirs = Evaluator(*inclusive, tags=["A", "B"], loader="dict").evaluate()["overall"]
    for ours_name, theirs_name in (
        ("strict", "strict"),
        ("exact", "exact"),
        ("partial", "partial"),
        ("type", "ent_type"),
    ):
        judged, expected = ours[ours_name], theirs[theirs_name]
        assert judged == Matching(
            expected.correct, expected.incorrect, expected.partial, expected.missed, expected.spurious
        )
        assert (judged.precision, judged.recall, judged.f1) == pytest.approx(
            (expected.precision, expected.recall, expected.f1)
        )


def test_one_prediction_over_two_gold_spans() -> None:
    for gold in ([(0, 12, 0), (14, 17, 1)], [(14, 17, 1), (0, 12, 0)]):
        matching = relaxed_matching(packed(gold), packed([(0, 17, 0)]))
        assert matching["type"] == Matching(correct=1, incorrect=0, partial=0, missed=1, spurious=0)
        assert matching["partial"] == Matching(correct=0, incorrect=0, partial=1, missed=1, spurious=0)
        assert (matching["type"].possible, matching["type"].actual) == (2, 1)


def test_the_best_overlap_goes_first() -> None:
    matching = relaxed_matching(packed([(0, 1, 0), (1, 10, 0)]), packed([(0, 10, 0), (9, 12, 0)]))
    assert matching["partial"] == Matching(correct=0, incorrect=0, partial=1, missed=1, spurious=1)


def test_a_pair_of_one_type_goes_first_for_type() -> None:
    matching = relaxed_matching(packed([(0, 8, 0), (8, 10, 1)]), packed([(0, 10, 1)]))
    assert matching["type"].correct == 1
    assert matching["strict"].incorrect == 1


def test_nothing() -> None:
    assert set(relaxed_matching(packed([]), packed([])).values()) == {Matching(0, 0, 0, 0, 0)}
    assert relaxed_matching(packed([(0, 1, 0)]), packed([]))["type"] == Matching(0, 0, 0, 1, 0)


def test_a_span_over_everything_among_many() -> None:
    starts = np.arange(0, 200_000, 2)
    small = PackedSpans.from_columns(starts, starts + 1, starts * 0)
    with_long = PackedSpans.from_columns(
        np.append(starts, 0), np.append(starts + 1, 200_000), np.zeros(len(starts) + 1)
    )
    assert relaxed_matching(small, with_long)["strict"] == Matching(100_000, 0, 0, 0, 1)
