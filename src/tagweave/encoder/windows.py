"""Windows over long documents, and batches of windows.

An encoder reads so many sub-word pieces at a time. A longer document is cut into overlapping windows of whole words.
Every word belongs to exactly one of the windows that hold it: the one that leaves it most context on its shorter side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of words, numbered over the whole corpus, half-open; each array is of shape [windows].

    Attributes:
        first, last: the words that the encoder reads.
        keep_first, keep_last: the words that belong to the window; together they cover each word once, in order.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    keep_first: NDArray[np.int64]
    keep_last: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.first)

    @classmethod
    def cut(cls, piece_counts: NDArray[np.integer], offsets: NDArray[np.int64], size: int, overlap: int) -> Self:
        """Windows over all documents; a document that fits is one window, an empty one has none.

        Args:
            piece_counts: pieces of each word, of shape [words]; none may exceed `size`.
            offsets: where each document starts, of shape [documents + 1].
            size: most pieces in a window.
            overlap: pieces that neighbours share, rounded up to whole words, and at most half of `size`.

        >>> windows = Windows.cut(np.ones(10, int), np.array([0, 3, 10]), size=4, overlap=2)
        >>> windows.first.tolist(), windows.last.tolist()
        ([0, 3, 5, 6], [3, 7, 9, 10])
        >>> windows.keep_first.tolist(), windows.keep_last.tolist()
        ([0, 3, 6, 8], [3, 6, 8, 10])
        """
        before = np.concatenate([[0], np.cumsum(piece_counts, dtype=np.int64)])
        totals = np.diff(before[offsets])
        short = np.flatnonzero((totals <= size) & (np.diff(offsets) > 0))
        parts = [np.stack([offsets[short], offsets[short + 1], offsets[short], offsets[short + 1]])]
        for document in np.flatnonzero(totals > size):
            base = offsets[document]
            inner = before[base : offsets[document + 1] + 1]
            parts.append(base + _cut_document(inner - inner[0], size, min(overlap, size // 2)))
        columns = np.concatenate(parts, axis=1)
        return cls(*columns[:, np.argsort(columns[2], kind="stable")])

    def lengths(self, piece_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pieces in each window, of shape [windows], from where each word's pieces start, of shape [words + 1]."""
        return piece_offsets[self.last] - piece_offsets[self.first]


def _cut_document(before: NDArray[np.int64], size: int, overlap: int) -> NDArray[np.int64]:
    """Windows of one long document, of shape [4, windows]; `before[w]` is the number of pieces before word `w`."""
    words, total = len(before) - 1, int(before[-1])
    count = -(-(total - overlap) // (size - overlap))
    even = -(-(total + (count - 1) * overlap) // count)
    firsts, lasts = [0], [_reach(before, 0, even, size)]
    while lasts[-1] < words:
        last = lasts[-1]
        first = max(int(np.searchsorted(before, before[last] - overlap, side="right")) - 1, firsts[-1] + 1)
        first = max(first, int(np.searchsorted(before, before[last + 1] - size)))
        firsts.append(first)
        lasts.append(max(_reach(before, first, even, size), last + 1))
    firsts[-1] = min(firsts[-1], int(np.searchsorted(before, total - even)))
    twice_middle = before[lasts[:-1]] + before[firsts[1:]]
    borders = np.searchsorted(before[1:] + before[:-1], twice_middle, side="right")
    return np.stack(
        [np.array(firsts), np.array(lasts), np.concatenate([[0], borders]), np.concatenate([borders, [words]])]
    )


def _reach(before: NDArray[np.int64], first: int, wanted: int, size: int) -> int:
    """End of a window from word `first` with `wanted` pieces, rounded up to whole words where `size` allows."""
    last = min(int(np.searchsorted(before, before[first] + wanted)), len(before) - 1)
    return last - 1 if before[last] - before[first] > size else last


def batches(
    lengths: NDArray[np.integer], pieces: int, windows: int | None = None, chance: np.random.Generator | None = None
) -> list[NDArray[np.int64]]:
    """Numbers of windows in batches of similar length, shortest first, bounded by the pieces with padding.

    Args:
        lengths: pieces of each window with what the encoder adds, of shape [windows].
        pieces: most pieces in a batch, padding counted; a window that is longer stands alone.
        windows: most windows in a batch, if that is bounded too.
        chance: for training: mixes which windows of about the same length come together, and the order of batches.

    >>> [batch.tolist() for batch in batches(np.array([9, 2, 3, 2]), pieces=9)]
    [[1, 3, 2], [0]]
    """
    keys = lengths.astype(np.float64)
    if chance is not None:
        keys = keys * chance.uniform(0.9, 1.1, len(keys)) + chance.uniform(0, 4, len(keys))
    order = np.argsort(keys, kind="stable")
    groups = _grouped(lengths[order].tolist(), pieces, windows or len(order))
    result = [order[first:last] for first, last in groups]
    return result if chance is None else [result[i] for i in chance.permutation(len(result))]


def _grouped(lengths: Sequence[int], pieces: int, windows: int) -> list[tuple[int, int]]:
    groups, first, longest = [], 0, 0
    for index, length in enumerate(lengths):
        longest = max(longest, length)
        if index > first and ((index - first + 1) * longest > pieces or index - first >= windows):
            groups.append((first, index))
            first, longest = index, length
    if lengths:
        groups.append((first, len(lengths)))
    return groups


def shares(
    chosen: NDArray[np.integer], documents: NDArray[np.integer], lengths: NDArray[np.integer], count: int
) -> NDArray[np.int64]:
    """Which of several shares each window of a batch is in; shares have about the same number of pieces, or none.

    Windows that follow each other in a document stay together, as a model may read them as one text.

    Args:
        chosen: numbers of windows, of shape [windows].
        documents: numbers of their documents, of shape [windows].
        lengths: pieces of each, of shape [windows].
        count: of shares.

    Returns:
        Numbers of shares, of shape [windows].

    >>> shares(np.array([8, 2, 7, 4]), np.array([3, 1, 3, 2]), np.array([5, 5, 5, 5]), 2)
    array([1, 0, 1, 0])
    """
    order = np.argsort(chosen)
    joined = (np.diff(chosen[order]) == 1) & (np.diff(documents[order]) == 0)
    group = np.empty(len(chosen), np.int64)
    group[order] = np.append(0, np.cumsum(~joined))[: len(chosen)]
    sizes = np.bincount(group, lengths)
    middles = np.cumsum(sizes) - sizes / 2
    return np.asarray((middles * count / max(sizes.sum(), 1)).astype(np.int64)[group])
