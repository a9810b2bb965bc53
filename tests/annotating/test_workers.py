"""Several processes: the same votes, workers that die or never come back, and sources that cannot be sent."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from annotating import troublesome
from tagweave.annotating.corpora import annotate
from tagweave.annotating.files import annotate_file
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, SourceTimeout, TagweaveWarning
from tagweave.formats.json_lines import records
from tagweave.sources import load_sources

DOCUMENTS = 520


def corpus(documents: int = DOCUMENTS) -> Corpus:
    return Corpus.from_documents(
        Document(f"d{i}", ["Oslo", "sleeps"], group=f"g{i // 4}" if i < 400 else None) for i in range(documents)
    )


def lines(found: Corpus) -> list[str]:
    return [json.dumps(record) for record in records(found)]


def blamed(name: str, ending: str = "signal SIGKILL") -> str:
    return rf"source '{name}', document 'd300': it ends the process \({ending}\)"


def test_what_sources_print_does_not_get_in_the_way(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(annotate(corpus(), [troublesome.talkative], processes=2).sources) == 1
    out, err = capfd.readouterr()
    assert "something" in err
    assert "something" not in out


def test_a_worker_that_dies_once_is_replaced(tmp_path: Path) -> None:
    found = annotate(corpus(), [troublesome.Once("once", tmp_path / "mark")], processes=2)
    assert (tmp_path / "mark").exists()
    assert [len(document.sources["once"] or ()) for document in found] == [1] * DOCUMENTS


def test_a_source_that_ends_its_process_is_named() -> None:
    with pytest.raises(SourceError, match=blamed("leaves", "exit code 7")):
        annotate(corpus(), [troublesome.cities, troublesome.leaves], processes=2)


def test_a_source_that_kills_its_process_may_be_tolerated() -> None:
    with pytest.warns(TagweaveWarning, match=f"'deadly' failed 1 times.*{blamed('deadly')}"):
        found = annotate(corpus(), [troublesome.deadly, troublesome.cities], processes=2, tolerant=True)
    assert [d.id for d in found if d.sources["deadly"] is None] == ["d300"]
    assert all(document.sources["cities"] for document in found)


def test_of_a_source_that_takes_many_documents_only_the_fatal_group_is_left_out() -> None:
    with pytest.warns(TagweaveWarning, match=blamed("all")):
        found = annotate(corpus(), [troublesome.Together("all")], processes=2, tolerant=True)
    assert [d.id for d in found if d.sources["all"] is None] == ["d300", "d301", "d302", "d303"]


def test_what_cannot_be_interrupted_is_ended_and_named() -> None:
    begin = time.monotonic()
    with pytest.raises(SourceTimeout, match="'stubborn', document 'd300': it took longer than 0.5 seconds and could"):
        annotate(corpus(), [troublesome.stubborn], processes=2, time_limit=0.5)
    assert time.monotonic() - begin < 20


def test_sources_from_a_file_can_be_sent(tmp_path: Path) -> None:
    code = """
        from dataclasses import dataclass
        from tagweave.sources import Source, labeling_function

        @labeling_function("LOC")
        def towns(document):
            return [(0, 1)]

        @dataclass
        class First(Source):
            types = ("X",)
            def find(self, document):
                return [(0, 1)]

        first = First("first")
    """
    path = tmp_path / "own.py"
    path.write_text(textwrap.dedent(code), encoding="utf-8")
    found = annotate(corpus(), load_sources(path), processes=2)
    assert list(found.sources) == ["towns", "first"]


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    note = tmp_path / "note"
    process = start(
        tmp_path / "script.py",
        "if __name__ == '__main__':\n"
        f"    annotate(test_workers.corpus(), [troublesome.Stuck('stuck', Path({str(note)!r}))], processes=2)\n",
    )
    assert eventually(lambda: note.exists() and note.read_text() != "")
    process.kill()
    process.communicate()
    assert eventually(lambda: not runs(int(note.read_text())))


def start(script: Path, code: str) -> "subprocess.Popen[str]":
    """A script in a process of its own."""
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]
    imports = (
        f"import sys\nsys.path[:0] = {paths!r}\n"
        "from pathlib import Path\n"
        "from annotating import test_workers, troublesome\n"
        "from tagweave import annotate\n"
    )
    script.write_text(imports + code, encoding="utf-8")
    return subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def eventually(holds: Callable[[], bool], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def runs(process: int) -> bool:
    """Whether there is such a process, other than one that has ended and waits for nobody to ask."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_script_without_a_guard_says_so_and_goes_on(tmp_path: Path) -> None:
    code = "found = annotate(test_workers.corpus(), [troublesome.cities], processes=2)\nprint(list(found.sources))\n"
    process = start(tmp_path / "script.py", code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "['cities']\n"), err
    assert "if __name__ ==" in err


_KILLED_AT_FIRST = """
import multiprocessing, os, pathlib, signal

from tagweave.sources import labeling_function

marker = pathlib.Path(__file__).with_name("killed")
deaths = len(marker.read_text()) if marker.exists() else 0
if multiprocessing.parent_process() is not None and deaths < {deaths}:
    with marker.open("a") as handle:
        handle.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


@labeling_function("LOC")
def first(document):
    return [(0, 1)]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_is_killed_before_it_is_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": "a", "tokens": ["Oslo"]}\n')
    (tmp_path / "sources.py").write_text(_KILLED_AT_FIRST.format(deaths=1))
    report = annotate_file(tmp_path / "in.jsonl", tmp_path / "sources.py", tmp_path / "out.jsonl")
    assert report.statistics["first"].spans == 1
    (tmp_path / "killed").unlink()
    (tmp_path / "sources.py").write_text(_KILLED_AT_FIRST.format(deaths=9))
    with pytest.raises(SourceError, match="ended at once, signal SIGKILL"):
        annotate_file(tmp_path / "in.jsonl", tmp_path / "sources.py", tmp_path / "out.jsonl")
    assert (tmp_path / "killed").read_text() == "xxx"
