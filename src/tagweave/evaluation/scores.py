"""`Scores`: what an evaluation found, as numbers, tables and JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tagweave.evaluation.matching import Matching
from tagweave.report import Cell, Table

Reading = Literal["spans", "tags:strict", "tags:lenient"]
"""What the entities were read from: spans, or tags under the strict or the lenient rules (see `score_tags`)."""


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 as fractions, and the counts of entities behind them.

    Attributes:
        support: gold entities.
        predicted: predicted entities.
        correct: predicted entities with the boundaries and the type of a gold entity.
        undefined: which of the three values have nothing to be computed from; they are 0.0.
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int
    correct: int
    undefined: tuple[str, ...] = ()

    @classmethod
    def from_counts(cls, correct: int, predicted: int, support: int) -> "Score":
        """The score of one type, or of all entities together (micro average).

        >>> Score.from_counts(correct=1, predicted=2, support=4)
        Score(precision=0.5, recall=0.25, f1=0.3333333333333333, support=4, predicted=2, correct=1, undefined=())
        >>> Score.from_counts(correct=0, predicted=0, support=1).undefined
        ('precision',)
        """
        totals = {"precision": predicted, "recall": support, "f1": predicted + support}
        return cls(
            precision=correct / max(predicted, 1),
            recall=correct / max(support, 1),
            f1=2 * correct / max(predicted + support, 1),
            support=support,
            predicted=predicted,
            correct=correct,
            undefined=tuple(name for name, total in totals.items() if not total),
        )

    def cells(self) -> tuple[Cell, ...]:
        """Percentages and counts for a table; None for what is undefined."""
        values = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        percentages = [None if name in self.undefined else 100 * value for name, value in values.items()]
        return (*percentages, self.support, self.predicted, self.correct)


@dataclass(frozen=True)
class Interval:
    """A percentile interval of micro F1 by the bootstrap.

    Attributes:
        low, high: ends of the interval, as fractions.
        level: share of the resamples between them.
        resamples: number of resamples.
        unit: what was drawn with replacement, `documents` or `groups` of documents.
        units: how many there are.
    """

    low: float
    high: float
    level: float
    resamples: int
    unit: Literal["documents", "groups"]
    units: int


@dataclass(frozen=True)
class Coverage:
    """How much was predicted at all; what was not is scored as O, so abstaining does not improve a score.

    Attributes:
        answered: share of the documents with a prediction, be it empty.
        documents: share of the documents with a predicted entity.
        tokens: share of the tokens in a predicted entity.
        voted_documents: share of the documents in which some source of the predicted corpus votes; None without
            sources.
        voted_tokens: share of the tokens on which some source votes; None without sources.
    """

    answered: float
    documents: float
    tokens: float
    voted_documents: float | None = None
    voted_tokens: float | None = None


@dataclass(frozen=True)
class Scores:
    """The result of `evaluate` or `score_tags`. All shares are fractions; tables and text show percent.

    Attributes:
        micro: all entities together, whatever their type.
        macro: plain mean over the types that occur in the gold; an undefined value counts as 0.0.
        weighted: the same mean weighted by support.
        by_type: each type that occurs in gold or prediction, in alphabetical order.
        interval: of micro F1, or None when there was nothing to draw from or no resample was asked for.
        relaxed: judgements of the schemes `strict`, `exact`, `partial` and `type` (see `Matching`).
        coverage: how much was predicted at all.
        documents, tokens: how many were scored.
        left_out: gold documents without annotation; they are not scored.
        not_in_gold: predicted documents that the gold does not have; they are not scored.
        reading: what the entities were read from.
        signature: how the scores were computed, in one line.
    """

    micro: Score
    macro: Score
    weighted: Score
    by_type: Mapping[str, Score]
    interval: Interval | None
    relaxed: Mapping[str, Matching]
    coverage: Coverage
    documents: int
    tokens: int
    left_out: int
    not_in_gold: int
    reading: Reading
    signature: str

    @property
    def precision(self) -> float:
        """Micro precision."""
        return self.micro.precision

    @property
    def recall(self) -> float:
        """Micro recall."""
        return self.micro.recall

    @property
    def f1(self) -> float:
        """Micro F1."""
        return self.micro.f1

    def __str__(self) -> str:
        """One line: micro F1, its interval, the signature."""
        between = f" ({100 * self.interval.low:.1f}-{100 * self.interval.high:.1f})" if self.interval else ""
        return f"f1 {100 * self.f1:.1f}{between} {self.signature}"

    def table(self) -> Table:
        """Strict scores by type and on average, in percent."""
        averages = {"micro average": self.micro, "macro average": self.macro, "weighted average": self.weighted}
        rows = tuple((name, *score.cells()) for name, score in (*self.by_type.items(), *averages.items()))
        columns = ("type", "precision", "recall", "f1", "support", "predicted", "correct")
        return Table(f"Entity scores (strict matching, read from {self.reading})", columns, rows)

    def relaxed_table(self) -> Table:
        """Scores of the four matching schemes over all types, in percent."""
        counts = ("correct", "incorrect", "partial", "missed", "spurious")
        rows = tuple(
            (name, 100 * m.precision, 100 * m.recall, 100 * m.f1, *(getattr(m, count) for count in counts))
            for name, m in self.relaxed.items()
        )
        return Table("Matching schemes (micro average)", ("scheme", "precision", "recall", "f1", *counts), rows)

    def tables(self) -> tuple[Table, ...]:
        """All tables."""
        return self.table(), self.relaxed_table()

    def notes(self) -> list[str]:
        """Sentences that belong beside the tables: interval, coverage, what was left out, signature."""
        lines = []
        if self.interval:
            low, high, drawn = 100 * self.interval.low, 100 * self.interval.high, self.interval
            lines.append(
                f"{drawn.level:.0%} interval of micro F1: {low:.2f} to {high:.2f} "
                f"({drawn.resamples} resamples of {drawn.units} {drawn.unit})"
            )
        covered = self.coverage
        lines.append(
            f"coverage: {covered.answered:.1%} of {self.documents} documents answered, entities in "
            f"{covered.documents:.1%} of documents and on {covered.tokens:.1%} of tokens"
        )
        if covered.voted_documents is not None and covered.voted_tokens is not None:
            lines.append(
                f"votes: in {covered.voted_documents:.1%} of documents and on {covered.voted_tokens:.1%} of tokens"
            )
        if self.left_out:
            lines.append(f"left out: {self.left_out} gold documents without annotation")
        if self.not_in_gold:
            lines.append(f"left out: {self.not_in_gold} predicted documents that are not in the gold")
        return [*lines, f"signature: {self.signature}"]

    def text(self) -> str:
        """All tables and notes as plain text."""
        return "\n\n".join([*(table.text() for table in self.tables()), "\n".join(self.notes())])

    def to_json(self) -> dict[str, Any]:
        """Everything as a dictionary of plain values, ready for `json.dumps`; nothing in it is NaN."""
        return {
            "signature": self.signature,
            "matching": "strict",
            "reading": self.reading,
            "micro": asdict(self.micro),
            "macro": asdict(self.macro),
            "weighted": asdict(self.weighted),
            "by_type": {name: asdict(score) for name, score in self.by_type.items()},
            "interval": asdict(self.interval) if self.interval else None,
            "relaxed": {
                name: {**asdict(m), "precision": m.precision, "recall": m.recall, "f1": m.f1}
                for name, m in self.relaxed.items()
            },
            "coverage": asdict(self.coverage),
            "documents": self.documents,
            "tokens": self.tokens,
            "left_out": self.left_out,
            "not_in_gold": self.not_in_gold,
        }
