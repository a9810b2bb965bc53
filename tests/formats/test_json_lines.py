import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats import FormatWarning, read, write
from tagweave.soft_labels import SoftLabels


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.jsonl"


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


NATIVE = (
    '{"id": "d1", "tokens": ["Ada", "Lovelace", "moved", "to", "Oslo"], "text": "Ada Lovelace moved to Oslo", '
    '"offsets": [[0, 3], [4, 12], [13, 18], [19, 21], [22, 26]], "group": "g", '
    '"entities": [[0, 2, "PER"], [4, 5, "LOC", 0.75]], '
    '"sources": {"names": [[0, 2, "PER"]], "cities": [[4, 5, "LOC", 0.9]], "old": null, "no": []}, '
    '"votes_o": {"cities": [[0, 2], [2, 3, 0.5]], "no": [[1, 2]]}, '
    '"labels": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"], '
    '"probabilities": [[0.0, 0.0, 0.0, 1.0, 0.0], [0.1, 0.2, 0.3, 0.4, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], '
    "[0.33333, 0.33333, 0.0, 0.0, 0.33333], [0.0, 1.0, 0.0, 0.0, 0.0]]}\n"
)


def test_the_native_line_is_written_as_it_was_read(path: Path) -> None:
    path.write_text(NATIVE)
    corpus = read(path)
    assert corpus.types == ("LOC", "PER")
    assert corpus[0].sources["cities"] == [
        Span(4, 5, "LOC", float(np.float32(0.9))),
        Span(0, 2, "O"),
        Span(2, 3, "O", 0.5),
    ]
    assert corpus[0].sources["old"] is None
    assert corpus[0].sources["no"] == [Span(1, 2, "O")]
    write(corpus, path.with_name("out.jsonl"))
    assert path.with_name("out.jsonl").read_text() == NATIVE


WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
TYPE = st.sampled_from(["X", "Y-z", "\u00e9"])


def spans(types: st.SearchStrategy[str], length: int) -> st.SearchStrategy[list[Span] | None]:
    """No run, no span, or one span (more might overlap, which is reported)."""
    if not length:
        return st.none() | st.just([])
    score = st.none() | st.sampled_from([0.0, 0.25, 1.0])
    starts = st.integers(0, length - 1)
    bounds = starts.flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, length)))
    return st.none() | st.just([]) | st.builds(lambda pair, *rest: [Span(*pair, *rest)], bounds, types, score)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Documents with all that may be missing."""
    made: list[Document] = []
    for name in draw(st.lists(WORD, max_size=4, unique=True)):
        tokens = draw(st.lists(WORD, max_size=4))
        entities = draw(spans(TYPE, len(tokens)))
        sources = {source: draw(spans(TYPE | st.just("O"), len(tokens))) for source in ("a", "b")}
        made.append(Document(name, tokens, group=draw(st.none() | WORD), entities=entities, sources=sources))
    return made


@given(documents())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, made: list[Document]) -> None:
    path = tmp_path_factory.mktemp("json") / "out.jsonl.gz"
    write(Corpus.from_documents(made), path)
    assert list(read(path)) == list(Corpus.from_documents(made))


def test_text_and_places_come_back(path: Path) -> None:
    text = " Ada\u2028(1815)\r\n"
    write(read(lines(path, {"id": 1, "text": text, "spans": [[1, 4, "PER"]]})), path)
    (document,) = read(path)
    assert document.text == text
    assert document.characters == [(1, 4), (5, 6), (6, 10), (10, 11)]
    assert document.entities == [Span(0, 1, "PER")]


def test_soft_sources_come_back(path: Path) -> None:
    corpus = Corpus.from_documents([Document("a", ["x", "y"], sources={"s": [], "t": []}), Document("b", ["z"])], ["X"])
    table = np.array([[0.25, 0.75, 0], [0.5, 0, 0.5], [1, 0, 0]], np.float32)
    soft = SoftLabels(("X",), corpus.offsets, table)
    write(replace(corpus, sources={"s": soft, "t": corpus.sources["t"]}), path)
    again = read(path)
    assert list(again.sources) == ["s", "t"]
    column = again.sources["s"]
    assert isinstance(column, SoftLabels)
    assert column.probabilities.tolist() == table.tolist()
    assert again[0].sources["s"] == [Span(0, 1, "X", 0.75)]
    assert again[1].sources == {"s": [], "t": None}


def test_labels_in_another_order_and_with_missing_columns(path: Path) -> None:
    first = {"id": "a", "tokens": ["x"], "labels": ["B-Y", "O"], "probs": [[0.25, 0.75]]}
    second = {"id": "b", "tokens": ["x"], "labels": ["O", "B-X", "I-X"], "probabilities": [[0, 0.5, 0.5]]}
    corpus = read(lines(path, first, second))
    assert corpus.types == ("X", "Y")
    assert corpus.soft_labels is not None
    assert corpus.soft_labels.probabilities.tolist() == [[0.75, 0, 0, 0.25, 0], [0, 0.5, 0.5, 0, 0]]
    assert read(path, types=["Y", "X"]).soft_labels.probabilities[1].tolist() == [0, 0, 0, 0.5, 0.5]  # type: ignore[union-attr]
    with pytest.raises(LabelError, match="in.jsonl: soft labels of the types Y"):
        read(path, types=["X"])


SOFT: dict[str, Any] = {"id": "d0", "tokens": ["x", "y"], "labels": ["O", "B-X"]}


@pytest.mark.parametrize(
    ("fields", "kind", "message"),
    [
        ({"probs": [[1, 0]]}, AlignmentError, "line 1, record 'd0': 2 tokens, but probabilities for 1"),
        ({"probs": [[1, 0], [1]]}, AlignmentError, "token 1: 2 labels, but 1 probabilities"),
        ({"probs": [[1, 0], [0.5, 0.6]]}, LabelError, "document 'd0', token 1"),
        ({"probs": [[1, 0], [1.5, -0.5]]}, LabelError, "document 'd0', token 1"),
        ({"probs": [[1, 0], [10**400, 0]]}, FormatError, "too large"),
        ({"probs": [[1, 0], [True, 0]]}, FormatError, "must be numbers"),
        ({"probs": [[1, 0], [None, 0]]}, FormatError, "must be numbers"),
        ({"probs": [1, 0]}, FormatError, "one list of numbers for each token"),
        ({"probs": {}}, FormatError, "one list of numbers for each token"),
        ({"probs": [[1, 0], [1, 0]], "labels": ["O", "X"]}, LabelError, "'X' is no BIO label"),
        ({"probs": [[1, 0], [1, 0]], "labels": ["O", "O"]}, LabelError, "twice"),
        ({"probs": [[1, 0], [1, 0]], "labels": None}, FormatError, "need 'labels'"),
    ],
)
def test_soft_labels_that_are_none(path: Path, fields: dict[str, Any], kind: type[DataError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        read(lines(path, {**SOFT, **fields}))
    assert "in.jsonl" in str(caught.value)


def test_soft_labels_on_some_documents_only(path: Path) -> None:
    with pytest.raises(FormatError, match="document 'e' has no soft labels"):
        read(lines(path, {**SOFT, "probs": [[1, 0], [1, 0]]}, {"id": "e", "tokens": ["x"]}))


@pytest.mark.parametrize(
    "fields",
    [
        {"entities": [[0, 2, "X"]]},
        {"gold": [[0, 2, "X"], [0, 2, "X"]]},
        {"spans": [{"start": 0, "end": 2, "label": "X"}]},
        {"labels": [[0, 2, "X", None]]},
        {"label": [{"start_offset": 0, "end_offset": 2, "type": "X", "text": "a b"}]},
        {"tags": ["B-X", "I-X"]},
        {"gold": ["B-X", "E-X"]},
        {"labels": ["X", "X"]},
        {"entities": [[0, 2, "X"]], "gold": None},
    ],
)
@pytest.mark.filterwarnings("ignore:.*merges adjacent")
def test_spellings_of_entities(path: Path, fields: dict[str, Any]) -> None:
    assert read(lines(path, {"id": "d", "tokens": ["a", "b"], **fields}))[0].entities == [Span(0, 2, "X")]


def test_no_entities_is_not_an_empty_list(path: Path) -> None:
    made = [{"id": "a", "tokens": []}, {"id": "b", "tokens": ["x"], "entities": []}]
    assert [document.entities for document in read(lines(path, *made))] == [None, []]


def test_sources_and_their_silence(path: Path) -> None:
    first = {"id": 1, "tokens": ["a"], "weak": {"s": [[0, 1, "X"]], "t": None, "u": []}}
    corpus = read(lines(path, first, {"id": 2, "tokens": ["b"], "votes_o": {"t": [[0, 1]], "u": []}}))
    assert corpus[0].sources == {"s": [Span(0, 1, "X")], "t": None, "u": []}
    assert corpus[1].sources == {"s": None, "t": [Span(0, 1, "O")], "u": []}
    assert corpus.id_list == ["1", "2"]


BAD: list[tuple[object, str]] = [
    ([], "one JSON object a line is expected, but this is a list"),
    ("x", "this is no object"),
    ({}, "neither 'tokens' nor 'text'"),
    ({"words": ["a"]}, "neither 'tokens' nor 'text', only 'words'"),
    ({"id": True, "tokens": []}, "id: must be a string or a whole number, not true or false"),
    ({"id": 1.5, "tokens": []}, "id: .* not a number"),
    ({"id": None, "tokens": []}, "id: .* not null"),
    ({"id": "r", "tokens": "ab"}, "record 'r': tokens: must be a list of strings"),
    ({"id": "r", "tokens": ["a", 1]}, "record 'r': tokens"),
    ({"id": "r", "text": 1}, "record 'r': text: must be a string"),
    ({"id": "r", "tokens": ["a"], "group": []}, "group"),
    ({"id": "r", "tokens": ["a"], "entities": {}}, "entities: must be a list, not an object"),
    ({"id": "r", "tokens": ["a"], "entities": 3}, "entities: must be a list, not a number"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1]]}, "is no span"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 2, "X"]]}, "does not lie within the 1 tokens"),
    ({"id": "r", "tokens": ["a"], "entities": [[1, 0, "X"]]}, "does not lie within"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 0, "X"]]}, "does not lie within"),
    ({"id": "r", "tokens": ["a"], "entities": [[-1, 1, "X"]]}, "does not lie within"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 10**30, "X"]]}, "does not lie within"),
    ({"id": "r", "tokens": ["a"], "entities": [[False, True, "X"]]}, "must be whole numbers"),
    ({"id": "r", "tokens": ["a"], "entities": [["0", "1", "X"]]}, "must be whole numbers"),
    ({"id": "r", "tokens": ["a"], "entities": [[0.0, 1.0, "X"]]}, "must be whole numbers"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1, ""]]}, "must be a name"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1, None]]}, "must be a name"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1, "X", 1.5]]}, "must be a probability"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1, "X", True]]}, "must be a probability"),
    ({"id": "r", "tokens": ["a"], "entities": [[0, 1, "O"]]}, "'O' is no entity type"),
    ({"id": "r", "tokens": ["a"], "entities": [{"start": 0}]}, "must be whole numbers"),
    ({"id": "r", "tokens": ["a"], "spans": [{"start": 0, "end": 1, "label": "X", "text": "b"}]}, "does it count char"),
    ({"id": "r", "tokens": ["a"], "entities": [], "spans": []}, "under 'entities' and 'spans'"),
    ({"id": "r", "tokens": ["a"], "tags": ["O", "O"]}, "tags: 1 tokens, but 2 tags"),
    ({"id": "r", "tokens": ["a"], "tags": [1]}, "tags must be strings"),
    ({"id": "r", "tokens": ["a"], "tags": ["0"]}, "Did you mean 'O'"),
    ({"id": "r", "text": "a", "tags": ["O"]}, "tags need 'tokens'"),
    ({"id": "r", "tokens": ["a"], "sources": []}, "sources: must be an object"),
    ({"id": "r", "tokens": ["a"], "sources": {"s": 1}}, "source 's': must be a list"),
    ({"id": "r", "tokens": ["a"], "sources": {"s": False}}, "source 's': must be a list"),
    ({"id": "r", "tokens": ["a"], "sources": {"s": {}}}, "source 's'"),
    ({"id": "r", "tokens": ["a"], "sources": {"s": {"labels": ["O"]}}}, "one list of numbers"),
    ({"id": "r", "tokens": ["a"], "sources": {"s": [[0, 5, "X"]]}}, "source 's': span"),
    ({"id": "r", "tokens": ["a"], "votes_o": []}, "votes_o: must be an object"),
    ({"id": "r", "tokens": ["a"], "votes_o": {"s": [[0]]}}, "votes_o of source 's'"),
    ({"id": "r", "tokens": ["a"], "votes_o": {"s": [[0, 4]]}}, "source 's': span"),
    ({"id": "r", "tokens": ["a", "b"], "text": "ba"}, "token 1, 'b', is not in the text"),
    ({"id": "r", "tokens": ["a"], "text": "ba", "offsets": [[0, 1]]}, "token 0, 'a', is not what the text has"),
    ({"id": "r", "tokens": ["a"], "text": "a", "offsets": [[0, True]]}, "no pair of whole numbers"),
    ({"id": "r", "tokens": ["a"], "text": "a", "offsets": []}, "1 tokens, but offsets for 0"),
    ({"id": "r", "tokens": ["a"], "text": "a", "offsets": 7}, "1 tokens, but offsets for a number"),
    ({"id": "r", "tokens": ["\ud800"]}, "half a character"),
]


@pytest.mark.parametrize(("record", "message"), BAD)
def test_a_bad_record_is_an_error_with_its_place(path: Path, record: object, message: str) -> None:
    lines(path, {"id": "ok", "tokens": ["x"]}, record)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert f"{path}, line 2" in str(caught.value)
    assert type(caught.value) is not DataError
    with pytest.warns(FormatWarning, match="1 records left out"):
        assert read(path, on_error="skip").id_list == ["ok"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ('{"id": 1} {"id": 2}', "not JSON"),
        ('{"id": "a", "tokens": ["x"], "entities": [[0, 1, "X", NaN]]}', "NaN is no number"),
        ('{"id": -Infinity}', "-Infinity is no number"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "not JSON"),
        ('{"id": "a", "tokens": ["a\tb"]}', "not JSON"),
    ],
)
def test_a_line_that_is_no_json(path: Path, line: str, message: str) -> None:
    path.write_text(f"\n{line}\n")
    with pytest.raises(FormatError, match=f"line 2: .*{message}"):
        read(path)


SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
NAME = st.sampled_from(["labels", "probabilities", "start", "end", "label", "a", "", "X", "O"])
VALUE = st.recursive(
    SCALAR | NAME, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAME, inner, max_size=3), max_leaves=9
)
KEYS = (
    "id tokens text offsets group entities gold label labels spans tags sources weak votes_o probabilities probs more"
)


@pytest.mark.filterwarnings("ignore::tagweave.errors.TagweaveWarning")
@given(st.dictionaries(st.sampled_from(KEYS.split()), VALUE, min_size=1, max_size=3), st.booleans())
def test_whatever_stands_in_a_record_is_read_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, object], text: bool
) -> None:
    path = tmp_path_factory.mktemp("json") / "in.jsonl"
    lines(path, {**({"text": "a b"} if text else {"tokens": ["a", "b"]}), **fields})
    try:
        corpus = read(path)
    except DataError as error:
        assert "in.jsonl" in str(error)
    else:
        assert len(corpus) == 1


def test_ids_must_differ(path: Path) -> None:
    lines(path, {"id": 1, "tokens": ["x"]}, {"id": "1", "tokens": ["y"]})
    with pytest.raises(FormatError, match="line 2, record '1': document id '1' occurs twice"):
        read(path)
    with pytest.warns(FormatWarning, match="1 records left out"):
        assert read(path, on_error="skip").tokens.to_pylist() == ["x"]


def test_a_record_that_is_left_out_leaves_no_soft_labels(path: Path) -> None:
    good = {
        "tokens": ["x"],
        "labels": ["O"],
        "probs": [[1]],
        "sources": {"s": {"labels": ["O"], "probabilities": [[1]]}},
    }
    lines(path, {"id": 0, **good}, {"id": 0, **good, "tokens": ["x"]}, {"id": 1, **good})
    with pytest.warns(FormatWarning, match="1 records left out"):
        corpus = read(path, on_error="skip")
    assert corpus.soft_labels is not None
    assert len(corpus.soft_labels.probabilities) == len(corpus) == 2


def test_records_without_id_are_numbered(path: Path) -> None:
    assert read(lines(path, {"tokens": ["a"]}, {"id": "x", "tokens": []}, {"text": "b"})).id_list == [
        "in-0",
        "x",
        "in-2",
    ]


def test_lists_under_unknown_keys_are_reported(path: Path) -> None:
    record = {"id": 1, "tokens": ["a"]}
    with pytest.warns(FormatWarning, match="keys 'lfs', 'anno'"):
        read(lines(path, {**record, "lfs": {"a": [[0, 1, "X"]]}, "anno": [[0, 1, "X"]], "meta": {"n": 1}}))
    read(lines(path, {**record, "anno": [[0, 1, "X"]], "entities": []}))
    read(lines(path, {**record, "meta": {"n": 1}, "n": 3}))


def test_overlaps_are_kept_and_reported(path: Path) -> None:
    record = {"id": "d", "tokens": ["a", "b"], "sources": {"s": [[0, 1, "X"], [0, 2, "Y"]], "t": [[0, 1, "X"]]}}
    with pytest.warns(FormatWarning, match="1 spans that overlap.*document 'd': s, tokens 0 to") as caught:
        corpus = read(lines(path, record))
    assert len(caught) == 1
    assert corpus[0].sources["s"] == [Span(0, 1, "X"), Span(0, 2, "Y")]


def test_spans_in_text_one_warning_for_all(path: Path) -> None:
    spans = [[0, 4, "X"], [3, 4, "X"], [4, 6, "X"], [0, 99, "X"], [0, 3, "Y"], [0, 3, "Y"]]
    lines(
        path, {"id": "d", "text": "Ada wrote", "entities": spans}, {"id": "e", "text": "x", "entities": [[0, 0, "X"]]}
    )
    with pytest.warns(FormatWarning) as caught:
        corpus = read(path)
    (warning,) = caught
    assert isinstance(warning.message, FormatWarning)
    assert warning.message.counts == {
        "trimmed": 1,
        "whitespace_only": 1,
        "misaligned": 1,
        "invalid_span": 2,
        "overlap": 1,
    }
    assert "'wr', begins or ends inside a token; it is now [4, 9], 'wrote'" in str(warning.message)
    assert [problem.document for problem in warning.message.problems if problem.kind == "invalid_span"] == ["d", "e"]
    assert corpus[0].entities == [Span(0, 1, "X"), Span(1, 2, "X"), Span(0, 1, "Y")]


def test_utf16_offsets(path: Path) -> None:
    record = {"id": "d", "text": "\U0001f680 Ada", "entities": [[3, 6, "PER"], [1, 6, "PER"]]}
    with pytest.warns(FormatWarning, match="inside a UTF-16 pair"):
        assert read(lines(path, record), offset_unit="utf16")[0].entities == [Span(1, 2, "PER")]
    with pytest.raises(AlignmentError, match="record 'd': entities: .* UTF-16 pair"):
        read(path, offset_unit="utf16", bad_spans="raise")


def test_a_span_that_tells_its_text_is_checked(path: Path) -> None:
    record = {"id": "d", "text": "\U0001f680 Ada", "spans": [{"start": 3, "end": 5, "label": "PER", "text": "Ad"}]}
    with pytest.raises(AlignmentError, match="record 'd': entities: .*'Ad', but there is 'da'.*utf16"):
        read(lines(path, record))


@pytest.mark.parametrize("name", ["alignement", "tokenize"])
def test_unknown_arguments_are_errors(path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}'. Did you mean"):
        read(lines(path), **{name: "strict"})
    with pytest.raises(UsageError, match="expand"):
        read(path, alignment="exact")
    with pytest.raises(UsageError):
        write(read(path), path, indent=2)


def test_a_failure_in_writing_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read(lines(path, {"id": "a", "tokens": ["x"]}, {"id": "b", "tokens": ["y"]}))
    before = path.read_bytes()
    monkeypatch.setattr("tagweave.formats.json_lines._plain_spans", lambda spans: 1 / 0)
    broken = Corpus.from_documents([*corpus, Document("c", ["z"], entities=[])])
    with pytest.raises(ZeroDivisionError):
        write(broken, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    content = '{"id": "é", "tokens": ["→"]}\n'.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    write(read("-"), "-")
    assert output.getvalue() == content


@pytest.mark.parametrize(("name", "part"), [("ncbi-disease", "train"), ("conll-2003", "dev")])
def test_benchmark_data_come_back(data_folder: Path, tmp_path: Path, name: str, part: str) -> None:
    corpus = read(data_folder / "weak" / name / f"{part}.jsonl.gz")
    write(corpus, tmp_path / "out.jsonl")
    again = read(tmp_path / "out.jsonl")
    assert list(again) == list(corpus)
    assert list(again.sources) == list(corpus.sources)
