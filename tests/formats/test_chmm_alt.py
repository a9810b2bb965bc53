import io
import json
import sys
from pathlib import Path

import pytest

from tagweave.annotations import Span
from tagweave.errors import DataError, FormatError, UsageError
from tagweave.formats import FormatWarning, read, write

SENTENCE = {"label": [[0, 2, "PER"]], "weak_labels": [[[0, 1, "PER"]], []], "data": {"text": ["Ada", "L."]}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.json"


def test_sentences_and_sources(path: Path) -> None:
    path.write_text("\ufeff" + json.dumps({"0": SENTENCE, "1": {"data": {"text": []}}}), encoding="utf-8")
    corpus = read(path)
    assert corpus.id_list == ["train-0", "train-1"]
    assert corpus[0].entities == [Span(0, 2, "PER")]
    assert corpus[0].sources == {"source-0": [Span(0, 1, "PER")], "source-1": []}
    assert corpus[1].entities is None
    assert corpus[1].sources == {"source-0": None, "source-1": None}


def test_names_of_sources_stand_beside(path: Path) -> None:
    path.write_text(json.dumps({"0": SENTENCE}))
    path.with_name("meta.json").write_text(json.dumps({"lf": ["names", "cities"]}))
    assert list(read(path).sources) == ["names", "cities"]
    path.with_name("meta.json").write_text(json.dumps({"lf": ["names"]}))
    with pytest.raises(FormatError, match="2 lists in weak_labels, but meta.json names 1"):
        read(path)
    path.with_name("meta.json").write_text(json.dumps({"lf": 3}))
    with pytest.raises(FormatError, match="meta.json: 'lf'"):
        read(path)
    path.with_name("meta.json").write_text("{}")
    assert list(read(path).sources) == ["source-0", "source-1"]


@pytest.mark.parametrize(
    "sentence",
    [
        1,
        {},
        {"data": {}},
        {"data": {"text": [1]}},
        {**SENTENCE, "label": 1},
        {**SENTENCE, "label": [[0, 9, "PER"]]},
        {**SENTENCE, "weak_labels": {"a": 1}},
        {**SENTENCE, "weak_labels": [3]},
        {**SENTENCE, "weak_labels": [[[0, True, "PER"]]]},
    ],
)
def test_a_bad_sentence_is_an_error_with_its_key(path: Path, sentence: object) -> None:
    path.write_text(json.dumps({"0": SENTENCE, "k": sentence}))
    with pytest.raises(DataError, match="train.json, sentence 'k'"):
        read(path)


@pytest.mark.parametrize("content", ["[]", "{", "", "[" * 100_000, '{"0": NaN}'])
def test_what_is_no_object_is_an_error(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(FormatError, match="train.json: "):
        read(path)


def test_overlaps_are_reported(path: Path) -> None:
    path.write_text(json.dumps({"0": {**SENTENCE, "label": [[0, 2, "X"], [1, 2, "Y"]]}}))
    with pytest.warns(FormatWarning, match="1 spans that overlap"):
        read(path)


def test_it_can_be_read_from_standard_input_but_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps({"0": SENTENCE}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    corpus = read("-", format="chmm-alt")
    assert corpus.id_list == ["stdin-0"]
    with pytest.raises(UsageError, match="can be read, but not written"):
        write(corpus, path)
