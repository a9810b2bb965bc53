import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmark.tiny_data import rounds, write_cell
from tagweave.benchmark import settings
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.running import plan, run, taken_from_alternate
from tagweave.errors import StorageError, TagweaveError
from tagweave.storage import read_json, write_json


def test_what_others_are_taken_from_comes_first_and_only_chance_has_seeds() -> None:
    cells = plan(["bc5cdr", "conll-2003"], ["hmm", "chmm+bert", "mv-alt", "majority-vote-alt"], seeds=2, gold_free=True)
    assert [(cell.system, cell.seed) for cell in cells if cell.dataset == "bc5cdr"] == [
        ("majority-vote-alt", 0),
        ("hmm", 0),
        ("chmm+bert", 0),
        ("majority-vote-alt", 1),
        ("chmm+bert", 1),
    ]
    assert len(cells) == 10
    assert all(cell.gold_free for cell in cells)


def test_a_finished_cell_is_not_run_again_and_a_stale_one_only_when_told(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell("laptop-review", "hmm")
    assert run([cell], tiny_data, tmp_path).finished == [cell]
    assert (tmp_path / "work" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    made = cell.path(tmp_path).stat().st_mtime_ns
    assert run([cell], tiny_data, tmp_path).finished == [cell]
    assert cell.path(tmp_path).stat().st_mtime_ns == made
    write_json(cell.path(tmp_path), {**read_json(cell.path(tmp_path)), "settings": {"seed": 4}})
    found = run([cell], tiny_data, tmp_path)
    assert (found.finished, found.stale) == ([], [cell])
    assert run([cell], tiny_data, tmp_path, rerun=True).finished == [cell]
    assert read_json(cell.path(tmp_path))["settings"] == cell.settings()
    monkeypatch.setitem(settings.LABEL_MODELS, "hmm", {"smoothing": 2.0})
    assert run([cell], tiny_data, tmp_path).stale == [cell]


def test_a_setting_that_is_new_and_has_its_default_makes_nothing_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell("laptop-review", "hmm")
    then = cell.settings()
    del then["label_model"]["smoothing"]
    write_cell(tmp_path, cell, 50.0, settings=then)
    assert cell.state(tmp_path) == "finished"
    monkeypatch.setitem(settings.LABEL_MODELS, "hmm", {"smoothing": 2.0})
    assert cell.state(tmp_path) == "stale"


def test_a_cell_that_fails_is_told_and_the_others_go_on(tiny_data: Path, tmp_path: Path) -> None:
    bad, good = Cell("ncbi-disease", "hmm"), Cell("bc5cdr", "majority-vote")
    found = run([bad, good], tiny_data, tmp_path)
    assert "ncbi-disease is not in this folder" in found.failed[bad]
    assert found.finished == [good]


def test_a_killed_run_goes_on(tiny_data: Path, tmp_path: Path, encoder: str) -> None:
    cell = Cell("laptop-review", "hmm+bert", encoder)
    job = {"cell": cell.to_json(), "data": str(tiny_data), "out": str(tmp_path), "progress": False}
    child = subprocess.Popen([sys.executable, "-m", "tagweave.benchmark.process", json.dumps(job)])
    until = time.monotonic() + 120
    while not (cell.work(tmp_path) / "meter.json").exists() and time.monotonic() < until:
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert not cell.path(tmp_path).exists()
    assert run([cell], tiny_data, tmp_path).finished == [cell]
    assert read_json(cell.path(tmp_path))["starts"] == 2


def test_a_process_that_dies_is_a_failure(tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    cell = Cell("bc5cdr", "hmm")
    assert run([cell], tiny_data, tmp_path).failed == {cell: "the process ended with status 1"}


@pytest.mark.parametrize(("system", "output", "f1"), [("chmm+bert", "tagger", 62.0), ("chmm", "label-model", 71.0)])
def test_rows_are_taken_from_the_first_round_of_the_same_seed(
    system: str, output: str, f1: float, tmp_path: Path
) -> None:
    whole = Cell("laptop-review", "chmm-alt", seed=1)
    cell = replace(whole, system=system)
    assert taken_from_alternate(cell, tmp_path) is None
    write_cell(tmp_path, whole, 75.0, rounds=rounds((71.0, 62.0), (75.0, 70.0)), encoder=None)
    record = taken_from_alternate(cell, tmp_path)
    assert record is not None
    assert record["scores"]["test"]["f1"] == f1
    assert record["taken_from"] == "chmm-alt.default.paper.1"
    assert record["settings"] == cell.settings()
    assert record["seconds"] == ({"fit": 10.0} if output == "tagger" else {})
    assert taken_from_alternate(replace(cell, seed=2), tmp_path) is None
    assert taken_from_alternate(replace(cell, gold_free=True), tmp_path) is None


def test_the_first_seed_of_a_label_model_and_what_has_no_chance_run_by_themselves(tmp_path: Path) -> None:
    for system in ("chmm-alt", "hmm-alt"):
        write_cell(tmp_path, Cell("laptop-review", system), 75.0, rounds=rounds((71.0, 62.0)), encoder=None)
    assert taken_from_alternate(Cell("laptop-review", "chmm"), tmp_path) is None
    assert taken_from_alternate(Cell("laptop-review", "hmm"), tmp_path) is None
    assert taken_from_alternate(Cell("laptop-review", "hmm+bert"), tmp_path) is not None


def test_a_file_that_is_no_cell_is_named(tmp_path: Path) -> None:
    from tagweave.benchmark.cells import read_cells

    (tmp_path / "cells" / "bc5cdr").mkdir(parents=True)
    write_json(tmp_path / "cells" / "bc5cdr" / "odd.json", {"f1": 3})
    with pytest.raises(StorageError, match=r"odd\.json is no result"):
        read_cells(tmp_path)
    assert issubclass(StorageError, TagweaveError)
