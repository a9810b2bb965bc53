import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tagweave.errors import StorageError, UsageError
from tagweave.storage import (
    CONFIG,
    MANIFEST,
    PARAMETERS,
    cache_folder,
    load_folder,
    new_folder,
    read_json,
    reserved,
    save_folder,
    write_json,
)


def save(folder: Path) -> None:
    save_folder(
        folder, "thing", {"rate": np.float64(0.5), "names": ("a", "ü")}, {"weights": np.arange(6.0).reshape(2, 3)}
    )


def test_round_trip(tmp_path: Path) -> None:
    save(tmp_path / "model")
    config, parameters = load_folder(tmp_path / "model", "thing")
    assert config["rate"] == 0.5
    assert config["names"] == ["a", "ü"]
    np.testing.assert_array_equal(parameters["weights"], [[0, 1, 2], [3, 4, 5]])


def test_array_views_are_stored_by_their_values(tmp_path: Path) -> None:
    save_folder(tmp_path / "model", "thing", {}, {"turned": np.arange(6.0).reshape(2, 3).T})
    np.testing.assert_array_equal(load_folder(tmp_path / "model", "thing")[1]["turned"], [[0, 3], [1, 4], [2, 5]])


def test_saving_again_replaces(tmp_path: Path) -> None:
    save(tmp_path / "model")
    save_folder(tmp_path / "model", "thing", {"rate": 2}, {})
    assert load_folder(tmp_path / "model", "thing")[0]["rate"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StorageError, match="was not written by tagweave"):
        save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    save(tmp_path)
    assert load_folder(tmp_path, "thing")[0]["rate"] == 0.5


def test_an_error_while_writing_leaves_the_old_folder(tmp_path: Path) -> None:
    save(tmp_path / "model")
    with pytest.raises(RuntimeError), new_folder(tmp_path / "model") as work:
        write_json(work / CONFIG, {})
        raise RuntimeError
    assert load_folder(tmp_path / "model", "thing")[0]["rate"] == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", [CONFIG, PARAMETERS, MANIFEST])
@pytest.mark.parametrize("fault", ["missing", "cut", "flipped"])
def test_every_fault_of_every_file_is_noticed(tmp_path: Path, name: str, fault: str) -> None:
    save(tmp_path / "model")
    path = tmp_path / "model" / name
    content = path.read_bytes()
    if fault == "missing":
        path.unlink()
    elif fault == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(StorageError, match="model"):
        load_folder(tmp_path / "model", "thing")


def test_another_kind_is_an_error(tmp_path: Path) -> None:
    save(tmp_path / "model")
    with pytest.raises(StorageError, match="holds a 'thing', not a label-model"):
        load_folder(tmp_path / "model", "label-model")


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 100_000, "\x00"])
def test_hostile_json_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(StorageError, match=r"x\.json"):
        read_json(tmp_path / "x.json")


def test_json_never_holds_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"loss": float("nan")})
    write_json(tmp_path / "y.json", {"path": tmp_path})
    assert json.loads((tmp_path / "y.json").read_text()) == {"path": str(tmp_path)}


def test_caches_are_in_the_home_unless_a_variable_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TAGWEAVE_CACHE", raising=False)
    assert cache_folder("things") == Path.home() / ".cache" / "tagweave" / "things"
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path))
    assert cache_folder("things") == tmp_path / "things"


def test_a_sealed_record_notices_every_changed_bit_that_means_something(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    value = {"f1": 0.75, "names": ["ü", None], "sizes": {"a": 10**12, "b": 1e-7}}
    write_json(path, value, sealed=True)
    assert read_json(path) == value
    content = path.read_bytes()
    noticed = 0
    for position in range(len(content)):
        for bit in range(8):
            path.write_bytes(content[:position] + bytes([content[position] ^ (1 << bit)]) + content[position + 1 :])
            try:
                found = read_json(path)
            except StorageError:
                noticed += 1
            else:
                assert {name: found[name] for name in value} == value
    assert noticed > 6 * len(content)


def test_a_place_is_for_one_run_and_not_for_what_others_wrote(tmp_path: Path) -> None:
    with reserved(tmp_path / "deep" / "model"):
        for again in (reserved(tmp_path / "deep" / "model"), reserved(tmp_path / "deep" / ".." / "deep" / "model")):
            with pytest.raises(UsageError, match="another run is writing it"), again:
                pass
        save(tmp_path / "deep" / "model")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["model"]
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StorageError, match="was not written by tagweave"), reserved(tmp_path):
        pass
    with pytest.raises(UsageError, match="cannot be written"), reserved(tmp_path / "thesis.txt" / "model"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not brought to the disk there")
def test_a_full_disk_is_said_and_the_old_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "model")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="model.* cannot be written: No space left"):
        save_folder(tmp_path / "model", "thing", {"rate": 2}, {})
    monkeypatch.undo()
    assert load_folder(tmp_path / "model", "thing")[0]["rate"] == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
