"""How many values the columns of a Parquet file hold, from its footer.

Arrow knows it too, but where the facts about a column contradict each other its way of telling ends the whole process.
A footer is a struct in Thrift's compact protocol: numbers are varints, and each field says its kind.
"""

from pathlib import Path
from typing import Any

from tagweave.errors import FormatError

_MAGIC = b"PAR1"
_ROW_GROUPS, _COLUMNS, _METADATA, _VALUES = 4, 1, 3, 5
"""Numbers of fields: row groups of a file, columns of a row group, what is said of a column, its values."""
_DEEPEST = 32
_BOOLEANS, _BYTE, _WHOLE, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12


def values_in_groups(path: Path) -> list[int]:
    """Values in all columns of each row group.

    Raises:
        FormatError: the footer is broken.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MAGIC or length > size - 8:
            raise FormatError(f"{path}: has no footer of Parquet")
        file.seek(size - 8 - length)
        footer = _Footer(file.read(length))
    try:
        groups = footer.struct()[_ROW_GROUPS]
        return [sum(column[_METADATA][_VALUES] for column in group[_COLUMNS]) for group in groups]
    except (LookupError, TypeError, ValueError):
        raise FormatError(f"{path}: its footer does not say what its columns hold") from None


class _Footer:
    """Reads the values of a footer one after the other; an `IndexError` says that it ends too early."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._place = raw, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
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
            return self.struct(depth + 1)
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
        self._place += 1
        return self._raw[self._place - 1]

    def _skip(self, length: int) -> None:
        self._place += length
        if self._place > len(self._raw):
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
