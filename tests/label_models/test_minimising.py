import numpy as np
import pytest
from numpy.typing import NDArray

from tagweave.label_models.minimising import minimise

Array = NDArray[np.float64]


def rosenbrock(point: Array) -> tuple[float, Array]:
    x, y = point
    return float((1 - x) ** 2 + 100 * (y - x * x) ** 2), np.array(
        [-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)]
    )


def test_it_finds_the_end_of_a_bent_valley_and_never_climbs() -> None:
    points = list(minimise(rosenbrock, np.array([-1.2, 1.0])))
    values = [value for _, value in points]
    assert all(later < earlier for earlier, later in zip(values, values[1:], strict=False))
    np.testing.assert_allclose(points[-1][0], [1, 1], atol=1e-6)
    assert len(points) < 60


def test_quadratic_functions_of_matrices() -> None:
    chance = np.random.default_rng(0)
    root = chance.normal(size=(30, 30))
    matrix, target = root @ root.T + np.eye(30), chance.normal(size=(30, 2))

    def bowl(point: Array) -> tuple[float, Array]:
        return float((point * (matrix @ point)).sum() / 2 - (target * point).sum()), matrix @ point - target

    *_, (point, _value) = minimise(bowl, np.zeros((30, 2)))
    np.testing.assert_allclose(point, np.linalg.solve(matrix, target), atol=1e-5)


def test_at_a_minimum_it_stays() -> None:
    assert [value for _, value in minimise(rosenbrock, np.array([1.0, 1.0]))] == [pytest.approx(0)]
