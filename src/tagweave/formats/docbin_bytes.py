"""What is in a DocBin of spaCy, taken out of its bytes and made into bytes by hand.

A DocBin is msgpack packed by zlib. It is read here without its decoders for other objects, so that nothing but numbers,
strings, lists and mappings comes out of a file, and without spaCy's own reader, which trusts what it reads. Written by
spaCy, each span group would take milliseconds. Only the hashes of strings are spaCy's.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.errors import FormatError, MissingExtraError
from tagweave.formats.streams import LEAST_LIMIT, MOST_PACKED, too_well_packed

_SPAN = struct.Struct(">QQQllll")
_INSIDE, _OUTSIDE, _BEGIN = 1, 2, 3
"""Numbers of spaCy for how a token is part of an entity."""

_NOTHING = (b"", b"\x90", b"\x80")
"""What stands for no span groups: no bytes, an empty list, an empty mapping."""


class PackedSpan(NamedTuple):
    """A span that counts tokens, half-open; its label may be empty."""

    start: int
    end: int
    label: str


class PackedGroup(NamedTuple):
    """A span group: its spans, and a score for each if it has scores."""

    spans: list[PackedSpan]
    scores: list[float | None] | None


@dataclass(frozen=True)
class PackedDoc:
    """One document.

    Attributes:
        words: its tokens, those of blanks too.
        blanks: whether a blank follows each token; None where nobody knows.
        tags: `B` or `I` and a type for each token, or two empty strings; empty where nobody looked for entities.
        groups: span groups by name.
        user_data: what else is kept with it.
    """

    words: list[str]
    blanks: list[bool] | None
    tags: list[tuple[str, str]]
    groups: dict[str, PackedGroup]
    user_data: Mapping[Any, Any]


def pack(docs: Iterable[PackedDoc]) -> bytes:
    """The bytes of a DocBin.

    Raises:
        MissingExtraError: spaCy is not installed.
    """
    return _Packing().bytes_of(docs)


class _Packing:
    """Makes the parts of a DocBin."""

    def __init__(self) -> None:
        try:
            from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH
            from spacy.strings import StringStore
            from srsly import msgpack
        except ImportError:
            raise needs_spacy() from None
        self._attributes = [ORTH, ENT_IOB, ENT_TYPE]
        self._strings = StringStore()
        self._names: set[str] = set()
        self._packer = msgpack.Packer(use_bin_type=True)

    def bytes_of(self, docs: Iterable[PackedDoc]) -> bytes:
        """The bytes of all documents."""
        content: dict[str, Any] = {"version": "0.1", "attrs": self._attributes}
        tables, spaces = [np.zeros((0, 3), np.uint64)], [np.zeros(0, np.bool_)]
        lengths, flags, groups, user_data = [], [], [], []
        for doc in docs:
            tables.append(self._table(doc))
            spaces.append(np.array(_blanks(doc), np.bool_))
            lengths.append(len(doc.words))
            flags.append({"has_unknown_spaces": doc.blanks is None})
            groups.append(self._groups(doc))
            user_data.append(self._packer.pack(dict(doc.user_data)))
        content |= {
            "tokens": np.concatenate(tables).astype("<u8").tobytes(),
            "spaces": np.concatenate(spaces).tobytes(),
            "lengths": np.array(lengths, "<i4").tobytes(),
            "strings": sorted(self._names),
            "cats": [{} for _ in lengths],
            "flags": flags,
            "span_groups": groups,
            "user_data": user_data,
        }
        return zlib.compress(self._packer.pack(content))

    def _number(self, string: str) -> int:
        self._names.add(string)
        number: int = self._strings.add(string) if string else 0
        return number

    def _table(self, doc: PackedDoc) -> NDArray[np.uint64]:
        """Word, part of an entity and its type, for each token."""
        table = np.zeros((len(doc.words), 3), np.uint64)
        table[:, 0] = [self._number(word) for word in doc.words]
        if doc.tags:
            table[:, 1] = [_NUMBERS[prefix] for prefix, _ in doc.tags]
            table[:, 2] = [self._number(name) for _, name in doc.tags]
        return table

    def _groups(self, doc: PackedDoc) -> bytes:
        starts = [0, *accumulate(len(word) + blank for word, blank in zip(doc.words, _blanks(doc), strict=True))]
        packed = {}
        for name, group in doc.groups.items():
            spans = [
                _SPAN.pack(
                    0, 0, self._number(label), start, end, starts[start], starts[end - 1] + len(doc.words[end - 1])
                )
                for start, end, label in group.spans
            ]
            attributes = {} if group.scores is None else {"scores": group.scores}
            packed[self._packer.pack({"name": name, "attrs": attributes, "spans": spans})] = [name]
        found: bytes = self._packer.pack(packed or [])
        return found


_NUMBERS = {"": _OUTSIDE, "B": _BEGIN, "I": _INSIDE}


def _blanks(doc: PackedDoc) -> list[bool]:
    """Whether a blank follows each token; where nobody knows, spaCy takes one for granted."""
    return [True] * len(doc.words) if doc.blanks is None else doc.blanks


def packed_docs(raw: bytes) -> "PackedDocs":
    """The documents of a DocBin.

    Raises:
        FormatError: these are not the bytes of one.
        MissingExtraError: spaCy is not installed.
    """
    try:
        content = _unpacked(_inflated(raw), use_list=True)
        if not isinstance(content, dict):
            raise TypeError("no mapping")
        return PackedDocs.of(content)
    except zlib.error as error:
        raise FormatError(f"not a DocBin of spaCy: {error}") from None
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"not a whole DocBin of spaCy: {error}") from None


def _inflated(raw: bytes) -> bytes:
    """Bytes that zlib packed, if they are not far more than any real file has.

    Raises:
        ValueError: they are.
        zlib.error: zlib did not pack them, or not all are there.
    """
    inflating = zlib.decompressobj()
    content = inflating.decompress(raw, max(LEAST_LIMIT, MOST_PACKED * len(raw)))
    if inflating.unconsumed_tail:
        raise ValueError(too_well_packed("unpack it with spaCy"))
    if not inflating.eof:
        raise zlib.error("the end is missing")
    return content


def _unpacked(raw: Any, use_list: bool) -> Any:  # noqa: ANN401
    """The value of msgpack bytes; giving a hook for mappings keeps all other decoders out.

    Raises:
        ValueError, TypeError: the bytes are none, or what they hold cannot be a mapping.
    """
    try:
        from srsly import msgpack
        from srsly.msgpack.exceptions import UnpackException, UnpackValueError
    except ImportError:
        raise needs_spacy() from None
    try:
        return msgpack.unpackb(raw, raw=False, use_list=use_list, object_pairs_hook=dict)
    except (UnpackException, UnpackValueError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def needs_spacy() -> MissingExtraError:
    """The error where spaCy is not installed."""
    return MissingExtraError("files of spaCy need spaCy, which is not installed: pip install 'tagweave[spacy]'")


@dataclass(frozen=True)
class PackedDocs:
    """All documents, as columns."""

    strings: Any
    offsets: NDArray[np.int64]
    words: NDArray[np.uint64]
    tags: NDArray[np.uint64] | None
    types: NDArray[np.uint64] | None
    spaces: NDArray[np.bool_]
    flags: Sequence[Mapping[str, Any]]
    groups: Sequence[Any]
    user_data: Sequence[Any]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "PackedDocs":
        """The columns in the content of a DocBin.

        Raises:
            KeyError, TypeError, ValueError: something is missing, or does not fit the rest.
        """
        try:
            from spacy.attrs import ENT_IOB, ENT_TYPE, ORTH
            from spacy.strings import StringStore
        except ImportError:
            raise needs_spacy() from None
        attributes = [*content["attrs"]]
        lengths = np.frombuffer(content["lengths"], "<i4").astype(np.int64)
        table = np.frombuffer(content["tokens"], "<u8").reshape(-1, len(attributes))
        spaces = np.frombuffer(content["spaces"], np.uint8).astype(bool)
        if (lengths < 0).any() or not lengths.sum() == len(table) == len(spaces):
            raise ValueError(f"{lengths.sum()} tokens are announced, but there are {len(table)}")
        columns = {number: table[:, place] for place, number in enumerate(attributes)}
        parts = [content.get(key) for key in ("flags", "span_groups", "user_data")]
        for part in parts:
            if part is not None and (not isinstance(part, list) or len(part) != len(lengths)):
                raise ValueError("the lists of documents are not of the same length")
        flags, groups, user_data = (part if part is not None else [None] * len(lengths) for part in parts)
        return cls(
            strings=StringStore(content["strings"]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            words=columns[ORTH],
            tags=columns.get(ENT_IOB),
            types=columns.get(ENT_TYPE),
            spaces=spaces,
            flags=[flag or {} for flag in flags],
            groups=groups,
            user_data=user_data,
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def document(self, number: int) -> PackedDoc:
        """The document with that number.

        Raises:
            FormatError: it cannot be read.
        """
        try:
            return self._document(number)
        except (KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
            raise FormatError(f"cannot be read: {error}") from None

    def _document(self, number: int) -> PackedDoc:
        rows = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        unknown = self.flags[number].get("has_unknown_spaces")
        raw = self.user_data[number]
        user_data = {} if raw is None else _unpacked(raw, use_list=False)
        groups = self.groups[number]
        return PackedDoc(
            words=[self._string(word) for word in self.words[rows].tolist()],
            blanks=None if unknown else self.spaces[rows].tolist(),
            tags=self._tags(rows),
            groups={} if groups is None or groups in _NOTHING else dict(self._groups(groups)),
            user_data=user_data if isinstance(user_data, dict) else {},
        )

    def _string(self, number: int) -> str:
        """The string with a hash; 0 is no string."""
        try:
            return str(self.strings[number])
        except KeyError:
            raise ValueError("it names a string that the file does not have") from None

    def _tags(self, rows: slice) -> list[tuple[str, str]]:
        if self.tags is None or self.types is None or not self.tags[rows].any():
            return []
        tags = []
        for tag, number in zip(self.tags[rows].tolist(), self.types[rows].tolist(), strict=True):
            name = self._string(number)
            tags.append(("B" if tag == _BEGIN else "I", name) if tag in (_INSIDE, _BEGIN) and name else ("", ""))
        return tags

    def _groups(self, raw: bytes) -> Iterator[tuple[str, PackedGroup]]:
        """The span groups: a list of groups, or as newer files have it a mapping from groups to names."""
        content = _unpacked(raw, use_list=True)
        items = content.items() if isinstance(content, dict) else [(group, None) for group in content]
        for packed, names in items:
            group = _unpacked(packed, use_list=True)
            spans = [_SPAN.unpack(span)[2:5] for span in group["spans"]]
            found = [PackedSpan(start, end, self._string(label)) for label, start, end in spans]
            scores = _scores(group.get("attrs"), len(found))
            for name in [group["name"]] if names is None else names:
                if not isinstance(name, str):
                    raise TypeError(f"a span group is called {name!r}")
                yield name, PackedGroup(found, scores)


def _scores(attributes: object, count: int) -> list[float | None] | None:
    """The scores of a group's spans, as lists or arrays; None if they are not one probability for each."""
    found = attributes.get("scores") if isinstance(attributes, dict) else None
    scores = array(found).tolist() if isinstance(found, dict) else found
    if not isinstance(scores, list) or len(scores) != count:
        return None
    good = all(score is None or (isinstance(score, float) and 0 <= score <= 1) for score in scores)
    return scores if good else None


def array(value: object) -> NDArray[Any]:
    """The array of numbers that a mapping stands for, as msgpack for numpy writes arrays.

    Raises:
        ValueError: it stands for none.
    """
    found = {name.decode() if isinstance(name, bytes) else name: item for name, item in _pairs(value)}
    kind, data, shape = found.get("type"), found.get("data"), found.get("shape")
    if kind not in ("<f4", "<f8", "<i4", "<i8") or not isinstance(data, bytes) or not isinstance(shape, list | tuple):
        raise ValueError("an array of numbers is expected")
    return np.frombuffer(data, kind).reshape([int(length) for length in shape])


def _pairs(value: object) -> Iterator[tuple[object, object]]:
    if not isinstance(value, Mapping):
        raise ValueError("an array of numbers is expected")
    yield from value.items()
