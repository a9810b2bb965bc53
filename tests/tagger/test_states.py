"""States of a training go whole, the last one first."""

import shutil
from pathlib import Path

import pytest

from tagweave.tagger.states import forget


def states(folder: Path) -> Path:
    for name in ("best", "last"):
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text("{}", encoding="utf-8")
    return folder


def test_one_that_is_killed_while_it_forgets_leaves_no_half_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = states(tmp_path / "states")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        forget(folder)
    left = sorted(path.name for path in folder.iterdir())
    assert (left[0][:6], left[0][-4:], left[1:]) == (".last.", ".new", ["best"])
    assert forget(folder)
    assert not folder.exists()


def test_what_is_not_its_own_stays(tmp_path: Path) -> None:
    folder = states(tmp_path / "states")
    (folder / "notes.txt").touch()
    assert forget(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
