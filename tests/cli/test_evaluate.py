import json
from pathlib import Path

import pytest

from cli.running import CommandLine, news, write_lines


@pytest.fixture(autouse=True)
def files(tagweave: CommandLine) -> None:
    write_lines(Path("gold.jsonl"), news(sources=False))
    predicted = [{**record, "entities": record["entities"][:1]} for record in news(sources=False)]
    write_lines(Path("predicted.jsonl"), predicted[::-1])


def test_scores_with_their_signature(tagweave: CommandLine) -> None:
    result = tagweave.fine("evaluate", "gold.jsonl", "predicted.jsonl")
    assert "Entity scores (strict matching, read from spans)" in result.out
    assert "signature: strict|spans|micro|docs:12|types:2|boot:1000,seed:0|v" in result.out
    assert result.out.count("signature:") == 1


def test_as_json(tagweave: CommandLine) -> None:
    result = tagweave.fine("evaluate", "gold.jsonl", "predicted.jsonl", "--json", "--bootstrap", "50", "--seed", "4")
    scores = json.loads(result.out)
    assert scores["micro"]["precision"] == 1
    assert scores["micro"]["recall"] == 0.5
    assert scores["interval"]["resamples"] == 50
    assert "seed:4" in scores["signature"]
    assert "lenient" not in scores


def test_no_bootstrap(tagweave: CommandLine) -> None:
    assert (
        json.loads(tagweave.fine("evaluate", "gold.jsonl", "predicted.jsonl", "--json", "--bootstrap", "0").out)[
            "interval"
        ]
        is None
    )


def test_tags_are_read_both_ways(tagweave: CommandLine) -> None:
    Path("gold").mkdir()
    Path("gold/in.conll").write_text("Ada B-PER\nsaw O\nOslo B-LOC\nnow O\n\nBo B-PER\nX I-PER\n", encoding="utf-8")
    Path("in.conll").write_text("Ada B-PER\nsaw O\nOslo B-LOC\nnow B-LOC\n\nBo I-PER\nX I-PER\n", encoding="utf-8")
    text = tagweave.fine("evaluate", "gold/in.conll", "in.conll")
    assert [line.split("|")[1] for line in text.out.splitlines() if line.startswith("signature:")] == [
        "tags:strict",
        "tags:lenient",
    ]
    found = json.loads(tagweave.fine("evaluate", "gold/in.conll", "in.conll", "--json").out)
    assert (found["reading"], found["lenient"]["reading"]) == ("tags:strict", "tags:lenient")
    assert found["micro"]["f1"] < found["lenient"]["micro"]["f1"]


def test_documents_that_do_not_fit(tagweave: CommandLine) -> None:
    write_lines(Path("few.jsonl"), news(3, sources=False))
    result = tagweave("evaluate", "gold.jsonl", "few.jsonl")
    assert result.code == 1
    assert result.words.startswith("error: no prediction for document 'n3', 'n4', 'n5' and 6 more")
    more = tagweave.fine("evaluate", "few.jsonl", "gold.jsonl")
    assert more.words.startswith("warning: 9 predicted documents are not in the gold")
