"""The benchmark of votes runs; without skweak its rows have no number."""

import sys
from pathlib import Path

import pytest

from tagweave.annotations import Annotations

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_it_runs_without_skweak(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["voting.py", "--small"])
    import voting

    voting.main()
    printed = capsys.readouterr().out
    assert "skweak 0.3.3, not run" in printed
    assert "HMM, expected counts and new matrices" in printed
    corpus = voting.made_up(200)
    predicted = voting.hmm(corpus).predict(corpus)
    assert isinstance(corpus.sources["s0"], Annotations) and predicted.entities is not None
    assert len(predicted.entities) > 0.8 * (len(corpus.sources["s0"]) / 0.7)
