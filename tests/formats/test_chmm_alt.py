import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError, UsageError
from tagweave.formats import FormatWarning, read, write
from tagweave.soft_labels import SoftLabels

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
        read(path, format="chmm-alt")


def test_overlaps_are_reported(path: Path) -> None:
    path.write_text(json.dumps({"0": {**SENTENCE, "label": [[0, 2, "X"], [1, 2, "Y"]]}}))
    with pytest.warns(FormatWarning, match="1 spans that overlap"):
        read(path)


def test_it_can_be_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps({"0": SENTENCE}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    corpus = read("-", format="chmm-alt")
    assert corpus.id_list == ["stdin-0"]


def test_votes_come_back(path: Path) -> None:
    documents = [
        Document("a", ["Ada", "L."], entities=[Span(0, 2, "PER")], sources={"n": [Span(0, 1, "PER")], "c": []}),
        Document("b", ["Oslo"], group="g", sources={"n": [], "c": [Span(0, 1, "LOC"), Span(0, 1, "ORG")]}),
    ]
    corpus = Corpus.from_documents(documents)
    write(corpus, path, format="chmm-alt")
    assert json.loads(path.read_text())["0"] == {
        "label": [[0, 2, "PER"]],
        "weak_labels": [[[0, 1, "PER"]], []],
        "data": {"text": ["Ada", "L."], "id": "a"},
    }
    with pytest.warns(FormatWarning, match="overlap"):
        again = read(path)
    assert [*again] == [*corpus]


def test_names_and_sizes_stand_beside(path: Path) -> None:
    corpus = Corpus.from_documents([Document("a", ["Ada", "L."], sources={"n": [Span(0, 1, "PER")]})])
    write(corpus, path, format="chmm-alt")
    write(corpus, path.with_name("test.json"), format="chmm-alt")
    meta = json.loads(path.with_name("meta.json").read_text())
    assert meta == {
        "lf": ["n"],
        "num_lf": 1,
        "lf_rec": ["n"],
        "num_lf_rec": 1,
        "entity_types": ["PER"],
        "num_labels": 3,
        "max_length": 2,
        "train_size": 1,
        "test_size": 1,
    }
    other = Corpus.from_documents([Document("a", ["Ada"], sources={"m": []})])
    with pytest.raises(UsageError, match=r"meta.json has other names under 'lf', \['n'\], than this corpus, \['m'\]"):
        write(other, path.with_name("dev.json"), format="chmm-alt")
    assert not path.with_name("dev.json").exists()


def test_what_it_cannot_hold_is_counted(path: Path) -> None:
    soft = SoftLabels(("X",), np.array([0, 2]), np.array([[1, 0, 0], [0, 1, 0]], np.float32))
    sources = {"a": [Span(0, 1, "X", 0.5), Span(0, 2, "O"), Span(1, 2, "O")], "old": None}
    document = Document("d", ["x", "y"], sources=sources, links={"caps": [Span(0, 2, "same")]})
    corpus = Corpus.from_documents([document, Document("e", [], sources={"a": []})]).subset([0])
    corpus = corpus.with_source("model", soft).with_source("old", Annotations.from_lists([None], ("O",)))
    with pytest.warns(FormatWarning) as caught:
        write(replace(corpus, soft_labels=soft), path, format="chmm-alt")
    assert caught[0].message.counts == {  # type: ignore[union-attr]
        "links": 1,
        "soft_labels": 1,
        "votes_o": 2,
        "vote_scores": 1,
        "not_run": 1,
        "soft_sources": 1,
    }
    assert read(path)[0].sources == {"a": [Span(0, 1, "X")], "old": [], "model": [Span(1, 2, "X")]}
