"""Folders of shards on the command line."""

import json
import os
import re
import socket
from pathlib import Path

import pytest

from cli.running import CommandLine, news, read_lines, write_lines
from tagweave.encoder import embeddings
from tagweave.shards import Manifest, ray_cluster


@pytest.fixture(autouse=True)
def shards(tagweave: CommandLine) -> None:
    """The documents of a file, and the same in three shards and an empty one."""
    records = news(12)
    write_lines(Path("train.jsonl"), records)
    Path("train").mkdir()
    for name, chosen in (("a", records[:5]), ("b", []), ("c", records[5:8]), ("d", records[8:])):
        write_lines(Path(f"train/{name}.jsonl"), chosen)


def joined(folder: str) -> list[dict[str, object]]:
    return [record for path in sorted(Path(folder).glob("*.jsonl")) for record in read_lines(path.read_text())]


def test_aggregate_learns_from_all_shards_and_labels_each(tagweave: CommandLine) -> None:
    options = ["--model", "hmm", "--coarse", "NAME=PER,LOC", "--sources", "names,all,odd"]
    tagweave.fine("aggregate", "train.jsonl", *options, "--out", "labels.jsonl", "--save", "model")
    tagweave.fine("aggregate", "train", *options, "--out", "labels", "--save", "again", "--processes", "2")
    assert sorted(Manifest.read("labels").entries) == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]
    one, other = read_lines(Path("labels.jsonl").read_text()), joined("labels")
    assert [record["id"] for record in other] == [record["id"] for record in one]
    assert [record["labels"] for record in other] == [record["labels"] for record in one]
    for mine, theirs in zip(other, one, strict=True):
        assert [span[:3] for span in mine["entities"]] == [span[:3] for span in theirs["entities"]]  # type: ignore[attr-defined]
    before = {path.name: path.stat().st_ino for path in Path("labels").glob("*.jsonl")}
    tagweave.fine("aggregate", "train", *options, "--out", "labels")
    assert {path.name: path.stat().st_ino for path in Path("labels").glob("*.jsonl")} == before


def test_a_model_that_needs_all_documents_labels_a_folder_only(tagweave: CommandLine) -> None:
    result = tagweave("aggregate", "train", "--model", "swellshark", "--out", "labels")
    assert (result.code, "learns from all documents at once" in result.words) == (2, True)
    tagweave.fine("aggregate", "train.jsonl", "--model", "linked-hmm", "--apply", "train", "--out", "labels")
    assert len(joined("labels")) == 12
    tagweave.fine("aggregate", "train", "--model", "naive-bayes", "--apply", "train.jsonl", "--out", "labels.jsonl")
    assert len(read_lines(Path("labels.jsonl").read_text())) == 12


def test_predict_and_annotate_give_a_folder(tagweave: CommandLine, encoder: str) -> None:
    quick = ["--set", "epochs=1", "--set", "window=32", "--set", "overlap=8"]
    tagweave.fine("train", "train.jsonl", "--encoder", encoder, "--out", "tagger", *quick)
    tagweave.fine("predict", "tagger", "train.jsonl", "--out", "found.jsonl")
    tagweave.fine("predict", "tagger", "train", "--out", "found")
    one, other = read_lines(Path("found.jsonl").read_text()), joined("found")
    assert [record["id"] for record in other] == [record["id"] for record in one]
    assert [record["labels"] for record in other] == [record["labels"] for record in one]
    Path("sources.toml").write_text("[[source]]\nkind='affixes'\nname='lo'\ntype='LOC'\nsuffixes=['lo']\n")
    result = tagweave.fine("annotate", "train", "--sources", "sources.toml", "--out", "weak")
    assert "12 documents in" in result.words
    assert json.loads(Path("weak/a.jsonl").read_text().splitlines()[0])["sources"]["lo"] == [[3, 4, "LOC"]]


def test_a_label_model_finds_what_embed_made_of_a_folder(
    tagweave: CommandLine, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tagweave.fine("embed", "train", "--encoder", encoder, "--layers", "1,-1", "--processes", "2")
    assert "train: 36 words are embedded, 64 numbers each" in result.words
    monkeypatch.setattr(embeddings, "_compute", None)
    options = ["--encoder", encoder, "--set", "layers=1,-1", "--set", "epochs=1"]
    tagweave.fine("aggregate", "train.jsonl", "--model", "chmm", *options, "--out", "labels.jsonl")
    tagweave.fine("embed", "train.jsonl", "--encoder", encoder, "--layers", "1,-1")


def test_a_cluster_that_is_not_there_is_named_at_once(tagweave: CommandLine) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tagweave[ray]'")
    options = ["--model", "hmm", "--out", "labels", "--engine", "ray"]
    for address in ("127.0.0.1:1", "nonsense"):
        result = tagweave("aggregate", "train", *options, "--address", address)
        assert (result.code, f"no Ray cluster is found at '{address}'" in result.words) == (2, True)


@pytest.mark.parametrize("answers", [False, True], ids=["nobody", "somebody else"])
def test_the_address_of_a_cluster_that_has_ended_is_not_waited_for(
    tagweave: CommandLine, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tagweave[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", os.getcwd())
    monkeypatch.setattr("ray._private.services.find_gcs_addresses", set)
    monkeypatch.setattr(ray_cluster, "_LONGEST_TRY", 2.0)
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        Path("ray").mkdir()
        Path("ray/ray_current_cluster").write_text(f"127.0.0.1:{port}")
        if not answers:
            server.close()
        result = tagweave("aggregate", "train", "--model", "hmm", "--out", "labels", "--engine", "ray")
    assert result.code == 2
    assert re.search(rf"no Ray cluster is found at 'auto', which is \S+:{port} \(", result.words)
    assert ("did not answer as a cluster in 2 seconds" in result.words) == answers
    assert "Start one with `ray start --head`" in result.words
    assert not Path("labels").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "tagger", "train.jsonl", "--engine", "ray"], "train.jsonl is one file: --engine ray shares out"),
        (["predict", "tagger", "train.jsonl", "--processes", "2"], "train.jsonl is one file: --processes 2 shares out"),
        (["aggregate", "train.jsonl", "--model", "hmm", "--processes", "2"], "--processes 2 shares out the files"),
        (["aggregate", "train", "--model", "hmm", "--engine", "rya"], "no engine is called 'rya'. Did you mean 'ray'"),
        (["embed", "train", "--layers", "a"], "layers"),
        (["embed", "train", "--engine", "rya"], "no engine is called 'rya'. Did you mean 'ray'"),
        (["predict", "nowhere", "train"], "nowhere"),
        (["predict", "tagger", "train", "--out", "out.jsonl"], "so their outputs go into a folder too"),
        (["annotate", "train", "--sources", "rules.toml", "--out", "-"], "so their outputs go into a folder too"),
    ],
)
def test_what_makes_no_sense_is_refused(tagweave: CommandLine, arguments: list[str], message: str) -> None:
    result = tagweave(*arguments, *([] if "--out" in arguments or arguments[0] == "embed" else ["--out", "out"]))
    assert result.code in (1, 2)
    assert result.err.startswith("error: ")
    assert message in result.words
    assert not Path("out").exists()
