"""Spans of different sources that cross: each has tokens that the other lacks, so at most one of them is right.

A model on tokens would glue the two together. Here the loser falls silent before the model sees it; the winner is the
one that `SpanVote` prefers. Spans inside others are left alone: they are votes for the same tokens.
"""

from dataclasses import replace

import numba
import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.label_models.distinct import distinct_rows


def without_crossings(corpus: Corpus) -> Corpus:
    """The corpus without spans that cross a longer one, or an equally long one that more sources have.

    Among the rest the leftmost stays. Votes for O and sources with probabilities are not touched.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"a": [Span(0, 3, "PER"), Span(1, 2, "LOC")], "b": [Span(2, 4, "PER")]}
    >>> corpus = Corpus.from_documents([Document("d", ["w"] * 4, sources=votes)])
    >>> [[span[:2] for span in spans] for spans in without_crossings(corpus)[0].sources.values()]
    [[(0, 3), (1, 2)], []]
    """
    columns = {name: column for name, column in corpus.sources.items() if isinstance(column, Annotations)}
    if not columns:
        return corpus
    places = np.concatenate([_places(column, corpus) for column in columns.values()])
    (starts, lengths), numbers, votes = distinct_rows(places[:, 0], places[:, 1] - places[:, 0])
    order = np.lexsort((starts, -votes, -lengths))
    spans = np.stack([starts, starts + lengths], axis=1)
    kept = _keep(spans[order], int(corpus.offsets[-1]))[np.argsort(order)][numbers]
    sources, done = dict(corpus.sources), 0
    for name, column in columns.items():
        entity = column.type_ids > 0
        mask = ~entity
        mask[entity] = kept[done : done + int(entity.sum())]
        done += int(entity.sum())
        sources[name] = column.where(mask)
    return replace(corpus, sources=sources)


def _places(column: Annotations, corpus: Corpus) -> NDArray[np.int64]:
    """First and last token in the corpus of each span that is no vote for O, of shape [spans, 2]."""
    base = corpus.offsets[column.documents]
    return np.stack([base + column.starts, base + column.ends], axis=1)[column.type_ids > 0]


@numba.njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _keep(spans: NDArray[np.int64], tokens: int) -> NDArray[np.bool_]:
    """Greedy choice of spans, in the given order, none of which cross."""
    furthest_end = np.zeros(tokens + 1, np.int64)
    earliest_start = np.full(tokens + 1, tokens + 1, np.int64)
    kept = np.ones(len(spans), np.bool_)
    for row in range(len(spans)):
        start, end = spans[row]
        for token in range(start + 1, end):
            if furthest_end[token] > end or earliest_start[token] < start:
                kept[row] = False
                break
        if kept[row]:
            furthest_end[start] = max(furthest_end[start], end)
            earliest_start[end] = min(earliest_start[end], start)
    return kept
