"""Exported taggers: what ONNX Runtime says is what torch says, rounded or not; and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_encoder
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import MissingExtraError, StorageError, UsageError
from tagweave.tagger import AutoNER, Tagger, exporting
from tagweave.tagger.exporting import export

NAMES, PLACES = ["Ada", "Berit", "Tove"], ["Oslo", "Lund"]
WORDS = [*NAMES, *PLACES, "visited", "left", "and", "in", "."]


def documents(count: int, seed: int = 0) -> Corpus:
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        tokens = [WORDS[i] for i in chance.integers(0, len(WORDS), int(chance.integers(1, 9)) if number else 60)]
        spans = [Span(i, i + 1, "PER" if token in NAMES else "LOC") for i, token in enumerate(tokens)
                 if token in NAMES + PLACES]  # fmt: skip
        found.append(Document(f"d{number}", tokens, entities=spans))
    return Corpus.from_documents(found, types=["PER", "LOC"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_encoder.build(tmp_path_factory.mktemp("tiny"), WORDS)


def fitted(tiny: str, kind: type[Tagger] = Tagger, **settings: Any) -> Tagger:  # noqa: ANN401
    given = {"encoder": tiny, "epochs": 6, "learning_rate": 1e-2, "window": 24, "overlap": 6, "frozen_layers": 0,
             "precision": "float32"}  # fmt: skip
    return kind(**{**given, **settings}).fit(documents(40))


@pytest.fixture(scope="module")
def tagger(tiny: str) -> Tagger:
    return fitted(tiny)


@pytest.fixture(scope="module")
def exported(tagger: Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "plain"
    export(tagger, folder)
    return folder


def check_same(tagger: Tagger, folder: Path, tolerance: float) -> None:
    corpus = documents(20, seed=1).with_entities(None)
    ours, theirs = tagger.predict(corpus), Tagger.load(folder).predict(corpus)
    assert ours.soft_labels is not None and theirs.soft_labels is not None
    np.testing.assert_allclose(theirs.soft_labels.probabilities, ours.soft_labels.probabilities, atol=tolerance)
    spans = [[(s.start, s.end, s.type) for s in d.entities or ()] for d in ours]
    assert sum(map(len, spans)) > 20
    if tolerance < 1e-3:
        assert [[(s.start, s.end, s.type) for s in d.entities or ()] for d in theirs] == spans


def test_an_exported_tagger_says_the_same(tagger: Tagger, exported: Path) -> None:
    check_same(tagger, exported, 1e-5)
    names = {path.name for path in exported.iterdir()}
    assert names == {"README.md", "config.json", "manifest.json", "model.onnx", "tagweave.json", "tokenizer.json",
                     "tokenizer_config.json"}  # fmt: skip


@pytest.mark.parametrize(("kind", "settings"), [(Tagger, {"output": "crf"}), (AutoNER, {})])
def test_other_taggers_say_the_same(tiny: str, tmp_path: Path, kind: type[Tagger], settings: dict[str, Any]) -> None:
    tagger = fitted(tiny, kind, **settings)
    export(tagger, tmp_path / "out")
    check_same(tagger, tmp_path / "out", 1e-4)


def test_rounded_weights_say_nearly_the_same(tagger: Tagger, tmp_path: Path, exported: Path) -> None:
    export(tagger, tmp_path / "out", int8=True)
    check_same(tagger, tmp_path / "out", 0.2)
    assert json.loads((tmp_path / "out" / "tagweave.json").read_text())["exported"] == {"format": "onnx", "int8": True}
    small, large = ((folder / "model.onnx").stat().st_size for folder in (tmp_path / "out", exported))
    assert small < large


def test_an_exported_tagger_only_predicts(tiny: str, exported: Path, tmp_path: Path) -> None:
    loaded = Tagger.load(exported)
    for refused in (
        lambda: loaded.save(tmp_path / "again"),
        lambda: export(loaded, tmp_path / "again"),
        lambda: fitted(tiny).fit(documents(4), start_from=exported),
    ):
        with pytest.raises(UsageError, match="only predicts"):
            refused()
    assert not (tmp_path / "again").exists()


def changed(source: Path, folder: Path, **changes: Any) -> Path:  # noqa: ANN401
    """A copy whose model or settings are others, with a manifest that fits."""
    from tagweave.storage import new_folder

    with new_folder(folder) as work:
        for path in source.iterdir():
            if path.name != "manifest.json":
                (work / path.name).write_bytes(path.read_bytes())
        facts = json.loads((work / "tagweave.json").read_text())
        (work / "tagweave.json").write_text(json.dumps({**facts, **changes}))
        if changes.get("exported") == {"format": "onnx"}:
            (work / "model.onnx").write_bytes(b"no model")
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exported": {"format": "other"}}, "does not know"),
        ({"exported": 3}, "does not know"),
        ({"exported": {"format": "onnx"}}, "cannot be loaded by ONNX Runtime"),
        ({"types": ["PER"]}, "of another classifier"),
    ],
)
def test_what_is_no_exported_tagger_is_refused(
    exported: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StorageError, match=message):
        Tagger.load(changed(exported, tmp_path / "out", **changes))


def test_missing_packages_are_named(
    tagger: Tagger, tmp_path: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting.importlib.util, "find_spec", lambda name: None if name.startswith("onnx") else name)
    with pytest.raises(MissingExtraError, match=r"tagweave\[onnx\]"):
        export(tagger, tmp_path / "out")
    with pytest.raises(MissingExtraError, match="onnxruntime"):
        Tagger.load(exported)


def test_the_command_exports_and_predict_takes_the_folder(tagger: Tagger, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tagweave import read, write
    from tagweave.cli import app

    tagger.save(tmp_path / "tagger")
    write(documents(10, seed=2).with_entities(None), tmp_path / "in.jsonl")
    for command in (
        ["export", str(tmp_path / "tagger"), "--out", str(tmp_path / "onnx")],
        ["predict", str(tmp_path / "onnx"), str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")],
        ["predict", str(tmp_path / "tagger"), str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "same.jsonl")],
    ):
        assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0
    found, expected = read(tmp_path / "out.jsonl"), read(tmp_path / "same.jsonl")
    for one, other in zip(found, expected, strict=True):
        assert [(s.start, s.end, s.type) for s in one.entities or ()] == [
            (s.start, s.end, s.type) for s in other.entities or ()
        ]
