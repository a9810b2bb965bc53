"""`analyze`: what each source of a corpus is worth, and `Analysis`, the answer as tables, JSON and data frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagweave.analysis.disagreements import Disagreement, disagreements, uncertainty, vote_entropy
from tagweave.analysis.findings import Findings, find
from tagweave.analysis.votes import Pair, Participation, Votes
from tagweave.corpus import Corpus
from tagweave.errors import DataError, MissingExtraError
from tagweave.evaluation import Score, source_scores, source_type_scores, span_column
from tagweave.label_models import LabelModel, create_label_model
from tagweave.report import Cell, Table

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
    corpus: Corpus,
    model: str | LabelModel | None = "hmm",
    *,
    examples: int = 10,
    descriptions: Mapping[str, str] | None = None,
) -> Analysis:
    """What each source of a corpus is worth.

    Args:
        corpus: documents with votes; where they have gold (see `with_gold`), sources are scored against it.
        model: name of a label model to be fitted on the votes, one that is fitted already, or None. Sources are scored
            against what it finds, which needs no gold; it does not look at gold either.
        examples: how many disagreements to give.
        descriptions: a line on some of the sources, by name, shown beside them.

    Raises:
        DataError: the corpus has no source.

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
    votes = Votes.of(corpus)
    predicted = None if model is None else _answer(corpus, model)
    pairs = tuple(votes.pairs())
    gold = source_scores(corpus) if corpus.entities is not None and corpus.entities.ran.any() else None
    inferred = None if predicted is None else source_scores(predicted)
    if predicted is not None and predicted.soft_labels is not None:
        weights = uncertainty(predicted.soft_labels)
    else:
        weights = vote_entropy(votes.labels)
    return Analysis(
        sources=_source_table(corpus, votes.participation(), [gold, inferred], descriptions or {}),
        types=_type_table(corpus, gold is not None, predicted),
        agreement=_agreement_table(votes.sources, pairs),
        pairs=pairs,
        findings=find(corpus, votes, pairs, inferred),
        disagreements=tuple(disagreements(corpus, weights, votes.disputed(), examples)),
    )


def _answer(corpus: Corpus, model: str | LabelModel) -> Corpus:
    """The corpus with the entities that a label model finds."""
    fitted = create_label_model(model).fit(corpus) if isinstance(model, str) else model
    return fitted.predict(corpus)


def _score_cells(score: Score | None) -> tuple[Cell, ...]:
    return (None, None, None) if score is None else score.cells()[:3]


def _source_table(
    corpus: Corpus,
    part: Participation,
    scores: Sequence[dict[str, Score] | None],
    descriptions: Mapping[str, str],
) -> Table:
    known = [(prefix, found) for prefix, found in zip(("", "inferred "), scores, strict=True) if found is not None]
    columns = ("source", "types", "spans", "O votes", "coverage", "overlaps", "conflicts")
    rows = []
    for index, (name, column) in enumerate(corpus.sources.items()):
        spans = span_column(column, corpus)
        voted = sorted({corpus.vocabulary[number] for number in spans.type_ids[spans.type_ids > 0]})
        cells: tuple[Cell, ...] = (name, " ".join(voted), int((spans.type_ids > 0).sum()))
        shares = tuple(100 * float(share[index]) for share in part)
        found = tuple(cell for _, table in known for cell in _score_cells(table[name]))
        told = (descriptions.get(name, ""),) if descriptions else ()
        rows.append((*cells, int((spans.type_ids == 0).sum()), *shares, *found, *told))
    names = tuple(f"{prefix}{name}" for prefix, _ in known for name in _SCORES)
    told = ("description",) if descriptions else ()
    return Table("Sources", (*columns, *names, *told), tuple(rows), decimals=1)


def _type_table(corpus: Corpus, has_gold: bool, predicted: Corpus | None) -> Table:
    scored = [("", source_type_scores(corpus))] if has_gold else []
    scored += [("inferred ", source_type_scores(predicted))] if predicted is not None else []
    rows = []
    for name, column in corpus.sources.items():
        spans = span_column(column, corpus)
        for number, kind in enumerate(corpus.vocabulary[1:], start=1):
            count = int((spans.type_ids == number).sum())
            if count:
                found = (cell for _, scores in scored for cell in _score_cells(scores[name].get(kind)))
                rows.append((name, kind, count, *found))
    names = tuple(f"{prefix}{name}" for prefix, _ in scored for name in _SCORES)
    return Table("Sources by type", ("source", "type", "spans", *names), tuple(rows), decimals=1)


def _agreement_table(sources: tuple[str, ...], pairs: Sequence[Pair]) -> Table:
    shares = {}
    for pair in pairs:
        value = None if pair.agreement is None else 100 * pair.agreement
        shares[pair.first, pair.second] = shares[pair.second, pair.first] = value
    rows = tuple((name, *(shares.get((name, other)) for other in sources)) for name in sources)
    return Table("Agreement where both vote, in percent of tokens", ("", *sources), rows, decimals=0)
