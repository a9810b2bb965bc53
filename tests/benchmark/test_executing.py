from collections.abc import Iterator
from pathlib import Path

import pytest

from tagweave.alternate import Round
from tagweave.benchmark import settings
from tagweave.benchmark.cells import Cell, read_cells
from tagweave.benchmark.datasets import load_dataset
from tagweave.benchmark.executing import _Run, execute, prepare
from tagweave.benchmark.scoring import SplitScores
from tagweave.benchmark.systems import parse_system
from tagweave.corpus import Corpus
from tagweave.storage import read_json, write_json
from tagweave.tagger import Tagger

# Tiny encoders learn little.
pytestmark = pytest.mark.filterwarnings("ignore:the tagger:tagweave.errors.TagweaveWarning")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ALTERNATE", {"rounds": 1, "patience": 1})
    monkeypatch.setattr(settings, "DEV_ONLY", {"epochs": 2})
    monkeypatch.setattr(settings, "SUPERVISED", {"epochs": 2})
    monkeypatch.setattr(settings, "FINE_TUNED", {"epochs": 5})


def test_a_label_model(tiny_data: Path, tmp_path: Path) -> None:
    cell = Cell("laptop-review", "hmm", sources="recommended")
    record = execute(cell, tiny_data, tmp_path)
    assert read_json(cell.path(tmp_path)) == record
    assert cell.path(tmp_path).name == "hmm.recommended.0.json"
    assert set(record["scores"]) == {"dev", "test"}
    assert record["scores"]["test"]["precision"] == 100.0
    assert 0 < record["scores"]["test"]["recall"] <= 100
    assert record["settings"]["label_model"]["kind"] == "hmm"
    assert record["seconds"]["fit"] >= 0
    assert record["peak_gigabytes"] > 0
    assert record["encoder"] is None
    assert record["machine"]["usable_cores"] >= 1
    assert not cell.work(tmp_path).exists()
    assert [found for found, _ in read_cells(tmp_path)] == [cell]


def test_an_oracle_sees_the_gold(tiny_data: Path, tmp_path: Path) -> None:
    oracle = execute(Cell("laptop-review", "best-consensus"), tiny_data, tmp_path)["scores"]["test"]
    vote = execute(Cell("laptop-review", "majority-vote"), tiny_data, tmp_path)["scores"]["test"]
    assert oracle["precision"] == 100.0
    assert oracle["f1"] >= vote["f1"] > 0


def test_links_of_the_linked_hmm_are_no_sources(tiny_data: Path) -> None:
    data = prepare(load_dataset(tiny_data, "bc5cdr"), parse_system("linked-hmm+bert"))
    for corpus in (data.fit, data.dev, data.scored["dev"]):
        assert list(corpus.sources) == ["tag-names", "tag-cities"]
        assert list(corpus.links) == ["link-phrases"]


def test_alternate_training_keeps_the_scores_of_all_rounds(tiny_data: Path, tmp_path: Path, encoder: str) -> None:
    record = execute(Cell("laptop-review", "majority-vote-alt", encoder), tiny_data, tmp_path)
    assert [entry["number"] for entry in record["rounds"]] == [0, 1]
    for entry in record["rounds"]:
        assert set(entry["scores"]) == {"label-model", "tagger"}
        assert set(entry["scores"]["tagger"]) == {"dev", "test"}
    chosen = record["chosen"]
    assert record["scores"] == record["rounds"][chosen["round"]]["scores"][chosen["output"]]
    on_dev = [scores["dev"]["f1"] for entry in record["rounds"] for scores in entry["scores"].values()]
    assert record["scores"]["dev"]["f1"] == max(on_dev)
    assert record["encoder"]["name"] == encoder
    assert record["machine"]["device"] == "cpu"
    assert record["rounds"][0]["fit_seconds"] < record["seconds"]["fit"]


def test_without_choices_on_dev_the_last_label_model_counts(tiny_data: Path, tmp_path: Path, encoder: str) -> None:
    cell = Cell("conll-2003", "hmm-alt", encoder, gold_free=True)
    record = execute(cell, tiny_data, tmp_path)
    assert cell.path(tmp_path).name == "hmm-alt.tiny.paper.gold-free.0.json"
    assert record["chosen"] == {"round": record["rounds"][-1]["number"], "output": "label-model"}
    assert set(record["scores"]) == {"dev"}


@pytest.mark.parametrize(
    ("system", "dataset", "learned"),
    [
        ("supervised", "conll-2003", 4),
        ("supervised", "laptop-review", 12),
        ("dev-only", "bc5cdr", 4),
        ("dev-only", "laptop-review", 8),
        ("autoner", "laptop-review", 12),
    ],
)
def test_taggers_without_a_label_model(
    system: str,
    dataset: str,
    learned: int,
    tiny_data: Path,
    tmp_path: Path,
    encoder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[Corpus, Corpus | None]] = []
    fitting = _Run._tagger

    def spy(run: _Run, corpus: Corpus, dev: Corpus | None, start_from: Tagger | None = None) -> dict[str, object]:
        seen.append((corpus, dev))
        return fitting(run, corpus, dev, start_from)

    monkeypatch.setattr(_Run, "_tagger", spy)
    record = execute(Cell(dataset, system, encoder), tiny_data, tmp_path)
    [(corpus, dev)] = seen
    assert len(corpus) == learned
    assert (dev is None) == (system == "dev-only")
    assert list(corpus.sources) == (["core", "full"] if system == "autoner" else [])
    assert (corpus.entities is None) == (system == "autoner")
    scored = {"test"} if system == "dev-only" and learned == 8 else {"dev"} | ({"test"} if learned > 4 else set())
    assert set(record["scores"]) == scored
    assert any("first 4 dev documents" in note for note in record["notes"]) == (system == "dev-only" and learned == 4)


def test_fine_tuning_starts_from_the_tagger_of_soft_labels(tiny_data: Path, tmp_path: Path, encoder: str) -> None:
    record = execute(Cell("bc5cdr", "fine-tuned", encoder), tiny_data, tmp_path)
    assert [entry["number"] for entry in record["rounds"]] == [0]
    assert record["settings"]["fine_tuning"] == {"epochs": 5}
    assert record["settings"]["label_model"]["layers"] == [1, 2]
    assert record["scores"]["dev"] != record["rounds"][0]["scores"]["tagger"]["dev"]


def test_a_broken_run_goes_on_with_the_result_of_an_unbroken_one(
    tiny_data: Path, tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell("laptop-review", "majority-vote-alt", encoder)
    whole = execute(cell, tiny_data, tmp_path / "whole")
    scores_of = _Run._scores_of
    calls: Iterator[int] = iter(range(9))

    def broken(run: _Run, found: Round) -> dict[str, SplitScores]:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return scores_of(run, found)

    monkeypatch.setattr(_Run, "_scores_of", broken)
    with pytest.raises(KeyboardInterrupt):
        execute(cell, tiny_data, tmp_path / "broken")
    kept = read_json(cell.work(tmp_path / "broken") / "rounds.json")["rounds"]
    assert len(kept) == 1
    resumed = execute(cell, tiny_data, tmp_path / "broken")
    assert resumed["starts"] == 2
    assert resumed["scores"] == whole["scores"]
    assert resumed["rounds"][0] == kept[0]
    assert [e["scores"] for e in resumed["rounds"]] == [e["scores"] for e in whole["rounds"]]


def test_a_run_with_other_settings_starts_afresh(tiny_data: Path, tmp_path: Path) -> None:
    cell = Cell("laptop-review", "hmm")
    work = cell.work(tmp_path)
    work.mkdir(parents=True)
    write_json(work / "settings.json", {**cell.settings(), "seed": 8})
    write_json(work / "meter.json", {"starts": 5})
    assert execute(cell, tiny_data, tmp_path)["starts"] == 1
