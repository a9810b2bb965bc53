"""`Frame`: what all parts of a corpus have in common, gathered part by part, here or in other processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tagweave.annotations import Annotations
from tagweave.corpus import Column, Corpus
from tagweave.errors import DataError
from tagweave.soft_labels import SoftLabels


@dataclass
class _Kind:
    """What a column is in the parts.

    Attributes:
        soft: parts in which it gives a probability for every label.
        hard: parts in which it gives spans.
        scored: whether spans have scores in any part.
    """

    soft: int = 0
    hard: int = 0
    scored: bool = False


@dataclass
class Frame:
    """The types, sources and linking rules of all parts of a corpus.

    Frames of consecutive parts add up to the frame of all of them.

    Attributes:
        parts: how many parts there are.
        documents: how many documents.
        tokens: how many tokens.
        coarse: types that each stand for one of several, the same in all parts.
        links: names of the linking rules.

    >>> from tagweave.corpus import Document
    >>> frame, other = Frame(), Frame()
    >>> frame.note(Corpus.from_documents([Document("a", ["Oslo"], sources={"x": []})], types=["LOC"]))
    >>> other.note(Corpus.from_documents([Document("b", ["Ada"], sources={"y": []})], types=["PER"]))
    >>> frame.add(other)
    >>> frame.types, frame.sources, frame.documents
    (('LOC', 'PER'), ('x', 'y'), 2)
    """

    parts: int = 0
    documents: int = 0
    tokens: int = 0
    coarse: dict[str, tuple[str, ...]] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _types: dict[tuple[str, ...], None] = field(default_factory=dict)
    _has_entities: bool = False

    def note(self, part: Corpus) -> None:
        """Add a part.

        Raises:
            DataError: it does not fit the others.
        """
        kinds = {name: _kind(column) for name, column in part.sources.items()}
        coarse = {name: tuple(members) for name, members in part.coarse.items()}
        tokens, known = int(part.offsets[-1]), part.entities is not None
        self.add(Frame(1, len(part), tokens, coarse, tuple(part.links), kinds, {part.types: None}, known))

    def add(self, other: "Frame") -> None:
        """Add the frame of the parts that follow.

        Raises:
            DataError: they do not fit.
        """
        if self.parts and other.parts and self.coarse != other.coarse:
            raise DataError(f"coarse types are {other.coarse} in one part and {self.coarse} in another")
        self.coarse = other.coarse if other.parts else self.coarse
        self.parts += other.parts
        self.documents += other.documents
        self.tokens += other.tokens
        self.links = tuple(dict.fromkeys([*self.links, *other.links]))
        self._types.update(other._types)
        self._has_entities = self._has_entities or other._has_entities
        for name, more in other._kinds.items():
            kind = self._kinds.get(name, _Kind())
            self._kinds[name] = _Kind(kind.soft + more.soft, kind.hard + more.hard, kind.scored or more.scored)
        for name, kind in self._kinds.items():
            if 0 < kind.soft < self.parts:
                raise DataError(
                    f"source {name!r} gives a probability for every label in some parts only: it must do so for all "
                    "documents"
                )

    @property
    def types(self) -> tuple[str, ...]:
        """Entity types of all parts; in alphabetical order, unless all parts have the same in another one."""
        found = list(self._types) or [()]
        return found[0] if len(found) == 1 else tuple(sorted({name for types in found for name in types}))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(self._kinds)

    def aligned(self, part: Corpus, sources: Sequence[str]) -> Corpus:
        """A part with the types and linking rules of all, and with some of their sources.

        Args:
            part: the part.
            sources: their names; one that the part does not have did not run there.
        """
        silent = Annotations.from_lists([None] * len(part), ())
        part = part.with_types(self.types)
        return replace(
            part,
            entities=silent if part.entities is None and self._has_entities else part.entities,
            sources={name: _scored(part.sources.get(name, silent), self._kinds[name].scored) for name in sources},
            links={name: part.links.get(name, silent) for name in self.links},
        )

    def to_json(self) -> dict[str, Any]:
        """What `aligned` goes by."""
        scored = {name: kind.scored for name, kind in self._kinds.items()}
        names: Mapping[str, Any] = {"types": self.types, "sources": scored, "links": self.links}
        return {**names, "entities": self._has_entities}


def _kind(column: Column) -> _Kind:
    if isinstance(column, SoftLabels):
        return _Kind(soft=1)
    return _Kind(hard=1, scored=column.scores is not None)


def _scored(column: Column, scored: bool) -> Column:
    """The column with scores, if it has some in any part: what a source is must not change from part to part."""
    if isinstance(column, SoftLabels) or column.scores is not None or not scored:
        return column
    return replace(column, scores=np.full(len(column), np.nan, np.float32))
