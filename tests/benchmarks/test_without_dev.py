"""The benchmark of CHMM without dev runs, and its crowds make the mistakes that they are said to make."""

import sys
from pathlib import Path

import pytest

from tagweave.demo.corpus import read_demo
from tagweave.evaluation import source_scores

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["without_dev.py", "--small"])
    import without_dev

    without_dev.main()
    name, apart, together = capsys.readouterr().out.splitlines()[-1].rsplit(maxsplit=2)
    assert name == "crowd of 3"
    assert float(together) > float(apart) > 50
    case = without_dev.crowd(read_demo("dev"), 3)
    assert case.fit.entities is None
    assert all(0.4 < score.recall < 0.6 for score in source_scores(case.dev).values())
