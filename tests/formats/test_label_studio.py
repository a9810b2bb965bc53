import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from formats.mention_texts import EMOJI
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError
from tagweave.formats import FormatWarning, read, write

TEXT = "Ada moved\r\nto Oslo"


def region(start: int, end: int, *labels: str, **more: object) -> dict[str, Any]:
    value = {"start": start, "end": end, "labels": list(labels), **more}
    return {"id": "x", "from_name": "label", "to_name": "text", "type": "labels", "value": value}


TASK: dict[str, Any] = {
    "id": 12,
    "data": {"text": TEXT},
    "annotations": [
        {"completed_by": 1, "was_cancelled": True, "result": [region(0, 9, "BAD")]},
        {"completed_by": 2, "result": [region(0, 3, "PER", text="Ada"), region(4, 18, "X", text=r"moved\n\nto Oslo")]},
        {"completed_by": {"id": 3, "email": "a@b.no"}, "result": [region(14, 18, "LOC")]},
    ],
    "predictions": [
        {"model_version": "names", "score": 0.5, "result": [region(0, 3, "PER", "ORG", score=0.75)]},
        {"model_version": "cities", "result": []},
        17,
    ],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


def read_tasks(path: Path, *tasks: dict[str, Any], **options: object) -> Corpus:
    path.write_text(json.dumps(tasks))
    return read(path, **options)


def test_annotations_are_entities_and_predictions_are_sources(path: Path) -> None:
    other = {"id": 13, "data": {"text": "Ada"}, "annotations": [], "predictions": []}
    with pytest.warns(FormatWarning) as caught:
        corpus = read_tasks(path, TASK, other)
    assert caught[0].message.counts == {  # type: ignore[union-attr]
        "several_annotations": 1,
        "overlap": 1,
    }
    assert corpus.id_list == ["12", "13"]
    assert corpus[0].entities == [Span(0, 1, "PER"), Span(1, 4, "X")]
    assert corpus[0].sources == {"names": [Span(0, 1, "PER", 0.75), Span(0, 1, "ORG", 0.75)], "cities": []}
    assert corpus[1].entities is None
    assert corpus[1].sources == {"names": None, "cities": None}


@pytest.mark.parametrize("person", ["3", "a@b.no", 3])
def test_the_annotations_of_one_person(path: Path, person: str) -> None:
    task = {**TASK, "predictions": []}
    other = {"id": 13, "data": {"text": "Ada"}, "annotations": [{"completed_by": 2, "result": []}]}
    corpus = read_tasks(path, task, other, completed_by=person)
    assert [document.entities for document in corpus] == [[Span(3, 4, "LOC")], None]


def test_predictions_as_entities(path: Path) -> None:
    with pytest.warns(FormatWarning, match="overlap"):
        document = read_tasks(path, TASK, entities="names")[0]
    assert document.entities == [Span(0, 1, "PER", 0.75), Span(0, 1, "ORG", 0.75)]
    assert document.sources == {"cities": []}


def test_of_several_predictions_of_one_version_the_last_counts(path: Path) -> None:
    predictions = [{"result": []}, {"result": [region(0, 3, "PER")]}]
    with pytest.warns(FormatWarning, match="1 earlier predictions left out"):
        corpus = read_tasks(path, {**TASK, "annotations": [], "predictions": predictions})
    assert corpus[0].sources == {"prediction": [Span(0, 1, "PER")]}


def test_regions_of_other_kinds_are_counted(path: Path) -> None:
    choice = {"type": "choices", "value": {"choices": ["good"]}}
    task = {**TASK, "predictions": [], "annotations": [{"result": [choice, {"type": "relation"}, region(0, 3, "PER")]}]}
    with pytest.warns(FormatWarning, match="2 regions and answers of other kinds left out .*'choices'"):
        assert read_tasks(path, task)[0].entities == [Span(0, 1, "PER")]


def test_the_text_may_have_another_key_and_be_in_lines(path: Path) -> None:
    task = {"id": 1, "data": {"body": "Ada"}, "annotations": [{"result": [region(0, 3, "PER")]}]}
    path = path.with_suffix(".jsonl")
    path.write_text(json.dumps(task) + "\n\n" + json.dumps({**task, "id": 2}))
    corpus = read(path, format="label-studio", field="body")
    assert [document.entities for document in corpus] == [[Span(0, 1, "PER")]] * 2


def test_offsets_are_code_points_unless_told_otherwise(path: Path) -> None:
    points, units = region(2, 5, "PER", text="Ada"), region(3, 6, "PER", text="Ada")
    for found, unit in ((points, "codepoint"), (units, "utf16")):
        corpus = read_tasks(path, {"data": {"text": EMOJI}, "annotations": [{"result": [found]}]}, offset_unit=unit)
        assert corpus[0].entities == [Span(1, 2, "PER")]
    with pytest.raises(AlignmentError, match=r"item 0, record 'export-0'.*'da '.*offset_unit='utf16'"):
        read_tasks(path, {"data": {"text": EMOJI}, "annotations": [{"result": [units]}]})


def test_a_line_end_in_what_a_region_covers_is_none_if_the_text_spells_one(path: Path) -> None:
    text = "a\\n\nb"
    task = {"data": {"text": text}, "annotations": [{"result": [region(0, 5, "X", text=r"a\n\nb")]}]}
    assert read_tasks(path, task)[0].entities == [Span(0, 4, "X")]
    task = {"data": {"text": "a\nb"}, "annotations": [{"result": [region(0, 3, "X", text=r"a\nc")]}]}
    with pytest.raises(AlignmentError, match="says that it covers"):
        read_tasks(path, task)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"id": 1, "text": "Ada", "label": []}, "a task has 'data'. Export as JSON, not as JSON-MIN"),
        ({"data": {"body": "Ada"}}, "data has no text under 'text', but 'body'"),
        ({"data": {"text": "Ada"}, "annotations": {"a": 1}}, "annotations: must be a list"),
        ({"data": {"text": "Ada"}, "annotations": [{"result": 3}]}, "result: must be a list"),
        ({"data": {"text": "Ada"}, "predictions": [{"model_version": 3}]}, "model_version: 3 is no name"),
        ({"data": {"text": "Ada", "id": [1]}}, "id: must be a string or a whole number"),
    ],
)
def test_a_bad_task_is_an_error_with_its_number(path: Path, task: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"export.json, item 1.*{message}"):
        path.write_text(json.dumps([{"id": 5, "data": {"text": "Ada"}}, task]))
        read(path)


@pytest.mark.parametrize("content", ['[{"data":', "[3]", '[{"data": {"text": NaN}}]', "", "{}"])
def test_what_is_no_list_of_tasks_is_an_error(path: Path, content: str) -> None:
    path.write_text(content)
    if content:
        with pytest.raises(FormatError, match="export.json"):
            read(path, format="label-studio")
    else:
        assert len(read(path, format="label-studio")) == 0


def made() -> Corpus:
    characters = [(0, 3), (4, 9), (11, 13), (14, 18)]
    document = Document(
        "d",
        ["Ada", "moved", "to", "Oslo"],
        TEXT,
        characters,
        group="g",
        entities=[Span(0, 1, "PER", 0.9), Span(1, 4, "X<&>", 0.25)],
        sources={"names": [Span(0, 1, "PER"), Span(0, 1, "O")], "no": [], "old": None},
    )
    return Corpus.from_documents([document, Document("e", ["Oslo"], "Oslo", [(0, 4)], sources={"old": []})])


def test_it_is_written_with_a_prediction_for_each_source(path: Path) -> None:
    with pytest.warns(FormatWarning, match="1 votes for O left out") as caught:
        write(made(), path, format="label-studio")
    assert caught[0].message.counts == {"votes_o": 1}  # type: ignore[union-attr]
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert first["data"] == {"id": "d", "text": TEXT, "group": "g"}
    assert [prediction["model_version"] for prediction in first["predictions"]] == ["names", "no", "entities"]
    assert [prediction.get("score") for prediction in first["predictions"]] == [None, None, 0.25]
    assert first["predictions"][2]["result"][1] == {
        "id": "d-2",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {"start": 4, "end": 18, "text": TEXT[4:], "labels": ["X<&>"], "score": 0.25},
        "score": 0.25,
    }
    assert second == {"data": {"id": "e", "text": "Oslo"}, "predictions": [{"model_version": "old", "result": []}]}
    assert [*read(path, entities="entities")] == [*read_back()]


def read_back() -> Corpus:
    """The corpus without what tasks cannot hold."""
    first, second = made()
    sources = {**first.sources, "names": [Span(0, 1, "PER")]}
    return Corpus.from_documents([Document(**{**vars(first), "sources": sources}), Document(**{**vars(second)})])


def test_entities_as_annotations(path: Path) -> None:
    with pytest.warns(FormatWarning, match="votes for O"):
        write(made(), path, format="label-studio", entities_as="annotations")
    assert [*read(path)] == [*read_back()]


def test_the_labelling_configuration_stands_beside(path: Path) -> None:
    corpus = Corpus.from_documents([Document("d", ["a"], "a", [(0, 1)], sources={"s": [Span(0, 1, "X<&>")]})])
    write(corpus, path, format="label-studio")
    view = etree.parse(path.with_name("export.config.xml")).getroot()
    assert [label.get("value") for label in view.iter("Label")] == ["X<&>"]
    assert view.find("Text").get("value") == "$text"
    assert view.find("Labels").get("toName") == view.find("Text").get("name")
    write(corpus, path.with_name("other.json"), format="label-studio", config=False)
    assert not path.with_name("other.config.xml").exists()
    bad = Corpus.from_documents([Document("d", ["a"], entities=[Span(0, 1, "\x01")])])
    with pytest.raises(LabelError, match=r"cannot hold the entity type '\\x01'"):
        write(bad, path.with_name("bad.json"), format="label-studio")


def test_no_documents(path: Path) -> None:
    write(Corpus.from_documents([]), path, format="label-studio")
    assert json.loads(path.read_text()) == []
    assert len(read(path, format="label-studio")) == 0
