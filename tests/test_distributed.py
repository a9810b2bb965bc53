"""Training in several processes: the run of one, and how it ends when one of them does."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagging_together
import training_together
from tagweave.team import ALONE

HERE = Path(__file__).parent
SCRIPT = str(HERE / "training_together.py")
CASES = ("loops", "resume", "errors", "parcels", "taggers", "commands")


def environment(**changes: str) -> dict[str, str]:
    paths = os.pathsep.join([str(HERE.parent / "src"), str(HERE), os.environ.get("PYTHONPATH", "")])
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, "PYTHONPATH": paths, **quiet, **changes}


def torchrun(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two processes find."""
    folder = tmp_path_factory.mktemp("together")
    tagging_together.prepare(folder)
    with torchrun(SCRIPT, str(folder), *CASES) as started:
        said, _ = started.communicate(timeout=600)
    assert started.returncode == 0, said
    return [json.loads((folder / f"{rank}-of-2.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process finds."""
    folder = tmp_path_factory.mktemp("alone")
    tagging_together.prepare(folder)
    command = [sys.executable, SCRIPT, str(folder), *(case for case in CASES if case != "errors")]
    subprocess.run(command, env=environment(), check=True, timeout=600)
    found: dict[str, Any] = json.loads((folder / "0-of-1.json").read_text())
    return found


@pytest.mark.parametrize("kind", ["plain", "whole"])
def test_two_processes_take_the_steps_of_one(together: list[Any], alone: dict[str, Any], kind: str) -> None:
    one, two = alone["loops"][kind], together[0]["loops"][kind]
    assert len(one["steps"]) == len(two["steps"])
    np.testing.assert_allclose(two["steps"], one["steps"], rtol=1e-5)
    for name, weights in one["weights"].items():
        np.testing.assert_allclose(two["weights"][name], weights, rtol=1e-4, atol=1e-6, err_msg=name)
    assert two["weights"]["unused"] == [1.0] * 4
    assert two["weights"]["frozen"] == [1.0]
    assert two["weights"]["rare"] != [0.0]


def test_all_processes_have_the_same_model_and_a_seed_repeats_it(together: list[Any], alone: dict[str, Any]) -> None:
    assert together[0]["loops"] == together[1]["loops"]
    assert together[0]["loops"]["dropout"] == together[0]["loops"]["again"]
    assert together[0]["loops"]["dropout"] != alone["loops"]["dropout"]
    assert together[0]["loops"]["dropout"] != together[0]["loops"]["plain"]


def test_a_run_goes_on_from_the_state_of_the_first_process(together: list[Any], alone: dict[str, Any]) -> None:
    first, second = (found["resume"] for found in together)
    assert first["there"] and not second["there"]
    assert first["notes"] == second["notes"] == {"note": 1}
    unbroken = [step[0] for step in together[0]["loops"]["plain"]["steps"]]
    assert first["losses"] == second["losses"] == unbroken[5:]
    np.testing.assert_allclose(first["losses"], alone["resume"]["losses"], rtol=1e-5)


def test_an_error_of_one_is_raised_in_all(together: list[Any]) -> None:
    first, second = (found["errors"] for found in together)
    assert "TrainingError: the loss is nan in epoch 1" in first["poison"]
    assert first["differ"].startswith("UsageError: process 1 of 2 has other settings than process 0")
    assert first["refuse"] == "TagweaveError: the first cannot"
    assert {name: first[name] for name in ("poison", "differ", "refuse")} == {
        name: second[name] for name in ("poison", "differ", "refuse")
    }
    said = [found["errors"]["said"] for found in together]
    assert sorted([said[0][0], said[1][0]]) == [False, True]
    assert [row[1:] for row in said] == [[False, True]] * 2


def test_what_processes_give_each_other(together: list[Any], alone: dict[str, Any]) -> None:
    sent = [[{"rank": 0, "text": "é"}, [0, 1]], [{"rank": 1, "text": "é"}, [0, 1, 2]]]
    for rank, found in enumerate(row["parcels"] for row in together):
        assert found["all"] == sent
        assert found["first"] == sent[0][0]
        assert found["files"] == ["deep/file", "empty"]
        assert found["part"] == [[0, 3], [3, 4]][rank]
    assert alone["parcels"]["all"] == sent[:1]
    assert alone["parcels"]["part"] == [0, 4]


@pytest.mark.parametrize("kind", tagging_together.SETTINGS)
def test_taggers_learn_the_same_together(together: list[Any], alone: dict[str, Any], kind: str) -> None:
    one, two = alone["taggers"][kind], together[0]["taggers"][kind]
    assert two == together[1]["taggers"][kind]
    assert [row[0] for row in two["history"]] == pytest.approx([row[0] for row in one["history"]], rel=1e-3)
    assert [row[1] for row in two["history"]] == pytest.approx([row[1] for row in one["history"]], abs=0.03)
    assert np.abs(np.array(two["said"]) - np.array(one["said"])).max() < 3e-3


@pytest.mark.parametrize("command", ["train", "alternate"])
def test_commands_work_together(together: list[Any], alone: dict[str, Any], command: str) -> None:
    first, second = (found["commands"][command] for found in together)
    assert first["code"] == second["code"] == 0
    assert "in 2 processes" in first["err"]
    assert "epoch 1: loss" in first["err"]
    assert "epoch" not in second["err"]
    assert [found["commands"]["files"] for found in together] == [["run", "tagger"], []]


def test_errors_of_commands_are_said_once(together: list[Any], alone: dict[str, Any]) -> None:
    for name, code in {"again": 1, "wrong": 2, "predict": 2}.items():
        ends = [found["commands"][name] for found in together]
        assert [end["code"] for end in ends] == [code] * 2
        assert sum(end["err"].count("error:") for end in ends) == 1
    assert "only train and alternate do" in " ".join(end["err"] for end in ends)
    assert together[0]["commands"]["resumed"]["code"] == 0
    assert alone["commands"]["predict"]["code"] == 0


def start_pair(folder: Path, case: str) -> list["subprocess.Popen[str]"]:
    """Two processes that nobody watches."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = [sys.executable, SCRIPT, str(folder), case]
    return [
        subprocess.Popen(command, env=environment(**shared, RANK=str(rank)), stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]


@pytest.mark.parametrize("case", ["killed", "stopped"])
def test_the_others_end_with_one_that_ends_or_hangs(tmp_path: Path, case: str) -> None:
    first, second = start_pair(tmp_path, case)
    try:
        _, said = first.communicate(timeout=120)
    finally:
        second.kill()
        second.communicate()
    assert first.returncode == 1
    assert "TrainingError: process 0 of 2 has lost the others" in said


def test_ctrl_c_ends_all(tmp_path: Path) -> None:
    started = torchrun(SCRIPT, str(tmp_path), "forever")
    pids = []
    try:
        deadline = time.monotonic() + 120
        while len(pids) < 2 and time.monotonic() < deadline and started.poll() is None:
            time.sleep(0.05)
            pids = [int(path.read_text() or 0) for path in tmp_path.glob("pid-*")]
        os.kill(started.pid, signal.SIGINT)
        said, _ = started.communicate(timeout=60)
    finally:
        started.kill()
    assert len(pids) == 2
    assert started.returncode != 0
    assert "KeyboardInterrupt" in said
    assert all(not Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_process_alone_needs_nobody() -> None:
    assert (ALONE.rank, ALONE.size, ALONE.first, ALONE.joined) == (0, 1, True, False)
    assert ALONE.says("anything") and ALONE.says("anything")
    ALONE.wait()


def test_shares_of_the_cases_are_unequal_or_empty() -> None:
    """The cases would prove little if processes had as much to do."""
    drawn = [batch for epoch in range(4) for batch in training_together.batches(epoch)]
    words = [[sum(training_together.WORDS[d] for d in batch[rank::2]) for rank in range(2)] for batch in drawn]
    assert sum(first != second for first, second in words) > len(words) / 2
    assert sum(second == 0 for _, second in words) == 4
