"""`evaluate_files`: scores of a file of predictions against a file of gold, tags under both of their readings."""

import warnings
from pathlib import Path
from typing import Any

from tagweave.corpus import Corpus
from tagweave.errors import TagweaveWarning
from tagweave.evaluation.scores import Scores
from tagweave.evaluation.scoring import evaluate
from tagweave.evaluation.tag_scores import READINGS
from tagweave.formats import format_of, read
from tagweave.formats.streams import STANDARD
from tagweave.formats.tags import scheme_named
from tagweave.labels import Decoding

AnyPath = str | Path


def evaluate_files(
    gold: AnyPath, predicted: AnyPath, *, scheme: str | None = None, bootstrap: int = 1000, seed: int = 0
) -> tuple[Scores, ...]:
    """Score a file of predictions.

    Spans can be read in one way only. Tags can be read strictly or leniently (see `score_tags`), and published scores
    are of both kinds, so files of tags are scored twice. Standard input is read once, and its tags leniently.

    Args:
        gold, predicted: files of any format that `tagweave.read` reads.
        scheme: of the tags; None finds it out for each file. Spans have none.
        bootstrap: resamples for the interval of micro F1; 0 for no interval.
        seed: of the resamples.

    Returns:
        One result for spans; the strict and the lenient one where one of the files holds tags.

    Raises:
        UsageError, DataError: a file cannot be read, or they do not fit each other.
    """
    if scheme is not None:
        scheme = scheme_named(scheme)
    paths = (gold, predicted)
    tagged = [str(path) != STANDARD and format_of(path).holds_tags(path) for path in paths]
    if not any(tagged):
        return (evaluate(read(gold), read(predicted), bootstrap=bootstrap, seed=seed),)
    lenient = [_read(path, "lenient", scheme if holds else None) for path, holds in zip(paths, tagged, strict=True)]
    strict = list(lenient)
    for index, path in enumerate(paths):
        if tagged[index]:
            with warnings.catch_warnings():  # they were given for the lenient reading
                warnings.simplefilter("ignore", TagweaveWarning)
                strict[index] = _read(path, "strict", scheme)
    results = [evaluate(*strict, reading=READINGS["strict"], bootstrap=bootstrap, seed=seed)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TagweaveWarning)
        results.append(evaluate(*lenient, reading=READINGS["lenient"], bootstrap=bootstrap, seed=seed))
    return tuple(results)


def _read(path: AnyPath, mode: Decoding, scheme: str | None) -> Corpus:
    options: dict[str, Any] = {} if mode == "lenient" else {"mode": mode}
    if scheme is not None:
        options["scheme"] = scheme
    return read(path, **options)
