"""`labeling_function`: a Python function as a source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
