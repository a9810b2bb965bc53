"""How much Arrow data takes in memory, told before it is unpacked, or before its values stand each on their own.

A buffer of a compressed message says in its first eight bytes how long it is when it is unpacked, and Arrow takes that
much memory. Where the buffers of a message are stands in its head, a FlatBuffer: tables point to fields by offsets, and
a table's own table of offsets says which fields it has.
"""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tagweave.errors import FormatError

LEAST_VALUE = 4
"""Bytes that a value takes in memory, at least."""

_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY, _RECORDS = 2, 3
"""Kinds of messages that hold values."""
_DATA, _NODES, _BUFFERS, _COMPRESSION = 1, 1, 2, 3
"""Fields: records in a dictionary; counts of values, places of buffers, and way of packing in records."""


def unpacked(message: Any) -> int:  # noqa: ANN401
    """Bytes that a message of Arrow's streams takes in memory.

    Raises:
        ValueError: its head is broken.

    >>> sink = pa.BufferOutputStream()
    >>> batch = pa.record_batch({"a": [7] * 100_000})
    >>> with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
    ...     stream.write_batch(batch)
    >>> reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    >>> [(len(each.body), unpacked(each)) for each in reader if each.type == "record batch"][0][1]
    800000
    """
    try:
        head = _Table.root(message.metadata)
        kind = head.byte(_HEADER_TYPE)
        if kind not in (_DICTIONARY, _RECORDS):
            return 0
        records = head.table(_HEADER)
        if kind == _DICTIONARY:
            records = records.table(_DATA)
        values = sum(length for length, _ in records.pairs(_NODES))
        body = memoryview(message.body) if message.body is not None else memoryview(b"")
        places = records.pairs(_BUFFERS)
        if not records.has(_COMPRESSION):
            return max(LEAST_VALUE * values, len(body))
        return max(LEAST_VALUE * values, sum(_length(body, first, size) for first, size in places))
    except (struct.error, LookupError, OverflowError):
        raise ValueError("the head of a message is broken") from None


def _length(body: memoryview, first: int, size: int) -> int:
    """The bytes of a buffer when it is unpacked."""
    if size < 8:
        return 0
    [length] = struct.unpack_from("<q", body, first)
    return size if length == -1 else abs(int(length))


class _Table:
    """A table of a FlatBuffer."""

    def __init__(self, raw: Any, place: int) -> None:  # noqa: ANN401
        self._raw, self._place = raw, place

    @classmethod
    def root(cls, raw: Any) -> "_Table":  # noqa: ANN401
        """The outermost one."""
        view = memoryview(raw)
        return cls(view, _read("<I", view, 0))

    def _field(self, number: int) -> int | None:
        """Where a field is, or None."""
        fields = self._place - _read("<i", self._raw, self._place)
        entry = 4 + 2 * number
        offset = _read("<H", self._raw, fields + entry) if entry < _read("<H", self._raw, fields) else 0
        return self._place + offset if offset else None

    def _there(self, number: int) -> int:
        place = self._field(number)
        if place is None:
            raise LookupError(number)
        return place

    def has(self, number: int) -> bool:
        """Whether there is a field."""
        return self._field(number) is not None

    def byte(self, number: int) -> int:
        """A number of one byte."""
        return _read("<B", self._raw, self._there(number))

    def table(self, number: int) -> "_Table":
        """A table."""
        place = self._there(number)
        return _Table(self._raw, place + _read("<I", self._raw, place))

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """A list of pairs of numbers of eight bytes; none if it is not there."""
        place = self._field(number)
        if place is None:
            return []
        place += _read("<I", self._raw, place)
        count = _read("<I", self._raw, place)
        found = np.frombuffer(self._raw, "<i8", 2 * count, place + 4).reshape(count, 2)
        return [(int(first), int(second)) for first, second in found]


def _read(form: str, raw: Any, place: int) -> int:  # noqa: ANN401
    if place < 0:
        raise LookupError(place)
    [found] = struct.unpack_from(form, raw, place)
    return int(found)


def held(array: Any) -> int:  # noqa: ANN401
    """Bytes that the values of an array take when each stands on its own.

    Raises:
        FormatError: values of this type may be shared in ways that are not known here.

    >>> held(pa.array(["a" * 1000, "b"])) < 1100, held(pa.array(["a" * 1000] * 500).dictionary_encode())
    (True, 502000)
    """
    kind = array.type
    if not len(array):
        return 0
    if pa.types.is_dictionary(kind):
        return _of_dictionary(array)
    if pa.types.is_map(kind):
        return LEAST_VALUE * len(array) + held(array.keys) + held(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return LEAST_VALUE * len(array) + held(array.flatten())
    if pa.types.is_struct(kind):
        return LEAST_VALUE * len(array) + sum(map(held, array.flatten()))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], "<i4")[4 * array.offset :: 4][: len(array)]
        return LEAST_VALUE * len(array) + int(views.sum(dtype=np.int64))
    if pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind) or isinstance(kind, pa.BaseExtensionType):
        raise FormatError(f"values of the Arrow type {kind} are not read: write them as a plain column")
    return max(LEAST_VALUE * len(array), int(array.nbytes))


def _of_dictionary(array: Any) -> int:  # noqa: ANN401
    entries = array.dictionary
    count = len(array) - int(array.null_count)
    if pa.types.is_string(entries.type) or pa.types.is_large_string(entries.type):
        lengths = pc.binary_length(entries).cast(pa.int64())
        return LEAST_VALUE * len(array) + int(pc.sum(lengths.take(array.indices)).as_py() or 0)
    return LEAST_VALUE * len(array) + count * held(entries)
