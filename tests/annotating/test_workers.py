"""Several processes: the same votes, workers that die or never come back, and sources that cannot be sent."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from annotating import troublesome
from tagweave.annotating.corpora import annotate
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


def test_a_script_without_a_guard_says_so_and_goes_on(tmp_path: Path) -> None:
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path[:0] = {paths!r}\n"
        "from annotating import test_workers, troublesome\n"
        "from tagweave import annotate\n"
        "found = annotate(test_workers.corpus(), [troublesome.cities], processes=2)\n"
        "print(len(found), list(found.sources))\n",
        encoding="utf-8",
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "520 ['cities']\n"), ended.stderr
    assert "if __name__ ==" in ended.stderr
