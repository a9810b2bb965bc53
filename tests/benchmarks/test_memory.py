"""The benchmark of memory, on a few sentences."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_sentences_are_the_same_for_one_seed_and_as_long_as_they_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import memory

    for name in ("a", "b"):
        memory.write_sentences(tmp_path / name, 500)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    records = [json.loads(line) for line in (tmp_path / "a").read_text(encoding="utf-8").splitlines()]
    assert len({record["id"] for record in records}) == 500
    assert 14 < sum(len(record["tokens"]) for record in records) / 500 < 16
    assert any(word.istitle() for word in records[0]["tokens"] + records[1]["tokens"] + records[2]["tokens"])


def test_every_command_is_measured_and_hardly_grows() -> None:
    command = [sys.executable, str(SCRIPTS / "memory.py"), "--small"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    rows = {
        line.split()[0]: line.split() for line in done.stdout.split("Peak memory by sentences")[1].splitlines() if line
    }
    for name in ("annotate", "aggregate"):
        few, many, grows = map(float, rows[name][1:4])
        assert few > 20
        assert grows == pytest.approx(100 * (many / few - 1), abs=2)
        assert grows < 50
