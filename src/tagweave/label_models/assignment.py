"""The cheapest way to give each row a column of its own."""

import numpy as np
from numpy.typing import NDArray


def assign(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """The column of each row, all different, with the lowest sum of costs (the Hungarian method).

    One row after the other is added by the cheapest chain of exchanges; prices on rows and columns keep all costs that
    remain at zero or above, so that each chain is a shortest path. It takes time cubic in the rows.

    Args:
        costs: of shape [rows, rows].

    >>> assign(np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])).tolist()
    [1, 0, 2]
    """
    size = len(costs)
    row_of = np.full(size + 1, -1)  # the last column is where a chain starts
    row_prices, column_prices = np.zeros(size), np.zeros(size + 1)
    for row in range(size):
        row_of[size] = row
        column = size
        distances, before = np.full(size, np.inf), np.full(size, size)
        done = np.zeros(size + 1, bool)
        while row_of[column] >= 0:
            done[column] = True
            here = row_of[column]
            reached = costs[here] - row_prices[here] - column_prices[:size]
            nearer = ~done[:size] & (reached < distances)
            distances[nearer], before[nearer] = reached[nearer], column
            column = int(np.where(done[:size], np.inf, distances).argmin())
            step = distances[column]
            row_prices[row_of[done]] += step
            column_prices[done] -= step
            distances[~done[:size]] -= step
        while column != size:
            row_of[column] = row_of[before[column]]
            column = before[column]
    return np.argsort(row_of[:size])
