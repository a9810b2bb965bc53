"""Columns of a whole corpus in temporary files, for what must reach any document at any time, as training does."""

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Column, Corpus
from tagweave.errors import DataError, StorageError
from tagweave.soft_labels import SoftLabels

STRINGS = ("ids", "tokens", "texts", "groups")
"""Columns of strings of a corpus."""


def unwritable(error: OSError) -> StorageError:
    """What to say if a temporary file cannot be written."""
    return StorageError(
        f"{tempfile.gettempdir()}: a temporary file cannot be written ({error.strerror or error}). It takes about as "
        "much space as the documents; free some, or set TMPDIR to a folder that has it"
    )


def joined(parts: Iterable[Corpus]) -> Corpus:
    """Consecutive parts of a corpus as one, whose columns lie in temporary files and are mapped into memory.

    What is not read takes no memory, and what was read gives its place back when others need it. The files have no
    names, and go when nothing refers to the columns any more. Spans are held in memory.

    Args:
        parts: with the same types, sources and linking rules, as those of a `StoredCorpus` have.

    Raises:
        DataError: some documents have soft labels and others have none.
        StorageError: there is no space.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> documents = [Document(name, ["Ada", "left"], entities=[Span(0, 1, "PER")]) for name in ("a", "b", "c")]
    >>> parts = [Corpus.from_documents([document]) for document in documents]
    >>> [(document.id, document.entities[0][:3]) for document in joined(parts)]
    [('a', (0, 1, 'PER')), ('b', (0, 1, 'PER')), ('c', (0, 1, 'PER'))]
    """
    like: Corpus | None = None
    with ExitStack() as files:
        columns = _Columns(files)
        for part in parts:
            if like is not None and not len(part):
                continue
            if like is not None and (like.soft_labels is None) != (part.soft_labels is None):
                some = "no " if part.soft_labels is None else ""
                raise DataError(f"document {part.ids[0].as_py()!r} has {some}soft labels, unlike those before it")
            columns.add(part)
            like = part
        return Corpus.from_documents([]) if like is None else columns.corpus(like)


class _Columns:
    """Arrays that grow part by part, each in a temporary file, and are then mapped into memory.

    Args:
        stack: closes the files; what is mapped stays.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._files: dict[str, IO[bytes]] = {}
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        self._ends: dict[str, int] = {}
        """The last of the offsets so far, by their name."""
        self._present: set[str] = set()
        """Columns that any part has, of those that a part may lack."""
        self._spans: dict[str, list[Annotations]] = {}
        """Spans are few, and sources may be many: they are held."""

    def add(self, part: Corpus) -> None:
        """Append a part."""
        self._extend_offsets("offsets", part.offsets)
        for name in STRINGS:
            self._extend_strings(name, getattr(part, name), len(part))
        places = np.full((int(part.offsets[-1]), 2), -1, np.int32) if part.characters is None else part.characters
        self._extend_if("characters", places, part.characters is not None)
        for name, column in _named(part):
            if isinstance(column, SoftLabels):
                self._extend(name, column.probabilities)
            else:
                self._spans.setdefault(name, []).append(column)

    def corpus(self, like: Corpus) -> Corpus:
        """All parts, with the names and the kinds of columns of one of them."""
        offsets = self._mapped("offsets")
        own: dict[str, Any] = {name: Annotations.concatenate(spans) for name, spans in self._spans.items()}
        for name, column in _named(like):
            if isinstance(column, SoftLabels):
                own[name] = SoftLabels(like.types, offsets, self._mapped(name))
        return replace(
            like,
            **{name: self._strings(name) for name in STRINGS},
            offsets=offsets,
            characters=self._mapped("characters") if "characters" in self._present else None,
            entities=own.get("entities"),
            soft_labels=own.get("soft_labels"),
            sources=MappingProxyType({name: own[f"sources.{name}"] for name in like.sources}),
            links=MappingProxyType({name: own[f"links.{name}"] for name in like.links}),
        )

    def _extend(self, name: str, array: NDArray[Any]) -> None:
        try:
            if name not in self._files:
                self._files[name] = self._stack.enter_context(tempfile.TemporaryFile())
                self._kinds[name] = array.dtype, array.shape[1:]
            self._files[name].write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise unwritable(error) from None

    def _extend_if(self, name: str, array: NDArray[Any], present: bool) -> None:
        self._extend(name, array)
        self._present |= {name} if present else set()

    def _extend_offsets(self, name: str, offsets: NDArray[np.int64]) -> None:
        base = self._ends.get(name)
        shifted = offsets - offsets[0] + (base or 0)
        self._extend(name, shifted if base is None else shifted[1:])
        self._ends[name] = int(shifted[-1])

    def _extend_strings(self, name: str, strings: Any, count: int) -> None:  # noqa: ANN401
        array = pa.nulls(count, pa.large_string()) if strings is None else strings.cast(pa.large_string())
        _, places, characters = array.buffers()
        offsets = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
        raw = np.frombuffer(characters or b"", np.uint8)[offsets[0] : offsets[-1]]
        self._extend_offsets(f"{name}.places", offsets)
        self._extend(f"{name}.characters", raw)
        known = array.is_valid().to_numpy(zero_copy_only=False)
        self._extend_if(f"{name}.known", known, bool(known.any()) or strings is not None)

    def _strings(self, name: str) -> Any:  # noqa: ANN401
        if name not in ("ids", "tokens") and f"{name}.known" not in self._present:
            return None
        known = self._mapped(f"{name}.known")
        valid = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
        buffers = [valid, *(pa.py_buffer(self._mapped(f"{name}.{field}")) for field in ("places", "characters"))]
        return pa.Array.from_buffers(pa.large_string(), len(known), buffers)

    def _mapped(self, name: str) -> NDArray[Any]:
        file, (kind, shape) = self._files[name], self._kinds[name]
        try:
            file.flush()
        except OSError as error:
            raise unwritable(error) from None
        size = file.tell() // kind.itemsize
        flat = np.memmap(file, kind, "c", shape=(size,)) if size else np.zeros(0, kind)
        return np.asarray(flat).reshape(-1, *shape)


def _named(corpus: Corpus) -> list[tuple[str, Column]]:
    """All columns of annotators, with names."""
    own = {"entities": corpus.entities, "soft_labels": corpus.soft_labels}
    named: dict[str, Column | None] = {**own}
    named.update((f"sources.{name}", column) for name, column in corpus.sources.items())
    named.update((f"links.{name}", column) for name, column in corpus.links.items())
    return [(name, column) for name, column in named.items() if column is not None]
