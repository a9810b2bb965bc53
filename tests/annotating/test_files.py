"""`annotate_file`: streams of documents in, JSON lines out, through breaks of every kind."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tagweave import read
from tagweave.annotating import annotate_file
from tagweave.errors import SourceError, TagweaveWarning, UsageError

RULES = '''
import os, time
from pathlib import Path
from tagweave import labeling_function

@labeling_function("LOC")
def towns(document):
    """Towns by name."""
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in ("Oslo", "Rome")]

@labeling_function(["LOC", "PER"])
def careful(document):
    if Path("stop").exists() and int(document.id[1:]) >= 600:
        Path("stopped").touch()
        time.sleep(30)
    if Path("brittle").exists() and document.id == "d600":
        raise ValueError("not this one")
    return [(0, 1, "O")] if document.tokens[0] == "the" else []
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with sources and a corpus of a thousand documents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")
    records = [
        {"id": f"d{number}", "tokens": ["the" if number % 3 else "Oslo", "Rome"[: 1 + number % 4], "café"]}
        for number in range(1000)
    ]
    save(tmp_path / "in.jsonl", records)
    return tmp_path


def save(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_one_and_two_processes_write_the_same(folder: Path) -> None:
    one = annotate_file("in.jsonl", "rules.py", "one.jsonl")
    two = annotate_file("in.jsonl", "rules.py", "two.jsonl", processes=2)
    assert (folder / "one.jsonl").read_bytes() == (folder / "two.jsonl").read_bytes()
    assert one.documents == two.documents == 1000
    assert one.statistics["towns"].spans == two.statistics["towns"].spans == 584
    assert one.statistics["careful"].outside == 666
    first = lines(folder / "one.jsonl")[0]
    assert first == {
        "id": "d0",
        "tokens": ["Oslo", "R", "café"],
        "sources": {"towns": [[0, 1, "LOC"]], "careful": []},
    }
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", "one.jsonl", "rules.py", "two.jsonl"]


def test_what_the_input_has_stays(folder: Path) -> None:
    soft = {"labels": ["O", "B-PER", "I-PER"], "probabilities": [[0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]}
    record = {
        "id": "d1",
        "tokens": ["Oslo", "!"],
        "text": "Oslo!",
        "offsets": [[0, 4], [4, 5]],
        "group": "g",
        "entities": [[0, 1, "PER"]],
        "sources": {"old": [[0, 1, "PER", 0.5]], "idle": None, "soft": soft},
        "votes_o": {"old": [[1, 2]]},
        "links": {"caps": [[0, 2]]},
        **soft,
    }
    save(folder / "in.jsonl", [record])
    annotate_file("in.jsonl", "rules.py", "out.jsonl")
    [found] = lines(folder / "out.jsonl")
    assert {**found, "sources": record["sources"]} == record
    assert found["sources"] == {**record["sources"], "towns": [[0, 1, "LOC"]], "careful": []}


def test_votes_of_the_same_name_are_replaced_with_a_note(folder: Path) -> None:
    save(folder / "in.jsonl", [{"id": "d1", "tokens": ["Oslo"], "sources": {"towns": [], "old": []}}])
    with pytest.warns(TagweaveWarning, match="the input has votes of 'towns' already"):
        annotate_file("in.jsonl", "rules.py", "out.jsonl")
    assert lines(folder / "out.jsonl")[0]["sources"] == {"old": [], "towns": [[0, 1, "LOC"]], "careful": []}


def test_any_format_goes_in(folder: Path) -> None:
    (folder / "in.txt").write_text("In Oslo.\nthe end\n", encoding="utf-8")
    (folder / "rules.py").write_text(RULES.replace("document.id[1:]", "'0'"), encoding="utf-8")
    annotate_file("in.txt", "rules.py", "out.jsonl", unit="line")
    found = read("out.jsonl")
    assert [document.text for document in found] == ["In Oslo.", "the end"]
    assert found[0].sources["towns"] == [(1, 2, "LOC", None)]


def test_a_packed_output_can_be_read(folder: Path) -> None:
    annotate_file("in.jsonl", "rules.py", "out.jsonl")
    annotate_file("in.jsonl", "rules.py", "out.jsonl.gz")
    assert gzip.decompress((folder / "out.jsonl.gz").read_bytes()) == (folder / "out.jsonl").read_bytes()
    assert len(read("out.jsonl.gz")) == 1000


def test_no_documents_are_an_empty_file(folder: Path) -> None:
    save(folder / "in.jsonl", [])
    assert annotate_file("in.jsonl", "rules.py", "out.jsonl").documents == 0
    assert (folder / "out.jsonl").read_bytes() == b""


def test_devices_are_written_as_they_are(folder: Path) -> None:
    assert annotate_file("in.jsonl", "rules.py", "/dev/null").documents == 1000
    with pytest.raises(UsageError, match="/dev/full cannot be written: No space left"):
        annotate_file("in.jsonl", "rules.py", "/dev/full")
    assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", "rules.py"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": "out.conll"}, "sources are written as JSON lines"),
        ({"sources": "none.py"}, "there is no file none.py"),
        ({"processes": 0}, "processes must be at least 1"),
        ({"time_limit": -1}, "the time limit must be"),
        ({"path": "-", "resume": True}, "standard input cannot be read again"),
        ({"lines": True}, "'lines'"),
        ({"path": "none.jsonl"}, "none.jsonl"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes_are_named_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        annotate_file(**{"path": "in.jsonl", "sources": "rules.py", "out": "out.jsonl", **changes})
    assert not Path("out.jsonl.partial").exists()


def test_a_missing_earlier_source_is_named_before_anything_runs(folder: Path) -> None:
    table = '[[source]]\nkind = "renamed"\nname = "new"\nof = "old"\nlabels = ["LOC"]\nrename = {GPE = "LOC"}\n'
    (folder / "rules.toml").write_text(table, encoding="utf-8")
    with pytest.raises(UsageError, match="source 'new' builds on 'old'"):
        annotate_file("in.jsonl", "rules.toml", "out.jsonl")


# Breaks


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failure_keeps_what_was_done_before(folder: Path, processes: int) -> None:
    (folder / "brittle").touch()
    with pytest.raises(SourceError, match=r"source 'careful', document 'd600': ValueError: not this one \(.*rules.py"):
        annotate_file("in.jsonl", "rules.py", "out.jsonl", processes=processes)
    assert json.loads((folder / "out.jsonl.journal.json").read_text(encoding="utf-8"))["documents"] == 500
    (folder / "brittle").unlink()
    report = annotate_file("in.jsonl", "rules.py", "out.jsonl", resume=True)
    annotate_file("in.jsonl", "rules.py", "whole.jsonl")
    assert (folder / "out.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert (report.documents, report.statistics["towns"].spans) == (1000, 584)


def test_a_tolerated_failure_is_counted_and_said(folder: Path) -> None:
    (folder / "brittle").touch()
    with pytest.warns(TagweaveWarning, match="source 'careful' failed 1 times"):
        report = annotate_file("in.jsonl", "rules.py", "out.jsonl", tolerant=True)
    assert report.statistics["careful"].failures == 1
    found = lines(folder / "out.jsonl")
    assert [record["id"] for record in found if record["sources"]["careful"] is None] == ["d600"]
    assert len(found) == 1000


def begun(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A run in a process of its own, that has come to a stop in the middle."""
    # A shell's background job, in which these tests may run, ignores interrupts.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tagweave.cli import main; sys.exit(main())"
    )
    command = ["annotate", "in.jsonl", "--sources", "rules.py", "--out", "out.jsonl.gz", *options]
    (folder / "stop").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not ((folder / "stopped").exists() and (folder / "out.jsonl.gz.journal.json").exists()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    (folder / "stop").unlink()
    return process


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_ended_is_gone_on_with(folder: Path, how: signal.Signals) -> None:
    process = begun(folder, "--processes", "2")
    with pytest.raises(UsageError, match="another run is writing it"):
        annotate_file("in.jsonl", "rules.py", "out.jsonl.gz")
    process.send_signal(how)
    _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    done = json.loads((folder / "out.jsonl.gz.journal.json").read_text(encoding="utf-8"))["documents"]
    assert done in (250, 500)
    report = annotate_file("in.jsonl", "rules.py", "out.jsonl.gz", resume=True)
    annotate_file("in.jsonl", "rules.py", "whole.jsonl.gz")
    assert (folder / "out.jsonl.gz").read_bytes() == (folder / "whole.jsonl.gz").read_bytes()
    assert report.statistics["towns"].documents == 1000


def test_a_changed_input_or_source_is_not_gone_on_with(folder: Path) -> None:
    (folder / "brittle").touch()
    with pytest.raises(SourceError):
        annotate_file("in.jsonl", "rules.py", "out.jsonl")
    with (folder / "rules.py").open("a", encoding="utf-8") as handle:
        handle.write("\n")
    with pytest.raises(UsageError, match="changes in the sources"):
        annotate_file("in.jsonl", "rules.py", "out.jsonl", resume=True)


def test_memory_does_not_grow_with_the_file(folder: Path) -> None:
    code = (
        "import resource, sys; from tagweave.annotating import annotate_file\n"
        "annotate_file(sys.argv[1], 'few.toml', 'out.jsonl')\n"
        "kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "print(*[resource.getrusage(kind).ru_maxrss for kind in kinds])"
    )
    table = '[[source]]\nkind = "affixes"\nname = "s"\ntype = "LOC"\nsuffixes = ["lo"]\n'
    (folder / "few.toml").write_text(table, encoding="utf-8")
    peaks = []
    for count in (2000, 20000):
        save(folder / f"{count}.jsonl", [{"id": f"d{n}", "tokens": ["Oslo", "is", f"n{n}"] * 8} for n in range(count)])
        ran = subprocess.run(
            [sys.executable, "-c", code, f"{count}.jsonl"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append([int(value) for value in ran.stdout.split()])
    for few, many in zip(*peaks, strict=True):
        assert many < 1.15 * few, peaks
