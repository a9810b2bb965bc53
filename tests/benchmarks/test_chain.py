"""The benchmark of the chain runs, and tools that are there agree with ours."""

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_it_runs_and_compares_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", ["chain.py", "--small", "--threads", "1", "--tools", "tagweave", "torch-batches"])
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delitem(sys.modules, "chain", raising=False)
    import chain

    chain.main()
    printed = capsys.readouterr().out
    assert "torch-batches" in printed and "9 labels, token-wise transitions, mixed lengths" in printed
    assert "the Triton kernels are left out" in printed or "of a copy" in printed
    wrong = chain.with_tagweave(chain.made_up(400, 3, False), 1)
    with pytest.raises(AssertionError):
        chain.speeds(wrong, chain.made_up(400, 3, False), 1, chain.with_tagweave(chain.made_up(400, 3, True), 1)())
