from pathlib import Path

import pytest
from typer.testing import CliRunner

from tagweave.cli import app
from tagweave.demo import DemoReport, read_demo, running
from tagweave.report import Table

REPORT = DemoReport(Table("Scores", ("stage", "dev F1"), (("HMM", 70.0),), 1), "HMM", ("  [mites](Problem)!",), None)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path | None, int]]:
    found: list[tuple[Path | None, int]] = []

    def run_demo(folder: Path | None, seed: int) -> DemoReport:
        found.append((folder, seed))
        return REPORT

    monkeypatch.setattr(running, "run_demo", run_demo)
    return found


def test_the_report_goes_to_standard_output(calls: list[tuple[Path | None, int]]) -> None:
    result = CliRunner().invoke(app, ["--quiet", "demo"])
    assert result.exit_code == 0
    assert result.stdout == f"{REPORT.text()}\n"
    assert calls == [(None, 0)]


def test_folder_and_seed(calls: list[tuple[Path | None, int]]) -> None:
    assert CliRunner().invoke(app, ["--quiet", "demo", "--out", "run", "--seed", "3"]).exit_code == 0
    assert calls == [(Path("run"), 3)]


def test_the_help_has_the_true_counts() -> None:
    words = " ".join(CliRunner().invoke(app, ["demo", "--help"]).stdout.replace("│", " ").split())
    train, dev, test = (len(read_demo(split)) for split in ("train", "dev", "test"))
    assert f"{train} sentences without gold" in words
    assert f"{dev} dev and {test} test sentences with gold" in words
