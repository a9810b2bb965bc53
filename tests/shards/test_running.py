"""`map_shards` with processes of this machine: what is kept, what is made anew, and what stops it."""

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shards.shard_functions import Logged, silent, slowly_fatal, squares, upper
from tagweave import progress
from tagweave.errors import ShardError, StorageError, UsageError
from tagweave.shards import Manifest, map_shards


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "in").mkdir()
    paths = [tmp_path / "in" / f"{name}.txt" for name in "abcd"]
    for path in paths:
        path.write_text(f"{path.stem} words\n")
    return paths


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def noted(log: Path) -> list[str]:
    lines = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return sorted(lines)


def test_one_output_a_shard_whatever_the_number_of_processes(files: list[Path], tmp_path: Path) -> None:
    one = map_shards(upper, files, tmp_path / "one")
    two = map_shards(upper, [str(path) for path in files], tmp_path / "two", processes=2)
    assert [path.read_text() for path in one.paths] == ["A WORDS\n", "B WORDS\n", "C WORDS\n", "D WORDS\n"]
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert one.entries == two.entries == Manifest.read(tmp_path / "one").entries


def test_descriptions_are_shards_too(tmp_path: Path) -> None:
    made = map_shards(squares, [{"number": 3}, {"number": 4}], tmp_path / "out")
    assert [path.read_text() for path in made.paths] == ["9", "16"]
    assert list(made.entries) == ["shard-00000.jsonl", "shard-00001.jsonl"]


def test_only_what_is_not_valid_is_made_anew(files: list[Path], tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    run = functools.partial(map_shards, Logged(str(log)), files, out)
    first = run()
    whole = content(out)
    assert noted(log) == ["a.txt", "b.txt", "c.txt", "d.txt", "load"]
    run()
    assert noted(log) == []
    (out / "a.txt").unlink()
    (out / "b.txt").write_text("b wor")
    (out / "c.txt").write_text("C words\n")
    assert run() == first
    assert noted(log) == ["a.txt", "b.txt", "c.txt", "load"]
    assert content(out) == whole
    files[3].write_text("other words\n")
    assert run().entries["d.txt"] != first.entries["d.txt"]
    assert noted(log) == ["d.txt", "load"]
    assert (out / "d.txt").read_text() == "other words\n"


def test_other_settings_make_all_anew(files: list[Path], tmp_path: Path) -> None:
    log = tmp_path / "log"
    map_shards(Logged(str(log)), files[:1], tmp_path / "out")
    map_shards(Logged(str(log), suffix="!"), files[:1], tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "a words\n!"
    noted(log)
    map_shards(Logged(str(log), suffix="!"), files[:1], tmp_path / "out", settings={"version": 2})
    assert noted(log) == ["a.txt", "load"]


def test_fewer_shards_leave_the_other_outputs(files: list[Path], tmp_path: Path) -> None:
    map_shards(upper, files, tmp_path / "out")
    assert list(map_shards(upper, files[:1], tmp_path / "out").entries) == ["a.txt"]
    assert len(Manifest.read(tmp_path / "out").entries) == 4


def test_a_shard_whose_worker_is_killed_is_tried_again(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_shown", True)
    function = Logged(str(tmp_path / "log"))
    map_shards(function, files, tmp_path / "calm")
    (tmp_path / "die-b.txt").touch()
    map_shards(function, files, tmp_path / "out", processes=2)
    assert "shard 'b.txt': its worker died (signal SIGKILL); it is tried again, 1 of 2" in capsys.readouterr().err
    assert content(tmp_path / "out") == content(tmp_path / "calm")


def test_a_shard_that_always_kills_its_worker_is_named(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "always-b.txt").touch()
    with pytest.raises(ShardError, match=r"shard 'b\.txt': its worker died 2 times \(signal SIGKILL\)"):
        map_shards(Logged(str(tmp_path / "log")), files, tmp_path / "out", retries=1)
    assert list(Manifest.read(tmp_path / "out").entries) == ["a.txt"]


def test_how_a_worker_died_is_waited_for(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"shard 'a\.txt': its worker died \(signal SIGKILL\)"):
        map_shards(slowly_fatal, files[:1], tmp_path / "out", retries=0)


def test_a_failure_names_the_shard_and_keeps_the_others(files: list[Path], tmp_path: Path) -> None:
    function = Logged(str(tmp_path / "log"))
    (tmp_path / "fail-b.txt").touch()
    with pytest.raises(ShardError, match=r"shard 'b\.txt': ValueError: not this one \(.*shard_functions\.py, line"):
        map_shards(function, files, tmp_path / "out")
    assert sorted(content(tmp_path / "out")) == ["a.txt", "shards.json"]
    (tmp_path / "fail-b.txt").unlink()
    noted(tmp_path / "log")
    map_shards(function, files, tmp_path / "out")
    assert noted(tmp_path / "log") == ["b.txt", "c.txt", "d.txt", "load"]


SCRIPT = """
import sys
from pathlib import Path
from shards.shard_functions import Logged
from tagweave import progress
from tagweave.shards import map_shards
if __name__ == "__main__":
    progress.show()
    folder = Path(sys.argv[1])
    map_shards(Logged(str(folder / "log"), seconds=1.5), sorted((folder / "in").iterdir()), folder / "out")
"""


@pytest.mark.parametrize(
    ("function", "guard"),
    [("upper", "True"), ("partial(own, 'b')", "__name__ == '__main__'")],
    ids=["module", "script"],
)
def test_scripts_need_a_guard_only_for_functions_of_their_own(
    files: list[Path], tmp_path: Path, function: str, guard: str
) -> None:
    script = f"""
from functools import partial
from pathlib import Path
from shards.shard_functions import upper
from tagweave.shards import map_shards

def own(start, shard, target):
    target.write_text(start + shard.read_text())

if {guard}:
    folder = Path(__file__).parent
    map_shards({function}, sorted((folder / "in").iterdir())[:1], folder / "out")
"""
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(tmp_path / "script.py")], env=environment, check=True)
    assert (tmp_path / "out" / "a.txt").read_text() == ("A WORDS\n" if function == "upper" else "ba words\n")


def started(folder: Path) -> subprocess.Popen[bytes]:
    """A run in a process of its own, slow at each shard."""
    script = folder / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, str(script), str(folder)], env=environment, stderr=subprocess.DEVNULL)


def wait_for(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_a_run_that_ends_early_leaves_what_is_valid_and_its_lock_goes_with_it(
    files: list[Path], tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "out"
    run = started(tmp_path)
    wait_for(lambda: (out / "shards.json").exists() and "a.txt" in Manifest.read(out).entries)
    with pytest.raises(UsageError, match=f"another run is writing it \\(process {run.pid} on "):
        map_shards(upper, files, out)
    run.send_signal(number)
    assert run.wait(30) != 0
    assert list(Manifest.read(out).entries) == ["a.txt"]
    if number == signal.SIGINT:
        assert not (out / ".unfinished").exists()
    noted(tmp_path / "log")
    map_shards(Logged(str(tmp_path / "log"), seconds=1.5), files[:2], out)
    assert noted(tmp_path / "log") == ["b.txt", "load"]
    assert sorted(content(out)) == ["a.txt", "b.txt", "shards.json"]


def test_a_folder_of_something_else_is_not_touched(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="was not written by map_shards"):
        map_shards(upper, files[:1], tmp_path / "in", names=["e.txt"])
    with pytest.raises(UsageError, match=r"shard 'a\.txt' would be overwritten by its output"):
        map_shards(upper, files, tmp_path / "in")


def test_a_function_that_writes_nothing_is_told_so(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"shard 'a\.txt': the function wrote no file a\.txt"):
        map_shards(silent, files, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": "rya"}, "no engine is called 'rya'. Did you mean 'ray'"),
        ({"processes": 0}, "processes = 0"),
        ({"retries": -1}, "retries = -1"),
        ({"shards": ["a.txt"]}, "is no file"),
        ({"shards": [1, 2], "names": ["x", "x"]}, "several outputs would be called 'x'"),
        ({"shards": [1], "names": ["../x"]}, "cannot be the name of an output"),
        ({"shards": [1], "names": ["shards.json"]}, "cannot be the name of an output"),
        ({"shards": [1, 2], "names": ["x"]}, "1 names for 2 shards"),
        ({"shards": [object()]}, "cannot be told from others"),
        ({"function": lambda shard, target: None}, "cannot be found by other processes"),
        ({"function": functools.partial(upper, other=object())}, "cannot be told from others"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    call = {"function": squares, "shards": [{"number": 1}], "out": tmp_path / "out", **change}
    with pytest.raises(UsageError, match=message):
        map_shards(**call)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
