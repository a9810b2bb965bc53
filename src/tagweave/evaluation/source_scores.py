"""`source_scores`: each source of a corpus against the corpus's gold."""

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
    entities = corpus.entities
    ran = np.zeros(len(corpus), bool) if entities is None else entities.ran
    annotated = np.flatnonzero(ran)
    offsets = np.concatenate([[0], np.cumsum(np.diff(corpus.offsets)[annotated])]).astype(np.int64)
    gold = _spans(entities, annotated, offsets, corpus) if entities is not None else None
    scores = {}
    for name, column in corpus.sources.items():
        if gold is None:
            scores[name] = Score.from_counts(0, 0, 0)
            continue
        spans = _spans(column, annotated, offsets, corpus)
        correct = _refined(spans, gold, corpus).found_in(gold)
        scores[name] = Score.from_counts(int(correct.sum()), len(spans), len(gold))
    return dict(sorted(scores.items(), key=lambda item: -item[1].f1))


def source_table(corpus: Corpus) -> Table:
    """The scores of the sources as a table in percent, the best F1 first."""
    columns = ("source", "precision", "recall", "f1", "support", "predicted", "correct")
    rows = tuple((name, *score.cells()) for name, score in source_scores(corpus).items())
    return Table("Sources", columns, rows)


def _spans(column: Column, documents: NDArray[np.int64], offsets: NDArray[np.int64], corpus: Corpus) -> PackedSpans:
    if not isinstance(column, Annotations):
        numbers = [corpus.vocabulary.index(name) for name in ("O", *column.types)]
        column = column.annotations().with_types(np.array(numbers, np.int16))
    return PackedSpans.from_annotations(column.subset(documents), offsets, np.arange(len(corpus.vocabulary)))


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
