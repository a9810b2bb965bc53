"""`evaluate`: joins two corpora by document id and scores the entities of one against those of the other."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tagweave import __version__
from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import AlignmentError, TagweaveWarning
from tagweave.evaluation.matching import relaxed_matching
from tagweave.evaluation.packed_spans import PackedSpans
from tagweave.evaluation.scores import Coverage, Interval, Reading, Score, Scores

LEVEL = 0.95
"""Share of the bootstrap resamples inside an interval."""

_CELLS = 1 << 22
"""Bootstrap counts that are held at once."""


class Procedure(NamedTuple):
    """How scores are computed: what the signature repeats."""

    reading: Reading = "spans"
    bootstrap: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Gold and predicted spans of the same documents.

    Attributes:
        types: names of the type numbers in both.
        offsets: packed tokens, of shape [documents + 1].
        groups: a group number for each document, or None when each is its own.
        left_out: gold documents without annotation.
        not_in_gold: predicted documents that the gold does not have.
    """

    types: tuple[str, ...]
    gold: PackedSpans
    predicted: PackedSpans
    offsets: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None
    left_out: int = 0
    not_in_gold: int = 0


def evaluate(
    gold: Corpus, predicted: Corpus, *, reading: Reading = "spans", bootstrap: int = 1000, seed: int = 0
) -> Scores:
    """Score the entities of one corpus against those of another.

    An entity is correct when boundaries and type are those of a gold entity. Documents are joined by id, in whatever
    order they stand. Doubles of an entity count once. What the prediction leaves open is scored as if it had found
    nothing: a document without prediction costs recall.

    Args:
        gold: documents with gold entities. Documents without annotation (`entities` None, which is not the same as an
            empty list) are left out and counted.
        predicted: the same documents with predicted entities, or with soft labels, whose most probable labels then
            count. Further documents are left out with a warning.
        reading: what the entities were read from; it changes nothing here and is told in the signature.
        bootstrap: resamples for the interval of micro F1; 0 for no interval. Groups of documents are drawn where the
            gold has groups, documents otherwise.
        seed: of the resamples.

    Raises:
        AlignmentError: a document is missing from the prediction, or has another number of tokens there.

    Example:
        >>> from tagweave.corpus import Corpus, Document
        >>> from tagweave.annotations import Span
        >>> tokens = ["Ada", "Lovelace", "left", "Oslo"]
        >>> gold = Corpus.from_documents([Document("a", tokens, entities=[Span(0, 2, "PER"), Span(3, 4, "LOC")])])
        >>> predicted = Corpus.from_documents([Document("a", tokens, entities=[Span(0, 2, "PER")])])
        >>> scores = evaluate(gold, predicted)
        >>> scores.precision, scores.recall
        (1.0, 0.5)
        >>> scores.signature
        'strict|spans|micro|docs:1|types:2|boot:1000,seed:0|v0.1.0'
    """
    annotated = gold.entities if gold.entities is not None else _nothing(gold)
    scored, chosen, extra = _join(gold, annotated, predicted)
    lengths = np.diff(gold.offsets)[scored]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    predicted_entities = _predictions(predicted).subset(chosen)
    types = tuple(sorted({*gold.vocabulary[1:], *predicted.vocabulary[1:]}))
    comparison = Comparison(
        types=types,
        gold=PackedSpans.from_annotations(annotated.subset(scored), offsets, _numbers(gold.vocabulary, types)),
        predicted=PackedSpans.from_annotations(predicted_entities, offsets, _numbers(predicted.vocabulary, types)),
        offsets=offsets,
        groups=None if gold.groups is None else np.unique(gold.group_numbers[scored], return_inverse=True)[1],
        left_out=len(gold) - len(scored),
        not_in_gold=extra,
    )
    voted = _voted(predicted, chosen, offsets)
    coverage = measure_coverage(comparison, predicted_entities.ran, voted)
    return score(comparison, coverage, Procedure(reading, bootstrap, seed))


def _numbers(vocabulary: Sequence[str], types: Sequence[str]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(types)}
    return np.array([-1, *(numbers[name] for name in vocabulary[1:])])


def _nothing(corpus: Corpus) -> Annotations:
    return Annotations.from_lists([None] * len(corpus), corpus.vocabulary)


def _predictions(corpus: Corpus) -> Annotations:
    """The entities of a corpus, or those that its soft labels say."""
    if corpus.entities is not None:
        return corpus.entities
    if corpus.soft_labels is not None:
        return corpus.soft_labels.annotations().with_types(
            np.array([corpus.vocabulary.index(name) for name in ("O", *corpus.soft_labels.types)], np.int16)
        )
    return _nothing(corpus)


def _join(gold: Corpus, annotated: Annotations, predicted: Corpus) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Numbers of the gold documents to score, of the same documents in the prediction, and how many more that has."""
    places = pc.index_in(gold.ids, value_set=predicted.ids)
    extra = len(predicted) - int(pc.count(places).as_py())
    scored = np.flatnonzero(annotated.ran)
    chosen = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64)[scored]
    missing = [gold.id_list[index] for index in scored[chosen < 0]]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise AlignmentError(
            f"no prediction for document {', '.join(map(repr, missing[:3]))}{more}; gold has {len(scored)} annotated "
            f"documents, the prediction {len(predicted)}. Predict every document, with no entities where none are found"
        )
    lengths = np.diff(gold.offsets)[scored], np.diff(predicted.offsets)[chosen]
    for row in np.flatnonzero(lengths[0] != lengths[1])[:1]:
        place = _first_difference(gold[int(scored[row])].tokens, predicted[int(chosen[row])].tokens)
        raise AlignmentError(
            f"document {gold.id_list[scored[row]]!r} has {lengths[0][row]} tokens in the gold, but {lengths[1][row]} "
            f"in the prediction (first difference at {place}). Both must come from the same tokenisation"
        )
    if extra:
        known = pc.is_in(predicted.ids, value_set=gold.ids)
        first = predicted.ids.filter(pc.invert(known))[0].as_py()
        message = f"{extra} predicted documents are not in the gold and are not scored, the first is {first!r}"
        warnings.warn(message, TagweaveWarning, stacklevel=3)
    return scored, chosen, extra


def _first_difference(first: Sequence[str], second: Sequence[str]) -> str:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return f"token {index}: {one!r} and {other!r}"
    return f"token {min(len(first), len(second))}: the end of the shorter one"


def _voted(corpus: Corpus, documents: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """On which packed tokens a source votes, be it for O; None for a corpus without sources."""
    if not corpus.sources:
        return None
    voted = np.zeros(int(offsets[-1]), bool)
    for column in corpus.sources.values():
        if not isinstance(column, Annotations):
            return np.ones_like(voted)
        spans = column.subset(documents)
        base = offsets[spans.documents]
        voted |= PackedSpans(base + spans.starts, base + spans.ends, base).covered(len(voted))
    return voted


def measure_coverage(
    comparison: Comparison, answered: NDArray[np.bool_], voted: NDArray[np.bool_] | None = None
) -> Coverage:
    """How much was predicted, and how much was voted on.

    Args:
        comparison: whose predicted spans are meant.
        answered: which documents have a prediction at all, of shape [documents].
        voted: on which packed tokens some source votes, of shape [tokens].
    """
    offsets, documents = comparison.offsets, max(len(comparison.offsets) - 1, 1)
    tokens = max(int(offsets[-1]), 1)
    in_documents = np.unique(comparison.predicted.documents(offsets))
    coverage = Coverage(
        answered=float(answered.sum()) / documents,
        documents=len(in_documents) / documents,
        tokens=float(comparison.predicted.covered(int(offsets[-1])).sum()) / tokens,
    )
    if voted is None:
        return coverage
    voted_documents = np.unique(np.searchsorted(offsets, np.flatnonzero(voted), side="right"))
    return Coverage(
        coverage.answered,
        coverage.documents,
        coverage.tokens,
        len(voted_documents) / documents,
        float(voted.sum()) / tokens,
    )


def score(comparison: Comparison, coverage: Coverage, procedure: Procedure) -> Scores:
    """All scores of gold and predicted spans."""
    gold, predicted, offsets = comparison.gold, comparison.predicted, comparison.offsets
    found = predicted.found_in(gold)
    counts = [
        np.bincount(types, minlength=len(comparison.types)).tolist()
        for types in (predicted.types[found], predicted.types, gold.types)
    ]
    by_type = {name: Score.from_counts(*row) for name, *row in zip(comparison.types, *counts, strict=True) if any(row)}
    micro = Score.from_counts(*(sum(column) for column in counts))
    documents = len(offsets) - 1
    by_document = np.stack(
        [
            np.bincount(numbers, minlength=documents)
            for numbers in (predicted.documents(offsets)[found], predicted.documents(offsets), gold.documents(offsets))
        ],
        axis=1,
    )
    return Scores(
        micro=micro,
        macro=_average(by_type, micro, weighted=False),
        weighted=_average(by_type, micro, weighted=True),
        by_type=by_type,
        interval=_interval(by_document, comparison.groups, procedure),
        relaxed=relaxed_matching(gold, predicted),
        coverage=coverage,
        documents=documents,
        tokens=int(offsets[-1]),
        left_out=comparison.left_out,
        not_in_gold=comparison.not_in_gold,
        reading=procedure.reading,
        signature=_signature(comparison, procedure),
    )


def _average(by_type: dict[str, Score], micro: Score, *, weighted: bool) -> Score:
    """Mean of the scores of the types that occur in the gold."""
    scores = [score for score in by_type.values() if score.support]
    weights = np.array([score.support if weighted else 1 for score in scores], np.float64)
    values = np.array([(score.precision, score.recall, score.f1) for score in scores]).reshape(-1, 3)
    precision, recall, f1 = (weights @ values / max(weights.sum(), 1)).tolist()
    undefined = () if scores else ("precision", "recall", "f1")
    return Score(precision, recall, f1, micro.support, micro.predicted, micro.correct, undefined)


def _interval(
    by_document: NDArray[np.int64], groups: NDArray[np.int64] | None, procedure: Procedure
) -> Interval | None:
    """Percentile bootstrap of micro F1 from counts (correct, predicted, gold) of shape [documents, 3].

    Units with the same counts are alike, so a resample is one multinomial draw over the distinct counts.
    """
    if procedure.bootstrap < 1 or not len(by_document):
        return None
    units = by_document
    if groups is not None:
        units = np.zeros((int(groups.max()) + 1, 3), np.int64)
        np.add.at(units, groups, by_document)
    distinct, frequencies = np.unique(units, axis=0, return_counts=True)
    generator = np.random.default_rng(procedure.seed)
    f1: list[NDArray[np.float64]] = []
    step = max(_CELLS // len(distinct), 1)
    for first in range(0, procedure.bootstrap, step):
        size = min(step, procedure.bootstrap - first)
        drawn = generator.multinomial(len(units), frequencies / len(units), size=size)
        correct, predicted, support = (drawn @ distinct).T
        f1.append(2 * correct / np.maximum(predicted + support, 1))
    low, high = np.quantile(np.concatenate(f1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Interval(
        low, high, LEVEL, procedure.bootstrap, "documents" if groups is None else "groups", units=len(units)
    )


def _signature(comparison: Comparison, procedure: Procedure) -> str:
    parts = [
        "strict",
        procedure.reading,
        "micro",
        f"docs:{len(comparison.offsets) - 1}",
        f"types:{len(np.unique(comparison.gold.types))}",
        f"boot:{procedure.bootstrap},seed:{procedure.seed}" if procedure.bootstrap > 0 else "boot:0",
    ]
    if comparison.groups is not None:
        parts.append(f"groups:{len(np.unique(comparison.groups))}")
    if comparison.left_out:
        parts.append(f"left-out:{comparison.left_out}")
    return "|".join([*parts, f"v{__version__}"])
