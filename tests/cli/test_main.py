"""What holds for all commands: messages, exit codes, streams, the machine's language."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import tagweave.cli
from cli.running import CommandLine, news, write_lines
from tagweave import __version__

ROOT = Path(__file__).parent.parent.parent


def start(*arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
    """A command in a process of its own."""
    path = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-m", "tagweave", *arguments],
        env={**os.environ, **path, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_help_and_version(tagweave: CommandLine) -> None:
    for arguments in (["--help"], ["-h"], ["aggregate", "-h"]):
        assert "Usage: tagweave" in tagweave.fine(*arguments).out
    assert tagweave.fine("--version").out == f"tagweave {__version__}\n"


@pytest.mark.parametrize("command", ["demo", "aggregate", "train", "alternate", "predict", "evaluate", "convert"])
def test_every_command_is_listed_and_explained(tagweave: CommandLine, command: str) -> None:
    assert f" {command} " in tagweave.fine("--help").out
    assert len(tagweave.fine(command, "--help").out) > 300


def options_of_all_commands() -> Iterator[tuple[str, bool]]:
    """Each option as it is called, `aggregate --model`, and whether it may be repeated; flags are left out."""
    waiting = [("", typer.main.get_command(tagweave.cli.app))]
    for name, command in waiting:
        waiting += [(f"{name} {sub}", own) for sub, own in getattr(command, "commands", {}).items()]
        for option in command.params if name else ():
            if option.opts[0].startswith("-") and not option.is_flag:
                yield f"{name} {option.opts[0]}".strip(), option.multiple


@pytest.mark.parametrize("option", [option for option, repeated in options_of_all_commands() if not repeated])
def test_an_option_has_one_value(tagweave: CommandLine, option: str) -> None:
    *command, name = option.split()
    result = tagweave(*command, name, "1", f"{name}=2")
    assert result.code == 2
    assert result.words.startswith(f"error: {name} is given 2 times and takes one value: write {name} ")


def test_what_may_be_repeated_stands_for_different_things(tagweave: CommandLine) -> None:
    repeated = {option.split()[-1] for option, repeated in options_of_all_commands() if repeated}
    assert repeated == {"--set", "--write-set", "--coarse"}
    write_lines(Path("in.jsonl"), news(3))
    command = ("aggregate", "in.jsonl", "--model", "hmm", "--out", "out.jsonl")
    twice = tagweave(*command, "--set", "silence=never", "--set", "silence=always")
    assert (twice.code, Path("out.jsonl").exists()) == (2, False)
    assert "'silence=always': silence is set already: give it once" in twice.words
    coarse = tagweave(*command, "--coarse", "ENT=PER,LOC", "--coarse", "ENT=ORG")
    assert (coarse.code, Path("out.jsonl").exists()) == (2, False)
    assert "--coarse ENT is given twice: write all that it stands for in one, ENT=A,B" in coarse.words


def test_an_unknown_command(tagweave: CommandLine) -> None:
    result = tagweave("agregate")
    assert result.code == 2
    assert "aggregate" in result.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "error: in.jsonl cannot be read: No such file or directory"),
        ('{"id": "1", "tokens": ["a"]}\n{"id": ', "error: in.jsonl, line 2: not JSON"),
        ('{"id": "1", "tokens": ["a"], "entities": [[0, 2, "X"]]}', "error: in.jsonl, line 1, record '1': "),
    ],
)
def test_an_error_is_one_paragraph(tagweave: CommandLine, content: str | None, message: str) -> None:
    if content is not None:
        Path("in.jsonl").write_text(content, encoding="utf-8")
    result = tagweave("convert", "in.jsonl", "out.conll")
    assert result.code == (2 if content is None else 1)
    assert result.words.startswith(message)
    assert "Traceback" not in result.err
    assert all(line.startswith("       ") for line in result.err.splitlines()[1:])
    assert list(Path().glob("out*")) == []


def test_folders_and_places_that_cannot_be_written(tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), news(3))
    Path("folder.jsonl").mkdir()
    read, written, nowhere = (
        tagweave("convert", *names)
        for names in (("folder.jsonl", "-"), ("in.jsonl", "folder.jsonl"), ("in.jsonl", "no/where.jsonl"))
    )
    assert (read.code, written.code, nowhere.code) == (2, 2, 2)
    assert "folder.jsonl cannot be read: Is a directory" in read.words
    assert "folder.jsonl cannot be written: Is a directory" in written.words
    assert "no/where.jsonl cannot be written: No such file or directory" in nowhere.words


def test_output_is_utf8_in_any_language(tmp_path: Path) -> None:
    record = {"id": "å", "tokens": ["Ærø", "日本"], "sources": {"é": [[0, 1, "ØY"]]}}
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
    arguments = ("aggregate", str(path), "--model", "hmm", "--show", "--out", "-")
    for environment in ({"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "latin-1"}):
        out, err = start(*arguments, **environment).communicate(timeout=600)
        assert json.loads(out.decode("utf-8"))["tokens"] == record["tokens"]
        assert "What é says" in err.decode("utf-8")


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    line = json.dumps({"tokens": ["word"] * 1000})
    path.write_text(f"{line}\n" * 500, encoding="utf-8")
    process = start("convert", str(path), "-")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(600) == 1
    assert err == b""
