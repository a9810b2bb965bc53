"""Folders of spaCy pipelines that somebody has changed: nothing in them runs, and errors are ours."""

from pathlib import Path
from typing import Any

import pytest

from attacks.folders import corpus, planted
from tagweave.errors import TagweaveError
from tagweave.sources import create_source


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A pipeline of spaCy with a rule."""
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Oslo"}])
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def run_pipeline(folder: Path) -> list[Any]:
    """What a source on a pipeline finds."""
    source = create_source("spacy-model", {"name": "s", "model": str(folder)})
    source.load()
    return [list(votes or ()) for votes in source.annotate([corpus()[0]])]


def test_pickles_and_code_in_the_folder_of_a_pipeline(pipeline: Path, tmp_path: Path) -> None:
    for folder in [pipeline, *(path for path in pipeline.rglob("*") if path.is_dir())]:
        planted(folder, tmp_path / "mark")
    found = run_pipeline(pipeline)
    assert len(found[0]) == 1
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "change",
    [
        ('factory = "entity_ruler"', 'factory = "evil"'),
        ('lang = "en"', 'lang = "..os"'),
        ("before_creation = null", 'before_creation = {"@callbacks":"os.system"}'),
        ("[nlp]", '[nlp]\nbefore_creation = {"@misc":"evil.v1","path":"/etc/passwd"}'),
        ("[components]", "[components"),
    ],
    ids=["unknown part", "language", "callback", "other callback", "broken"],
)
def test_configurations_of_pipelines(change: tuple[str, str], pipeline: Path) -> None:
    path = pipeline / "config.cfg"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(TagweaveError):
        run_pipeline(pipeline)


@pytest.mark.parametrize("raw", [b"", b"\x80\x04pickle", b"[" * 100_000])
@pytest.mark.parametrize("name", ["tokenizer", "vocab/strings.json", "meta.json", "entity_ruler/cfg", "config.cfg"])
def test_files_of_pipelines_that_are_broken(name: str, raw: bytes, pipeline: Path) -> None:
    (pipeline / name).write_bytes(raw)
    with pytest.raises(TagweaveError):
        run_pipeline(pipeline)
