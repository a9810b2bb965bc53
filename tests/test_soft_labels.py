import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Annotations, Span
from tagweave.errors import AlignmentError, LabelError
from tagweave.labels import LabelSet
from tagweave.soft_labels import SoftLabels

TYPES = ("X", "Y")
VOCABULARY = ("O", *TYPES)


def random_soft(lengths: list[int], seed: int = 0) -> SoftLabels:
    rows = np.random.default_rng(seed).dirichlet(np.full(5, 0.5), sum(lengths)).astype(np.float32)
    return SoftLabels(TYPES, np.cumsum([0, *lengths]).astype(np.int64), rows.reshape(-1, 5))


def test_shape_must_fit() -> None:
    with pytest.raises(AlignmentError, match=r"\(2, 5\), but there are 3 tokens and 5 labels"):
        SoftLabels(TYPES, np.array([0, 3]), np.zeros((2, 5), np.float32))
    with pytest.raises(AlignmentError, match="3 labels"):
        SoftLabels(("X",), np.array([0, 2]), np.zeros((2, 5), np.float32))


@pytest.mark.parametrize("row", [[0.5, 0.4], [np.nan, 1], [1.2, -0.2], [np.inf, 0], [0.5, 0.502]])
def test_a_row_that_is_no_distribution_is_named(row: list[float]) -> None:
    soft = random_soft([2, 0, 3])
    soft.check(["a", "b", "c"])
    soft.probabilities[3] = [*row, 0, 0, 0]
    with pytest.raises(LabelError, match="document 'c', token 1"):
        soft.check(["a", "b", "c"])


def test_rounding_is_no_error() -> None:
    SoftLabels(("X",), np.array([0, 1]), np.array([[0.3334, 0.3334, 0.3334]], np.float32)).check(["a"])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.data())
def test_subset_and_documents(lengths: list[int], data: st.DataObject) -> None:
    soft = random_soft(lengths)
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=6))
    part = soft.subset(np.array(chosen, np.int64))
    assert len(part.offsets) == len(chosen) + 1
    for position, index in enumerate(chosen):
        assert np.array_equal(part.document(position), soft.document(index))
        assert len(soft.document(index)) == lengths[index]


def test_other_types_move_columns() -> None:
    soft = random_soft([3])
    moved = soft.with_types(("Z", "Y", "X"))
    by_name = dict(zip(moved.labels.names, moved.probabilities.T, strict=True))
    for name, column in zip(soft.labels.names, soft.probabilities.T, strict=True):
        assert np.array_equal(by_name[name], column)
    assert not by_name["B-Z"].any()
    assert not by_name["I-Z"].any()


def test_io_sums_begin_and_inside() -> None:
    soft = random_soft([4])
    assert np.allclose(soft.io().sum(axis=1), 1, atol=1e-6)
    assert np.allclose(soft.io()[:, 2], soft.probabilities[:, 3] + soft.probabilities[:, 4])


def test_certain_labels_come_back() -> None:
    labels = np.array([0, 1, 2, 3, 0])
    soft = SoftLabels.from_labels(labels, np.array([0, 3, 5]), TYPES)
    assert soft.probabilities.argmax(axis=1).tolist() == labels.tolist()
    annotations = soft.annotations()
    assert annotations.document(0, VOCABULARY) == [Span(1, 3, "X", 1.0)]
    assert annotations.document(1, VOCABULARY) == [Span(0, 1, "Y", 1.0)]


def test_ties_go_to_the_lower_label() -> None:
    soft = SoftLabels(("X",), np.array([0, 2]), np.array([[0.5, 0.5, 0], [0.2, 0.4, 0.4]], np.float32))
    assert soft.annotations().document(0, ("O", "X")) == [Span(1, 2, "X", pytest.approx(0.8))]


def test_scores_are_means_over_the_tokens() -> None:
    soft = random_soft([3, 4], seed=3)
    given = [[Span(0, 3, "Y")], [Span(1, 2, "X"), Span(2, 4, "O")]]
    scored = soft.scored(Annotations.from_lists(given, VOCABULARY))
    io = soft.io()
    expected = [io[0:3, 2].mean(), io[4:5, 1].mean(), io[5:7, 0].mean()]
    assert scored.scores is not None
    assert np.allclose(scored.scores, expected, atol=1e-6)


def test_labels_are_bio() -> None:
    assert random_soft([1]).labels == LabelSet(TYPES, "bio")
