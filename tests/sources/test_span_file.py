"""Spans from a file: with places that are checked, or without places and looked for."""

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from source_documents import from_text, from_words
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, DataError, FormatError, TagweaveWarning, UsageError
from tagweave.sources import SpanFile, create_source

TEXT = "Ada left New York. New York wept 😀 for Ada."


def written(folder: Path, *records: object) -> Path:
    path = folder / "spans.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return path


def found(source: SpanFile, document: Document | None = None) -> list[tuple[str, str]]:
    document = document or from_text(TEXT)
    spans = list(source.find(document) or ())
    places, text = list(document.characters or ()), document.text or ""
    return [(text[places[start][0] : places[end - 1][1]], name) for start, end, name, *_ in spans]


def test_places_count_characters(tmp_path: Path) -> None:
    start = TEXT.rindex("Ada")
    spans = [[0, 3, "PER"], {"start": 9, "end": 17, "label": "LOC", "score": 0.5}, [start, start + 3, "PER"]]
    source = SpanFile("s", written(tmp_path, {"id": "d", "spans": spans}))
    assert source.types == ("LOC", "PER")
    assert found(source) == [("Ada", "PER"), ("New York", "LOC"), ("Ada", "PER")]
    assert list(source.find(from_text(TEXT)) or ())[1] == Span(2, 4, "LOC", 0.5)


def test_places_count_utf16_units_or_tokens(tmp_path: Path) -> None:
    start = TEXT.rindex("Ada") + 1
    path = written(tmp_path, {"id": "d", "spans": [[start, start + 3, "PER"]]})
    assert found(SpanFile("s", path, unit="utf16")) == [("Ada", "PER")]
    path = written(tmp_path, {"id": "d", "spans": [[2, 4, "LOC"]]})
    assert found(SpanFile("s", path, unit="token")) == [("New York", "LOC")]


def test_strings_are_looked_for_and_what_is_not_there_is_reported(tmp_path: Path) -> None:
    spans = [{"text": "new york", "label": "LOC"}, {"text": "Adah", "type": "PER"}, {"text": "Paris", "label": "LOC"}]
    path = written(tmp_path, {"id": "d", "spans": spans})
    source = SpanFile("s", path, similarity=80, unaligned=tmp_path / "lost.jsonl")
    with pytest.warns(TagweaveWarning, match="document 'd', LOC 'Paris'"):
        assert found(source) == [("Ada", "PER"), ("New York", "LOC"), ("New York", "LOC"), ("Ada", "PER")]
    assert source.counters == {"not in the text": 1}
    assert json.loads((tmp_path / "lost.jsonl").read_text())["text"] == "Paris"


def test_as_often_as_listed(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "d", "spans": [{"text": "New York", "label": "LOC", "score": 0.5}]})
    assert found(SpanFile("s", path)) == [("New York", "LOC")] * 2
    assert SpanFile("s", path, occurrences="listed").find(from_text(TEXT)) == [Span(2, 4, "LOC", 0.5)]


def test_three_ways_to_say_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "none", "spans": None}, {"id": "empty", "spans": []}, {"id": 7, "spans": []})
    source = SpanFile("s", path, labels=("X",), missing="abstain")
    assert source.find(from_words("a", "none")) is None
    assert source.find(from_words("a", "empty")) == []
    assert source.find(from_words("a", "7")) == []
    assert source.find(from_words("a", "other")) is None
    assert source.counters == {"documents not in the file": 1}
    assert SpanFile("s", path, missing="nothing").find(from_words("a", "other")) == []


def test_lines_of_one_document_add_up(tmp_path: Path) -> None:
    spans = [[0, 3, "PER"]]
    records = [{"id": "d", "spans": None}, {"id": "d", "spans": spans, "text": TEXT}, {"id": "d", "spans": []}]
    assert found(SpanFile("s", written(tmp_path, *records))) == [("Ada", "PER")]


def test_some_types(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "d", "spans": [[0, 3, "PER"], [9, 17, "LOC"]]})
    assert found(SpanFile("s", path, labels=("LOC",))) == [("New York", "LOC")]
    with pytest.raises(UsageError, match=r"none of the types ORG, but LOC, PER"):
        SpanFile("s", path, labels=("ORG",)).load()


def test_cut_tokens_and_places_outside_the_text(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "d", "spans": [[9, 15, "LOC"], [0, 999, "PER"], [0, 4, "PER"]]})
    source = SpanFile("s", path)
    with pytest.warns(TagweaveWarning, match="source 's'.*begin or end inside a token"):
        assert found(source) == [("Ada", "PER")]
    assert source.counters == {"misaligned": 1, "invalid span": 1, "trimmed": 1}
    assert found(source) == [("Ada", "PER")]
    with pytest.warns(TagweaveWarning):
        assert found(SpanFile("s", path, alignment="expand")) == [("New York", "LOC"), ("Ada", "PER")]


def test_text_is_checked(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "d", "spans": [{"start": 0, "end": 3, "label": "PER", "text": "New"}]})
    with pytest.raises(AlignmentError, match="'New', but there is 'Ada'"):
        SpanFile("s", path).find(from_text(TEXT))
    path = written(tmp_path, {"id": "d", "spans": [], "text": "Another."})
    with pytest.raises(AlignmentError, match="another text"):
        SpanFile("s", path).find(from_text(TEXT))


def test_from_a_file_of_sources_packed_and_in_other_processes(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "spans.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "d", "spans": [[0, 3, "PER"]]}) + "\n\n")
    source = create_source("span-file", {"name": "s", "file": "spans.jsonl.gz"}, tmp_path)
    source.load()
    copy = pickle.loads(pickle.dumps(source))
    assert "_content" not in vars(copy)
    assert found(copy) == [("Ada", "PER")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "an object with"),
        ({"id": "d"}, "an object with"),
        ({"id": 0.5, "spans": []}, "id: must be a string"),
        ({"id": "d", "spans": {}}, "spans must be a list"),
        ({"id": "d", "spans": [[0, 3]]}, "no span with a type"),
        ({"id": "d", "spans": [{"label": "PER"}]}, "neither a place nor a text"),
        ({"id": "d", "spans": [{"text": "Ada"}]}, "no span with a type"),
        ({"id": "d", "spans": [], "text": 3}, "text must be a string"),
    ],
)
def test_what_is_no_file_of_spans(record: Any, message: str, tmp_path: Path) -> None:  # noqa: ANN401
    path = written(tmp_path, {"id": "fine", "spans": []}, record)
    with pytest.raises(FormatError, match=rf"spans.jsonl, line 2: .*{message}"):
        SpanFile("s", path).load()


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    for content in (b"{", b"\xff\xfe", b'{"id": "d", "spans": [' + b"[" * 100_000, b'{"id": "d", "spans": [NaN]}'):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"spans.jsonl, line 1"):
            SpanFile("s", path).load()
    with pytest.raises(UsageError, match="cannot be read"):
        SpanFile("s", tmp_path / "missing").load()
