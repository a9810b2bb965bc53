"""The short version of `make torture`: a few of each torture of the commands that are quick."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="commands are forked")
def test_what_is_killed_damaged_or_rivalled_comes_to_the_same_result() -> None:
    quick = ("--command", "aggregate, hmm", "--command", "label model", "--command", "annotate, 1 process")
    ended = subprocess.run(
        [sys.executable, "benchmarks/torture.py", "--small", "--only", "kill,stop,rival,damage", *quick],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    lines = [line for line in ended.stdout.splitlines() if line.startswith(("killed", "told", "two at", "damaged"))]
    assert len(lines) == 7
    assert "FAULT" not in ended.stderr
