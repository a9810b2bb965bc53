"""The votes that AutoNER learns from."""

from pathlib import Path

import pytest

from tagweave import read
from tagweave.annotations import Span
from tagweave.benchmark.dictionaries import autoner_labels
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError


def found(folder: Path, core: str, full: str, tokens: list[str]) -> dict[str, list[tuple[int, int, str]]]:
    (folder / "core.tsv").write_text(core, encoding="utf-8")
    (folder / "full.tsv").write_text(full, encoding="utf-8")
    documents = [Document("d", tokens, entities=[Span(0, 1, "PER")], sources={"old": []})]
    labelled = autoner_labels(
        Corpus.from_documents(documents), folder / "core.tsv", folder / "full.tsv", {"Person": "PER"}
    )
    assert labelled[0].entities == documents[0].entities
    return {name: [(s.start, s.end, s.type) for s in spans or ()] for name, spans in labelled[0].sources.items()}


def test_spellings_that_count(tmp_path: Path) -> None:
    tokens = [
        "Hard",
        "drive",
        "HARD",
        "DRIVE",
        "hard",
        "drive",
        "Hard",
        "Drive",
        "Life",
        "of",
        "it",
        "life",
        "of",
        "it",
    ]
    votes = found(tmp_path, "PART\tHard drive\n", "Life of it\nOf\n", tokens)
    assert votes == {"core": [(0, 2, "PART"), (2, 4, "PART"), (4, 6, "PART")], "full": [(8, 11, "PART")]}


def test_names_of_people_are_not_found_in_small_letters_and_types_are_renamed(tmp_path: Path) -> None:
    tokens = ["Rose", "ROSE", "rose", "Mark", "mark"]
    votes = found(tmp_path, "PERSON\tRose\nPerson\tMark\n", "Rose\n", tokens)
    assert votes["core"] == [(0, 1, "PERSON"), (1, 2, "PERSON"), (3, 4, "PER"), (4, 5, "PER")]
    assert [vote[:2] for vote in votes["full"]] == [(0, 1), (1, 2), (2, 3)]


def test_a_core_file_must_have_types(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"core.tsv: the phrase 'Rose' has no type"):
        found(tmp_path, "Rose\n", "Rose\n", ["Rose"])
    with pytest.raises(DataError, match=r"core.tsv has no phrase"):
        found(tmp_path, "", "Rose\n", ["Rose"])


def test_on_real_dictionaries(data_folder: Path) -> None:
    corpus = read(data_folder / "weak" / "laptop-review" / "dev.jsonl.gz")
    core, full = (data_folder / "raw" / "dictionaries" / f"laptop-review-{name}.tsv.gz" for name in ("core", "full"))
    labelled = autoner_labels(corpus, core, full, {"AspectTerm": "TERM"})
    assert labelled.types == ("TERM",)
    assert list(labelled.sources) == ["core", "full"]
    assert 300 < len(labelled.sources["core"].starts) < len(labelled.sources["full"].starts)  # type: ignore[union-attr]
