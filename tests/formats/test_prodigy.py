import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from formats.mention_texts import contents, corpora
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats import FormatWarning, read, write

TEXT = "Ada Lovelace\n\nmoved"
TOKENS = [
    {"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": "Lovelace", "start": 4, "end": 12, "id": 1, "ws": False},
    {"text": "\n\n", "start": 12, "end": 14, "id": 2, "ws": False},
    {"text": "moved", "start": 14, "end": 19, "id": 3, "ws": False},
]
SPANS = [
    {"start": 0, "end": 12, "token_start": 0, "token_end": 1, "label": "PER"},
    {"start": 14, "end": 19, "token_start": 3, "token_end": 3, "label": "VERB"},
]
EXAMPLE: dict[str, Any] = {
    "text": TEXT,
    "_input_hash": 1,
    "tokens": TOKENS,
    "spans": SPANS,
    "answer": "accept",
    "_session_id": None,
    "meta": {"source": "x"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ner.jsonl"


def read_examples(path: Path, *examples: dict[str, Any], **options: object) -> Corpus:
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    return read(path, format="prodigy", **options)


def without(example: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in example.items() if key not in keys}


def test_its_tokens_are_the_tokens_but_for_blanks(path: Path) -> None:
    document = read_examples(path, EXAMPLE)[0]
    assert document.id == "ner-0"
    assert document.tokens == ["Ada", "Lovelace", "moved"]
    assert document.text == TEXT
    assert document.characters == [(0, 3), (4, 12), (14, 19)]
    assert document.entities == [Span(0, 2, "PER"), Span(2, 3, "VERB")]


def test_without_tokens_the_text_is_cut(path: Path) -> None:
    example = {**without(EXAMPLE, "tokens"), "spans": [{"start": 14, "end": 19, "label": "VERB"}]}
    document = read_examples(path, example)[0]
    assert document.entities == [Span(2, 3, "VERB")]


@pytest.mark.parametrize("keys", [("start", "end"), ("token_start", "token_end")])
def test_a_span_tells_its_place_in_characters_or_tokens(path: Path, keys: tuple[str, ...]) -> None:
    corpus = read_examples(path, {**EXAMPLE, "spans": [without(span, *keys) for span in SPANS]})
    assert corpus[0].entities == [Span(0, 2, "PER"), Span(2, 3, "VERB")]


def test_only_accepted_examples_are_read(path: Path) -> None:
    rejected, ignored = {**EXAMPLE, "answer": "reject"}, {**EXAMPLE, "answer": "ignore"}
    with pytest.warns(FormatWarning, match="3 examples left out that were not accepted") as caught:
        corpus = read_examples(path, rejected, EXAMPLE, ignored, ignored)
    assert corpus.id_list == ["ner-0"]
    assert caught[0].message.counts == {"not_accepted": 3}  # type: ignore[union-attr]


def test_accepted_without_spans_has_no_entities_and_unanswered_has_unknown_ones(path: Path) -> None:
    corpus = read_examples(path, without(EXAMPLE, "spans"), without(EXAMPLE, "spans", "answer"))
    assert [document.entities for document in corpus] == [[], None]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({**EXAMPLE, "tokens": ["Ada"]}, "'?Ada'? is no object with text, start and end"),
        ({**EXAMPLE, "tokens": {}}, "tokens: must be a list"),
        ({**EXAMPLE, "spans": {}}, "spans: must be a list"),
        ({**EXAMPLE, "text": None}, "text: must be a string"),
        ({**EXAMPLE, "text": "Eve Lovelace\n\nmoved"}, "token 0, 'Ada', is not what the text has"),
        ({**EXAMPLE, "spans": [{**SPANS[0], "token_end": 4}]}, "does not lie within the 4 tokens"),
        ({**EXAMPLE, "spans": [{**SPANS[0], "token_end": 2}]}, "its tokens are at \\[0, 14\\]"),
        ({**EXAMPLE, "spans": [{**SPANS[0], "text": "Eve Lovelace"}]}, "says that it covers 'Eve Lovelace'"),
    ],
)
def test_a_bad_example_is_an_error_with_its_line(path: Path, example: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"ner.jsonl, line 2.*{message}"):
        read_examples(path, EXAMPLE, example)
    with pytest.warns(FormatWarning, match="1 records left out because of errors"):
        assert len(read_examples(path, EXAMPLE, example, on_error="skip")) == 1


def test_a_line_that_is_no_object_is_an_error(path: Path) -> None:
    path.write_text("3\n")
    with pytest.raises(FormatError, match="ner.jsonl, line 1: one JSON object a line"):
        read(path, format="prodigy")


def test_it_is_written_as_prodigy_has_it(path: Path) -> None:
    characters = [(0, 3), (4, 12), (14, 19)]
    spans = [Span(0, 2, "PER", 0.5), Span(2, 3, "VERB")]
    document = Document("d", ["Ada", "Lovelace", "moved"], TEXT, characters, group="g", entities=spans)
    write(Corpus.from_documents([document]), path, format="prodigy")
    assert json.loads(path.read_text()) == {
        "id": "d",
        "text": TEXT,
        "tokens": TOKENS,
        "group": "g",
        "spans": [{**SPANS[0], "score": 0.5}, SPANS[1]],
        "answer": "accept",
    }


@given(corpora())
def test_tokens_and_their_blanks_are_the_text(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> None:
    path = tmp_path_factory.mktemp("prodigy") / "out.jsonl"
    write(corpus, path, format="prodigy")
    for line in path.read_bytes().splitlines():
        example = json.loads(line)
        joined = "".join(token["text"] + (" " if token["ws"] else "") for token in example["tokens"])
        assert joined == example["text"]
    assert contents(read(path, format="prodigy")) == contents(corpus)


def test_tokens_that_overlap_are_an_error(path: Path) -> None:
    document = Document("d", ["ab", "b"], "ab", [(0, 2), (1, 2)])
    with pytest.raises(AlignmentError, match=r"ner.jsonl, document 'd': token 1 begins at 1, before the end"):
        write(Corpus.from_documents([document]), path, format="prodigy")
    assert not path.exists()


def test_json_lines_tell_where_examples_of_prodigy_are_read(path: Path) -> None:
    path.write_text(json.dumps(EXAMPLE))
    with pytest.raises(FormatError, match="tokens of Prodigy: read with the format 'prodigy'"):
        read(path)
