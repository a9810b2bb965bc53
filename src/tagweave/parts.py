"""Things in parts: in memory, made anew each time, or in other processes; what a function says of each, in order.

What is learned by adding up calls a function for each part and adds up what comes back, so it does not matter where the
parts are: the sums are the same, to the last bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class Elsewhere(ABC):
    """Parts in other processes. Functions of them can be imported there, and their arguments can be sent."""

    @abstractmethod
    def each(self, function: Callable[[Any], Result]) -> Iterator[Result]:
        """What a function says of each part."""

    @abstractmethod
    def first(self, function: Callable[[Any], Result]) -> Result:
        """What a function says of the first part."""

    @abstractmethod
    def mapped(self, function: Callable[[Any], Any], *, kept: bool) -> "Elsewhere":
        """What a function makes of the parts, where they are; made anew each time, or kept there."""

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("these parts are in other processes: call a function of each")


class _Mapped(Generic[Result]):
    """Results of a function, made anew each time."""

    def __init__(self, function: Callable[[Any], Result], parts: Iterable[Any]) -> None:
        self._function, self._parts = function, parts

    def __iter__(self) -> Iterator[Result]:
        return map(self._function, self._parts)


def each(function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """What a function says of each part, in their order.

    >>> sum(each(len, [[1, 2], [3]]))
    3
    """
    return parts.each(function) if isinstance(parts, Elsewhere) else map(function, parts)


def first(function: Callable[[Part], Result], parts: Iterable[Part]) -> Result:
    """What a function says of the first part."""
    return parts.first(function) if isinstance(parts, Elsewhere) else function(next(iter(parts)))


def mapped(function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterable[Result]:
    """What a function makes of each part: of parts in memory it is kept there, of others it is made anew each time."""
    if isinstance(parts, Elsewhere):
        return parts.mapped(function, kept=False)
    return list(map(function, parts)) if isinstance(parts, list) else _Mapped(function, parts)
