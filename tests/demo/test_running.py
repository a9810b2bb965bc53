import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import tagweave.demo
import tiny_encoder
from tagweave.alternate import is_alternate, load_round
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.demo import DemoReport, demo_training, read_demo, run_demo, running
from tagweave.errors import StorageError, TagweaveWarning
from tagweave.evaluation import source_scores
from tagweave.label_models import HMM
from tagweave.report import Table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "run"


@pytest.fixture(scope="module")
def report(folder: Path) -> DemoReport:
    encoder = tiny_encoder.build(folder.parent / "encoder", sorted(set(read_demo("train").tokens.to_pylist())))
    training = demo_training(seed=1)
    quick = replace(
        training,
        label_model=HMM(iterations=2),
        tagger=replace(training.tagger, encoder=encoder, epochs=1, window=60),
        rounds=1,
        refine_epochs=1,
    )
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(running, "read_demo", lambda split: read_demo(split).subset(range(60)))
        warnings.simplefilter("ignore", TagweaveWarning)
        return run_demo(folder, training=quick)


def test_table(report: DemoReport) -> None:
    table = report.table
    assert table.columns == ("stage", "dev P", "dev R", "dev F1", "test P", "test R", "test F1")
    best = next(iter(source_scores(read_demo("dev").subset(range(60)))))
    assert [row[0] for row in table.rows] == [
        f"best source ({best})",
        "majority vote",
        "span vote",
        "HMM",
        "phase I: HMM",
        "phase I: tagger",
        "round 1: HMM with tagger",
        "round 1: tagger",
    ]
    assert all(cell is None or 0 <= float(cell) <= 100 for row in table.rows for cell in row[1:])
    assert max(len(line) for line in table.text().splitlines()) <= 80


def test_the_text_begins_with_the_table_and_ends_with_what_to_do(report: DemoReport, folder: Path) -> None:
    lines = report.text().splitlines()
    assert lines[: len(report.table.rows) + 3] == report.table.text().splitlines()
    assert report.choice in [row[0] for row in report.table.rows]
    assert f"tagweave predict {folder} FILE.jsonl" in lines[-1]
    assert lines[-1].startswith("Tag other sentences")


def test_without_folder_the_last_line_is_about_other_sentences() -> None:
    text = DemoReport(Table("", ("stage",), (("HMM",),)), "HMM", (), None).text()
    assert "votes for:" not in text
    assert "tagweave alternate TRAIN.jsonl" in text.splitlines()[-1]


def test_the_folder_holds_the_run(report: DemoReport, folder: Path) -> None:
    assert is_alternate(folder)
    found, output = load_round(folder)
    assert report.choice.startswith("phase I" if found.number == 0 else f"round {found.number}")
    assert report.choice.endswith("tagger" if output == "tagger" else ("HMM" if found.number == 0 else "with tagger"))


def test_a_folder_with_a_run_is_not_overwritten(report: DemoReport, folder: Path) -> None:
    with pytest.raises(StorageError, match="holds a run already"):
        run_demo(folder)


def test_examples_are_what_no_source_votes_for() -> None:
    tokens, places = ["Ants", "and", "mites", "!"], [(0, 4), (5, 8), (9, 14), (14, 15)]
    sources = {"a": [Span(0, 1, "Problem")], "b": [Span(2, 3, "O")]}
    entities = [Span(0, 1, "Problem", 0.9), Span(2, 3, "Problem", 0.8), Span(3, 4, "Plant", 0.5)]
    common = {"id": "d", "tokens": tokens, "text": "Ants and mites!", "characters": places}
    predicted = Corpus.from_documents([Document(**common, entities=entities, sources=sources)])
    gold = Corpus.from_documents([Document(**common, entities=[Span(2, 3, "Problem")])])
    assert running._unvoted(predicted, gold) == [
        "  Ants and [mites](Problem)!  (in the gold)",
        "  Ants and mites[!](Plant)  (not in the gold)",
    ]


def test_names_of_the_package() -> None:
    assert all(hasattr(tagweave.demo, name) for name in tagweave.demo.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tagweave.demo.no_such_name
