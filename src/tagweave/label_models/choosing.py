"""The choice of settings on dev, where trying one costs little."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product

Values = Mapping[str, float]
Group = Mapping[str, tuple[float, ...]]
"""Values to try, by name of the setting."""


def choose(given: Values, groups: Iterable[Group], f1: Callable[[Values], float]) -> tuple[Values, float]:
    """The best of some settings, group by group, until no group brings more.

    Args:
        given: where to begin, shares by name; of equally good ones the nearest to these is taken.
        groups: what to try; the settings of a group in all combinations, while those of others stay.
        f1: score of a choice; it is asked once for each.

    Returns:
        The best choice, and its score.

    >>> choose({"a": 0.5, "b": 1.0}, [{"a": (0.5, 1.0)}, {"b": (0.1, 1.0)}], lambda at: -abs(at["a"] - 1) - at["b"])
    ({'a': 1.0, 'b': 0.1}, -0.1)
    """
    scores: dict[tuple[float, ...], float] = {}
    groups = list(groups)

    def rank(values: Values) -> tuple[float, float]:
        key = tuple(values.values())
        if key not in scores:
            scores[key] = f1(values)
        return scores[key], -sum(abs(_log(values[name]) - _log(given[name])) for name in values)

    best, before = given, None
    while best != before:
        before = best
        for group in groups:
            tried = [{**best, **dict(zip(group, values, strict=True))} for values in product(*group.values())]
            best = max((best, *tried), key=rank)
    return best, rank(best)[0]


def _log(share: float) -> float:
    """0 is as far from the others as a millionth."""
    return math.log(max(share, 1e-6))
