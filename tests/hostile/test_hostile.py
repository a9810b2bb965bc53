"""Whatever a command is given, it ends in time and memory with an exit code and a message, never with a traceback.

All files are read once; the other commands, which read them by the same readers, take a sample of them, a larger one
where `TAGWEAVE_SLOW` is set, and all of them where that is `all`.
"""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.running import CommandLine
from hostile.cases import Case
from hostile.commands import commands
from hostile.contents import contents
from hostile.damage import damaged
from hostile.records import records
from hostile.watching import complaint
from tagweave.errors import TagweaveError
from tagweave.formats import format_of

MAKERS: dict[str, Callable[[Path], Iterator[Case]]] = {"damaged": damaged, "records": records, "contents": contents}
SAMPLE = {"": 12, "all": 10_000}.get(os.environ.get("TAGWEAVE_SLOW", ""), 40)
SOURCES = '[[source]]\nkind = "regex"\nname = "names"\npatterns = "Ada|Bo"\ntype = "PER"\n'


@pytest.fixture
def tagweave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Runs commands in a folder with a good file and a file of sources."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path / ".cache"))
    Path("sources.toml").write_text(SOURCES)
    Path("good.jsonl").write_text('{"id": "a", "text": "Ada saw Oslo", "entities": [[0, 3, "PER"]]}\n')
    run = CommandLine(monkeypatch)
    run.fine("annotate", "good.jsonl", "--sources", "sources.toml", "--out", "voted.jsonl")
    run.fine("aggregate", "voted.jsonl", "--model", "majority-vote", "--out", "labelled.jsonl")
    return run


@pytest.fixture(scope="module", params=MAKERS)
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Files of one kind."""
    return list(MAKERS[request.param](tmp_path_factory.mktemp(request.param)))


def complaints(tagweave: CommandLine, runs: Iterator[tuple[Case, list[str]]]) -> list[str]:
    """What is wrong with how commands end on files."""
    found = []
    for case, arguments in runs:
        refused = case.ends == "refused"
        reads = arguments[0] == "convert"
        ends = case.ends if reads or refused else "cleanly"
        fault = complaint(tagweave, arguments, ends, case.says if reads else "", case.name if refused else "")
        if fault:
            found.append(f"{' '.join(arguments)}: {fault}")
    return found


def reading(case: Case, command: str, *arguments: str) -> list[str]:
    """A command that reads a case in its format."""
    options = [word for option in case.options for word in ("--set", option)]
    return [command, str(case.path), *arguments, *(["--from", case.format] if case.format else []), *options]


def test_there_are_many_of_them(cases: list[Case]) -> None:
    assert len(cases) > 200
    assert len({case.path for case in cases}) == len(cases)


def test_reading_ends_as_it_must(tagweave: CommandLine, cases: list[Case]) -> None:
    assert complaints(tagweave, ((case, reading(case, "convert", "out.jsonl")) for case in cases)) == []


def by_its_name(case: Case) -> bool:
    """Whether the name of a file means the format that it is damaged in."""
    try:
        return format_of(case.path).name == (case.format or format_of(case.path).name)
    except (TagweaveError, OSError):
        return False


def other_commands(case: Case) -> Iterator[list[str]]:
    """The other commands that take documents; training only where it must end before it begins."""
    path = str(case.path)
    yield reading(case, "annotate", "--sources", "sources.toml", "--out", "out.jsonl")
    if case.options:
        return
    yield ["aggregate", path, "--model", "majority-vote", "--out", "out.jsonl"]
    yield ["aggregate", "voted.jsonl", "--model", "majority-vote", "--apply", path, "--out", "out.jsonl"]
    yield ["analyze", path, "--model", "none"]
    yield ["analyze", "voted.jsonl", "--model", "none", "--gold", path]
    yield ["compare", path, "--models", "majority-vote"]
    yield ["evaluate", path, "good.jsonl"]
    yield ["evaluate", "good.jsonl", path]
    if case.ends == "refused":
        yield ["train", path, "--out", "tagger"]
        yield ["train", "labelled.jsonl", "--out", "tagger", "--dev", path]
        yield ["alternate", path, "--out", "run", "--label-model", "majority-vote"]


def test_every_command_ends_as_it_must(tagweave: CommandLine, cases: list[Case]) -> None:
    readable = [case for case in cases if by_its_name(case)]
    chosen = random.Random(0).sample(readable, min(SAMPLE, len(readable)))
    runs = ((case, arguments) for case in chosen for arguments in other_commands(case))
    assert complaints(tagweave, runs) == []


def test_all_else_that_commands_take(tagweave: CommandLine, tmp_path: Path) -> None:
    found = []
    for command in commands(tmp_path):
        fault = complaint(tagweave, command.arguments, command.ends, command.says, "")
        if fault:
            found.append(f"{command.name}: {fault}")
    assert not found
