"""`analyze`: what each source of a corpus is worth, and `Analysis`, the answer as tables, JSON and data frames."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagweave.analysis.disagreements import Disagreement, disagreements, uncertainty, vote_entropy, worst
from tagweave.analysis.findings import Findings, find
from tagweave.analysis.votes import Counts, Pair, Votes
from tagweave.corpus import Corpus
from tagweave.errors import DataError, MissingExtraError
from tagweave.evaluation import score_of, source_counts
from tagweave.label_models import LabelModel, create_label_model
from tagweave.report import Cell, Table
from tagweave.stored import StoredCorpus, parts_of

_SCORES = ("precision", "recall", "f1")

_WIDEST = 12
"""The most sources for which a matrix fits on a terminal."""


@dataclass(frozen=True)
class Analysis:
    """What `analyze` found.

    Attributes:
        sources: one row a source: types, spans, votes for O, coverage, overlaps, conflicts (percent of tokens), and
            where they are known precision, recall and F1 against gold, and against a label model's answer
            (`inferred ...`), all in percent.
        types: one row a source and type: spans and scores.
        agreement: of the tokens on which two sources vote, the percentage on which they agree.
        pairs: every two sources, with agreement and overlap.
        findings: sources that are redundant, silent or harmful, and why.
        disagreements: places where sources contradict each other and the answer is least certain.
    """

    sources: Table
    types: Table
    agreement: Table
    pairs: tuple[Pair, ...]
    findings: Findings
    disagreements: tuple[Disagreement, ...]

    def text(self) -> str:
        """Everything for a terminal."""
        types = self.types.text() if len({row[1] for row in self.types.rows}) > 1 else ""
        parts = [self.sources.text(), types, self._agreement_text(), self.findings.text()]
        if self.disagreements:
            shown = "\n".join(place.show() for place in self.disagreements)
            parts.append(f"Where sources disagree and the answer is least certain\n{shown}")
        return "\n\n".join(part for part in parts if part)

    def _agreement_text(self) -> str:
        """The matrix, or for more sources than fit on a line the pairs that agree least."""
        if len(self.agreement.rows) <= _WIDEST:
            return self.agreement.text()
        known = sorted((100 * pair.agreement, *pair[:2]) for pair in self.pairs if pair.agreement is not None)
        rows = tuple((first, second, share) for share, first, second in known[:_WIDEST])
        title = "Pairs that agree least where both vote, in percent of tokens (all pairs: --json)"
        return Table(title, ("source", "source", "agreement"), rows, decimals=0).text()

    def to_json(self) -> dict[str, Any]:
        """Everything as values that JSON can hold."""
        return {
            "sources": self.sources.records(),
            "types": self.types.records(),
            "pairs": [pair._asdict() for pair in self.pairs],
            "findings": self.findings.to_json(),
            "disagreements": [place._asdict() for place in self.disagreements],
        }

    def frame(self, table: str = "sources") -> Any:  # noqa: ANN401
        """One of the tables `sources`, `types` and `agreement` as a pandas data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("data frames need pandas, which is not installed: pip install pandas") from None
        chosen: Table = getattr(self, table)
        return pandas.DataFrame(chosen.records(), columns=list(chosen.columns))


def analyze(
    corpus: Corpus | StoredCorpus,
    model: str | LabelModel | None = "hmm",
    *,
    examples: int = 10,
    descriptions: Mapping[str, str] | None = None,
) -> Analysis:
    """What each source of a corpus is worth.

    Args:
        corpus: documents with votes; where they have gold (see `with_gold`), sources are scored against it. Of one that
            lies on disk a part is in memory at a time, and what is found is the same.
        model: name of a label model to be fitted on the votes, one that is fitted already, or None. Sources are scored
            against what it finds, which needs no gold; it does not look at gold either.
        examples: how many disagreements to give.
        descriptions: a line on some of the sources, by name, shown beside them.

    Raises:
        DataError: the corpus has no source, or a group that the model takes as a whole is cut into parts.
        UsageError: the corpus has several parts, and what the model learns does not add up over parts.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"names": [Span(0, 2, "PER")], "words": [Span(0, 1, "PER")], "copy": [Span(0, 2, "PER")]}
    >>> corpus = Corpus.from_documents([Document("d", ["Ada", "Byron", "wrote", "."], sources=votes)])
    >>> found = analyze(corpus, None)
    >>> print(found.sources.text())
    Sources
    source  types  spans  O votes  coverage  overlaps  conflicts
    ------  -----  -----  -------  --------  --------  ---------
    names   PER        1        0      50.0      50.0        0.0
    words   PER        1        0      25.0      25.0        0.0
    copy    PER        1        0      50.0      50.0        0.0
    >>> print(found.findings.text())
    Findings
    - names and copy mark the same spans: they count twice. Leave one out.
    """
    if not corpus.sources:
        raise DataError("the corpus has no source, so there is nothing to analyse")
    fitted = create_label_model(model).fit(corpus) if isinstance(model, str) else model
    if fitted is not None and not isinstance(corpus, Corpus):
        fitted.check_groups(corpus)
    seen = [_Seen.of(part, fitted, examples) for part in parts_of(corpus)]
    found = seen[0].joined(seen[1:], examples)
    counts, pairs = found.counts, tuple(found.counts.pairs())
    kinds = (("", found.gold), ("inferred ", found.inferred))
    scored = [(prefix, scores) for prefix, scores in kinds if scores is not None]
    return Analysis(
        sources=_source_table(found, scored, descriptions or {}),
        types=_type_table(found, scored),
        agreement=_agreement_table(counts.sources, pairs),
        pairs=pairs,
        findings=find(corpus, counts, pairs, found.gold is not None, found.inferred),
        disagreements=found.places,
    )


_Scored = dict[str, NDArray[np.int64]]
"""Counts of correct spans, spans, and gold spans by source and type, see `tagweave.evaluation.source_counts`."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is seen in a part of a corpus, or in several.

    Attributes:
        vocabulary: names of the numbers of types.
        counts: of votes and agreements.
        gold: counts of the sources against gold, or None.
        inferred: counts of the sources against what the label model finds, or None.
        places: the least certain ones on which sources disagree.
    """

    vocabulary: tuple[str, ...]
    counts: Counts
    gold: _Scored | None
    inferred: _Scored | None
    places: tuple[Disagreement, ...]

    @classmethod
    def of(cls, part: Corpus, model: LabelModel | None, examples: int) -> "_Seen":
        """What is seen in one part."""
        predicted = None if model is None else model.predict(part)
        if predicted is not None:
            part = part.with_types(predicted.types)  # the model may know more of them
        votes = Votes.of(part)
        if predicted is not None and predicted.soft_labels is not None:
            weights = uncertainty(predicted.soft_labels)
        else:
            weights = vote_entropy(votes.labels)
        has_gold = part.entities is not None and bool(part.entities.ran.any())
        return cls(
            part.vocabulary,
            votes.counts(),
            source_counts(part) if has_gold else None,
            None if predicted is None else source_counts(predicted),
            tuple(disagreements(part, weights, votes.disputed(), examples)),
        )

    def joined(self, others: Sequence["_Seen"], examples: int) -> "_Seen":
        """With what is seen in the parts that follow."""
        every = [self, *others]
        return _Seen(
            self.vocabulary,
            sum((other.counts for other in others), self.counts),
            _added(seen.gold for seen in every),
            _added(seen.inferred for seen in every),
            tuple(worst((place for seen in every for place in seen.places), examples)),
        )


def _added(tables: Iterable[_Scored | None]) -> _Scored | None:
    known = [table for table in tables if table is not None]
    return {name: np.sum([table[name] for table in known], axis=0) for name in known[0]} if known else None


def _source_table(found: _Seen, scored: Sequence[tuple[str, _Scored]], descriptions: Mapping[str, str]) -> Table:
    columns = ("source", "types", "spans", "O votes", "coverage", "overlaps", "conflicts")
    part = found.counts.participation()
    rows = []
    for index, (name, types) in enumerate(zip(found.counts.sources, found.counts.types, strict=True)):
        voted = sorted(found.vocabulary[number] for number in range(1, len(types)) if types[number])
        shares = tuple(100 * float(share[index]) for share in part)
        scores = tuple(cell for _, table in scored for cell in score_of(table[name]).cells()[:3])
        told = (descriptions.get(name, ""),) if descriptions else ()
        cells: tuple[Cell, ...] = (name, " ".join(voted), int(types[1:].sum()), int(types[0]))
        rows.append((*cells, *shares, *scores, *told))
    names = tuple(f"{prefix}{name}" for prefix, _ in scored for name in _SCORES)
    told = ("description",) if descriptions else ()
    return Table("Sources", (*columns, *names, *told), tuple(rows), decimals=1)


def _type_table(found: _Seen, scored: Sequence[tuple[str, _Scored]]) -> Table:
    rows = []
    for name, types in zip(found.counts.sources, found.counts.types, strict=True):
        for number, kind in enumerate(found.vocabulary[1:], start=1):
            if types[number]:
                scores = (cell for _, table in scored for cell in _type_cells(table[name][:, number]))
                rows.append((name, kind, int(types[number]), *scores))
    names = tuple(f"{prefix}{name}" for prefix, _ in scored for name in _SCORES)
    return Table("Sources by type", ("source", "type", "spans", *names), tuple(rows), decimals=1)


def _type_cells(counts: NDArray[np.int64]) -> tuple[Cell, ...]:
    """The scores of a type; none where none of its spans is on a document with gold."""
    return score_of(counts).cells()[:3] if counts[1] else (None, None, None)


def _agreement_table(sources: tuple[str, ...], pairs: Sequence[Pair]) -> Table:
    shares = {}
    for pair in pairs:
        value = None if pair.agreement is None else 100 * pair.agreement
        shares[pair.first, pair.second] = shares[pair.second, pair.first] = value
    rows = tuple((name, *(shares.get((name, other)) for other in sources)) for name in sources)
    return Table("Agreement where both vote, in percent of tokens", ("", *sources), rows, decimals=0)
