"""Adapters of the cases about scores."""

import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagweave
from cases.harness import Check, check
from tagweave.evaluation import Scores, relaxed_matching
from tagweave.evaluation.packed_spans import PackedSpans


def pair_scores(path: Path, mode: str) -> Scores:
    """Scores of a file of records with gold and predicted tags."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    gold, predicted = ([record[side] for record in records] for side in ("gold", "predicted"))
    return tagweave.score_tags(gold, predicted, mode)  # type: ignore[arg-type]


def assert_averages(scores: Scores, expected: dict[str, Any]) -> None:
    """Compare each named average, and each type, with precision, recall, F1 and support."""
    named = {"micro": scores.micro, "macro": scores.macro, "weighted": scores.weighted, **scores.by_type}
    for name, values in expected.items():
        score = named[name]
        assert [score.precision, score.recall, score.f1, score.support] == pytest.approx(values), name


@check("tag_scores")
def tag_scores(item: Check) -> None:
    assert_averages(pair_scores(item.path, item.expected["mode"]), item.expected["value"])


@check("scores_say_their_mode")
def scores_say_their_mode(item: Check) -> None:
    for mode in item.expected["modes"]:
        scores = pair_scores(item.path, mode)
        assert f"tags:{mode}" in scores.text()
        assert f"tags:{mode}" in scores.signature
        assert scores.to_json()["reading"] == f"tags:{mode}"


@check("scores_are_json")
def scores_are_json(item: Check) -> None:
    scores = pair_scores(item.path, "strict").to_json()
    parsed = json.loads(json.dumps(scores, allow_nan=False))
    assert parsed["micro"]["undefined"] == item.expected["undefined"]
    assert parsed["micro"]["f1"] == 0.0


@check("corpus_scores", all_files=True)
def corpus_scores(item: Check) -> None:
    gold, predicted = (tagweave.read(path) for path in ordered(item))
    assert_averages(tagweave.evaluate(gold, predicted), item.expected["value"])


@check("corpus_scores_error", all_files=True)
def corpus_scores_error(item: Check) -> None:
    gold, predicted = (tagweave.read(path) for path in ordered(item))
    with pytest.raises(tagweave.AlignmentError) as error:
        tagweave.evaluate(gold, predicted)
    for word in item.expected["mentions"]:
        assert re.search(rf"\b{word}\b", str(error.value)), error.value


def ordered(item: Check) -> list[Path]:
    """The input files in the order in which the check names them."""
    return sorted(item.paths, key=lambda path: item.expected["files"].index(path.name))


@check("relaxed_counts", all_files=True)
def relaxed_counts(item: Check) -> None:
    for path in item.paths:
        sides = json.loads(path.read_text(encoding="utf-8"))
        names = sorted({name for rows in sides.values() for _, _, name in rows})
        gold, predicted = (
            PackedSpans.from_columns(*np.array([(a, b, names.index(name)) for a, b, name in sides[side]]).T)
            for side in ("gold", "predicted")
        )
        found = {scheme: asdict(matching) for scheme, matching in relaxed_matching(gold, predicted).items()}
        assert found == item.expected["value"], path.name


@check("majority_vote_scores")
def majority_vote_scores(item: Check) -> None:
    corpus = tagweave.read(item.path)
    with pytest.warns(tagweave.TagweaveWarning, match=item.expected["warns"]):
        model = tagweave.MajorityVote().fit(corpus.with_entities(None))
    scores = tagweave.evaluate(corpus, model.predict(corpus.with_entities(None)))
    assert_averages(scores, item.expected["value"])
    coverage = asdict(scores.coverage)
    assert {name: coverage[name] for name in item.expected["coverage"]} == pytest.approx(item.expected["coverage"])
    assert "coverage:" in scores.text()


@check("scored_in_time")
def scored_in_time(item: Check) -> None:
    sentence = ["B-PER", "I-PER", "O", "I-LOC", "O", "B-LOC", "O", "O", "O", "O"]
    tags = [sentence] * (item.expected["words"] // len(sentence))
    for mode in item.expected["modes"]:
        start = time.process_time()
        scores = tagweave.score_tags(tags, tags, mode)
        assert time.process_time() - start < item.expected["seconds"]
        assert (scores.tokens, scores.f1) == (item.expected["words"], 1.0)
