import json
from pathlib import Path

import pytest

from cli.running import CommandLine, news, write_lines

QUICK = ["--set", "epochs=2", "--set", "learning_rate=0.005", "--set", "window=32", "--set", "overlap=8"]


@pytest.fixture(autouse=True)
def labelled(tagweave: CommandLine) -> None:
    write_lines(Path("labelled.jsonl"), news(sources=False))


def test_a_tagger_with_its_settings(tagweave: CommandLine, encoder: str) -> None:
    write_lines(Path("dev.jsonl"), news(6))
    result = tagweave.fine(
        "train", "labelled.jsonl", "--encoder", encoder, "--dev", "dev.jsonl", "--out", "tagger", "--seed", "5", *QUICK
    )
    saved = json.loads(Path("tagger/tagweave.json").read_text(encoding="utf-8"))
    assert saved["seed"] == 5
    assert saved["settings"]["epochs"] == 2
    assert len(saved["history"]) == 2
    assert result.out == ""
    assert all(word in result.err for word in ("tagger", "majority-vote", "precision"))


def test_a_trained_tagger_is_fine_tuned_on_gold(tagweave: CommandLine, encoder: str) -> None:
    tagweave.fine("train", "labelled.jsonl", "--encoder", encoder, "--tagger", "bond", "--out", "weak", *QUICK)
    write_lines(Path("gold.jsonl"), news(6, sources=False))
    before = Path("weak/model.safetensors").read_bytes()
    none = ["--set", "epochs=0"]
    tagweave.fine("train", "gold.jsonl", "--from", "weak", "--encoder", encoder, "--out", "untouched", *none)
    tagweave.fine("train", "gold.jsonl", "--from", "weak", "--encoder", encoder, "--out", "tuned", *QUICK)
    assert Path("untouched/model.safetensors").read_bytes() == before == Path("weak/model.safetensors").read_bytes()
    assert Path("tuned/model.safetensors").read_bytes() != before
    kinds = {n: json.loads(Path(n, "tagweave.json").read_text(encoding="utf-8"))["tagger"] for n in ("weak", "tuned")}
    assert kinds == {"weak": "bond", "tuned": "bert"}


def test_what_cannot_be_fine_tuned(tagweave: CommandLine, encoder: str) -> None:
    def tune(gold: str, start: str, *options: str) -> tuple[int, str]:
        result = tagweave("train", gold, "--from", start, "--encoder", encoder, "--out", "tuned", *options)
        return result.code, result.words

    Path("empty").mkdir()
    tagweave.fine("train", "labelled.jsonl", "--encoder", encoder, "--out", "weak", "--set", "epochs=0")
    write_lines(Path("days.jsonl"), [{"id": "1", "tokens": ["Friday"], "entities": [[0, 1, "DAY"]]}])
    for given, code, message in (
        (("labelled.jsonl", "nowhere"), 1, "nowhere is no folder with a saved tagger"),
        (("labelled.jsonl", "empty"), 1, "empty is no folder with a saved tagger"),
        (("labelled.jsonl", "weak", "--tagger", "autoner"), 2, "cannot start from a bert tagger"),
        (("labelled.jsonl", "weak", "--set", "output=crf"), 2, "give the setting output=linear"),
        (("days.jsonl", "weak"), 1, "DAY"),
    ):
        found, words = tune(*given)
        assert (found, message in words) == (code, True), words
    assert not Path("tuned").exists()


def test_mistakes(tagweave: CommandLine, encoder: str) -> None:
    setting = tagweave("train", "labelled.jsonl", "--encoder", encoder, "--out", "tagger", "--set", "epoch=2")
    assert (setting.code, "Did you mean 'epochs'?" in setting.words) == (2, True)
    write_lines(Path("blind.jsonl"), [{"id": "1", "tokens": ["Oslo"], "sources": {"a": [[0, 1, "LOC"]]}}])
    blind = tagweave("train", "blind.jsonl", "--encoder", encoder, "--out", "tagger")
    assert (blind.code, "neither soft labels nor entities" in blind.words) == (1, True)
    dev = tagweave("train", "labelled.jsonl", "--encoder", encoder, "--dev", "blind.jsonl", "--out", "tagger")
    assert (dev.code, "blind.jsonl has no gold entities" in dev.words) == (1, True)
    assert not Path("tagger").exists()


def test_a_folder_of_others_is_not_replaced(tagweave: CommandLine, encoder: str) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("precious", encoding="utf-8")
    result = tagweave("train", "labelled.jsonl", "--encoder", encoder, "--out", "mine", *QUICK)
    assert result.code == 1
    assert "was not written by tagweave" in result.words
    assert Path("mine/notes.txt").read_text(encoding="utf-8") == "precious"
