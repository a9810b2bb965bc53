import json
from pathlib import Path

import pytest

from tagweave.errors import FormatError, TagweaveWarning, UsageError
from tagweave.evaluation import evaluate_files, score_tags

GOLD = [["B-PER", "I-PER", "O"], ["O", "B-LOC", "I-LOC"]]
PREDICTED = [["B-PER", "I-PER", "O"], ["O", "I-LOC", "I-LOC"]]


def columns(path: Path, tags: list[list[str]]) -> Path:
    path.write_text("\n".join("".join(f"w\t{tag}\n" for tag in sentence) for sentence in tags))
    return path


def records(path: Path, tags: list[list[str]]) -> Path:
    lines = [json.dumps({"id": f"in-{i}", "tokens": ["w"] * len(row), "tags": row}) for i, row in enumerate(tags)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("write", [columns, records])
def test_tags_are_scored_under_both_readings(tmp_path: Path, write: object) -> None:
    assert callable(write)
    (tmp_path / "gold").mkdir()
    suffix = "conll" if write is columns else "jsonl"
    gold, predicted = write(tmp_path / "gold" / f"in.{suffix}", GOLD), write(tmp_path / f"in.{suffix}", PREDICTED)
    with pytest.warns(TagweaveWarning, match="do not begin as the scheme BIO wants, read as conlleval"):
        strict, lenient = evaluate_files(gold, predicted, scheme="BIO")
    for scores, reading in ((strict, "strict"), (lenient, "lenient")):
        assert scores.reading == f"tags:{reading}"
        assert f"|tags:{reading}|" in scores.signature
        assert scores.micro == score_tags(GOLD, PREDICTED, reading).micro  # type: ignore[arg-type]
    assert strict.f1 < lenient.f1


def test_spans_are_scored_once(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(
        '{"id": "a", "tokens": ["w"], "entities": []}\n{"id": "b", "tokens": ["w"], "gold": [[0, 1, "A"]]}\n'
    )
    (scores,) = evaluate_files(path, path)
    assert scores.reading == "spans"
    assert scores.f1 == 1


def test_one_file_of_tags_is_enough(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text('{"id": "in-0", "tokens": ["w", "w"], "entities": [[0, 2, "A"]]}\n')
    strict, lenient = evaluate_files(gold, columns(tmp_path / "in.conll", [["B-A", "I-A"]]))
    assert strict.micro == lenient.micro
    assert strict.f1 == 1


def test_the_scheme_is_found_out(tmp_path: Path) -> None:
    path = columns(tmp_path / "in.conll", [["B-A", "E-A", "O", "B-A"]])
    with pytest.warns(TagweaveWarning):
        path.write_text(path.read_text() + "\n\nw\tI-A\n")
        strict, lenient = evaluate_files(path, path)
    assert strict.micro.support == 1
    assert lenient.micro.support == 3


def test_wrong_schemes_are_named(tmp_path: Path) -> None:
    path = columns(tmp_path / "in.conll", GOLD)
    with pytest.raises(UsageError, match="BIOO"):
        evaluate_files(path, path, scheme="BIOO")
    with pytest.raises(FormatError, match="B-PER"):
        evaluate_files(path, path, scheme="IO")
