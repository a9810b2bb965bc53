import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, StorageError, UsageError
from tagweave.formats import FormatWarning, format_of, read, read_batches, write
from tagweave.soft_labels import SoftLabels

TEXT = "\U0001f680 Ada\r\nmet Zo\u00eb"
CHARACTERS = [(0, 1), (2, 5), (7, 10), (11, 14)]
NAMES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The package, which keeps to its own folder and the machine's network out of it."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    package = pytest.importorskip("datasets")
    package.disable_progress_bars()
    monkeypatch.setattr(package.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return package


def made() -> Corpus:
    """A corpus with all that tables hold."""
    tokens = [TEXT[start:end] for start, end in CHARACTERS]
    documents = [
        Document(
            "d",
            tokens,
            TEXT,
            CHARACTERS,
            group="g",
            entities=[Span(1, 2, "PER"), Span(2, 4, "LOC")],
            sources={"names": [Span(1, 2, "PER"), Span(3, 4, "ENT")], "old": None, "soft": []},
        ),
        Document("e", ["Oslo"], entities=[], sources={"names": [], "old": [Span(0, 1, "LOC")], "soft": []}),
        Document("f", [], "", [], sources={"names": None, "soft": []}),
    ]
    corpus = Corpus.from_documents(documents, ["LOC", "PER"], {"ENT": ("LOC", "PER")})
    rows = np.random.default_rng(0).dirichlet(np.ones(5), 5).astype(np.float32)
    soft = SoftLabels(corpus.types, corpus.offsets, rows)
    return corpus.with_source("soft", soft).with_entities(corpus.entities, soft)


@pytest.fixture(params=["parquet", "datasets"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / ("out.parquet" if request.param == "parquet" else "out")


def name_of(path: Path) -> str:
    return "parquet" if path.suffix else "datasets"


def test_all_that_tables_hold_comes_back(path: Path) -> None:
    before = made()
    write(before, path, format=name_of(path))
    assert format_of(path).name == name_of(path)
    after = read(path, types=["LOC", "PER"], coarse={"ENT": ("LOC", "PER")})
    assert [*after] == [*before]
    for one, other in ((before.soft_labels, after.soft_labels), (before.sources["soft"], after.sources["soft"])):
        assert isinstance(one, SoftLabels) and isinstance(other, SoftLabels)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
    batches = [*read_batches(path, documents=2, types=["LOC", "PER"], coarse={"ENT": ("LOC", "PER")})]
    assert [document for batch in batches for document in batch] == [*before]


def test_datasets_reads_what_is_written(path: Path, datasets: Any) -> None:  # noqa: ANN401
    write(made(), path, format=name_of(path))
    if name_of(path) == "parquet":
        found = datasets.Dataset.from_parquet(str(path), cache_dir=str(path.parent / "cache"))
    else:
        found = datasets.load_from_disk(str(path))
    List, Value = datasets.List, datasets.Value
    votes = List(datasets.ClassLabel(names=[*NAMES, "B-ENT", "I-ENT"]))
    soft = List(List(Value("float32"), length=5))
    assert found.features == {
        "id": Value("string"),
        "tokens": List(Value("string")),
        "ner_tags": List(datasets.ClassLabel(names=NAMES)),
        "text": Value("string"),
        "offsets": List(List(Value("int32"), length=2)),
        "group": Value("string"),
        "soft_labels": soft,
        "weak_names": votes,
        "weak_old": votes,
        "weak_soft": soft,
    }
    assert found["ner_tags"] == [[0, 3, 1, 2], [0], None]
    assert found["weak_names"] == [[0, 3, 0, 5], [0], None]
    assert found["weak_old"] == [None, [1], None]
    assert found["text"] == [TEXT, None, ""]
    assert found.map(lambda row: {"size": len(row["tokens"])})["size"] == [4, 1, 0]


def foreign(datasets: Any, **columns: Any) -> Any:  # noqa: ANN401
    features = datasets.Features(
        {
            "id": datasets.Value("int64"),
            "tokens": datasets.List(datasets.Value("string")),
            "pos_tags": datasets.List(datasets.ClassLabel(names=["NOUN", "VERB"])),
            "ner_tags": datasets.List(datasets.ClassLabel(names=NAMES)),
            "weak_names": datasets.List(datasets.Value("string")),
        }
    )
    rows = {
        "id": [7, 8],
        "tokens": [["Ada", "came"], ["Oslo"]],
        "pos_tags": [[0, 1], [0]],
        "ner_tags": [[3, 0], [-1]],
        "weak_names": [["I-PER", "O"], ["B-LOC"]],
    }
    return datasets.Dataset.from_dict({**rows, **columns}, features=features)


def test_what_datasets_writes_is_read(path: Path, datasets: Any) -> None:  # noqa: ANN401
    found = foreign(datasets)
    found.to_parquet(str(path)) if name_of(path) == "parquet" else found.save_to_disk(str(path), num_shards=2)
    corpus = read(path)
    assert corpus.id_list == ["7", "8"]
    assert [document.entities for document in corpus] == [[Span(0, 1, "PER")], None]
    assert [document.sources["names"] for document in corpus] == [[Span(0, 1, "PER")], [Span(0, 1, "LOC")]]
    assert read(path, mode="strict").sources["names"].ran.all()


def test_a_selection_of_rows_is_read(tmp_path: Path, datasets: Any) -> None:  # noqa: ANN401
    foreign(datasets).select([1]).save_to_disk(str(tmp_path / "out"))
    assert read(tmp_path / "out").id_list == ["8"]


def test_splits_are_named(tmp_path: Path, datasets: Any) -> None:  # noqa: ANN401
    found = foreign(datasets)
    path = tmp_path / "both"
    datasets.DatasetDict(train=found, test=found.select([1])).save_to_disk(str(path))
    assert format_of(path).name == "datasets"
    assert read(path, split="test").id_list == ["8"]
    with pytest.raises(UsageError, match="has several splits: name one of train, test by 'split'"):
        read(path)
    with pytest.raises(UsageError, match="has no split 'dev': name one of train, test"):
        read(path, split="dev")
    with pytest.raises(UsageError, match="has no splits"):
        read(path / "train", split="train")


def table(path: Path, features: object = None, **columns: Any) -> Path:  # noqa: ANN401
    """A Parquet file that someone else made."""
    found = pa.table(columns)
    if features is not None:
        found = found.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(found, path)
    return path


@pytest.mark.parametrize(
    "feature",
    [
        [{"_type": "ClassLabel", "names": NAMES}],
        {"_type": "Sequence", "feature": {"_type": "ClassLabel", "names": NAMES}},
        {"_type": "LargeList", "feature": {"_type": "ClassLabel", "names": NAMES}},
        {"_type": "Sequence", "feature": {"num_classes": 5, "names": NAMES, "names_file": None, "_type": "ClassLabel"}},
    ],
)
def test_features_of_older_versions(tmp_path: Path, feature: object) -> None:
    path = table(tmp_path / "a.parquet", {"tags": feature}, tokens=[["Ada"]], tags=[[3]])
    assert read(path)[0].entities == [Span(0, 1, "PER")]


def test_numbers_without_names_need_them(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", words=[["Ada"]], labels=[[1]])
    with pytest.raises(UsageError, match="has neither a column 'tokens' nor 'text', but words, labels"):
        read(path)
    with pytest.raises(UsageError, match="has no column 'tags', but words, labels"):
        read(path, tokens="words", tags="tags")
    with pytest.raises(FormatError, match=r"a.parquet, row 0: labels holds numbers without names"):
        read(path, tokens="words", tags="labels")
    corpus = read(path, tokens="words", tags="labels", names=["O", "B-PER"])
    assert (corpus.id_list, corpus[0].entities) == (["a-0"], [Span(0, 1, "PER")])
    assert read(path, tokens="words", tags="labels", names="O,B-PER")[0].entities == [Span(0, 1, "PER")]


def test_other_columns_of_labels_are_told(tmp_path: Path) -> None:
    features = {"fine": [{"_type": "ClassLabel", "names": ["O", "LOC"]}]}
    path = table(tmp_path / "a.parquet", features, tokens=[["Oslo"]], fine=[[1]])
    with pytest.warns(FormatWarning, match="without tags, which have other columns of labels .*: fine; name one"):
        assert read(path)[0].entities is None
    with pytest.warns(FormatWarning, match="merges adjacent entities"):
        assert read(path, tags="fine")[0].entities == [Span(0, 1, "LOC")]


def test_tags_may_be_strings_of_any_scheme(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", tokens=[["Oslo", "Bay"], ["x"]], ner_tags=[["B-LOC", "E-LOC"], ["I-X"]])
    with pytest.warns(FormatWarning, match="as the scheme BIOES wants"):
        assert read(path)[0].entities == [Span(0, 2, "LOC")]
    with pytest.warns(FormatWarning, match="left out"):
        assert read(path, mode="strict")[1].entities == []


def test_text_without_tokens_is_cut(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", text=["Ada came."])
    assert read(path)[0].tokens == ["Ada", "came", "."]
    assert read(path, tokenizer="whitespace")[0].tokens == ["Ada", "came."]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"ner_tags": [["O", "O"]]}, AlignmentError, "1 tokens, but 2 tags"),
        ({"ner_tags": ["O"]}, FormatError, "ner_tags: must be a list of tags"),
        ({"ner_tags": [["0"]]}, LabelError, "'0' is no tag"),
        ({"weak_a": [["O", "O"]]}, AlignmentError, "weak_a: 1 tokens, but 2 tags"),
        ({"weak_a": [[[1.0]]]}, FormatError, "weak_a: probabilities need the names of a ClassLabel"),
        ({"soft_labels": [[[1.0]]]}, FormatError, "soft_labels: probabilities need the names"),
        ({"offsets": [[[0, 9]]], "text": ["Ada"]}, AlignmentError, "token 0, 'Ada'"),
        ({"id": [1.5]}, FormatError, "id: must be a string"),
        ({"tokens": [[None]]}, FormatError, "tokens: must be a list of strings"),
        ({"text": [3]}, FormatError, "text: must be a string"),
    ],
)
def test_a_wrong_row_is_an_error_with_its_number(
    tmp_path: Path, columns: dict[str, Any], error: type[DataError], message: str
) -> None:
    path = table(tmp_path / "a.parquet", **{"tokens": [["Ada"]], **columns})
    with pytest.raises(error, match=f"a.parquet, row 0.*{message}"):
        read(path)


@pytest.mark.parametrize("number", [5, -2])
def test_a_number_without_a_name_is_an_error(tmp_path: Path, number: int) -> None:
    features = {"tags": [{"_type": "ClassLabel", "names": NAMES}]}
    path = table(tmp_path / "a.parquet", features, tokens=[["Ada"]], tags=[[number]])
    with pytest.raises(LabelError, match=f"a.parquet, row 0: tags: {number} is no number of one of the 5 names"):
        read(path)


def test_broken_files_are_errors(path: Path) -> None:
    write(made(), path, format=name_of(path))
    [file] = [path] if path.is_file() else path.glob("*.arrow")
    content = file.read_bytes()
    for size in (0, 3, 100, len(content) // 2, len(content) - 9):
        file.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"out.*(cannot be read|soft labels)"):
            read(path)
    file.write_bytes(b"no Arrow at all, but long enough to be one")
    with pytest.raises(FormatError, match="cannot be read"):
        read(path)
    file.unlink()
    with pytest.raises(UsageError, match="there is no such file"):
        read(path, format=name_of(path))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("state.json", "{", "state.json: not JSON"),
        ("state.json", "{}", "state.json: '_data_files' must be a list"),
        ("state.json", '{"_data_files": [{"filename": "../x.arrow"}]}', "names of files in this folder"),
        ("state.json", '{"_data_files": [{"filename": "a"}], "_indices_data_files": [1]}', "selection of rows"),
        ("dataset_info.json", "[]", "dataset_info.json: one JSON object"),
        ("dataset_dict.json", '{"splits": ["../.."]}', "'splits' must be a list of names of folders"),
        ("dataset_dict.json", '{"splits": 3}', "'splits' must be a list of names of folders"),
    ],
)
def test_broken_folders_are_errors(tmp_path: Path, file: str, content: str, message: str) -> None:
    write(made(), tmp_path / "out", format="datasets")
    (tmp_path / "out" / file).write_text(content)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "out")


def test_features_that_are_no_json_are_an_error(tmp_path: Path) -> None:
    found = pa.table({"tokens": [["a"]]}).replace_schema_metadata({"huggingface": "{"})
    pq.write_table(found, tmp_path / "a.parquet")
    with pytest.raises(FormatError, match="a.parquet, metadata: not JSON"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("info", [[], "x", 5, None, {"features": []}])
def test_metadata_of_another_form_is_no_description(info: object, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("tokens", pa.list_(pa.string()))])
    rows = pa.table({"id": ["a"], "tokens": [["Ada"]]}, schema=schema)
    described = rows.replace_schema_metadata({"huggingface": json.dumps({"info": info})})
    pq.write_table(described, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[0].tokens == ["Ada"]


def test_words_that_are_not_utf8_are_an_error(tmp_path: Path) -> None:
    words = pa.array([b"Ada", b"\xff\x94"]).cast(pa.binary()).view(pa.string())
    rows = pa.table({"id": ["a"], "tokens": pa.ListArray.from_arrays([0, 2], words)})
    pq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(FormatError, match="a.parquet cannot be read"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("offsets", [(0, 1 << 20), (0, -5), (3, 0)])
@pytest.mark.parametrize("which", ["lists", "words"])
def test_offsets_that_lead_out_of_a_file_are_an_error(offsets: tuple[int, int], which: str, tmp_path: Path) -> None:
    """Arrow's own reader of streams does not look at them, and would read what lies beside the file in memory."""
    words = ["x" * 83] if which == "words" else ["y"] * 83
    write(Corpus.from_documents([Document("a", words)]), tmp_path / "set", format="datasets")
    [data] = (tmp_path / "set").glob("*.arrow")
    good = np.array([0, 83], np.int32).tobytes()
    before, found, after = data.read_bytes().rpartition(good)  # the last is in the data, others say how long they are
    assert found
    data.write_bytes(before + np.array(offsets, np.int32).tobytes() + after)
    with pytest.raises(FormatError, match="cannot be read"):
        read(tmp_path / "set", format="datasets")


def test_what_tables_cannot_hold_is_counted(path: Path) -> None:
    document = Document(
        "d",
        ["a", "b"],
        entities=[Span(0, 2, "X", 0.5), Span(0, 1, "Y")],
        sources={"s": [Span(0, 2, "X", 0.5), Span(1, 2, "Y"), Span(0, 1, "O")]},
        links={"caps": []},
    )
    with pytest.warns(FormatWarning) as caught:
        write(Corpus.from_documents([document]), path, format=name_of(path))
    assert caught[0].message.counts == {  # type: ignore[union-attr]
        "links": 1,
        "scores": 1,
        "votes_o": 1,
        "overlap": 2,
        "vote_scores": 1,
    }
    again = read(path)[0]
    assert (again.entities, again.sources) == ([Span(0, 2, "X")], {"s": [Span(0, 2, "X")]})


def test_entities_of_coarse_types_are_an_error(path: Path) -> None:
    documents = [Document("d", ["a"], entities=[Span(0, 1, "ENT")])]
    corpus = Corpus.from_documents(documents, ["X"], {"ENT": ("X",)})
    with pytest.raises(LabelError, match="entities are of the coarse types ENT"):
        write(corpus, path, format=name_of(path))
    assert not path.exists()


def test_folders_of_others_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(made(), path, format="datasets")
    write(made().subset([0]), path, format="datasets")
    assert len(read(path)) == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").touch()
    with pytest.raises(StorageError, match="was not written by tagweave"):
        write(made(), tmp_path / "other", format="datasets")
    with pytest.raises(UsageError, match="datasets are written as folders"):
        write(made(), "-", format="datasets")


@pytest.mark.parametrize("name", ["-", "a.parquet.gz"])
def test_parquet_is_a_plain_file(name: str, tmp_path: Path) -> None:
    path = name if name == "-" else tmp_path / name
    for use in (lambda: read(path, format="parquet"), lambda: write(made(), path, format="parquet")):
        with pytest.raises(UsageError, match="a Parquet file is read from its end"):
            use()


def test_many_rows_are_written_and_read_in_parts(path: Path) -> None:
    documents = [Document(str(number), ["a"] * (number % 3), entities=[]) for number in range(2500)]
    corpus = Corpus.from_documents(documents)
    write(corpus, path, format=name_of(path))
    assert [*read(path)] == [*corpus]
    if name_of(path) == "parquet":
        assert pq.ParquetFile(path).num_row_groups == 3


def test_a_corpus_without_anything(path: Path) -> None:
    for corpus in (Corpus.from_documents([]), Corpus.from_documents([Document("d", [])])):
        write(corpus, path, format=name_of(path))
        assert [*read(path)] == [*corpus]


def test_neither_needs_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    write(replace(made(), soft_labels=None), path, format=name_of(path))
    assert len(read(path)) == 3
