"""Distinct rows of small whole numbers, found by sorting one number a row."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def distinct_rows(*columns: NDArray[np.integer]) -> tuple[list[Integers], Integers, Integers]:
    """The distinct rows of some columns in lexicographic order.

    Args:
        columns: numbers from zero up, each of shape [rows]; the product of their ranges must be less than 2 ** 63.

    Returns:
        Columns of shape [distinct], the number of each row's distinct row of shape [rows], and how many rows each
        distinct one has, of shape [distinct].

    >>> columns, numbers, counts = distinct_rows(np.array([1, 0, 1]), np.array([5, 7, 5]))
    >>> [column.tolist() for column in columns], numbers.tolist(), counts.tolist()
    ([[0, 1], [7, 5]], [1, 0, 1], [1, 2])
    """
    ranges = [int(column.max(initial=0)) + 1 for column in columns]
    key = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, ranges, strict=True):
        key *= size
        key += column
    keys, numbers, counts = np.unique(key, return_inverse=True, return_counts=True)
    found: list[Integers] = []
    for size in reversed(ranges):
        keys, rest = np.divmod(keys, size)
        found.insert(0, rest)
    return found, numbers, counts
