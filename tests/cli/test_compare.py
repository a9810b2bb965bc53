import json
from pathlib import Path

import pytest

from cli.running import CommandLine, news, write_lines


@pytest.fixture(autouse=True)
def weak(tagweave: CommandLine) -> None:
    write_lines(Path("weak.jsonl"), news())
    write_lines(Path("blind.jsonl"), [{k: v for k, v in record.items() if k != "entities"} for record in news()])


def test_models_are_scored_on_the_gold_of_the_votes(tagweave: CommandLine) -> None:
    out = tagweave.fine("compare", "weak.jsonl", "--models", "hmm,span-vote").out
    assert {line.split()[0] for line in out.splitlines()[3:]} == {"hmm", "span-vote"}
    assert "f1" in out.splitlines()[1]


def test_dev_is_scored(tagweave: CommandLine) -> None:
    result = tagweave.fine("compare", "blind.jsonl", "--models", "hmm", "--dev", "weak.jsonl", "--json")
    found = json.loads(result.out)
    assert found["on"] == "dev"
    assert found["models"][0]["scores"]["micro"]["f1"] > 0


def test_without_gold_there_is_agreement(tagweave: CommandLine) -> None:
    out = tagweave.fine("compare", "blind.jsonl", "--models", "hmm,span-vote,majority-vote").out
    assert "no gold" in out
    assert "Agreement of each two" in out


def test_by_default_all_that_need_neither_gold_nor_an_encoder(tagweave: CommandLine) -> None:
    found = json.loads(tagweave.fine("compare", "blind.jsonl", "--json").out)
    names = {model["label_model"] for model in found["models"]}
    assert {"hmm", "majority-vote", "span-vote"} <= names
    assert not names & {"best-consensus", "chmm", "chmm-iid"}


def test_settings_reach_their_model(tagweave: CommandLine) -> None:
    result = tagweave("compare", "weak.jsonl", "--models", "hmm", "--set", "hmm.silence=loud")
    assert result.code == 2
    assert "'loud'" in result.words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "hmn"], "no label model is called 'hmn'. Did you mean 'hmm'?"),
        (["--models", "hmm", "--set", "span-vote.order=votes"], "'span-vote'"),
        (["--models", "hmm", "--set", "silence=never"], "'silence'"),
        (["--models", "hmm", "--dev", "blind.jsonl"], "no gold entities"),
    ],
)
def test_mistakes(tagweave: CommandLine, arguments: list[str], message: str) -> None:
    result = tagweave("compare", "weak.jsonl", *arguments)
    assert result.code in (1, 2)
    assert message in result.words
