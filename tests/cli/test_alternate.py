"""The commands `alternate` and `predict`."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import CommandLine, news, read_lines, write_lines
from tagweave.alternate import AlternateTraining
from tagweave.cli.plans import read_plan
from tagweave.errors import UsageError
from tagweave.tagger import Tagger

QUICK = {"tagger.epochs": 2, "tagger.learning_rate": 0.005, "tagger.window": 32, "tagger.overlap": 8}
PLAN = """
[data]
train = "train.jsonl"
dev = "dev.jsonl"
out = "run"

[label_model]
kind = "hmm"
iterations = 3

[tagger]
encoder = "{encoder}"
epochs = 2
learning_rate = 0.005
window = 32
overlap = 8

[alternate]
rounds = 1
"""


def quick() -> list[str]:
    return [part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")]


@pytest.fixture(autouse=True)
def files(tagweave: CommandLine) -> None:
    write_lines(Path("train.jsonl"), news())
    write_lines(Path("dev.jsonl"), news(6))


def test_from_votes_to_predictions(tagweave: CommandLine, encoder: str) -> None:
    options = ["--label-model", "hmm", "--encoder", encoder, "--dev", "dev.jsonl", "--rounds", "1", "--out", "run"]
    result = tagweave.fine("alternate", "train.jsonl", *options, *quick(), "--set", "label_model.iterations=3")
    assert "round 1: label model on 5 sources" in result.err
    ending = result.err.splitlines()[-3:]
    assert "is the best and lies in run" in ending[0]
    assert {line.endswith("--output label-model") for line in ending[1:]} == {True, False}
    first, second = (float(line.partition("(F1 ")[2].partition(" on dev)")[0]) for line in ending[1:])
    assert first >= second
    plan = json.loads(Path("run/alternate.json").read_text(encoding="utf-8"))
    assert plan["label_model"]["iterations"] == 3
    assert plan["tagger"]["encoder"] == encoder
    write_lines(Path("new.jsonl"), [{"id": "x", "tokens": ["Ada", "saw", "Oslo"]}])
    (record,) = read_lines(tagweave.fine("predict", "run", "new.jsonl", "--out", "-").out)
    assert set(record) == {"id", "tokens", "entities", "labels", "probabilities"}
    assert len(record["probabilities"]) == 3
    tagweave.fine("predict", "run", "train.jsonl", "--output", "label-model", "--out", "voted.jsonl.gz")
    assert "signature" in tagweave.fine("evaluate", "train.jsonl", "voted.jsonl.gz").out
    again = tagweave("alternate", "train.jsonl", *options, *quick())
    assert (again.code, "run holds a run already: resume it" in again.words) == (1, True)


def test_predictions_of_a_tagger_alone(tagweave: CommandLine, encoder: str) -> None:
    settings = [part.replace("tagger.", "") for part in quick()]
    tagweave.fine("train", "train.jsonl", "--encoder", encoder, "--out", "tagger", *settings)
    assert len(read_lines(tagweave.fine("predict", "tagger", "train.jsonl", "--out", "-").out)) == 12
    both = tagweave("predict", "tagger", "train.jsonl", "--output", "label-model", "--out", "-")
    assert (both.code, "tagger holds a tagger only" in both.words) == (2, True)
    name = tagweave("predict", "tagger", "train.jsonl", "--output", "label_model", "--out", "-")
    assert (name.code, "Did you mean 'label-model'?" in name.words) == (2, True)
    folder = tagweave("predict", "nowhere", "train.jsonl", "--out", "-")
    assert (folder.code, "nowhere is no folder with a saved tagger" in folder.words) == (1, True)


def test_a_plan_in_a_file_and_a_killed_run(
    tagweave: CommandLine, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("plan.toml").write_text(PLAN.format(encoder=encoder), encoding="utf-8")
    fit = Tagger.fit

    def killed(self: Tagger, *given: Any, **places: Any) -> Tagger:  # noqa: ANN401
        if self.seed == 1:
            raise KeyboardInterrupt
        return fit(self, *given, **places)

    monkeypatch.setattr(Tagger, "fit", killed)
    stopped = tagweave("alternate", "plan.toml")
    assert stopped.code == 130
    assert "Traceback" not in stopped.err
    unfinished = tagweave("predict", "run", "dev.jsonl", "--out", "-")
    assert (unfinished.code, "no finished alternate training" in unfinished.words) == (1, True)
    monkeypatch.setattr(Tagger, "fit", fit)
    resumed = tagweave.fine("alternate", "plan.toml", "--resume")
    assert "round 0: tagger" not in resumed.err
    assert "round 1: tagger" in resumed.err
    tagweave.fine("alternate", "plan.toml", "--set", "data.out=whole")
    for name in ("result.json", "tagger/model.safetensors"):
        assert Path("run", name).read_bytes() == Path("whole", name).read_bytes()
    other = tagweave("alternate", "plan.toml", "--resume", "--seed", "1")
    assert (other.code, "run holds a run with other label_model, tagger" in other.words) == (1, True)


def test_a_plan_reaches_everything() -> None:
    settings = ["tagger.epochs=3", "alternate.refine_epochs=1", "label_model.kind=hmm", "data.coarse=NAME=PER"]
    options: dict[str, dict[str, Any]] = {
        "data": {"out": Path("run"), "sources": "a,b"},
        "label_model": {"encoder": "mine", "seed": 4},
        "tagger": {"encoder": "mine", "seed": 4},
    }
    plan = read_plan(Path("train.jsonl"), options, settings)
    assert plan.data.train == Path("train.jsonl")
    assert (plan.data.out, plan.data.sources, plan.data.coarse) == (Path("run"), "a,b", ("NAME=PER",))
    assert isinstance(plan.training, AlternateTraining)
    assert (plan.training.label_model.name, plan.training.label_model.seed) == ("hmm", 4)
    assert (plan.training.tagger.encoder, plan.training.tagger.epochs, plan.training.refine_epochs) == ("mine", 3, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["taggr.epochs=3"], "Did you mean 'tagger'?"),
        (["tagger=3"], "tagger is a table with keys"),
        (["tagger.epochs=3", "tagger.epoch=3"], "Did you mean 'epochs'?"),
        (["label_model.kind=hmn"], "Did you mean 'hmm'?"),
        (["alternate.tagger=3"], "alternate.tagger is a table of its own"),
        (["data.outt=x"], "Did you mean 'out'?"),
        (["data.out=x"], "out is given twice"),
    ],
)
def test_mistakes_in_a_plan(settings: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_plan(Path("train.jsonl"), {"data": {"out": Path("run")}}, settings)
    assert message in str(error.value)


def test_a_plan_must_say_where() -> None:
    with pytest.raises(UsageError, match="the plan names no out"):
        read_plan(Path("train.jsonl"), {}, [])


def test_a_file_that_is_no_toml(tagweave: CommandLine) -> None:
    Path("plan.toml").write_text("[data\n", encoding="utf-8")
    result = tagweave("alternate", "plan.toml")
    assert (result.code, "Traceback" in result.err) == (1, False)
    assert "plan.toml" in result.words
