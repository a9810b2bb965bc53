"""The report on what results depend on, for label models on votes and for annotating."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_must_not_make_a_difference_makes_none() -> None:
    ended = subprocess.run(
        [sys.executable, "benchmarks/determinism.py", "--small"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert ended.stdout.count("\n") > 10 and "majority-vote" in ended.stdout
