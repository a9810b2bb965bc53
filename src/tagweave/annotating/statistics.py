"""`Statistics` of single sources, and the `Report` of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tagweave.annotations import Span
from tagweave.labels import OUTSIDE
from tagweave.report import Cell, Table


@dataclass
class Statistics:
    """What a source has done so far.

    Attributes:
        documents: documents that it was given.
        seconds: time spent in it, of all processes together.
        spans: entities that it marked, or links.
        outside: votes for O.
        abstained: documents on which it did not run, failures among them.
        failures: documents, or groups of them, on which it failed.
        timeouts: failures of which it took too long.
        first_failure: the message of the first failure.
        counters: what the source itself counted.
    """

    documents: int = 0
    seconds: float = 0.0
    spans: int = 0
    outside: int = 0
    abstained: int = 0
    failures: int = 0
    timeouts: int = 0
    first_failure: str = ""
    counters: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Statistics") -> None:
        """Add what was done elsewhere.

        >>> total = Statistics(spans=2)
        >>> total.add(Statistics(spans=1, counters=Counter(requests=3)))
        >>> total.spans, total.counters["requests"]
        (3, 3)
        """
        self.first_failure = self.first_failure or other.first_failure
        self.counters.update(other.counters)
        for name in ("documents", "seconds", "spans", "outside", "abstained", "failures", "timeouts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, votes: Sequence[Span] | None) -> None:
        """Count the votes on a document."""
        self.documents += 1
        if votes is None:
            self.abstained += 1
            return
        outside = sum(vote.type == OUTSIDE for vote in votes) if votes else 0
        self.outside += outside
        self.spans += len(votes) - outside

    def to_json(self) -> dict[str, Any]:
        """All values, for a file."""
        return {**vars(self), "counters": dict(self.counters)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(**{**values, "counters": Counter(values["counters"])})


def add_up(total: dict[str, Statistics], more: Mapping[str, Statistics]) -> None:
    """Add statistics by name."""
    for name, statistics in more.items():
        total.setdefault(name, Statistics()).add(statistics)


@dataclass(frozen=True)
class Described:
    """What a report says of a source besides its numbers."""

    name: str
    summary: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What happened in a run.

    Attributes:
        documents: number of documents.
        seconds: time from beginning to end.
        sources: the sources in order, and the analyses that they share.
        statistics: what each of them did, by name.
    """

    documents: int
    seconds: float
    sources: tuple[Described, ...]
    statistics: Mapping[str, Statistics]

    def table(self) -> Table:
        """A row a source; columns in which nothing happened are left out.

        >>> done = {"towns": Statistics(documents=100, seconds=0.5, spans=7)}
        >>> print(Report(100, 1.0, (Described("towns", "Towns by name.", ("LOC",)),), done).table().text())
        100 documents in 1.00 seconds
        source  types  spans  seconds  documents/s  description
        ------  -----  -----  -------  -----------  --------------
        towns   LOC        7     0.50          200  Towns by name.
        """
        rows = [self._row(source) for source in self.sources]
        shown = [name for name in rows[0] if name not in _SOMETIMES or any(row[name] for row in rows)] if rows else []
        title = f"{self.documents} documents in {self.seconds:.2f} seconds"
        return Table(title, tuple(shown), tuple(tuple(row[name] for name in shown) for row in rows))

    def _row(self, source: Described) -> dict[str, Cell]:
        done = self.statistics.get(source.name, Statistics())
        return {
            "source": source.name,
            "types": ", ".join(source.types),
            "spans": done.spans,
            "O votes": done.outside,
            "abstained": done.abstained,
            "failures": done.failures,
            "timeouts": done.timeouts,
            "seconds": done.seconds,
            "documents/s": round(done.documents / done.seconds) if done.seconds else None,
            "counted": ", ".join(f"{name} {count}" for name, count in sorted(done.counters.items())),
            "description": source.summary,
        }


_SOMETIMES = ("O votes", "abstained", "failures", "timeouts", "counted", "description")
