"""The benchmark of training in several processes works and compares like with like."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def test_the_table_and_the_claims_tell_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import distributed

    setups = [distributed.Setup(*way, sentences=4, epochs=1) for way in distributed.WAYS]
    speeds = {"learning": 100.0, "work": 50.0, "reading": 200.0}
    found = [{**speeds, "losses": [2.0, 1.0], "f1": 70.0} for _ in setups]
    found[1] |= {"learning": 180.0, "losses": [2.0, 1.001]}
    found[3] |= {"learning": 150.0, "f1": 69.5}
    claims = {claim.what: claim for claim in distributed.claims(setups, found)}
    assert claims["steps of two processes, beside one"].measured == pytest.approx(1.8)
    assert claims["steps of two processes, beside one"].met
    assert claims["losses of two processes are those of one, relative difference"].measured == pytest.approx(0.001)
    assert claims["learning in bfloat16, beside float32"].measured == pytest.approx(1.5)
    assert claims["F1 lost by bfloat16"].measured == pytest.approx(0.5)
    assert [row[0] for row in distributed.table(setups, found).rows][1] == "2 processes, 1 thread each, float32"
    assert all(claim.measured is not None for claim in claims.values())
    few = distributed.claims(setups[:2], found[:2])
    assert [claim.measured is None for claim in few] == [False, False, True, True, True, True]


def test_two_processes_learn_what_one_does() -> None:
    command = [sys.executable, str(SCRIPTS / "distributed.py"), "--small"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    row = next(line for line in said.splitlines() if line.startswith("2 processes, 1 thread each"))
    assert float(row.split()[-2]) < 1e-3
