"""How much the columns of a Parquet file hold, from its footer and the heads of its pages.

Arrow knows the number of values too, but where the facts about a column contradict each other its way of telling ends
the whole process. How many bytes they are the footer says as well, but Arrow takes what the head of each page says.
Footers and heads are structs in Thrift's compact protocol: numbers are varints, and each field says its kind.
"""

import mmap
from pathlib import Path
from typing import Any

from tagweave.errors import FormatError

_MAGIC = b"PAR1"
_ROW_GROUPS, _COLUMNS, _METADATA, _VALUES = 4, 1, 3, 5
"""Numbers of fields: row groups of a file, columns of a row group, what is said of a column, its values."""
_PACKED, _FIRST, _DICTIONARY = 7, 9, 11
"""Of a column too: bytes in the file, places of its first page and of its dictionary."""
_BYTES, _PAGE = 2, 3
"""Of a page: its bytes when they are unpacked, and in the file."""
_DEEPEST = 32
_BOOLEANS, _BYTE, _WHOLE, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12


def values_and_bytes(path: Path) -> list[tuple[int, int]]:
    """Values in all columns of each row group, and bytes of their pages when they are unpacked.

    Raises:
        FormatError: the footer or a page is broken.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if not size:
            raise FormatError(f"{path}: has no footer of Parquet")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            length = int.from_bytes(raw[max(size - 8, 0) : size - 4], "little")
            if raw[size - 4 :] != _MAGIC or length > size - 8:
                raise FormatError(f"{path}: has no footer of Parquet")
            try:
                groups = _Struct(raw[size - 8 - length : size - 8]).fields()[_ROW_GROUPS]
                return [_of_group([column[_METADATA] for column in group[_COLUMNS]], raw) for group in groups]
            except (LookupError, TypeError, ValueError):
                raise FormatError(f"{path}: it does not say what its columns hold") from None


def _of_group(columns: list[dict[int, Any]], raw: mmap.mmap) -> tuple[int, int]:
    return sum(column[_VALUES] for column in columns), sum(_unpacked(column, raw) for column in columns)


def _unpacked(column: dict[int, Any], raw: mmap.mmap) -> int:
    """Bytes of the pages of a column when they are unpacked.

    Raises:
        LookupError, ValueError: they are not where they must be.
    """
    place = column[_FIRST]
    if 0 < column.get(_DICTIONARY, 0) < place:
        place = column[_DICTIONARY]
    end, total = place + column[_PACKED], 0
    if not 0 <= place <= end <= len(raw):
        raise ValueError("beyond the file")
    while place < end:
        head = _Struct(raw, place)
        fields = head.fields()
        if fields[_BYTES] < 0 or fields[_PAGE] < 0:
            raise ValueError("a negative size")
        total += fields[_BYTES]
        place = head.place + fields[_PAGE]
    return total


class _Struct:
    """Reads the values of a struct one after the other; an `IndexError` says that it ends too early.

    Attributes:
        place: of the next byte.
    """

    def __init__(self, raw: bytes | mmap.mmap, place: int = 0) -> None:
        self._raw, self.place = raw, place

    def fields(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            fields[number] = kind == 1 if kind in _BOOLEANS else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:  # noqa: ANN401
        if depth > _DEEPEST:
            raise ValueError("too deep")
        if kind in _WHOLE:
            return self._zigzag()
        if kind == _STRUCT:
            return self.fields(depth + 1)
        if kind in _LISTS:
            return self._list(depth)
        if kind == _MAP:
            return self._map(depth)
        lengths = {_BYTE: 1, _DOUBLE: 8, **dict.fromkeys(_BOOLEANS, 1)}
        return self._skip(self._varint() if kind == _BINARY else lengths[kind])

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        return [self._value(head & 15, depth + 1) for _ in range(count)]

    def _map(self, depth: int) -> None:
        if count := self._varint():
            kinds = self._byte()
            for _ in range(count):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)

    def _byte(self) -> int:
        self.place += 1
        return self._raw[self.place - 1]

    def _skip(self, length: int) -> None:
        self.place += length
        if self.place > len(self._raw):
            raise IndexError

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 70:
                return number

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
