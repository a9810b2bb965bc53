"""Nothing is read or written elsewhere, whatever names and links stand in files and folders of others."""

import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagweave
from attacks.folders import corpus
from cli.running import CommandLine, write_lines
from tagweave.alternate import AlternateTraining
from tagweave.annotations import Span
from tagweave.benchmark.cells import Cell
from tagweave.corpus import Corpus, Document
from tagweave.errors import StorageError, TagweaveError, TagweaveWarning
from tagweave.formats import FORMATS
from tagweave.label_models import HMM
from tagweave.shards import map_shards
from tagweave.shards.running import _tasks
from tagweave.sources.answers import AnswerCache
from tagweave.storage import is_inside, save_folder, write_json
from tagweave.tagger import Tagger

NAMES = {
    "parent": "../outside",
    "grandparent": "../../outside",
    "absolute": "/tmp/tagweave-outside",
    "home": "~/outside",
    "inside and out": "a/../../outside",
    "windows parent": "..\\outside",
    "drive": "C:\\outside",
    "share": "\\\\server\\share",
    "stream": "a:b",
    "device": "CON",
    "device with ending": "nul.txt",
    "nul": "a\0b",
    "line": "a\nb",
    "dots": "..",
    "dot": ".",
    "empty": "",
    "hidden": ".bashrc",
    "blank at the end": "a. ",
    "long": "x" * 5000,
    "option": "-rf",
    "variable": "$HOME",
    "command": "`touch outside`",
    "surrogate": "a\udce9",
}


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; nothing beside it may change."""
    inside = tmp_path / "a" / "b" / "inside"
    inside.mkdir(parents=True)
    (tmp_path / "outside").write_text("as it was")
    (tmp_path / "a" / "outside").write_text("as it was")
    monkeypatch.chdir(inside)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TAGWEAVE_CACHE", str(inside / "cache"))
    before = everything(tmp_path, inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TagweaveWarning)
        yield inside
    assert everything(tmp_path, inside) == before
    assert not Path("/tmp/tagweave-outside").exists()


def everything(folder: Path, without: Path) -> dict[str, bytes]:
    """The files of a folder, but for one part of it."""
    found = (path for path in folder.rglob("*") if not path.is_relative_to(without) and not path.is_dir())
    return {str(path): path.read_bytes() for path in found}


def named(name: str) -> Corpus:
    """A corpus in which everything has that name."""
    span = Span(0, 1, name)
    document = Document(name, ["Ada", "saw"], "Ada saw", [(0, 3), (4, 7)], name, [span], {name: [span]})
    return Corpus.from_documents([document])


@pytest.mark.parametrize("format", [name for name, format in FORMATS.items() if format.write is not None])
def test_names_in_documents_are_no_places(format: str, guarded: Path) -> None:
    for number, name in enumerate(NAMES.values()):
        try:
            tagweave.write(named(name), guarded / f"written{number}", format=format)
        except (TagweaveError, UnicodeEncodeError):
            continue  # no corpus holds half a character
    for path in guarded.rglob("*"):
        assert is_inside(path.name) and len(path.name) < 256
        assert path.stem.upper().partition(".")[0] not in ("CON", "NUL")


def test_brat_reads_what_it_wrote_under_such_names(guarded: Path) -> None:
    documents = [Document(name, ["Ada"], "Ada", [(0, 3)], entities=[]) for name in ("../x", "/etc/y", "a b")]
    tagweave.write(Corpus.from_documents(documents), guarded / "written", format="brat")
    assert len(tagweave.read(guarded / "written", format="brat")) == 3


def test_names_of_shards(guarded: Path) -> None:
    taken = []
    for name in NAMES.values():
        if len(name) > 255 or "\udce9" in name:
            continue
        try:
            _tasks({}, [{"n": 1}], [name], guarded / "out")
        except TagweaveError:
            continue
        taken.append(name)
    made = map_shards(_work, [{"n": n} for n in range(len(taken))], guarded / "out", names=taken)
    assert {path.parent for path in made.paths} == {guarded / "out"}
    assert sorted(path.name for path in (guarded / "out").iterdir() if path.name[0] not in ".s") == sorted(taken)


def _work(shard: Any, out: Path) -> None:  # noqa: ANN401
    out.write_text("made", encoding="utf-8")


@pytest.mark.parametrize("field", ["dataset", "system", "encoder", "sources"])
def test_names_of_cells_of_the_benchmark(field: str, name: str, guarded: Path) -> None:
    values = {"dataset": "ncbi-disease", "system": "chmm", "encoder": "default", "sources": "paper", field: name}
    try:
        path = Cell(**values).path(guarded)  # type: ignore[arg-type]
    except (TagweaveError, ValueError):
        return
    assert path.parent == guarded / "cells" / "ncbi-disease"
    assert is_inside(path.name)


def test_questions_and_answers_of_language_models(name: str, guarded: Path) -> None:
    cache = AnswerCache(guarded / "answers")
    cache.put(AnswerCache.key(name.encode("utf-8", "surrogatepass").hex(), name), [name])
    for path in guarded.rglob("*.json"):
        assert path.parent.parent == guarded / "answers"


@pytest.mark.parametrize("name", ["../a", "..", ".", "/etc", "a\0b", "C:\\a", "a/b"])
@pytest.mark.parametrize("which", ["splits", "files"])
def test_folders_of_datasets_name_no_other_places(name: str, which: str, guarded: Path) -> None:
    for folder in (guarded / "data", guarded / "data" / "train", guarded):
        tagweave.write(corpus(), folder / "set", format="datasets")
    if which == "splits":
        (guarded / "data" / "dataset_dict.json").write_text(json.dumps({"splits": [name]}))
        place, options = guarded / "data", {"split": name}
    else:
        (guarded / "data" / "set" / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
        place, options = guarded / "data" / "set", {}
    with pytest.raises(TagweaveError):
        tagweave.read(place, format="datasets", **options)


# Links


@pytest.fixture
def elsewhere(tmp_path: Path, guarded: Path) -> Callable[[Path], None]:
    """Puts a link to a file elsewhere into a folder."""

    def link(path: Path, target: str = "outside") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(tmp_path / target)

    return link


def test_links_under_the_names_of_passing_files(elsewhere: Callable[[Path], None], guarded: Path) -> None:
    for name in (".m.lock", ".m.00000000.new", "m.partial", ".config.json.part", ".m.part", ".m.tmp"):
        elsewhere(guarded / name)
    for action in (
        lambda: save_folder(guarded / "m", "model", {}, {"a": np.ones(2)}),
        lambda: write_json(guarded / "m.json", {}),
        lambda: tagweave.write(corpus(), guarded / "m.jsonl"),
    ):
        try:
            action()
        except TagweaveError:
            continue


@pytest.mark.parametrize("name", ["out.jsonl.partial", ".out.jsonl.lock", "out.jsonl.journal.json"])
@pytest.mark.parametrize("resume", [True, False])
def test_links_beside_the_output_of_annotate(
    name: str, resume: bool, tagweave: CommandLine, elsewhere: Callable[[Path], None], guarded: Path
) -> None:
    write_lines(guarded / "in.jsonl", [{"id": "a", "tokens": ["Ada"]}])
    (guarded / "s.toml").write_text('[[source]]\nkind = "regex"\nname = "r"\npatterns = "Ada"\ntype = "PER"\n')
    elsewhere(guarded / name)
    os.chdir(guarded)
    result = tagweave("annotate", "in.jsonl", "--sources", "s.toml", "--out", "out.jsonl", *["--resume"] * resume)
    assert "Traceback" not in result.err


def test_a_pipe_under_the_name_of_a_lock(guarded: Path) -> None:
    os.mkfifo(guarded / ".m.lock")
    os.mkfifo(guarded / ".m.00000000.new")
    with pytest.raises((TagweaveError, OSError)):
        from tagweave.storage import reserved

        with reserved(guarded / "m"):
            pass
    save_folder(guarded / "m", "model", {}, {"a": np.ones(2)})


@pytest.mark.parametrize("name", ["a.txt", ".lock", ".aside"])
def test_links_in_the_folder_of_shards(name: str, elsewhere: Callable[[Path], None], guarded: Path) -> None:
    (guarded / "out").mkdir()
    write_json(guarded / "out" / "shards.json", {"shards": {}, "missing": []})
    elsewhere(guarded / "out" / name)
    with pytest.raises(TagweaveError):
        map_shards(_work, [{"n": 1}], guarded / "out", names=["a.txt"])


@pytest.mark.parametrize(
    "name", ["rounds", "rounds/0", "rounds/0/tagger", "alternate.json", "label-model", "result.json"]
)
def test_links_in_the_folder_of_an_alternate_training(
    name: str, elsewhere: Callable[[Path], None], guarded: Path
) -> None:
    elsewhere(guarded / "run" / name)
    training = AlternateTraining(label_model=HMM(), tagger=Tagger(epochs=1), rounds=0)
    with pytest.raises(StorageError):
        list(training.run(corpus(), folder=guarded / "run", resume=True))


def test_a_folder_that_is_not_ours_is_never_replaced(guarded: Path, tmp_path: Path) -> None:
    (guarded / "m").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="was not written by tagweave"):
        save_folder(guarded / "m", "model", {}, {"a": np.ones(2)})
