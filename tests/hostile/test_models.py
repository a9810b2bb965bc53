"""Label models that do not belong to what they are given, and folders of them that somebody has changed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from hostile.damage import corpus
from tagweave.corpus import Corpus
from tagweave.errors import TagweaveError
from tagweave.label_models import HMM, DawidSkene, LabelModel, MajorityVote, NaiveBayes
from tagweave.storage import CONFIG, MANIFEST, PARAMETERS, new_folder

MODELS = (MajorityVote, HMM, DawidSkene, NaiveBayes)


def voted(*names: str) -> Corpus:
    """The documents with the gold as votes of sources."""
    found = corpus()
    for name in names:
        assert found.entities is not None
        found = found.with_source(name, found.entities)
    return found


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def fitted(request: pytest.FixtureRequest) -> LabelModel:
    model: LabelModel = request.param().fit(voted("a", "b"))
    return model


def test_other_sources(fitted: LabelModel) -> None:
    with pytest.raises(TagweaveError, match="no source is called 'a'|no source is called 'b'"):
        fitted.predict(voted("c", "d"))
    with pytest.raises(TagweaveError, match="no source is called"):
        fitted.predict(corpus())


def test_other_types(fitted: LabelModel) -> None:
    other = replace(voted("a", "b"), types=("GENE", "DRUG"))
    with pytest.raises(TagweaveError, match="GENE, DRUG are not among LOC, PER"):
        fitted.predict(other)


def _config(**fields: Any) -> Callable[[Path], None]:  # noqa: ANN401
    def damage(folder: Path) -> None:
        config = json.loads((folder / CONFIG).read_text())
        for name, value in fields.items():
            config[name] = value
            if value is None:
                del config[name]
        (folder / CONFIG).write_text(json.dumps(config))

    return damage


def _arrays(change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        arrays = {name: np.ascontiguousarray(change(array)) for name, array in load_file(folder / PARAMETERS).items()}
        save_file(arrays, folder / PARAMETERS)

    return damage


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: (folder / PARAMETERS).write_bytes(change((folder / PARAMETERS).read_bytes())) and None


DAMAGES = {
    "no_kind": _config(kind=None),
    "no_types": _config(types=None),
    "no_sources": _config(sources=None),
    "no_settings": _config(settings=None),
    "no_model": _config(label_model=None),
    "model_list": _config(label_model=["hmm"]),
    "types_number": _config(types=7),
    "types_many": _config(types=[f"T{n}" for n in range(50)]),
    "sources_number": _config(sources=7),
    "sources_many": _config(sources=["a", "b", "a", "b"]),
    "settings_list": _config(settings=[]),
    "unknown_setting": _config(settings={"no_such_setting": 1}),
    "cut": _bytes(lambda raw: raw[: len(raw) // 2]),
    "no_bytes": _bytes(lambda raw: b""),
    "long_header": _bytes(lambda raw: b"\xff" * 8 + raw),
    "zeros": _bytes(lambda raw: bytes(len(raw))),
    "no_json": _bytes(lambda raw: raw[:8] + b"x" * (len(raw) - 8)),
    "smaller": _arrays(lambda array: array[:1]),
    "larger": _arrays(lambda array: np.concatenate([array, array])),
    "flat": _arrays(np.ravel),
    "numbers": _arrays(lambda array: array.astype(np.int8)),
    "nan": _arrays(lambda array: np.full_like(array, np.nan)),
    "negative": _arrays(lambda array: -np.ones_like(array)),
}
"""What is done to a folder before its manifest is made anew, so that only what it holds can tell."""


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_changed_folder_with_a_good_manifest(
    fitted: LabelModel, damage: Callable[[Path], None], tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    with new_folder(tmp_path / "changed") as work:
        for path in (tmp_path / "model").iterdir():
            if path.name != MANIFEST:
                (work / path.name).write_bytes(path.read_bytes())
        damage(work)
    try:
        with np.errstate(all="ignore"):
            found = LabelModel.load(tmp_path / "changed").predict(voted("a", "b"))
        assert found.soft_labels is not None
        found.soft_labels.check(found.id_list)
    except TagweaveError as error:
        assert str(error)
