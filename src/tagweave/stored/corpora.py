"""Corpora that are larger than memory: their columns lie in a temporary file and are mapped into memory part by part.

What learns by adding up goes over parts. A corpus in memory is one part, so there is one way of learning for both.
"""

import copy
import json
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Column, Corpus
from tagweave.errors import unknown_name
from tagweave.formats.corpora import SeenNames
from tagweave.observations import Observations
from tagweave.parts import Elsewhere
from tagweave.soft_labels import SoftLabels
from tagweave.stored.columns import STRINGS, joined, unwritable
from tagweave.stored.frames import Frame

_ALIGNMENT = 64
"""Bytes: arrays begin at multiples of it."""

Part = TypeVar("Part")
Result = TypeVar("Result")


class Spool:
    """Records of arrays in a temporary file that has no name, so it goes with this process however that ends.

    It lies in the system's folder for temporary files (`TMPDIR`).

    >>> spool = Spool()
    >>> spool.add({"a": np.arange(3)}, {"note": "first"})
    >>> [(arrays["a"].tolist(), about) for arrays, about in spool]
    [([0, 1, 2], {'note': 'first'})]
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile()
        except OSError as error:
            raise unwritable(error) from None
        weakref.finalize(self, self._file.close)
        self._places: list[tuple[int, int, int]] = []
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._size

    def __len__(self) -> int:
        """Number of records."""
        return len(self._places)

    def add(self, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Append a record.

        Args:
            arrays: by name.
            about: anything else that JSON can hold.

        Raises:
            StorageError: there is no space.
        """
        begin, layout = self._size, {}
        try:
            for name, array in arrays.items():
                layout[name] = [array.dtype.str, array.shape, self._size - begin]
                self._write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                self._write(bytes(-self._size % _ALIGNMENT))
            header = self._size
            self._write(json.dumps([layout, dict(about)]).encode())
            end = self._size
            self._write(bytes(-self._size % _ALIGNMENT))
            self._file.flush()
        except OSError as error:
            raise unwritable(error) from None
        self._places.append((begin, header, end))

    def _write(self, raw: bytes | memoryview) -> None:
        self._file.write(raw)
        self._size += len(raw)

    def __iter__(self) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, Any]]]:
        """The records; the arrays of one are mapped for as long as something refers to them."""
        for begin, header, end in self._places:
            mapped = np.memmap(self._file, np.uint8, "c", begin, (end - begin,))
            layout, about = json.loads(bytes(mapped[header - begin :]))
            yield {name: _array(mapped, *place) for name, place in layout.items()}, about


def _array(mapped: NDArray[np.uint8], dtype: str, shape: Sequence[int], begin: int) -> NDArray[Any]:
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.asarray(mapped[begin : begin + size]).view(kind).reshape(shape)


class StoredCorpus:
    """A corpus on disk, in parts: each is a `Corpus` with the types and sources of all of them.

    It can be gone through as often as wanted, and holds one part in memory at a time. A source that a part does not
    have did not run there. The file lies in the system's folder for temporary files (`TMPDIR`), has no name, and takes
    about as much space as the documents do as JSON lines.

    Args:
        parts: corpora, from `tagweave.read_batches` for instance; they are taken one by one.

    Attributes:
        frame: what the parts have in common.
        sources: names of the sources.
        split_group: a group of which not all documents are in one part, or None.

    Raises:
        StorageError: there is no space for the file.
        DataError: the parts do not fit each other.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> documents = [Document("a", ["Oslo"], sources={"x": [Span(0, 1, "LOC")]}), Document("b", ["Ada"], sources={})]
    >>> stored = StoredCorpus(Corpus.from_documents([document]) for document in documents)
    >>> [(part.types, part[0].id, part[0].sources["x"]) for part in stored]
    [(('LOC',), 'a', [Span(start=0, end=1, type='LOC', score=None)]), (('LOC',), 'b', None)]
    """

    def __init__(self, parts: Iterable[Corpus]) -> None:
        self._spool = Spool()
        self.frame = Frame()
        self._groups = SeenNames()
        self.split_group: str | None = None
        for part in parts:
            self.frame.note(part)
            self._note_groups(part)
            self._spool.add(*_dumped(part))
        self.sources = self.frame.sources

    @property
    def types(self) -> tuple[str, ...]:
        """Entity types of all parts; in alphabetical order, unless all parts have the same in another one."""
        return self.frame.types

    @property
    def coarse(self) -> Mapping[str, tuple[str, ...]]:
        """Types that each stand for one of several, the same in all parts."""
        return self.frame.coarse

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the linking rules."""
        return self.frame.links

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return self.frame.documents

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return self.frame.tokens

    def _note_groups(self, part: Corpus) -> None:
        if part.groups is None:
            return
        for name in part.groups.unique().to_pylist():
            if name is None:
                continue
            if name in self._groups:
                self.split_group = self.split_group or name
            else:
                self._groups.add(name)

    def __len__(self) -> int:
        """Number of parts."""
        return len(self._spool)

    def __iter__(self) -> Iterator[Corpus]:
        """The parts."""
        return (self.frame.aligned(_loaded(arrays, about), self.sources) for arrays, about in self._spool)

    def whole(self) -> Corpus:
        """All parts as one corpus whose columns lie in temporary files, see `tagweave.stored.columns.joined`.

        They take once more as much space as the file of the parts, which goes with this object.

        Raises:
            DataError: some documents have soft labels and others have none.
            StorageError: there is no space.
        """
        return joined(self)

    def select_sources(self, names: Sequence[str]) -> Self:
        """Only the named sources, in the given order; the file is shared.

        Raises:
            UsageError: there is no such source.
        """
        for name in names:
            if name not in self.sources:
                raise unknown_name("source", name, self.sources)
        return self.within(self.frame, names)

    def within(self, frame: Frame, sources: Sequence[str]) -> Self:
        """As the parts of a larger corpus: with its types, and with some of its sources; the file is shared.

        Args:
            frame: of the larger corpus.
            sources: names of the sources.
        """
        found = copy.copy(self)
        found.frame, found.sources = frame, tuple(sources)
        return found


def _dumped(corpus: Corpus) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """A corpus as arrays, and what else belongs to it."""
    arrays: dict[str, NDArray[Any]] = {"offsets": corpus.offsets}
    if corpus.characters is not None:
        arrays["characters"] = corpus.characters
    for name in STRINGS:
        if (strings := getattr(corpus, name)) is not None:
            raw = pa.record_batch([strings.cast(pa.large_string())], names=["strings"]).serialize()
            arrays[name] = np.frombuffer(raw, np.uint8)
    columns: list[tuple[str, str, Column | None]] = [
        ("entities", "", corpus.entities),
        ("soft_labels", "", corpus.soft_labels),
        *(("sources", name, column) for name, column in corpus.sources.items()),
        *(("links", name, column) for name, column in corpus.links.items()),
    ]
    kept = [(place, name, column) for place, name, column in columns if column is not None]
    for number, (_, _, column) in enumerate(kept):
        own = {"probabilities": column.probabilities} if isinstance(column, SoftLabels) else vars(column)
        arrays.update({f"{number}.{field}": array for field, array in own.items() if array is not None})
    coarse = {name: list(members) for name, members in corpus.coarse.items()}
    return arrays, {"types": corpus.types, "coarse": coarse, "columns": [kind[:2] for kind in kept]}


def _loaded(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Corpus:
    """The corpus of `_dumped`; its columns refer to the arrays."""
    types, offsets = tuple(about["types"]), arrays["offsets"]
    schema = pa.schema([("strings", pa.large_string())])
    strings = {
        name: pa.ipc.read_record_batch(pa.py_buffer(arrays[name]), schema).column(0)
        for name in STRINGS
        if name in arrays
    }
    columns: dict[str, dict[str, Any]] = {"entities": {}, "soft_labels": {}, "sources": {}, "links": {}}
    for number, (place, name) in enumerate(about["columns"]):
        prefix = f"{number}."
        own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        soft = "probabilities" in own
        columns[place][name] = SoftLabels(types, offsets, own["probabilities"]) if soft else Annotations(**own)
    return Corpus(
        **strings,
        offsets=offsets,
        types=types,
        coarse=MappingProxyType({name: tuple(members) for name, members in about["coarse"].items()}),
        characters=arrays.get("characters"),
        entities=columns["entities"].get(""),
        soft_labels=columns["soft_labels"].get(""),
        sources=MappingProxyType(columns["sources"]),
        links=MappingProxyType(columns["links"]),
    )


class StoredObservations:
    """Observations on disk, in parts.

    Args:
        parts: observations that agree in all but their tokens.
    """

    def __init__(self, parts: Iterable[Observations]) -> None:
        self._spool = Spool()
        self._like: Observations | None = None
        for part in parts:
            self._like = self._like or part.of_no_token()
            self._spool.add({"offsets": part.offsets, "votes": part.votes, "soft": part.soft})

    def __iter__(self) -> Iterator[Observations]:
        """The parts."""
        for arrays, _ in self._spool:
            assert self._like is not None
            offsets, votes, soft = arrays["offsets"], arrays["votes"], arrays["soft"]
            yield replace(self._like, offsets=offsets, votes=votes, soft=soft)


def parts_of(corpus: Corpus | Iterable[Corpus]) -> Iterable[Corpus]:
    """The parts of a corpus, that can be gone through as often as wanted: one, if it is in memory."""
    return [corpus] if isinstance(corpus, Corpus) else corpus


def observed(function: Callable[[Corpus], Observations], parts: Iterable[Corpus]) -> Iterable[Observations]:
    """What is observed in each part: of parts in memory it is kept there, of stored ones it is stored too."""
    if isinstance(parts, Elsewhere):
        return parts.mapped(function, kept=True)
    return list(map(function, parts)) if isinstance(parts, list) else StoredObservations(map(function, parts))
