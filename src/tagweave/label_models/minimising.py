"""Minima of smooth functions with gradients, by limited-memory BFGS, in numpy."""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]
"""From a point to the value there and the gradient."""

_MEMORY = 10
"""Steps that the curvature is estimated from."""

_DECREASE = 1e-4
"""Share of the decrease that the slope promises which a step must keep."""

_FLATTER = 0.9
"""Share of the slope that may be left at the end of a step."""

_TRIALS = 50
"""Most lengths of a step that are tried."""


def minimise(objective: Objective, start: Array) -> Iterator[tuple[Array, float]]:
    """Points and their values, each lower than the one before, until no step along the gradient gets lower.

    Args:
        objective: value and gradient at a point.
        start: a point of any shape; it comes out first.

    >>> def bowl(x):
    ...     return float((x**4 + x**2).sum()), 4 * x**3 + 2 * x
    >>> *_, (point, value) = minimise(bowl, np.array([3.0, -1.0]))
    >>> bool(np.abs(point).max() < 1e-6)
    True
    """
    point, (value, gradient) = start, objective(start)
    steps: deque[tuple[Array, Array]] = deque(maxlen=_MEMORY)
    while True:
        yield point, value
        found = _search(objective, point, value, gradient, _direction(gradient, steps))
        if found is None and steps:
            steps.clear()
            found = _search(objective, point, value, gradient, _direction(gradient, steps))
        if found is None:
            return
        step, change = found[0] - point, found[2] - gradient
        if (step * change).sum() > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            steps.append((step, change))
        point, value, gradient = found


def _direction(gradient: Array, steps: deque[tuple[Array, Array]]) -> Array:
    """Where the quadratic that fits the last steps has its minimum (the two-loop recursion)."""
    direction, weights = -gradient, []
    for step, change in reversed(steps):
        weight = (step * direction).sum() / (step * change).sum()
        direction = direction - weight * change
        weights.append(weight)
    if steps:
        step, change = steps[-1]
        direction = direction * ((step * change).sum() / (change * change).sum())
    for (step, change), weight in zip(steps, reversed(weights), strict=True):
        direction = direction + step * (weight - (change * direction).sum() / (step * change).sum())
    return direction


def _search(
    objective: Objective, point: Array, value: float, gradient: Array, direction: Array
) -> tuple[Array, float, Array] | None:
    """A lower point along a direction, with value and gradient.

    A step is too long if the value does not fall as the slope promises (Armijo), too short if the slope there is still
    as steep (Wolfe); it is halved between the bounds, or doubled while there is no upper one.
    """
    slope = float((gradient * direction).sum())
    lower, length, upper = 0.0, 1.0, np.inf
    found = None
    for _ in range(_TRIALS if slope < 0 else 0):
        there = point + length * direction
        new, new_gradient = objective(there)
        if not (new < value and new <= value + _DECREASE * length * slope):
            upper = length
        else:
            found = there, new, new_gradient
            if (new_gradient * direction).sum() >= _FLATTER * slope:
                break
            lower = length
        length = 2 * length if np.isinf(upper) else (lower + upper) / 2
    return found
