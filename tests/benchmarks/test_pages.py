"""The pages that are made of what benchmarks recorded."""

import json
import sys
from pathlib import Path

import pytest

from tagweave.report import Table

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    import recording

    monkeypatch.setattr(recording, "RESULTS", folder)
    monkeypatch.setattr(sys, "argv", ["speed.py", "--data", "/home/ada/data"])
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", "How fast it is.\n\nAnd how it is done.", raising=False)
    claims = [
        recording.Claim("tokens", 25.93, "M/s", 20.0, peer="torch 4.1"),
        recording.Claim("memory", 4.5, "GB", 4.0, "lower"),
        recording.Claim("on a card", None, "M/s", 100.0),
        recording.Claim("only a figure", 1234.5, "lines"),
    ]
    recording.record("speed", claims=claims, tables=[Table("Runs", ("a", "b"), (("x", 1.5),))], notes=["Too much."])
    return [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]


def test_a_claim_is_met_if_its_figure_reaches_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = recorded(tmp_path, monkeypatch)
    assert [claim["met"] for claim in found["claims"]] == [True, False, None, None]  # type: ignore[attr-defined]


def test_private_folders_do_not_get_into_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = recorded(tmp_path, monkeypatch)
    assert found["command"] == "python benchmarks/speed.py --data data"


def test_the_pages_have_claims_tables_and_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pages

    found = recorded(tmp_path, monkeypatch)
    page = pages.performance(found)
    assert "| tokens | 25.9 | at least 20 | M/s | yes | torch 4.1 |" in page
    assert "| memory | 4.5 | at most 4 | GB | no | - |" in page
    assert "| only a figure | 1,234 | - | lines | - | - |" in page
    assert "How fast it is.\n\nAnd how it is done.\n" in page
    assert "**Runs**" in page and page.endswith("Too much.\n")
    assert "| `python benchmarks/speed.py --data data` | How fast it is. | 1 of 2 |" in pages.readme(found)


def test_the_pages_in_the_repository_are_those_of_the_records() -> None:
    import pages

    found = pages.records()
    assert (pages.ROOT / "docs" / "performance.md").read_text(encoding="utf-8") == pages.performance(found)
    assert (pages.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8") == pages.readme(found)
