"""The benchmark of the conditional HMM runs, and what it times side by side computes the same."""

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_it_runs_and_the_step_as_people_write_it_has_our_loss_and_gradient(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["chmm.py", "--small", "--threads", "1"])
    import chmm

    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    checked = []
    check = chmm.check
    monkeypatch.setattr(chmm, "check", lambda *given: checked.append(check(*given)))
    chmm.main()
    assert len(checked) == 4
    assert "tagweave, same model, published" in capsys.readouterr().out
