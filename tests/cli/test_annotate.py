"""`tagweave annotate`."""

import json
from pathlib import Path

import pytest

from cli.running import CommandLine, read_lines, write_lines

TABLES = """
[[source]]
kind = "affixes"
name = "suffixes"
type = "LOC"
suffixes = ["lo"]
description = "Towns that end in lo."

[[source]]
kind = "punctuation"
name = "marks"
"""

RULES = """
from tagweave import labeling_function

@labeling_function("LOC")
def brittle(document):
    print("looking")
    return [(document.tokens.index("Oslo"), document.tokens.index("Oslo") + 1)]
"""


@pytest.fixture
def folder(tagweave: CommandLine, tmp_path: Path) -> Path:
    """The working folder with documents and sources."""
    write_lines(
        tmp_path / "in.jsonl",
        [{"id": "1", "tokens": ["In", "Oslo", "."]}, {"id": "2", "tokens": ["Rome", "sleeps"]}],
    )
    (tmp_path / "sources.toml").write_text(TABLES, encoding="utf-8")
    (tmp_path / "sources.py").write_text(RULES, encoding="utf-8")
    return tmp_path


def test_votes_are_written_and_a_table_is_shown(tagweave: CommandLine, folder: Path) -> None:
    result = tagweave.fine("annotate", "in.jsonl", "--sources", "sources.toml", "--out", "weak.jsonl")
    assert read_lines((folder / "weak.jsonl").read_text(encoding="utf-8")) == [
        {
            "id": "1",
            "tokens": ["In", "Oslo", "."],
            "sources": {"suffixes": [[1, 2, "LOC"]], "marks": []},
            "votes_o": {"marks": [[2, 3]]},
        },
        {"id": "2", "tokens": ["Rome", "sleeps"], "sources": {"suffixes": [], "marks": []}},
    ]
    assert result.out == ""
    assert "2 documents in" in result.words
    assert "Towns that end in lo." in result.words


def test_a_failure_is_one_paragraph(tagweave: CommandLine, folder: Path) -> None:
    result = tagweave("annotate", "in.jsonl", "--sources", "sources.py", "--out", "weak.jsonl")
    assert result.code == 1
    assert "error: source 'brittle', document '2': ValueError: tuple.index(x): x not in tuple (" in result.words
    assert "sources.py, line 7)" in result.words
    assert "Traceback" not in result.err


def test_tolerated_failures_are_said(tagweave: CommandLine, folder: Path) -> None:
    result = tagweave.fine("annotate", "in.jsonl", "--sources", "sources.py", "--out", "weak.jsonl", "--tolerant")
    assert "source 'brittle' failed 1 times" in result.words
    assert "failures" in result.words
    assert [record["sources"] for record in read_lines((folder / "weak.jsonl").read_text(encoding="utf-8"))] == [
        {"brittle": [[1, 2, "LOC"]]},
        {"brittle": None},
    ]


@pytest.mark.usefixtures("folder")
def test_standard_streams_and_options_of_reading(tagweave: CommandLine) -> None:
    text = "In Oslo.\nRome sleeps\n"
    Path("in.txt").write_text(text, encoding="utf-8")
    result = tagweave.fine(
        "annotate", "-", "--from", "text", "--set", "unit=line", "--sources", "sources.toml", "--out", "-",
        stdin=text.encode(),
    )  # fmt: skip
    assert [record["sources"]["suffixes"] for record in map(json.loads, result.out.splitlines())] == [
        [[1, 2, "LOC"]],
        [],
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sources", "none.toml", "--out", "weak.jsonl"], "there is no file none.toml"),
        (["--sources", "sources.toml", "--out", "weak.jsonl", "--set", "unit=line"], "'unit'"),
        (["--sources", "sources.toml", "--out", "weak.conll"], "sources are written as JSON lines"),
    ],
)
def test_wrong_usage(tagweave: CommandLine, arguments: list[str], message: str) -> None:
    result = tagweave("annotate", "in.jsonl", *arguments)
    assert result.code == 2
    assert message in result.words


def test_a_run_is_gone_on_with(tagweave: CommandLine, folder: Path) -> None:
    write_lines(folder / "in.jsonl", [{"id": str(n), "tokens": ["Oslo" if n != 300 else "Rome"]} for n in range(400)])
    command = ["annotate", "in.jsonl", "--sources", "sources.py", "--out", "weak.jsonl"]
    result = tagweave(*command)
    assert result.code == 1
    assert "250 documents are done and kept in" in result.words
    result = tagweave.fine(*command, "--resume", "--tolerant", "--processes", "2")
    assert "250 documents are done already" in result.words
    assert len(read_lines((folder / "weak.jsonl").read_text(encoding="utf-8"))) == 400
