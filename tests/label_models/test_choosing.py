from itertools import product

import numpy as np
import pytest

from tagweave.label_models.choosing import Values, choose

GROUPS = [{"a": (0.1, 0.5, 1.0), "b": (0.2, 0.8)}, {"c": (0.0, 0.3, 1.0)}]
GIVEN = {"a": 0.5, "b": 0.8, "c": 1.0}


@pytest.mark.parametrize("seed", range(20))
def test_no_group_brings_more_than_what_is_chosen(seed: int) -> None:
    chance = np.random.default_rng(seed)
    scores = {key: float(chance.integers(0, 8)) for key in product((0.1, 0.5, 1.0), (0.2, 0.8), (0.0, 0.3, 1.0))}
    asked = []

    def f1(values: Values) -> float:
        asked.append(tuple(values.values()))
        return scores[tuple(values.values())]

    best, found = choose(GIVEN, GROUPS, f1)
    assert len(asked) == len(set(asked)), "nothing is asked twice"
    assert found == scores[tuple(best.values())] >= scores[tuple(GIVEN.values())]
    assert found == max(scores[a, b, best["c"]] for a, b in product((0.1, 0.5, 1.0), (0.2, 0.8)))
    assert found == max(scores[best["a"], best["b"], c] for c in (0.0, 0.3, 1.0))


def test_of_equally_good_ones_the_nearest_is_taken() -> None:
    assert choose(GIVEN, GROUPS, lambda values: 0.5) == (GIVEN, 0.5)
    best, _ = choose(GIVEN, GROUPS, lambda values: float(values["c"] < 1))
    assert best == {**GIVEN, "c": 0.3}


def test_without_anything_to_choose_the_score_is_asked() -> None:
    assert choose(GIVEN, [], lambda values: 0.7) == (GIVEN, 0.7)
