"""Windows over long documents, and batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.encoder.windows import Windows, batches

documents = st.lists(st.lists(st.integers(1, 8), max_size=60), min_size=1, max_size=4)


@given(documents, st.integers(8, 30), st.integers(0, 40))
def test_windows_keep_each_word_once_with_most_context(counts: list[list[int]], size: int, overlap: int) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(document) for document in counts])]).astype(np.int64)
    flat = np.array([count for document in counts for count in document], np.int64)
    before = np.concatenate([[0], np.cumsum(flat)])
    windows = Windows.cut(flat, offsets, size, overlap)
    kept = [w for a, b in zip(windows.keep_first, windows.keep_last, strict=True) for w in range(a, b)]
    assert kept == list(range(len(flat)))
    assert (windows.lengths(before) <= size).all()
    assert (windows.first < windows.last).all()
    home = np.searchsorted(offsets, windows.first, side="right")
    assert (home == np.searchsorted(offsets, windows.last - 1, side="right")).all()
    for window in range(len(windows)):
        for word in range(windows.keep_first[window], windows.keep_last[window]):
            holding = [w for w in range(len(windows)) if windows.first[w] <= word < windows.last[w]]
            context = {
                w: min(before[word] - before[windows.first[w]], before[windows.last[w]] - before[word + 1])
                for w in holding
            }
            assert context[window] == max(context.values())


def test_a_document_that_fits_is_one_window() -> None:
    windows = Windows.cut(np.array([2, 2, 4]), np.array([0, 2, 2, 3]), size=4, overlap=2)
    assert windows.first.tolist() == [0, 2]
    assert windows.last.tolist() == [2, 3]


def test_windows_of_a_long_document_are_few_and_alike() -> None:
    windows = Windows.cut(np.ones(1000, int), np.array([0, 1000]), size=128, overlap=28)
    lengths = windows.last - windows.first
    assert len(windows) == 10
    assert lengths.min() > 110


def test_no_words_give_no_windows() -> None:
    assert len(Windows.cut(np.zeros(0, int), np.array([0, 0]), size=8, overlap=2)) == 0
    assert batches(np.zeros(0, int), pieces=10) == []


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 100), st.integers(1, 5), st.booleans())
def test_batches_hold_each_window_once_and_are_bounded(
    lengths: list[int], pieces: int, windows: int, chance: bool
) -> None:
    column = np.array(lengths, np.int64)
    plan = batches(column, pieces, windows, np.random.default_rng(0) if chance else None)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    for batch in plan:
        assert len(batch) <= windows
        assert len(batch) == 1 or len(batch) * column[batch].max() <= pieces


def test_chance_decides_the_order_of_batches() -> None:
    lengths = np.arange(1, 101)
    plans = [batches(lengths, 200, chance=np.random.default_rng(seed)) for seed in (0, 0, 1)]
    as_lists = [[batch.tolist() for batch in plan] for plan in plans]
    assert as_lists[0] == as_lists[1] != as_lists[2]


@pytest.mark.parametrize("overlap", [0, 64, 500])
def test_a_long_document_takes_little_time(overlap: int) -> None:
    windows = Windows.cut(np.full(200_000, 3), np.array([0, 200_000]), size=128, overlap=overlap)
    assert windows.keep_last[-1] == 200_000
