"""`Corpus`: documents, their tokens, and the spans of every source, held as columns.

Nothing in it is padded and nothing is an object a token: a million sentences fit. `Document` is a small view, made when
one is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.annotations import Annotations, AnnotationsBuilder, Span
from tagweave.errors import AlignmentError, DataError, LabelError, unknown_name
from tagweave.labels import OUTSIDE
from tagweave.soft_labels import SoftLabels

Column = Annotations | SoftLabels
"""What a source says: spans, or a probability for every label on every token."""

MOST_TYPES = 30_000
"""Entity types of a corpus, which are numbered by two bytes."""

LINK_TYPES = ("different", "same")
"""What a linking rule may say of neighbouring tokens: that they have different labels, or the same one."""


@dataclass(frozen=True)
class Document:
    """One document (or sentence) of a corpus.

    Attributes:
        id: its name, unique in the corpus.
        tokens: its words.
        text: the original text, if known; `text[start:end] == token` for the pairs in `characters`.
        characters: start and end of each token in `text`, in code points, half-open.
        group: name of the larger document that this one is a sentence of.
        entities: gold or predicted spans; None when there are none to speak of, which is not the same as `[]`.
        sources: spans by source; None where a source did not run, `[]` where it ran and found nothing. A span of type
            `O` is a vote that the tokens are no entity.
        links: what linking rules say, in the same form: a span of type `same` says that all its tokens have one
            label, one of type `different` that no two neighbours in it have.
        parse: the analysis of the tokens by a spaCy pipeline (a `spacy.tokens.Doc` with the same tokens), for sources
            that ask for one; it is not kept in a corpus.
    """

    id: str
    tokens: Sequence[str]
    text: str | None = None
    characters: Sequence[tuple[int, int]] | None = None
    group: str | None = None
    entities: Sequence[Span] | None = None
    sources: Mapping[str, Sequence[Span] | None] = field(default_factory=dict)
    links: Mapping[str, Sequence[Span] | None] = field(default_factory=dict)
    parse: Any = None


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents with entities and the votes of sources.

    Attributes:
        ids: string array of shape [documents].
        offsets: tokens of document `d` are `offsets[d]:offsets[d + 1]`, of shape [documents + 1].
        tokens: string array of shape [tokens], all documents end to end.
        types: names of the entity types.
        coarse: types that only sources use, each standing for one of several types: `{"ENT": ("PER", "LOC")}`.
        texts: original texts of shape [documents], null where unknown, or None.
        characters: start and end of each token in its text, of shape [tokens, 2], -1 where unknown, or None.
        groups: names of larger documents of shape [documents], null where there is none, or None.
        entities: gold or predicted spans, or None.
        sources: what each source says, by name.
        links: what each linking rule says about neighbouring tokens, by name; type numbers are those of `LINK_TYPES`.
        soft_labels: label probabilities that a model gave, or None.

    >>> corpus = Corpus.from_documents([
    ...     Document("d0", ["Ada", "Lovelace"], sources={"names": [Span(0, 2, "PER")], "cities": []}),
    ...     Document("d1", ["Oslo"], sources={"cities": [Span(0, 1, "LOC")]}),
    ... ])
    >>> len(corpus), corpus.types, list(corpus.sources)
    (2, ('LOC', 'PER'), ['names', 'cities'])
    >>> corpus[1].sources["names"] is None
    True
    """

    ids: Any
    offsets: NDArray[np.int64]
    tokens: Any
    types: tuple[str, ...]
    coarse: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    texts: Any = None
    characters: NDArray[np.int32] | None = None
    groups: Any = None
    entities: Annotations | None = None
    sources: Mapping[str, Column] = field(default_factory=lambda: MappingProxyType({}))
    links: Mapping[str, Annotations] = field(default_factory=lambda: MappingProxyType({}))
    soft_labels: SoftLabels | None = None

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.offsets) - 1

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Names of the type numbers in `Annotations.type_ids`: O, the types, the coarse types."""
        return (OUTSIDE, *self.types, *self.coarse)

    def __getitem__(self, index: int) -> Document:
        """A view of one document."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        index %= len(self)
        first, last = int(self.offsets[index]), int(self.offsets[index + 1])
        text = None if self.texts is None else self.texts[index].as_py()
        known = text is not None and self.characters is not None
        return Document(
            id=self.ids[index].as_py(),
            tokens=self.tokens[first:last].to_pylist(),
            text=text,
            characters=[(int(a), int(b)) for a, b in self.characters[first:last]]
            if known and self.characters is not None
            else None,
            group=None if self.groups is None else self.groups[index].as_py(),
            entities=None if self.entities is None else self.entities.document(index, self.vocabulary),
            sources={name: self._spans(column, index) for name, column in self.sources.items()},
            links={name: column.document(index, LINK_TYPES) for name, column in self.links.items()},
        )

    def _spans(self, column: Column, index: int) -> list[Span] | None:
        if isinstance(column, Annotations):
            return column.document(index, self.vocabulary)
        return column.subset(np.array([index])).annotations().document(0, self.vocabulary)

    def __iter__(self) -> Iterator[Document]:
        """The documents, one by one."""
        return (self[index] for index in range(len(self)))

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        types: Sequence[str] | None = None,
        coarse: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """A corpus from single documents; see `CorpusBuilder` for the meaning of `types` and `coarse`."""
        builder = CorpusBuilder()
        for document in documents:
            builder.add(document)
        corpus = builder.build(types, coarse)
        return cls(**{name: getattr(corpus, name) for name in cls.__dataclass_fields__})

    @cached_property
    def id_list(self) -> list[str]:
        """The ids as a list."""
        names: list[str] = self.ids.to_pylist()
        return names

    @cached_property
    def group_numbers(self) -> NDArray[np.int64]:
        """A number for each document's group, in order of first appearance; a document without group is its own."""
        groups = [None] * len(self) if self.groups is None else self.groups.to_pylist()
        keys = [("group", name) if name is not None else ("document", index) for index, name in enumerate(groups)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([numbers[key] for key in keys], np.int64)

    def subset(self, documents: NDArray[np.integer] | Sequence[int]) -> Self:
        """Some documents, in the given order, with all that belongs to them."""
        chosen = np.asarray(documents, np.int64)
        counts = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], counts) + np.arange(offsets[-1])
        return replace(
            self,
            ids=self.ids.take(pa.array(chosen)),
            offsets=offsets,
            tokens=self.tokens.take(pa.array(rows)),
            texts=None if self.texts is None else self.texts.take(pa.array(chosen)),
            characters=None if self.characters is None else self.characters[rows],
            groups=None if self.groups is None else self.groups.take(pa.array(chosen)),
            entities=None if self.entities is None else self.entities.subset(chosen),
            sources={name: column.subset(chosen) for name, column in self.sources.items()},
            links={name: column.subset(chosen) for name, column in self.links.items()},
            soft_labels=None if self.soft_labels is None else self.soft_labels.subset(chosen),
        )

    def batches(self, tokens: int = 1_000_000) -> Iterator[Self]:
        """Consecutive parts of at most `tokens` tokens, or of a single document that is longer."""
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.offsets, self.offsets[first] + tokens, side="right")) - 1
            last = max(last, first + 1)
            yield self.subset(np.arange(first, last))
            first = last

    def select_sources(self, names: Sequence[str]) -> Self:
        """Only the named sources, in the given order."""
        for name in names:
            if name not in self.sources:
                raise unknown_name("source", name, self.sources)
        return replace(self, sources={name: self.sources[name] for name in names})

    def with_source(self, name: str, column: Column) -> Self:
        """One more source; a source of the same name is replaced."""
        self._check_column(name, column)
        return replace(self, sources={**self.sources, name: column})

    def with_entities(self, entities: Annotations | None, soft_labels: SoftLabels | None = None) -> Self:
        """Other entities, and the soft labels they come from."""
        for column in (entities, soft_labels):
            if column is not None:
                self._check_column("entities", column)
        return replace(self, entities=entities, soft_labels=soft_labels)

    def _check_column(self, name: str, column: Column) -> None:
        if len(column.offsets) != len(self.offsets):
            raise AlignmentError(f"{name}: {len(column.offsets) - 1} documents, but the corpus has {len(self)}")
        if isinstance(column, SoftLabels) and not np.array_equal(column.offsets, self.offsets):
            index = int(np.flatnonzero(np.diff(column.offsets) != np.diff(self.offsets))[0])
            raise AlignmentError(
                f"{name}: document {self.id_list[index]!r} has {np.diff(self.offsets)[index]} tokens, "
                f"but soft labels for {np.diff(column.offsets)[index]}"
            )
        if isinstance(column, SoftLabels):
            column.check(self.id_list)

    def with_types(self, types: Sequence[str]) -> Self:
        """The same corpus with its types in the given order; names not used so far may be added.

        Raises:
            DataError: a type of this corpus is not among `types`.
        """
        missing = [name for name in self.types if name not in types]
        if missing:
            raise DataError(
                f"entity types {', '.join(missing)} are not among {', '.join(types)}. Rename them, leave out their "
                "source, or declare them as standing for several types"
            )
        if tuple(types) == self.types:
            return self
        new = (OUTSIDE, *types, *self.coarse)
        numbers = np.array([new.index(name) for name in self.vocabulary], np.int16)
        return replace(
            self,
            types=tuple(types),
            entities=None if self.entities is None else self.entities.with_types(numbers),
            sources={name: _with_types(column, numbers, tuple(types)) for name, column in self.sources.items()},
            soft_labels=None if self.soft_labels is None else self.soft_labels.with_types(tuple(types)),
        )


def _with_types(column: Column, numbers: NDArray[np.int16], types: tuple[str, ...]) -> Column:
    return column.with_types(numbers) if isinstance(column, Annotations) else column.with_types(types)


class CorpusBuilder:
    """Gathers documents into columns; memory grows with the columns, not with Python objects.

    >>> builder = CorpusBuilder()
    >>> builder.add(Document("d0", ["Oslo"], entities=[Span(0, 1, "LOC")]))
    >>> builder.build().types
    ('LOC',)
    """

    _CHUNK = 1 << 16

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._lengths: list[int] = []
        self._tokens = _StringColumn(self._CHUNK)
        self._texts = _StringColumn(self._CHUNK)
        self._groups = _StringColumn(self._CHUNK)
        self._characters: dict[int, NDArray[np.int32]] = {}
        self._type_names: dict[str, None] = {}
        self._entities = AnnotationsBuilder()
        self._sources: dict[str, AnnotationsBuilder] = {}
        self._links: dict[str, AnnotationsBuilder] = {}

    def __len__(self) -> int:
        """Number of documents so far."""
        return len(self._lengths)

    def add(self, document: Document) -> None:
        """Append a document.

        Raises:
            DataError: its id has been seen.
            AlignmentError: a span does not lie within its tokens, or the places of its tokens are not one a token.
            LabelError: a link says something else than `same` or `different`, or there are too many entity types.
        """
        self._check(document)
        index = len(self)
        self._ids[document.id] = index
        self._lengths.append(len(document.tokens))
        self._tokens.extend(document.tokens)
        self._texts.extend([document.text])
        self._groups.extend([document.group])
        if document.characters:
            self._characters[index] = np.array(document.characters, np.int32)
        self._entities.add(index, document.entities)
        for columns, votes in ((self._sources, document.sources), (self._links, document.links)):
            for name, spans in votes.items():
                column = columns.get(name)
                if column is None:
                    column = columns[name] = AnnotationsBuilder()
                column.add(index, spans)

    def _check(self, document: Document) -> None:
        if document.id in self._ids:
            raise DataError(f"document id {document.id!r} occurs twice")
        length = len(document.tokens)
        if document.characters is not None and len(document.characters) != length:
            raise AlignmentError(
                f"document {document.id!r}: {length} tokens, but places in the text for {len(document.characters)}"
            )
        for what, spans in (("entities", document.entities), *document.sources.items()):
            for name in _checked_types(document, what, spans):
                if name not in self._type_names and name != OUTSIDE:
                    self._type_names[name] = None
        if len(self._type_names) > MOST_TYPES:
            raise LabelError(
                f"document {document.id!r}: more than {MOST_TYPES} entity types. Are types and texts swapped?"
            )
        for what, spans in document.links.items():
            wrong = [name for name in _checked_types(document, f"link {what}", spans) if name not in LINK_TYPES]
            if wrong:
                raise LabelError(
                    f"document {document.id!r}, link {what}: {wrong[0]!r} is not {' or '.join(LINK_TYPES)}"
                )

    def build(self, types: Sequence[str] | None = None, coarse: Mapping[str, Sequence[str]] | None = None) -> Corpus:
        """The corpus.

        Args:
            types: entity types in the wanted order; by default all that occur, in alphabetical order.
            coarse: types of sources that each stand for one of several types, e.g. `{"ENT": ("PER", "LOC")}`.

        Raises:
            DataError: a type occurs that is neither in `types` nor in `coarse`.
        """
        groups = {name: tuple(members) for name, members in (coarse or {}).items()}
        found = {*self._type_names, *(member for members in groups.values() for member in members)} - set(groups)
        if types is None:
            types = sorted(found)
        unknown = sorted(found - set(types))
        if unknown:
            raise DataError(f"entity types {', '.join(unknown)} occur, but only {', '.join(types)} were declared")
        vocabulary = (OUTSIDE, *types, *groups)
        has_text = self._texts.any
        offsets = np.concatenate([[0], np.cumsum(self._lengths, dtype=np.int64)]).astype(np.int64)
        return Corpus(
            ids=pa.array(list(self._ids), pa.large_string()),
            offsets=offsets,
            tokens=self._tokens.build(),
            types=tuple(types),
            coarse=MappingProxyType(groups),
            texts=self._texts.build() if has_text else None,
            characters=self._places(offsets) if has_text else None,
            groups=self._groups.build() if self._groups.any else None,
            entities=self._entities.build(len(self), vocabulary) if self._entities.any else None,
            sources=MappingProxyType({n: c.build(len(self), vocabulary) for n, c in self._sources.items()}),
            links=MappingProxyType({n: c.build(len(self), LINK_TYPES) for n, c in self._links.items()}),
        )

    def _places(self, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Start and end of each token in its text, -1 where unknown."""
        places = np.full((int(offsets[-1]), 2), -1, np.int32)
        for index, characters in self._characters.items():
            places[offsets[index] : offsets[index + 1]] = characters
        return places


def _checked_types(document: Document, what: str, spans: Sequence[Span] | None) -> Iterator[str]:
    """The types of spans that lie within the document's tokens.

    Raises:
        AlignmentError: a span does not.
    """
    length = len(document.tokens)
    for start, end, name, _ in spans or ():
        if not 0 <= start < end <= length:
            raise AlignmentError(
                f"document {document.id!r}, {what}: span {[start, end, name]} does not lie within the "
                f"document's {length} tokens"
            )
        yield name


class _StringColumn:
    """Strings gathered in Arrow chunks."""

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self._pending: list[str | None] = []
        self._done: list[Any] = []
        self.any = False

    def extend(self, values: Sequence[str | None]) -> None:
        self.any = self.any or any(value is not None for value in values)
        self._pending.extend(values)
        if len(self._pending) >= self._chunk:
            self._flush()

    def _flush(self) -> None:
        self._done.append(pa.array(self._pending, pa.large_string()))
        self._pending = []

    def build(self) -> Any:  # noqa: ANN401
        self._flush()
        return pa.chunked_array(self._done).combine_chunks()
