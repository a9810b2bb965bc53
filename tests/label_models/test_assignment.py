from itertools import permutations

import numpy as np
import pytest

from tagweave.label_models.assignment import assign


@pytest.mark.parametrize("size", range(7))
def test_it_is_the_best_of_all_permutations(size: int) -> None:
    chance = np.random.default_rng(size)
    for costs in [*chance.normal(size=(5, size, size)), *chance.integers(0, 3, size=(5, size, size)).astype(float)]:
        found = assign(costs)
        assert sorted(found) == list(range(size))
        best = min(sum(costs[row, column] for row, column in enumerate(order)) for order in permutations(range(size)))
        assert costs[np.arange(size), found].sum() == pytest.approx(best)
