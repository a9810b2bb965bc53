"""`source_scores`: each source of a corpus against the corpus's gold."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Column, Corpus
from tagweave.evaluation.packed_spans import PackedSpans
from tagweave.evaluation.scores import Score
from tagweave.report import Table


def source_scores(corpus: Corpus) -> dict[str, Score]:
    """Strict micro scores of every source against the corpus's gold entities, the best F1 first.

    Only documents with gold are scored; one on which a source did not run counts as one on which it found nothing. A
    span of a coarse type is correct when one of the types that it stands for is.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"silent": [], "names": [Span(0, 1, "PER")]}
    >>> corpus = Corpus.from_documents([Document("a", ["Ada", "left"], entities=[Span(0, 1, "PER")], sources=votes)])
    >>> {name: score.f1 for name, score in source_scores(corpus).items()}
    {'names': 1.0, 'silent': 0.0}
    """
    scores = {name: score_of(counts) for name, counts in source_counts(corpus).items()}
    return dict(sorted(scores.items(), key=lambda item: -item[1].f1))


def source_counts(corpus: Corpus) -> dict[str, NDArray[np.int64]]:
    """What the scores of every source come from, by type, in the order of the corpus; it adds up over parts.

    A span of a coarse type counts for the type that it is right about, and for the coarse type if it is wrong.

    Returns:
        Correct spans, spans, and gold spans, of shape [3, 1 + types + coarse types]: the numbers of types count from 1.
    """
    count = len(corpus.vocabulary)
    return {
        item.source: np.stack(
            [
                np.bincount(types, minlength=count)
                for types in (item.spans.types[item.correct], item.spans.types, item.gold.types)
            ]
        )
        for item in _compared(corpus)
    }


def score_of(counts: NDArray[np.int64]) -> Score:
    """The score of one type, or of all together, from counts of shape [3] or [3, types]."""
    correct, predicted, support = counts.reshape(3, -1).sum(axis=1)
    return Score.from_counts(int(correct), int(predicted), int(support))


def source_table(corpus: Corpus) -> Table:
    """The scores of the sources as a table in percent, the best F1 first."""
    columns = ("source", "precision", "recall", "f1", "support", "predicted", "correct")
    rows = tuple((name, *score.cells()) for name, score in source_scores(corpus).items())
    return Table("Sources", columns, rows)


@dataclass(frozen=True, eq=False)
class _Compared:
    """The spans of a source on the documents with gold, which of them are correct, and the gold."""

    source: str
    spans: PackedSpans
    correct: NDArray[np.bool_]
    gold: PackedSpans


def _compared(corpus: Corpus) -> Iterator[_Compared]:
    entities = corpus.entities
    ran = np.zeros(len(corpus), bool) if entities is None else entities.ran
    annotated = np.flatnonzero(ran)
    offsets = np.concatenate([[0], np.cumsum(np.diff(corpus.offsets)[annotated])]).astype(np.int64)
    gold = PackedSpans.from_columns(*np.zeros((3, 0), np.int64))
    if entities is not None:
        gold = _spans(entities, annotated, offsets, corpus)
    for name, column in corpus.sources.items():
        spans = _refined(_spans(column, annotated, offsets, corpus), gold, corpus)
        yield _Compared(name, spans, spans.found_in(gold), gold)


def _spans(column: Column, documents: NDArray[np.int64], offsets: NDArray[np.int64], corpus: Corpus) -> PackedSpans:
    found = span_column(column, corpus).subset(documents)
    return PackedSpans.from_annotations(found, offsets, np.arange(len(corpus.vocabulary)))


def span_column(column: Column, corpus: Corpus) -> Annotations:
    """A source's spans with the type numbers of the corpus; those of soft labels are their likeliest entities."""
    if isinstance(column, Annotations):
        return column
    numbers = [corpus.vocabulary.index(name) for name in ("O", *column.types)]
    return column.annotations().with_types(np.array(numbers, np.int16))


def _refined(spans: PackedSpans, gold: PackedSpans, corpus: Corpus) -> PackedSpans:
    """The spans, those of coarse types with the type of a gold span of the same boundaries where they stand for it."""
    types = spans.types.copy()
    for number, members in enumerate(corpus.coarse.values(), start=1 + len(corpus.types)):
        coarse = spans.types == number
        for member in members:
            fine = corpus.vocabulary.index(member)
            as_fine = PackedSpans(spans.starts, spans.ends, np.full(len(spans), fine, np.int64))
            types[coarse & (types == number) & as_fine.found_in(gold)] = fine
    return PackedSpans.from_columns(spans.starts, spans.ends, types)
