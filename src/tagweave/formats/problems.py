"""What a reader or writer repaired or left out, counted, and said in one warning for each file."""

import warnings
from collections import Counter
from typing import NamedTuple

from tagweave.errors import TagweaveWarning, shortened

_KEPT = 1000


class Problem(NamedTuple):
    """One thing that was repaired or left out.

    Attributes:
        kind: its kind, one of the keys of `FormatWarning.counts`.
        document: id of the document that it concerns, or None.
        message: what was met, where, and what was done.
    """

    kind: str
    document: str | None
    message: str


class FormatWarning(TagweaveWarning):
    """The one warning about a file.

    Attributes:
        counts: how often each kind of problem was met.
        problems: the problems one by one, the first thousand of them.
    """

    def __init__(self, message: str, counts: dict[str, int], problems: tuple[Problem, ...]) -> None:
        super().__init__(message)
        self.counts = counts
        self.problems = problems


class Problems:
    """Gathers the problems of one file.

    Args:
        name: the file, as messages show it.

    >>> problems = Problems("in.jsonl")
    >>> problems.add("trimmed", "spans without the blanks at their edges", "d1", "span [0, 6, 'PER'] is now [0, 5]")
    >>> problems.summary()
    "in.jsonl: 1 spans without the blanks at their edges (first: document 'd1': span [0, 6, 'PER'] is now [0, 5])"
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: Counter[str] = Counter()
        self._titles: dict[str, str] = {}
        self._first: dict[str, Problem] = {}
        self._problems: list[Problem] = []

    def add(self, kind: str, title: str, document: str | None, message: str, count: int = 1) -> None:
        """Note a problem.

        Args:
            kind: short name of the kind, for programs.
            title: what is counted, for readers: `N title`.
            document: id of the document.
            message: this one case.
            count: how many cases it stands for.
        """
        problem = Problem(kind, document, shortened(message))
        self._counts[kind] += count
        self._titles.setdefault(kind, title)
        self._first.setdefault(kind, problem)
        if len(self._problems) < _KEPT:
            self._problems.append(problem)

    @property
    def counts(self) -> dict[str, int]:
        """How often each kind was met."""
        return dict(self._counts)

    def summary(self) -> str:
        """All kinds in one paragraph."""
        parts = []
        for kind, count in self._counts.items():
            first = self._first[kind]
            where = "" if first.document is None else f"document {first.document!r}: "
            parts.append(f"{count} {self._titles[kind]} (first: {where}{first.message})")
        return f"{self._name}: {'; '.join(parts)}"

    def warn(self) -> None:
        """One `FormatWarning` if there was anything."""
        if self._counts:
            warnings.warn(FormatWarning(self.summary(), self.counts, tuple(self._problems)), stacklevel=4)
