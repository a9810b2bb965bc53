"""Processes beside this one: how they end, what they can send, and files that only one may have."""

import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tagweave.errors import ShardError
from tagweave.processes import Process, ending, only_here, sendable


def echo(connection: Connection, word: str) -> None:
    connection.send((word, connection.recv(), sys.modules["__main__"].__name__))


def test_a_process_answers_and_ends() -> None:
    process = Process(echo, "ready", hidden=True)
    process.connection.send(7)
    assert process.connection.recv()[:2] == ("ready", 7)
    process.end()
    assert not process.process.is_alive()


@pytest.mark.parametrize(
    ("code", "words"), [(0, "exit code 0"), (-11, "signal SIGSEGV"), (-99, "signal 99"), (None, "exit code None")]
)
def test_how_a_process_ended_is_said_in_words(code: int | None, words: str) -> None:
    assert ending(code) == words


def test_errors_of_the_package_keep_their_class_and_others_bring_their_traceback() -> None:
    found = sendable(ShardError("a.jsonl"))
    assert type(found) is ShardError and str(found) == "a.jsonl"
    try:
        raise KeyError("lost")
    except KeyError as error:
        assert "test_processes.py" in str(sendable(error)) and "KeyError: 'lost'" in str(sendable(error))


HOLDER = """
import sys
from tagweave.processes import only_here
with open(sys.argv[1], "a") as handle:
    print(only_here(handle), flush=True)
    sys.stdin.read()
"""


def test_a_file_is_ours_until_its_holder_is_gone_however_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        with path.open("a") as handle:
            assert not only_here(handle)
        holder.kill()
    with path.open("a") as handle:
        assert only_here(handle)
