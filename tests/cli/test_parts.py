"""Files that are worked on part by part: the same labels, whatever the size of a part."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.running import CommandLine, news, read_lines, write_lines
from tagweave.formats import read
from tagweave.stored import labelling

QUICK = ["--set", "epochs=1", "--set", "window=32", "--set", "overlap=8"]


@pytest.fixture(autouse=True)
def train(tagweave: CommandLine) -> None:
    write_lines(Path("train.jsonl"), news(30))


def test_small_parts_change_nothing(tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[dict[str, Any]]] = []
    for size in (1000, 4):
        monkeypatch.setattr(labelling, "PART", size)
        found.append(read_lines(tagweave.fine("aggregate", "train.jsonl", "--model", "hmm", "--out", "-").out))
    for whole, part in zip(*found, strict=True):
        assert (whole["id"], whole["tokens"], whole["labels"]) == (part["id"], part["tokens"], part["labels"])
        assert [span[:3] for span in whole["entities"]] == [span[:3] for span in part["entities"]]
        np.testing.assert_allclose(whole["probabilities"], part["probabilities"], atol=2e-5)


def test_what_needs_all_documents_gets_them(tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "PART", 4)
    tagweave.fine("aggregate", "train.jsonl", "--model", "swellshark", "--out", "out.jsonl")
    tagweave.fine("aggregate", "train.jsonl", "--model", "majority-vote", "--out", "out.conll")
    assert len(read("out.jsonl")) == len(read("out.conll")) == 30


def test_standard_input_is_read_once(tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "PART", 4)
    said = Path("train.jsonl").read_bytes()
    result = tagweave.fine("aggregate", "-", "--model", "dawid-skene", "--out", "-", stdin=said)
    assert len(read_lines(result.out)) == 30


def test_groups_that_come_in_pieces_are_named(tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelling, "PART", 4)
    write_lines(Path("grouped.jsonl"), [{**record, "group": f"g{n % 3}"} for n, record in enumerate(news(30))])
    arguments = ["aggregate", "grouped.jsonl", "--model", "hmm", "--out", "out.jsonl", "--set", "silence=document"]
    result = tagweave(*arguments)
    assert result.code == 1
    assert "the documents of group 'g1' are not all in one part" in result.words
    assert not Path("out.jsonl").exists()


def test_a_source_that_votes_late_is_known_from_the_start(
    tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelling, "PART", 4)
    records = news(30)
    for record in records[20:]:
        record["sources"]["late"] = [[0, 1, "EVENT"]]
    write_lines(Path("late.jsonl"), records)
    labelled = read_lines(tagweave.fine("aggregate", "late.jsonl", "--model", "majority-vote", "--out", "-").out)
    assert all("B-EVENT" in record["labels"] for record in labelled)


def test_a_tagger_labels_part_by_part(tagweave: CommandLine, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tagweave.fine("train", "train.jsonl", "--encoder", encoder, "--out", "tagger", *QUICK)
    found = []
    for size in (1000, 4):
        monkeypatch.setattr(labelling, "PART", size)
        found.append(read_lines(tagweave.fine("predict", "tagger", "train.jsonl", "--out", "-").out))
    for whole, part in zip(*found, strict=True):
        assert whole["id"] == part["id"]
        np.testing.assert_allclose(whole["probabilities"], part["probabilities"], atol=1e-4)
