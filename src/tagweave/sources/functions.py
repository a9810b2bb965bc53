"""`labeling_function`: a Python function as a source."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, SupportsIndex

from tagweave.corpus import Document
from tagweave.sources.base import Source, Votes

Function = Callable[[Document], Votes]


@dataclass
class FunctionSource(Source):
    """A Python function of one document."""

    function: Function
    labels: tuple[str, ...]
    pipeline: str | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared for the function."""
        return self.labels

    @property
    def summary(self) -> str:
        """The description, or the first line of the function's docstring."""
        return self.description or (self.function.__doc__ or "").strip().partition("\n")[0]

    def find(self, document: Document) -> Votes:
        """What the function returns or yields."""
        return self.function(document)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Another process gets it by the name of its module and function, which the decorator has made a source."""
        where = self.function.__module__, self.function.__name__
        if getattr(sys.modules.get(where[0]), where[1], None) is self:
            return _imported, where
        return super().__reduce_ex__(protocol)


def _imported(module: str, name: str) -> Any:  # noqa: ANN401
    return getattr(import_module(module), name)


def labeling_function(
    types: str | Sequence[str] = (), *, name: str | None = None, pipeline: str | None = None, hidden: bool = False
) -> Callable[[Function], FunctionSource]:
    """Make a source of a function that takes a `Document` and returns or yields votes.

    Args:
        types: the entity types that it votes for; with one type, votes may leave it out.
        name: its name as a source; by default the function's.
        pipeline: a spaCy pipeline whose analysis the function needs in `document.parse`.
        hidden: whether its votes serve only later sources.

    >>> @labeling_function("MONEY")
    ... def money(document):
    ...     "A dollar sign and a number."
    ...     for i, token in enumerate(document.tokens[:-1]):
    ...         if token == "$" and document.tokens[i + 1][0].isdigit():
    ...             yield i, i + 2
    >>> list(money.find(Document("d", ["It", "cost", "$", "5"])))
    [(2, 4)]
    """
    labels = (types,) if isinstance(types, str) else tuple(types)

    def make(function: Function) -> FunctionSource:
        return FunctionSource(name or function.__name__, function, labels, pipeline, hidden=hidden)

    return make
