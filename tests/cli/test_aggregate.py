import gzip
import json
from pathlib import Path

import pytest

from cli.running import CommandLine, news, read_lines, write_lines
from tagweave.label_models import LABEL_MODELS, LabelModel


@pytest.fixture(autouse=True)
def train(tagweave: CommandLine) -> None:
    write_lines(Path("train.jsonl"), news())


def entities(text: str) -> list[list[list[object]]]:
    return [[span[:3] for span in record["entities"]] for record in read_lines(text)]


def test_labels_go_to_a_file(tagweave: CommandLine) -> None:
    result = tagweave.fine("aggregate", "train.jsonl", "--model", "span-vote", "--out", "out.jsonl")
    assert result.out == ""
    records = read_lines(Path("out.jsonl").read_text(encoding="utf-8"))
    assert [record["id"] for record in records] == [record["id"] for record in news()]
    assert set(records[0]) == {"id", "tokens", "entities", "labels", "probabilities"}
    assert records[0]["labels"] == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert all(len(row) == 5 for row in records[0]["probabilities"])
    assert [len(span) for span in records[0]["entities"]] == [4, 4]


@pytest.mark.parametrize("model", sorted(set(LABEL_MODELS) - {"chmm", "chmm-iid"}))
def test_every_model(tagweave: CommandLine, model: str) -> None:
    result = tagweave.fine("aggregate", "train.jsonl", "--model", model, "--out", "-")
    assert [0, 2, "PER"] in entities(result.out)[3]


def test_a_model_with_an_encoder(tagweave: CommandLine, encoder: str) -> None:
    options = ["--encoder", encoder, "--set", "epochs=1", "--set", "layers=1,2", "--seed", "3"]
    tagweave.fine("aggregate", "train.jsonl", "--model", "chmm", *options, "--out", "out.jsonl", "--save", "model")
    loaded = LabelModel.load(Path("model"))
    assert loaded.settings()["encoder"] == encoder
    assert loaded.seed == 3
    assert len(loaded.history_) == 1


def test_the_gold_is_not_looked_at(tagweave: CommandLine) -> None:
    write_lines(Path("blind.jsonl"), [{k: v for k, v in record.items() if k != "entities"} for record in news()])
    seeing, blind = (
        tagweave.fine("aggregate", name, "--model", "hmm", "--out", "-").out for name in ("train.jsonl", "blind.jsonl")
    )
    assert seeing == blind


def test_another_file_is_labelled(tagweave: CommandLine) -> None:
    other = [{**record, "id": f"other-{record['id']}"} for record in news(3)]
    write_lines(Path("other.jsonl"), other)
    result = tagweave.fine(
        "aggregate", "train.jsonl", "--model", "hmm", "--apply", "other.jsonl", "--out", "-", "--save", "model"
    )
    assert [record["id"] for record in read_lines(result.out)] == ["other-n0", "other-n1", "other-n2"]
    assert LabelModel.load(Path("model")).name == "hmm"


def test_what_was_learned_is_shown_on_stderr(tagweave: CommandLine) -> None:
    shown = tagweave.fine("aggregate", "train.jsonl", "--model", "hmm", "--show", "--out", "-")
    assert "What cities, towns says" in shown.err
    assert "B-PER" in shown.err
    silent = tagweave.fine("--quiet", "aggregate", "train.jsonl", "--model", "hmm", "--out", "-")
    assert silent.err == ""
    assert silent.out == shown.out


def test_scores_on_dev_stand_beside_the_votes(tagweave: CommandLine) -> None:
    write_lines(Path("dev.jsonl"), news(6))
    result = tagweave.fine("aggregate", "train.jsonl", "--model", "hmm", "--dev", "dev.jsonl", "--out", "-")
    assert all(name in result.err for name in ("majority-vote", "span-vote", "hmm", "precision"))


def test_dev_needs_gold(tagweave: CommandLine) -> None:
    write_lines(Path("dev.jsonl"), [{k: v for k, v in record.items() if k != "entities"} for record in news()])
    result = tagweave("aggregate", "train.jsonl", "--model", "hmm", "--dev", "dev.jsonl", "--out", "out.jsonl")
    assert (result.code, Path("out.jsonl").exists()) == (1, False)
    assert result.words.startswith("error: dev.jsonl has no gold entities")


def test_settings_reach_the_model(tagweave: CommandLine) -> None:
    options = ["--state-space", "io", "--set", "iterations=3", "--set", "silence=never", "--set", "strength=2.5"]
    tagweave.fine("aggregate", "train.jsonl", "--model", "hmm", *options, "--out", "-", "--save", "model")
    settings = LabelModel.load(Path("model")).settings()
    assert (settings["state_space"], settings["iterations"], settings["silence"], settings["strength"]) == (
        "io",
        3,
        "never",
        2.5,
    )


def test_sources_may_have_commas_in_their_names(tagweave: CommandLine) -> None:
    result = tagweave.fine(
        "aggregate",
        "train.jsonl",
        "--model",
        "hmm",
        "--sources",
        "names,cities, towns",
        "--out",
        "-",
        "--save",
        "model",
    )
    assert LabelModel.load(Path("model")).sources_ == ("names", "cities, towns")
    assert entities(result.out)[0] == [[0, 2, "PER"], [3, 4, "LOC"]]


def test_coarse_types(tagweave: CommandLine) -> None:
    records = news()
    for record in records:
        record["sources"]["caps"] = [[*span[:2], "NAME"] for span in record["entities"]]
    write_lines(Path("train.jsonl"), records)
    result = tagweave.fine(
        "aggregate", "train.jsonl", "--model", "hmm", "--coarse", "NAME=PER,LOC", "--out", "-", "--save", "model"
    )
    assert LabelModel.load(Path("model")).types_ == ("LOC", "PER")
    assert "NAME" not in result.out
    wrong = tagweave("aggregate", "train.jsonl", "--model", "hmm", "--coarse", "NAME", "--out", "-")
    assert (wrong.code, wrong.words) == (2, "error: --coarse NAME: write TYPE=A,B")


def test_packed_files_and_standard_streams(tagweave: CommandLine) -> None:
    plain = Path("train.jsonl").read_bytes()
    Path("train.jsonl.gz").write_bytes(gzip.compress(plain))
    tagweave.fine("aggregate", "train.jsonl.gz", "--model", "span-vote", "--out", "out.jsonl.gz")
    piped = tagweave.fine("aggregate", "-", "--model", "span-vote", "--out", "-", stdin=plain)
    assert gzip.decompress(Path("out.jsonl.gz").read_bytes()).decode() == piped.out
    assert len(read_lines(piped.out)) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "hmn"], "no label model is called 'hmn'. Did you mean 'hmm'?"),
        (["--model", "hmm", "--set", "iteratons=3"], "Did you mean 'iterations'?"),
        (["--model", "hmm", "--set", "iterations=many"], "iterations must be a whole number, not 'many'"),
        (["--model", "hmm", "--set", "silence"], "silence"),
        (["--model", "hmm", "--state-space", "bioo"], "Did you mean 'bio'?"),
        (["--model", "hmm", "--sources", "names,cites"], "no source is called 'cites'."),
        (["--model", "hmm", "--set", "seed=1", "--seed", "2"], "seed is given twice"),
        (["--model", "majority-vote", "--encoder", "default"], "encoder"),
        (["--model", "hmm", "--dve", "x"], "--dev"),
    ],
)
def test_mistakes_are_named_and_cost_nothing(tagweave: CommandLine, arguments: list[str], message: str) -> None:
    result = tagweave("aggregate", "train.jsonl", *arguments, "--out", "out.jsonl")
    assert result.code == 2
    assert message in result.words
    assert "Traceback" not in result.err
    assert not Path("out.jsonl").exists()


def test_best_consensus_needs_gold(tagweave: CommandLine) -> None:
    record = {"id": "x", "tokens": ["Ada"], "sources": {"names": [[0, 1, "PER"]]}}
    Path("blind.jsonl").write_text(json.dumps(record), encoding="utf-8")
    result = tagweave("aggregate", "blind.jsonl", "--model", "best-consensus", "--out", "-")
    assert (result.code, result.out) == (1, "")
    assert "reads the gold, but the corpus has none" in result.words
