import json
from pathlib import Path
from typing import Any

import pytest

from formats.mention_texts import EMOJI
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats import FormatWarning, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "admin.jsonl"


def read_records(path: Path, *records: dict[str, Any], **options: object) -> Corpus:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read(path, format="doccano", **options)


@pytest.mark.parametrize("key", ["label", "labels", "entities"])
def test_lists_and_objects(path: Path, key: str) -> None:
    corpus = read_records(
        path,
        {"id": 7, "text": "Ada in Oslo", key: [[0, 3, "PER"], [7, 11, "LOC"]], "Comments": ["nice"], "sources": 3},
        {"id": 8, "text": "Oslo", key: [{"id": 1, "label": "LOC", "start_offset": 0, "end_offset": 4}]},
        {"id": 9, "text": "Oslo", key: []},
        {"id": 10, "text": "Oslo"},
    )
    assert corpus.id_list == ["7", "8", "9", "10"]
    assert [document.entities for document in corpus] == [
        [Span(0, 1, "PER"), Span(2, 3, "LOC")],
        [Span(0, 1, "LOC")],
        [],
        None,
    ]


def test_the_text_of_old_exports_is_called_data(path: Path) -> None:
    [document] = read_records(path, {"id": 7, "data": "Ada in Oslo", "label": [[7, 11, "LOC"]]})
    assert (document.text, document.entities) == ("Ada in Oslo", [Span(2, 3, "LOC")])


def test_relations_are_counted(path: Path) -> None:
    relations = [{"id": 1, "from_id": 1, "to_id": 2, "type": "in"}] * 2
    with pytest.warns(FormatWarning, match="2 relations left out"):
        read_records(path, {"id": 7, "text": "Ada", "entities": [], "relations": relations})


def test_a_list_is_read_too(path: Path) -> None:
    path = path.with_suffix(".json")
    path.write_text(json.dumps([{"text": "Oslo", "label": [[0, 4, "LOC"]]}], indent=2))
    assert read(path, format="doccano")[0].entities == [Span(0, 1, "LOC")]


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ({"text": "Oslo", "label": ["city"]}, FormatError, "labels of whole texts are no spans"),
        ({"text": "Oslo", "label": [[0, 4, "A"]], "entities": []}, FormatError, "has entities under 'entities' and"),
        ({"data": ["Oslo"]}, FormatError, "has neither 'tokens' nor 'text'"),
        ({"text": "Oslo", "label": {"a": 1}}, FormatError, "label: must be a list"),
        ({"text": "Oslo", "label": [{"start": 0, "end": 4, "label": "A", "text": "Rom"}]}, AlignmentError, "'Rom'"),
    ],
)
def test_a_bad_record_is_an_error_with_its_line(
    path: Path, record: dict[str, Any], error: type[DataError], message: str
) -> None:
    with pytest.raises(error, match=f"admin.jsonl, line 1.*{message}"):
        read_records(path, record)


def test_it_is_written_for_import(path: Path) -> None:
    text = EMOJI
    characters = [(2, 5), (12, 15), (16, 19)]
    tokens = [text[start:end] for start, end in characters]
    documents = [
        Document("d", tokens, text, characters, group="g", entities=[Span(0, 1, "PER"), Span(1, 3, "X")]),
        Document("e", ["in", "Oslo"], sources={"map": [Span(1, 2, "LOC")]}),
    ]
    with pytest.warns(FormatWarning) as caught:
        write(Corpus.from_documents(documents), path, format="doccano")
    assert caught[0].message.counts == {"sources": 1, "no_text": 1}  # type: ignore[union-attr]
    assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == [
        {"id": "d", "text": text, "group": "g", "label": [[2, 5, "PER"], [12, 19, "X"]]},
        {"id": "e", "text": "in Oslo"},
    ]
