import json
from collections import Counter
from typing import Any, get_args

import pytest

from tagweave.demo.corpus import TYPES, Split, parse_marked, records, tokenise
from tagweave.demo.rules import SOURCES
from tagweave.errors import AlignmentError, FormatError

SPLITS: tuple[Split, ...] = get_args(Split)
Spans = set[tuple[str, int, int, str]]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[dict[str, Any]]]:
    return {split: records(split) for split in SPLITS}


def gold(documents: list[dict[str, Any]]) -> Spans:
    return {(document["id"], *span) for document in documents for span in document["entities"]}


def found(documents: list[dict[str, Any]], source: str) -> Spans:
    return {(document["id"], *span) for document in documents for span in document["sources"][source]}


def f1(found: Spans, expected: Spans) -> float:
    return 2 * len(found & expected) / (len(found) + len(expected))


def test_counts(splits: dict[str, list[dict[str, Any]]]) -> None:
    assert len(splits["train"]) >= 420
    assert min(len(splits["dev"]), len(splits["test"])) >= 100
    assert all("entities" not in document for document in splits["train"])
    for split in ("dev", "test"):
        assert {type_ for *_, type_ in gold(splits[split])} == set(TYPES)
        without = sum(not document["entities"] for document in splits[split])
        assert 0.15 < without / len(splits[split]) < 0.35


def test_sentences_differ(splits: dict[str, list[dict[str, Any]]]) -> None:
    sentences = [document["tokens"] for documents in splits.values() for document in documents]
    texts = Counter(" ".join(tokens).lower() for tokens in sentences)
    beginnings = Counter(tuple(token.lower() for token in tokens[:4]) for tokens in sentences)
    assert max(texts.values()) == 1
    assert max(beginnings.values()) <= 3


def test_records_are_native_and_consistent(splits: dict[str, list[dict[str, Any]]]) -> None:
    names = [document["id"] for documents in splits.values() for document in documents]
    assert len(set(names)) == len(names)
    for document in [document for documents in splits.values() for document in documents]:
        assert json.loads(json.dumps(document)) == document
        assert [document["text"][start:end] for start, end in document["offsets"]] == document["tokens"]
        assert list(document["sources"]) == list(SOURCES)
        spans = [span for spans in document["sources"].values() for span in spans] + document.get("entities", [])
        stretches = [[*pair, "O"] for pairs in document["votes_o"].values() for pair in pairs]
        assert all(type_ in TYPES for *_, type_ in spans)
        assert all(0 <= start < end <= len(document["tokens"]) for start, end, _ in spans + stretches)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_gold_does_not_overlap(splits: dict[str, list[dict[str, Any]]], split: str) -> None:
    for document in splits[split]:
        ordered = document["entities"]
        assert all(first[1] <= second[0] for first, second in zip(ordered, ordered[1:], strict=False))


def test_no_source_overlaps_itself(splits: dict[str, list[dict[str, Any]]]) -> None:
    for document in [document for documents in splits.values() for document in documents]:
        for source in SOURCES:
            spans = document["sources"][source]
            assert all(first[1] <= second[0] for first, second in zip(spans, spans[1:], strict=False)), document["text"]


def test_sources_are_of_different_worth(splits: dict[str, list[dict[str, Any]]]) -> None:
    expected = gold(splits["dev"])
    spans = {source: found(splits["dev"], source) for source in SOURCES}
    scores = [f1(spans[source], expected) for source in SOURCES if spans[source]]
    assert len(scores) >= 5
    assert max(scores) - min(scores) > 0.2
    precisions = [len(spans[source] & expected) / len(spans[source]) for source in SOURCES if spans[source]]
    assert min(precisions) < 0.3
    assert max(precisions) > 0.85


@pytest.mark.parametrize("split", ["dev", "test"])
def test_sources_leave_room_for_learning(splits: dict[str, list[dict[str, Any]]], split: str) -> None:
    expected = gold(splits[split])
    union = set().union(*(found(splits[split], source) for source in SOURCES))
    assert 0.55 < len(union & expected) / len(expected) < 0.85


def test_test_holds_names_that_nothing_else_holds(splits: dict[str, list[dict[str, Any]]]) -> None:
    train = " ".join(document["text"].lower() for document in splits["train"])
    for split in ("dev", "test"):
        names = {
            " ".join(document["tokens"][start:end]).lower()
            for document in splits[split]
            for start, end, _ in document["entities"]
            if not any([start, end] == span[:2] for spans in document["sources"].values() for span in spans)
        }
        assert sum(name not in train for name in names) >= 10


def test_sources_vote_for_outside_too(splits: dict[str, list[dict[str, Any]]]) -> None:
    voters = {source for document in splits["train"] for source in document["votes_o"]}
    assert voters == {"ambiguous-words", "generic-words"}


def test_tokens() -> None:
    text = "It's 2,5 kg - isn’t it?"
    assert [text[start:end] for start, end in tokenise(text)] == ["It's", "2,5", "kg", "-", "isn’t", "it", "?"]
    assert tokenise("") == []


@pytest.mark.parametrize("line", ["a [rust(Problem)", "a rust](Problem)", "[rust] (Problem)"])
def test_incomplete_mark(line: str) -> None:
    with pytest.raises(FormatError, match="Incomplete mark"):
        parse_marked(line)


def test_unknown_type() -> None:
    with pytest.raises(FormatError, match="'Pest'.*Plant, Problem, Treatment"):
        parse_marked("[rust](Pest)")


def test_entity_inside_a_token() -> None:
    from tagweave.demo.corpus import _record

    with pytest.raises(AlignmentError, match="demo-x: entity 'spider'"):
        _record("demo-x", "A [spider](Problem)-mite", has_gold=True)
