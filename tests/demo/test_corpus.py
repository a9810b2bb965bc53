from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.demo.corpus import TYPES, Split, _document, parse_marked, read_demo, tokenise
from tagweave.demo.rules import SOURCES
from tagweave.errors import AlignmentError, FormatError
from tagweave.evaluation import source_scores
from tagweave.formats import read, write

SPLITS: tuple[Split, ...] = get_args(Split)
Spans = set[tuple[str, int, int, str]]


@pytest.fixture(scope="module")
def splits() -> dict[str, Corpus]:
    return {split: read_demo(split) for split in SPLITS}


def gold(corpus: Corpus) -> Spans:
    return {(document.id, *span[:3]) for document in corpus for span in document.entities or ()}


def voted(corpus: Corpus) -> Spans:
    """What at least one source votes for."""
    spans = [(document.id, *span[:3]) for document in corpus for votes in document.sources.values() for span in votes]
    return {span for span in spans if span[3] != "O"}


def test_counts(splits: dict[str, Corpus]) -> None:
    assert len(splits["train"]) >= 420
    assert min(len(splits["dev"]), len(splits["test"])) >= 100
    assert splits["train"].entities is None
    for split in ("dev", "test"):
        assert {type_ for *_, type_ in gold(splits[split])} == set(TYPES)
        without = sum(not document.entities for document in splits[split])
        assert 0.15 < without / len(splits[split]) < 0.35


def test_sentences_differ(splits: dict[str, Corpus]) -> None:
    sentences = [document.tokens for corpus in splits.values() for document in corpus]
    texts = Counter(" ".join(tokens).lower() for tokens in sentences)
    beginnings = Counter(tuple(token.lower() for token in tokens[:4]) for tokens in sentences)
    assert max(texts.values()) == 1
    assert max(beginnings.values()) <= 3


def test_tokens_and_sources(splits: dict[str, Corpus]) -> None:
    names = [name for corpus in splits.values() for name in corpus.id_list]
    assert len(set(names)) == len(names)
    for corpus in splits.values():
        assert corpus.types == TYPES
        assert list(corpus.sources) == [source.name for source in SOURCES]
        assert all(isinstance(column, Annotations) and column.ran.all() for column in corpus.sources.values())
        for document in corpus:
            assert document.text is not None and document.characters is not None
            assert [document.text[start:end] for start, end in document.characters] == document.tokens


def test_it_goes_through_a_file(splits: dict[str, Corpus], tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    write(splits["dev"], path)
    assert list(read(path, types=TYPES)) == list(splits["dev"])


@pytest.mark.parametrize("split", SPLITS)
def test_no_annotator_overlaps_itself(splits: dict[str, Corpus], split: str) -> None:
    for document in splits[split]:
        for spans in (document.entities or (), *document.sources.values()):
            ordered = [span for span in spans or () if span.type != "O"]
            assert all(a.end <= b.start for a, b in zip(ordered, ordered[1:], strict=False)), document.text


def test_sources_are_of_different_worth(splits: dict[str, Corpus]) -> None:
    scores = [score for score in source_scores(splits["dev"]).values() if score.predicted]
    assert len(scores) >= 5
    assert scores[0].f1 - scores[-1].f1 > 0.2
    assert min(score.precision for score in scores) < 0.3
    assert max(score.precision for score in scores) > 0.85


@pytest.mark.parametrize("split", ["dev", "test"])
def test_sources_leave_room_for_learning(splits: dict[str, Corpus], split: str) -> None:
    expected = gold(splits[split])
    assert 0.55 < len(voted(splits[split]) & expected) / len(expected) < 0.85


@pytest.mark.parametrize("split", ["dev", "test"])
def test_names_that_nothing_else_holds(splits: dict[str, Corpus], split: str) -> None:
    train = " ".join(splits["train"].texts.to_pylist()).lower()
    missed = gold(splits[split]) - voted(splits[split])
    tokens = {document.id: document.tokens for document in splits[split]}
    names = {" ".join(tokens[name][start:end]).lower() for name, start, end, _ in missed}
    assert sum(name not in train for name in names) >= 10


def test_sources_vote_for_outside_too(splits: dict[str, Corpus]) -> None:
    columns = splits["train"].sources.items()
    voters = {name for name, column in columns if isinstance(column, Annotations) and np.any(column.type_ids == 0)}
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
    with pytest.raises(AlignmentError, match="demo-x: entity 'spider'"):
        _document("demo-x", "A [spider](Problem)-mite", has_gold=True)
