from pathlib import Path

import pytest

from tagweave.benchmark.datasets import DATA_VARIABLE, data_folder, load_dataset
from tagweave.errors import DataError, UsageError


def test_systems_are_fitted_on_train_without_gold(tiny_data: Path) -> None:
    data = load_dataset(tiny_data, "laptop-review", "recommended")
    assert (len(data.fit), len(data.dev), len(data.test)) == (12, 8, 6)
    assert data.fit.entities is None
    assert list(data.fit.sources) == ["tag-names", "tag-cities"]
    assert list(data.scored) == ["dev", "test"]
    assert data.has_test_gold
    assert data.notes == ()


def test_without_the_gold_of_test_only_dev_is_scored(tiny_data: Path) -> None:
    data = load_dataset(tiny_data, "bc5cdr")
    assert list(data.scored) == ["dev"]
    assert data.notes == ("the gold of test is not known, so scores are on dev",)


def test_without_votes_for_train_dev_and_test_are_fitted_on(tiny_data: Path) -> None:
    data = load_dataset(tiny_data, "conll-2003")
    assert len(data.fit) == 8 + 6
    assert data.fit.entities is None
    assert data.fit.id_list[7:9] == ["dev-7", "test-0"]
    assert len(data.notes) == 2


def test_gold_of_train_is_where_the_data_set_has_it(tiny_data: Path) -> None:
    assert len(load_dataset(tiny_data, "conll-2003").gold_train) == 4
    gold = load_dataset(tiny_data, "laptop-review").gold_train
    assert len(gold) == 12
    assert gold.entities is not None
    assert not gold.sources


def test_halves_of_dev_are_learned_from_and_scored_only_where_test_cannot_be(tiny_data: Path) -> None:
    whole = load_dataset(tiny_data, "laptop-review")
    assert set(whole.with_dev_to_learn().scored) == {"test"}
    assert whole.with_dev_to_learn().dev is whole.dev
    data = load_dataset(tiny_data, "bc5cdr").with_dev_to_learn()
    assert data.dev.id_list == [f"dev-{n}" for n in range(4)]
    assert data.scored["dev"].id_list == [f"dev-{n}" for n in range(4, 8)]
    assert "first 4 dev documents and is scored on the other 4" in data.notes[-1]


def test_a_folder_that_is_missing_or_wrong_is_named(
    tiny_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(UsageError, match="--data"):
        data_folder(None)
    with pytest.raises(UsageError, match="no folder 'weak'"):
        data_folder(tmp_path)
    monkeypatch.setenv(DATA_VARIABLE, str(tiny_data))
    assert data_folder(None) == tiny_data
    with pytest.raises(UsageError, match="ncbi-disease is not in this folder"):
        load_dataset(tiny_data, "ncbi-disease")
    with pytest.raises(UsageError, match="Did you mean 'bc5cdr'"):
        load_dataset(tiny_data, "bc5cd")


def test_a_data_set_without_dev_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "weak" / "bc5cdr"
    place.mkdir(parents=True)
    (place / "meta.json").write_text('{"entity_types": ["A"], "paper_sources": []}', encoding="utf-8")
    with pytest.raises(DataError, match=r"no dev\.jsonl\.gz"):
        load_dataset(tmp_path, "bc5cdr")
