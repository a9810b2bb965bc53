import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tagweave.errors import UsageError
from tagweave.writing import new_file, only_run, replacement

KILLED = """
import os, signal, sys
from pathlib import Path
from tagweave.writing import new_file, only_run, replacement

with only_run(Path("b")), new_file(Path("a")) as handle, replacement(Path("b")) as work:
    handle.write(b"half")
    (work / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(folder: Path) -> None:
    with only_run(folder / "b"), new_file(folder / "a") as handle, replacement(folder / "b") as work:
        handle.write(b"new")
        (work / "new").touch()


def test_what_a_killed_process_left_goes_with_the_next_writing(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".a.b.12345678.new").write_text("of somebody else")
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert len(names(tmp_path)) == 6
    assert (tmp_path / "a").read_bytes() == b"new" and names(tmp_path / "b") == ["new"]
    write(tmp_path)
    assert names(tmp_path) == [".a.b.12345678.new", "a", "b"]


def test_one_that_is_stopped_while_it_takes_a_place_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped() -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(socket, "gethostname", stopped)
        with only_run(tmp_path / "a"):
            pass
    assert names(tmp_path) == []
    with only_run(tmp_path / "a"):
        assert names(tmp_path) == [".a.lock"]


def test_what_another_one_writes_stays(tmp_path: Path) -> None:
    with new_file(tmp_path / "a") as first, replacement(tmp_path / "b") as work:
        with new_file(tmp_path / "a") as second, replacement(tmp_path / "b") as other:
            second.write(b"second")
            (other / "second").touch()
        first.write(b"first")
        (work / "first").touch()
    assert (tmp_path / "a").read_bytes() == b"first"
    assert names(tmp_path / "b") == ["first"]
    assert names(tmp_path) == ["a", "b"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RuntimeError), new_file(tmp_path / "a") as handle, replacement(tmp_path / "b"):
        handle.write(b"half")
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"new" and names(tmp_path / "b") == ["new"]
    assert names(tmp_path) == ["a", "b"]


def test_files_and_folders_have_the_usual_rights(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o755


def test_the_second_run_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    with only_run(tmp_path / "b"):
        with pytest.raises(UsageError, match=rf"b: another run is writing it \(process {os.getpid()} on"):
            with only_run(tmp_path / "b"):
                pass
        with pytest.raises(UsageError, match="another run"), only_run(tmp_path / "b"):
            pass
    with only_run(tmp_path / "b"):
        pass
    assert names(tmp_path) == []


def test_a_run_waits_for_another_one(tmp_path: Path) -> None:
    waiting = "    print('has it', flush=True)\n    time.sleep(0.5)"
    holder = f"from tagweave.writing import *\nwith only_run(Path('b')):\n{waiting}"
    with subprocess.Popen([sys.executable, "-c", holder], cwd=tmp_path, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with only_run(tmp_path / "b", waits=True):
            assert other.wait(5) == 0


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"), only_run(tmp_path / "no" / "b"):
        pass
