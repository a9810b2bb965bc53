import pytest

from tagweave.benchmark import settings
from tagweave.benchmark.systems import DEFAULT_SYSTEMS, parse_system
from tagweave.errors import UsageError


@pytest.mark.parametrize(
    ("text", "name", "label_model", "tagger", "alternate"),
    [
        ("hmm", "hmm", "hmm", None, False),
        ("hmm+autoner", "hmm+autoner", "hmm", "autoner", False),
        ("hmm-alt", "hmm-alt", "hmm", "bert", True),
        ("hmm-alt+bert", "hmm-alt", "hmm", "bert", True),
        ("hmm-alt+bert-crf", "hmm-alt+bert-crf", "hmm", "bert-crf", True),
        ("mv", "majority-vote", "majority-vote", None, False),
        ("mv-alt", "majority-vote-alt", "majority-vote", "bert", True),
        ("bond-mv", "majority-vote+bond", "majority-vote", "bond", False),
        ("swellshark-np+bert", "swellshark-np+bert", "swellshark-np", "bert", False),
        ("fine-tuned", "fine-tuned", "chmm", "bert", False),
    ],
)
def test_names(text: str, name: str, label_model: str, tagger: str | None, alternate: bool) -> None:
    system = parse_system(text)
    assert (system.name, system.label_model, system.tagger, system.alternate) == (name, label_model, tagger, alternate)
    assert parse_system(system.name) == system


@pytest.mark.parametrize("name", DEFAULT_SYSTEMS)
def test_all_usual_systems_have_settings(name: str) -> None:
    assert parse_system(name).settings("default", 3)


@pytest.mark.parametrize(
    ("name", "nearest"), [("chm-alt", "chmm-alt"), ("supervise", "supervised"), ("hmm+brt", "bert")]
)
def test_an_unknown_name_gives_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{nearest}'"):
        parse_system(name)


def test_chance_encoder_and_gold() -> None:
    assert [parse_system(name).has_chance for name in ("hmm", "chmm", "hmm+bert")] == [False, True, True]
    gold = [parse_system(name).uses_gold for name in ("best-consensus", "supervised", "fine-tuned", "autoner", "chmm")]
    assert gold == [True, True, True, False, False]


def test_settings_come_from_the_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.TAGGERS, "bert", {"epochs": 7})
    monkeypatch.setitem(settings.LABEL_MODELS, "chmm", {"epochs": 9})
    monkeypatch.setitem(settings.ALTERNATE, "rounds", 2)
    found = parse_system("chmm-alt").settings("default", 5)
    assert found["tagger"]["epochs"] == 7
    assert found["label_model"]["epochs"] == 9
    assert found["label_model"]["layers"] == (2, 4, 6)
    assert found["alternate"]["rounds"] == 2
    assert found["tagger"]["seed"] == found["label_model"]["seed"] == 5
    assert parse_system("chmm+bert").training("default", 0).rounds == 0
    assert parse_system("hmm+bert-crf").make_tagger("default", 0).output == "crf"


def test_what_learns_from_gold_has_its_own_settings() -> None:
    dev_only = parse_system("dev-only")
    tagger = dev_only.make_tagger("default", 0, **dev_only.gold_settings())
    assert tagger.epochs == settings.DEV_ONLY["epochs"]
    assert tagger.empty_share == 1.0
    assert parse_system("chmm+bert").gold_settings() == {}
