"""The benchmarks of the encoder and of the stages of alternate training, on little text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def said(script: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPTS / script), "--small"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str, title: str) -> list[list[str]]:
    """The rows of the table below a title, without its head."""
    lines = text.partition(title)[2].split("\n\n")[0].splitlines()
    found = [line.split() for line in lines if line.strip()]
    rule = next(number for number, words in enumerate(found) if set(words[0]) == {"-"})
    return found[rule + 1 :]


def test_shares_of_computed_pieces_add_up_and_forms_of_a_tagger_agree() -> None:
    text = said("encoder.py")
    for row in rows(text, "Of the pieces that are computed, %"):
        assert sum(map(float, row[2:])) == pytest.approx(100, abs=0.5)
    forms = rows(text, "One tagger in several forms")
    assert [row[0] for row in forms] == ["torch,", "torch,", "ONNX", "ONNX"]
    assert float(forms[2][-4]) < 1e-4  # the largest difference of a probability is that of float32
    assert "prediction, bfloat16" in text


def test_what_is_kept_changes_no_score() -> None:
    text = said("stages.py")
    first, second = rows(text, "F1 on dev, and most memory")
    assert first[2:-1] == second[1:-1]
    assert {row[0] for row in rows(text, "Processor seconds by stage")} >= {"loading", "training", "predicting", "all"}
