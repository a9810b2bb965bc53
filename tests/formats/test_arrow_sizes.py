"""Arrow and Parquet files that hold far more than they are: refused before memory fills."""

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tagweave.corpus import Corpus, Document
from tagweave.errors import FormatError
from tagweave.formats import read, write
from tagweave.formats.arrow_sizes import held, unpacked

LONG = 20_000_000
FAR_TOO_LARGE = "more than 200 times as large"


def dataset(folder: Path, batch: pa.RecordBatch, compression: str | None = "zstd") -> Path:
    """A folder of `datasets` with these rows; its file of data."""
    write(Corpus.from_documents([Document("d", ["a"])]), folder, format="datasets")
    path = folder / "data-00000-of-00001.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return path


def shared(count: int) -> pa.RecordBatch:
    """One long word, as often as you like."""
    word = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["a" * (LONG // 20)]))
    return pa.record_batch({"text": word})


def in_views(count: int) -> pa.RecordBatch:
    view = struct.pack("<i4sii", LONG // 20, b"aaaa", 0, 0)
    buffers = [None, pa.py_buffer(view * count), pa.py_buffer(b"a" * (LONG // 20))]
    return pa.record_batch({"text": pa.Array.from_buffers(pa.string_view(), count, buffers)})


def run_ends() -> pa.RecordBatch:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1000], pa.int32()), pa.array(["ab"]))
    return pa.record_batch({"text": runs})


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_packed_dataset_is_read_and_a_bomb_is_not(compression: str, tmp_path: Path) -> None:
    dataset(tmp_path / "fine", pa.record_batch({"text": ["Ada saw Oslo", "Bo came"]}), compression)
    assert [len(document.tokens) for document in read(tmp_path / "fine")] == [3, 2]
    dataset(tmp_path / "bomb", pa.record_batch({"text": ["a" * LONG]}), compression)
    with pytest.raises(FormatError, match=f"{FAR_TOO_LARGE}.*save it without compression"):
        read(tmp_path / "bomb")


def test_what_a_buffer_says_of_itself_is_believed_before_room_is_taken(tmp_path: Path) -> None:
    path = dataset(tmp_path / "liar", pa.record_batch({"text": ["Ada saw Oslo " * 1000]}))
    raw, length = path.read_bytes(), struct.pack("<q", 13_000)
    assert raw.count(length + b"\x28\xb5\x2f\xfd") == 1
    path.write_bytes(raw.replace(length + b"\x28\xb5", struct.pack("<q", 1 << 50) + b"\x28\xb5"))
    with pytest.raises(FormatError, match=FAR_TOO_LARGE):
        read(tmp_path / "liar")


@pytest.mark.parametrize("make", [shared, in_views], ids=["dictionary", "views"])
def test_a_long_value_that_comes_often(make: Callable[[int], pa.RecordBatch], tmp_path: Path) -> None:
    dataset(tmp_path / "fine", make(1))
    assert len(read(tmp_path / "fine")) == 1
    dataset(tmp_path / "bomb", make(1000))
    with pytest.raises(FormatError, match=FAR_TOO_LARGE):
        read(tmp_path / "bomb")


def test_types_whose_values_take_no_room(tmp_path: Path) -> None:
    dataset(tmp_path / "runs", run_ends(), None)
    with pytest.raises(FormatError, match=r"values of the Arrow type run_end_encoded.* are not read"):
        read(tmp_path / "runs")
    dataset(tmp_path / "nulls", pa.record_batch({"text": pa.nulls(LONG)}), None)
    with pytest.raises(FormatError, match=FAR_TOO_LARGE):
        read(tmp_path / "nulls")


def test_a_long_value_that_comes_often_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    words = pa.array([["a" * (LONG // 20), "b"]] * 1000, pa.list_(pa.string()))
    pq.write_table(pa.table({"tokens": words}), path, compression="zstd")
    with pytest.raises(FormatError, match=f"{FAR_TOO_LARGE}.*write it as JSON lines"):
        read(path)


def test_a_page_of_parquet_that_is_packed_too_well(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a" * LONG]}), path, compression="zstd", use_dictionary=False)
    with pytest.raises(FormatError, match=FAR_TOO_LARGE):
        read(path)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([["a", None], None, []], pa.list_(pa.string())),
        pa.array([["a"], ["b"]], pa.large_list(pa.large_string())),
        pa.array([[1, 2]] * 9, pa.list_(pa.int64(), 2)),
        pa.array([{"a": 1, "b": "c"}, None]),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        pa.array([], pa.string_view()),
        pa.array([1.5, None]).dictionary_encode(),
        pa.array(["a", "b", None]).dictionary_encode().slice(1),
    ],
)
def test_small_values_are_small(values: pa.Array) -> None:
    assert 0 <= held(values) < 500


@pytest.mark.parametrize("place", [0, 4, 8, 16, 24])
def test_broken_heads_of_messages(place: int) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"a": [1, 2, 3]})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    [message] = [each for each in pa.ipc.MessageReader.open_stream(sink.getvalue()) if each.type == "record batch"]
    raw = bytearray(message.metadata)

    class Broken:
        body = message.body
        metadata = raw

    for value in range(0, 256, 5):
        raw[place] = value
        try:
            assert unpacked(Broken) >= 0
        except ValueError as error:
            assert str(error)
