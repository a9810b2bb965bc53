"""`score_tags`: scores of tag sequences, read under named rules."""

from collections.abc import Sequence

import numpy as np

from tagweave.errors import AlignmentError, unknown_name
from tagweave.evaluation.packed_spans import PackedSpans
from tagweave.evaluation.scores import Reading, Scores
from tagweave.evaluation.scoring import Comparison, Procedure, measure_coverage, score
from tagweave.formats.tags import Scheme, parse_tag, spans_from_parsed
from tagweave.labels import Decoding

Tags = Sequence[Sequence[str]]
"""For each sentence, a tag for each token."""

READINGS: dict[Decoding, Reading] = {"strict": "tags:strict", "lenient": "tags:lenient"}
"""What scores say about themselves, by how the tags were read."""


def score_tags(
    gold: Tags,
    predicted: Tags,
    mode: Decoding = "strict",
    *,
    scheme: Scheme = "BIO",
    bootstrap: int = 1000,
    seed: int = 0,
) -> Scores:
    """Score predicted tag sequences against gold ones, sentence by sentence.

    Args:
        gold, predicted: for each sentence, the tags of its tokens.
        mode: how tags are read, on both sides. `lenient` are the rules of conlleval: an entity begins at a B, and at an
            I that does not go on with an entity of its type. With `strict` what does not begin as the scheme demands is
            no entity.
        scheme: of the tags on both sides (see `tagweave.formats.tags`).
        bootstrap: resamples of sentences for the interval of micro F1; 0 for no interval.
        seed: of the resamples.

    Raises:
        AlignmentError: the numbers of sentences differ, or the numbers of tags of a sentence.
        LabelError: a tag does not belong to the scheme.

    Example:
        >>> gold, predicted = [["B-LOC", "I-LOC", "O"]], [["I-LOC", "I-LOC", "O"]]
        >>> score_tags(gold, predicted, "lenient").f1, score_tags(gold, predicted, "strict").f1
        (1.0, 0.0)
    """
    if mode not in READINGS:
        raise unknown_name("reading of tags", mode, READINGS)
    lengths = _lengths(gold, predicted)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    parsed = {tag: parse_tag(tag, scheme) for tag in sorted(set().union(*gold, *predicted))}
    types = tuple(sorted({name for _, name in parsed.values() if name}))
    numbers = {name: number for number, name in enumerate(types)}

    def read(side: Tags) -> PackedSpans:
        rows = [
            (first + span.start, first + span.end, numbers[span.type])
            for first, tags in zip(offsets.tolist(), side, strict=False)
            for span in spans_from_parsed([parsed[tag] for tag in tags], scheme, mode)
        ]
        return PackedSpans.from_columns(*np.array(rows, np.int64).reshape(-1, 3).T)

    comparison = Comparison(types, read(gold), read(predicted), offsets)
    coverage = measure_coverage(comparison, np.ones(len(lengths), bool))
    return score(comparison, coverage, Procedure(READINGS[mode], bootstrap, seed))


def _lengths(gold: Tags, predicted: Tags) -> list[int]:
    if len(gold) != len(predicted):
        raise AlignmentError(f"{len(gold)} gold tag sequences, but {len(predicted)} predicted ones")
    lengths = [len(tags) for tags in gold]
    for index, (length, tags) in enumerate(zip(lengths, predicted, strict=True)):
        if length != len(tags):
            raise AlignmentError(f"sequence {index} has {length} gold tags, but {len(tags)} predicted ones")
    return lengths
