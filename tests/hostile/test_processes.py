"""The worst of them in processes of their own, as a user starts them, with time and memory measured from outside."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from hostile.damage import LINES, MEMBER

PEAK = 1536 << 20
"""Bytes that a command may need, with all that it loads."""

PROCESSOR = 60
"""Seconds of processor time that it may take, which a command that does nothing takes five of on a busy machine."""


START = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([code, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss], file)
"""
"""Starts a command and writes how it ended. Its memory counts from that of who starts it, so that must be small."""


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    err: str


def run(arguments: Sequence[str], folder: Path, stdin: str | int = os.devnull) -> Ended:
    """Starts the command line in a folder."""
    command = [sys.executable, "-c", START, str(folder / "used"), sys.executable, "-m", "tagweave", *arguments]
    source = open(stdin, "rb") if isinstance(stdin, str) else stdin
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200", "TAGWEAVE_CACHE": str(folder / ".cache")}
    with (folder / "err").open("wb") as err:
        subprocess.run(
            command, cwd=folder, stdin=source, stdout=err, stderr=err, env=environment, timeout=240, check=True
        )
    if not isinstance(source, int):
        source.close()
    text = " ".join((folder / "err").read_text().split())
    code, seconds, peak = json.loads((folder / "used").read_text())
    assert seconds < PROCESSOR, text
    assert peak < PEAK, text
    assert "Traceback" not in text, text
    return Ended(code, text)


@pytest.mark.parametrize("name", ["jsonl", "text", "conll", "label-studio", "docbin", "chmm-alt", "bioc"])
def test_an_endless_device_as_standard_input(tmp_path: Path, name: str) -> None:
    ended = run(["convert", "-", "out.jsonl", "--from", name], tmp_path, "/dev/zero")
    assert ended.code in (1, 2)
    assert "error: standard input" in ended.err


def test_text_without_an_end_on_standard_input(tmp_path: Path) -> None:
    read, write = os.pipe()
    filling = threading.Thread(target=_fill, args=(write,))
    filling.start()
    ended = run(["convert", "-", "out.jsonl"], tmp_path, read)
    os.close(read)
    filling.join()
    assert (ended.code, "line 1: longer than 256 MiB" in ended.err) == (1, True), ended


def _fill(pipe: int) -> None:
    with open(pipe, "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * (1 << 16))
        except BrokenPipeError:
            return


@pytest.mark.parametrize(("name", "member"), [("a.jsonl.gz", MEMBER), ("a.txt.gz", LINES), ("a.json.gz", LINES)])
def test_a_small_file_that_holds_gigabytes(tmp_path: Path, name: str, member: bytes) -> None:
    (tmp_path / name).write_bytes(member * 400)
    ended = run(["convert", name, "out.jsonl", "--from", "jsonl"], tmp_path)
    assert ended.code == 1
    assert f"error: {name}" in ended.err


def test_a_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.jsonl")
    ended = run(["convert", "in.jsonl", "out.jsonl"], tmp_path)
    assert (ended.code, "pipe or device" in ended.err) == (2, True), ended


def test_brackets_without_end(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_bytes(b"[" * 10_000_000)
    ended = run(["convert", "in.json", "out.jsonl", "--from", "label-studio"], tmp_path)
    assert (ended.code, "in.json: lists or objects are nested too deeply" in ended.err) == (1, True), ended


def test_an_entity_that_grows_without_end(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 100}">' for n in range(1, 12))
    (tmp_path / "in.xml").write_text(f'<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><collection>&l11;</collection>')
    ended = run(["convert", "in.xml", "out.jsonl"], tmp_path)
    assert (ended.code, "in.xml" in ended.err) == (1, True), ended
