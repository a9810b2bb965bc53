"""Folders of label models that somebody has changed: refused with a StorageError, and nothing in them runs."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attacks.folders import broken_tensors, changed, corpus, planted, signed
from cli.running import CommandLine
from tagweave.errors import StorageError
from tagweave.label_models import LABEL_MODELS, LabelModel, create_label_model

ALONE = sorted(name for name in LABEL_MODELS if name not in ("chmm", "chmm-iid"))
WITH_ARRAYS = [name for name in ALONE if name not in ("best-consensus", "majority-vote")]


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str], Path]:
    """Saves a fitted model."""

    def save(name: str) -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            create_label_model(name).fit(corpus()).save(tmp_path / name)
        return tmp_path / name

    return save


@pytest.mark.parametrize("name", ALONE)
def test_pickles_and_code_in_the_folder_are_left_alone(name: str, saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder, mark = saved(name), tmp_path / "mark"
    planted(folder, mark)
    LabelModel.load(folder)
    signed(folder)
    LabelModel.load(folder).predict(corpus())
    assert not mark.exists()


@pytest.mark.parametrize("name", ["hmm", "swellshark", "linked-hmm", "span-vote"])
def test_broken_tensors(name: str, saved: Callable[[str], Path]) -> None:
    folder = saved(name)
    good = (folder / "parameters.safetensors").read_bytes()
    for what, raw in broken_tensors(good):
        (folder / "parameters.safetensors").write_bytes(raw)
        signed(folder)
        with pytest.raises(StorageError, match=r"safetensors|holds?"):
            raise AssertionError(what, LabelModel.load(folder))


def test_a_pickle_for_the_tensors(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = saved("hmm")
    [pickled, *_] = planted(tmp_path, tmp_path / "mark")
    (folder / "parameters.safetensors").write_bytes(pickled.read_bytes())
    signed(folder)
    with pytest.raises(StorageError):
        LabelModel.load(folder)
    assert not (tmp_path / "mark").exists()


ARRAYS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "smaller": lambda array: array[..., :1],
    "larger": lambda array: np.concatenate([array] * 3, axis=-1),
    "flat": lambda array: array.reshape(-1)[:, None],
    "whole": lambda array: np.float64(0.5) * np.ones(()),
    "empty": lambda array: array[:0],
    "bytes": lambda array: array.astype(np.uint8),
    "half": lambda array: array.astype(np.float16),
    "infinite": lambda array: np.full_like(array, np.inf, dtype=np.float64),
}


@pytest.mark.parametrize("name", WITH_ARRAYS)
@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_of_other_shapes_and_kinds(name: str, what: str, saved: Callable[[str], Path]) -> None:
    folder = saved(name)
    path = folder / "parameters.safetensors"
    good = load_file(path)
    for key in good:
        save_file({**good, key: np.ascontiguousarray(ARRAYS[what](good[key]))}, path)
        signed(folder)
        with pytest.raises(StorageError):
            LabelModel.load(folder)


CONFIGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "other kind": lambda config: config.update(kind="tagger"),
    "a class": lambda config: config.update(label_model="os.system"),
    "no class": lambda config: config.pop("label_model"),
    "list of classes": lambda config: config.update(label_model=["hmm"]),
    "other class": lambda config: config.update(label_model="linked-hmm"),
    "unknown setting": lambda config: config["settings"].update(callback="os.system"),
    "setting with a path": lambda config: config["settings"].update(seed="../../etc/passwd"),
    "setting of a table": lambda config: config["settings"].update(silence={"$eval": "1"}),
    "huge setting": lambda config: config["settings"].update(iterations=10**400),
    "settings are a list": lambda config: config.update(settings=[]),
    "no settings": lambda config: config.pop("settings"),
    "types are a text": lambda config: config.update(types="PER"),
    "type is a number": lambda config: config.update(types=[1, 2]),
    "type is empty": lambda config: config.update(types=["", "PER"]),
    "type twice": lambda config: config.update(types=["PER", "PER"]),
    "more types": lambda config: config.update(types=[f"T{n}" for n in range(200)]),
    "no types": lambda config: config.update(types=[]),
    "type O": lambda config: config.update(types=["O", "PER"]),
    "no sources": lambda config: config.update(sources=[]),
    "more sources": lambda config: config.update(sources=[f"s{n}" for n in range(200)]),
    "source is a table": lambda config: config.update(sources=[{"a": 1}]),
    "source twice": lambda config: config.update(sources=["a", "a", "b"]),
    "links are a table": lambda config: config.update(links={"l": 1}),
    "history of numbers": lambda config: config.update(history=[1, 2]),
    "no history": lambda config: config.pop("history"),
    "extra key": lambda config: config.update(auto_map={"AutoModel": "evil.Evil"}),
    "extra path": lambda config: config.update(parameters="/etc/passwd"),
    "a list": lambda config: [config],
    "nothing": lambda config: {},
}


@pytest.mark.parametrize("what", CONFIGS)
def test_changed_configurations(what: str, saved: Callable[[str], Path]) -> None:
    folder = saved("hmm")
    changed(folder / "config.json", CONFIGS[what])
    signed(folder)
    with pytest.raises(StorageError, match=r"config|hmm|holds?|folder"):
        LabelModel.load(folder)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"kind": NaN}', b"null", b"9" * 10_000, b'{"a":' * 100_000],
    ids=["nothing", "cut", "bytes", "deep", "nan", "null", "number", "objects"],
)
@pytest.mark.parametrize("file", ["config.json", "manifest.json"])
def test_files_that_are_no_json(file: str, raw: bytes, saved: Callable[[str], Path]) -> None:
    folder = saved("hmm")
    (folder / file).write_bytes(raw)
    if file == "config.json":
        signed(folder)
    with pytest.raises(StorageError):
        LabelModel.load(folder)


MANIFESTS: dict[str, Any] = {
    "parent": {"../outside": {"bytes": 0, "sha256": "0"}},
    "absolute": {"/etc/passwd": {"bytes": 0, "sha256": "0"}},
    "device": {"/dev/zero": {"bytes": 0, "sha256": "0"}},
    "nul": {"a\0b": {"bytes": 0, "sha256": "0"}},
    "drive": {"C:\\Windows\\system.ini": {"bytes": 0, "sha256": "0"}},
    "here": {".": 1},
    "empty name": {"": 1},
    "list": {"config.json": [1, 2]},
    "number": {"config.json": 10**400},
    "nothing": {"config.json": None},
    "long name": {"x" * 10_000: 1},
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_changed_manifests(what: str, saved: Callable[[str], Path]) -> None:
    folder = saved("hmm")
    (folder / "manifest.json").write_text(json.dumps(MANIFESTS[what]))
    with pytest.raises(StorageError):
        LabelModel.load(folder)


def test_a_changed_file_is_found_by_its_sum(saved: Callable[[str], Path]) -> None:
    folder = saved("hmm")
    changed(folder / "config.json", lambda config: config.update(sources=["x", "y", "z"]))
    with pytest.raises(StorageError, match="has changed"):
        LabelModel.load(folder)


def test_the_command_says_it_in_a_paragraph(tagweave: CommandLine, saved: Callable[[str], Path]) -> None:
    from tagweave import write

    write(corpus(), "in.jsonl")
    for what in ("unknown setting", "more types", "a class"):
        folder = saved("hmm")
        changed(folder / "config.json", CONFIGS[what])
        signed(folder)
        result = tagweave("predict", str(folder), "in.jsonl", "--out", "out.jsonl")
        assert result.code in (1, 2)
        assert "Traceback" not in result.err
        assert not Path("out.jsonl").exists()
