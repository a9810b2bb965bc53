import importlib.util
from pathlib import Path

import pytest

from benchmark.tiny_data import rounds, write_cell
from tagweave.benchmark import figures
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.facts import keep_facts
from tagweave.benchmark.page import render
from tagweave.errors import DataError
from tagweave.storage import read_json


@pytest.fixture
def out(tiny_data: Path, tmp_path: Path) -> Path:
    chosen = {"round": 1, "output": "label-model"}
    history = rounds((70.0, 60.0), (76.0, 66.0))
    for seed in (0, 1):
        cell = Cell("laptop-review", "chmm-alt", seed=seed)
        write_cell(tmp_path, cell, 76.0, rounds=history, chosen=chosen, notes=["a note"])
    write_cell(tmp_path, Cell("laptop-review", "hmm"), 60.0, notes=["a note"], settings={})
    write_cell(tmp_path, Cell("laptop-review", "hmm", gold_free=True), 61.0)
    keep_facts(tiny_data, tmp_path, ["laptop-review"])
    (tmp_path / "notes.md").write_text("## What to know\n\nMind the gap.\n", encoding="utf-8")
    return tmp_path


def test_the_page_says_how_to_repeat_it_and_ends_with_the_notes(out: Path) -> None:
    text = render(out).read_text(encoding="utf-8")
    assert f"$ tagweave benchmark paper --sources paper --seeds 2 --out {out.as_posix()}" in text
    some = "--datasets laptop-review --systems hmm"
    assert f"$ tagweave benchmark paper --sources paper --gold-free --seeds 1 {some} --out {out.as_posix()}" in text
    assert "90 of 92 cells are missing" in text
    assert "other settings than those of today, and to be made anew with `--rerun`: laptop-review/hmm.paper.0\n" in text
    assert "Abacus, 1 of 2 cores (python 3.11.7): 4 cells" in text
    assert "- laptop-review: a note\n" in text
    assert "| CHMM-ALT | `chmm-alt` | - (75.54) | - (85.02) | - (85.12) | 76.00 ± 0.00 (76.55) |" in text
    assert "| laptop-review | HMM | test | 60.00 | 66.96 | -6.96 | no reason recorded |" in text
    assert "## In another way: the paper's sources, nothing chosen on dev, encoder -" in text
    assert "| laptop-review | HMM | test | 1 | 62.00 | 60.00 | 61.00 | - | 60.00 | 66.96 | - | 20 |" in text
    assert "### Sources of laptop-review, test" in text
    assert text.endswith("## What to know\n\nMind the gap.\n")


def test_the_page_goes_elsewhere_with_its_figures(out: Path, tmp_path: Path) -> None:
    page = render(out, tmp_path / "docs" / "found.md")
    assert {path.name for path in page.parent.iterdir()} == {"found.md", "found-rounds.svg", "found-published.svg"}
    assert "](found-rounds.svg)" in page.read_text(encoding="utf-8")
    found = read_json(out / "results.json")
    assert [(way["sources"], way["gold_free"]) for way in found["ways"]] == [("paper", False), ("paper", True)]
    assert found["ways"][0]["main"]["laptop-review"][1]["paper F1"] is not None


def test_without_matplotlib_there_are_no_figures(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    assert ".svg" not in render(out).read_text(encoding="utf-8")
    with pytest.raises(figures.MissingExtraError, match=r"tagweave\[figures\]"):
        figures.require_matplotlib()


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no result"):
        render(tmp_path)
