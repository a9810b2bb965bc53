import json
from pathlib import Path
from typing import Any

import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, UsageError
from tagweave.formats import FormatWarning, read, write

RECORD: dict[str, Any] = {
    "id": "a1",
    "fields": {"text": "Ada in Oslo"},
    "metadata": {"group": "letters", "length": 3},
    "suggestions": {
        "spans": {"value": [{"start": 0, "end": 3, "label": "PER"}], "score": [0.5], "agent": "hmm"},
        "cities": {"value": [{"start": 7, "end": 11, "label": "LOC"}], "score": None, "agent": None},
    },
    "responses": {
        "spans": [
            {"value": [{"start": 7, "end": 11, "label": "LOC"}], "user_id": "u1"},
            {"value": [], "user_id": "u2"},
        ]
    },
    "vectors": {},
    "_server_id": None,
}
OTHER = {**RECORD, "id": "a2", "suggestions": {}, "responses": {}, "metadata": {}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.json"


def read_records(path: Path, *records: dict[str, Any], **options: object) -> Corpus:
    path.write_text(json.dumps(records))
    return read(path, **options)


def test_responses_are_entities_and_suggestions_are_sources(path: Path) -> None:
    with pytest.warns(FormatWarning, match="1 responses left out of records that have several"):
        corpus = read_records(path, RECORD, OTHER)
    assert corpus.id_list == ["a1", "a2"]
    assert [document.group for document in corpus] == ["letters", None]
    assert [document.entities for document in corpus] == [[Span(2, 3, "LOC")], None]
    assert corpus[0].sources == {"spans": [Span(0, 1, "PER", 0.5)], "cities": [Span(2, 3, "LOC")]}
    assert corpus[1].sources == {"spans": None, "cities": None}


def test_the_responses_of_one_person(path: Path) -> None:
    assert [document.entities for document in read_records(path, RECORD, OTHER, user_id="u2")] == [[], None]


def test_suggestions_as_entities(path: Path) -> None:
    document = read_records(path, RECORD, entities="suggestions")[0]
    assert document.entities == [Span(0, 1, "PER", 0.5)]
    assert [*document.sources] == ["cities"]


def test_another_field_and_question_and_lines(path: Path) -> None:
    record = {"fields": {"body": "Ada"}, "responses": {"who": [{"value": [{"start": 0, "end": 3, "label": "PER"}]}]}}
    path = path.with_suffix(".jsonl")
    path.write_text(json.dumps(record))
    corpus = read(path, format="argilla", field="body", question="who")
    assert (corpus.id_list, corpus[0].entities) == (["records-0"], [Span(0, 1, "PER")])


def test_suggestions_about_something_else_are_counted(path: Path) -> None:
    suggestions = {"good": {"value": "yes"}, "list": {"value": ["a"]}, "spans": {"value": []}}
    with pytest.warns(FormatWarning, match="2 suggestions left out that are not about spans"):
        corpus = read_records(path, {**RECORD, "responses": {}, "suggestions": suggestions})
    assert corpus[0].sources == {"spans": []}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": {"body": "Ada"}}, "fields has no text under 'text', but 'body'"),
        ({"fields": []}, "fields: must be an object"),
        ({"suggestions": {"spans": 3}}, "suggestions.spans: an object with 'value'"),
        ({"suggestions": {"spans": {"value": [], "score": [0.5]}}}, "suggestions.spans: 0 spans, but 1 scores"),
        ({"responses": {"spans": {"a": 1}}}, "responses.spans: must be a list"),
        ({"responses": {"spans": [{"value": "yes"}]}}, "'value' must be a list of spans"),
        ({"metadata": 3}, "metadata: must be an object"),
    ],
)
def test_a_bad_record_is_an_error_with_its_number(path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"records.json, item 1.*{message}"):
        read_records(path, OTHER, {**RECORD, **change})


def made() -> Corpus:
    document = Document(
        "d",
        ["Ada", "Oslo"],
        "Ada, Oslo",
        [(0, 3), (5, 9)],
        group="g",
        entities=[Span(0, 1, "PER", 0.5)],
        sources={"names": [Span(0, 1, "PER", 0.75), Span(1, 2, "LOC")], "old": None},
    )
    return Corpus.from_documents([document, Document("e", ["Oslo"], "Oslo", [(0, 4)], sources={"old": []})])


def test_it_is_written_as_argilla_has_it(path: Path) -> None:
    with pytest.warns(FormatWarning) as caught:
        write(made(), path, format="argilla")
    assert caught[0].message.counts == {"vote_scores": 1}  # type: ignore[union-attr]
    first, second = json.loads(path.read_text())
    assert first == {
        "id": "d",
        "fields": {"text": "Ada, Oslo"},
        "metadata": {"group": "g"},
        "suggestions": {
            "names": {
                "value": [{"start": 0, "end": 3, "label": "PER"}, {"start": 5, "end": 9, "label": "LOC"}],
                "score": None,
                "agent": "names",
            },
            "spans": {"value": [{"start": 0, "end": 3, "label": "PER"}], "score": [0.5], "agent": "entities"},
        },
        "responses": {},
    }
    assert second["suggestions"] == {"old": {"value": [], "score": None, "agent": "old"}}
    corpus = read(path, entities="suggestions")
    assert corpus[0].sources["old"] is None
    assert corpus[1].sources["old"] == []


def test_entities_as_responses(path: Path) -> None:
    corpus = Corpus.from_documents([Document("d", ["Ada"], "Ada", [(0, 3)], entities=[Span(0, 1, "PER", 0.5)])])
    with pytest.warns(FormatWarning, match="1 scores left out"):
        write(corpus, path, format="argilla", entities_as="responses", question="who")
    assert read(path, question="who")[0].entities == [Span(0, 1, "PER")]


def test_names_of_questions(path: Path) -> None:
    corpus = Corpus.from_documents([Document("d", ["Ada"], "Ada", [(0, 3)], sources={"Big names": [], "ok-1": []})])
    with pytest.warns(FormatWarning, match="1 names that Argilla does not allow for questions .*'Big names'"):
        write(corpus, path, format="argilla")
    with pytest.raises(UsageError, match="a source is called 'ok-1' like the question"):
        write(corpus, path, format="argilla", question="ok-1")
