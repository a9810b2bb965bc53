"""Soft labels that come document by document, and end as columns in the order of the corpus's labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError, LabelError
from tagweave.labels import OUTSIDE, LabelSet
from tagweave.soft_labels import SoftLabels


class SoftRows(NamedTuple):
    """The soft labels of one document.

    Attributes:
        labels: BIO labels of the columns, in any order.
        table: float32 [tokens, labels].
    """

    labels: tuple[str, ...]
    table: NDArray[np.float32]


@dataclass(frozen=True)
class SoftDocument(Document):
    """A document with soft labels.

    Attributes:
        soft_labels: its own.
        soft_sources: those of sources, which have an empty list of spans in `sources`.
    """

    soft_labels: SoftRows | None = None
    soft_sources: Mapping[str, SoftRows] = field(default_factory=lambda: MappingProxyType({}))


def softened(
    document: Document,
    soft_labels: SoftRows | None,
    soft_sources: Mapping[str, SoftRows],
) -> SoftDocument:
    """The document with soft labels."""
    plain = {field.name: getattr(document, field.name) for field in fields(Document)}
    return SoftDocument(**plain, soft_labels=soft_labels, soft_sources=soft_sources)


def soft_rows(names: object, rows: object, length: int) -> SoftRows:
    """Soft labels as a file spells them, checked.

    Args:
        names: BIO labels of the columns, in any order.
        rows: one list of probabilities a token.
        length: number of tokens.

    Raises:
        FormatError, AlignmentError, LabelError: these are no probabilities of BIO labels for all tokens.

    >>> soft_rows(["B-X", "O"], [[0.5, 0.5]], 1).table.tolist()
    [[0.5, 0.5]]
    """
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise FormatError("probabilities need 'labels', the list of the names of their columns")
    columns = tuple(names)
    _types_of(columns)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise FormatError("probabilities must be one list of numbers for each token")
    if len(rows) != length:
        raise AlignmentError(f"{length} tokens, but probabilities for {len(rows)}")
    for number, row in enumerate(rows):
        if len(row) != len(columns):
            raise AlignmentError(f"token {number}: {len(columns)} labels, but {len(row)} probabilities")
        if not {*map(type, row)} <= {int, float}:
            raise FormatError(f"token {number}: probabilities must be numbers, not {row!r}")
    try:
        table = np.array(rows, np.float64).reshape(length, len(columns))
    except OverflowError:
        raise FormatError("a probability is too large a number") from None
    return SoftRows(columns, np.clip(table, -1e30, 1e30).astype(np.float32))


@lru_cache(maxsize=256)
def _types_of(names: tuple[str, ...]) -> frozenset[str]:
    if len(set(names)) != len(names):
        raise LabelError(f"a label occurs twice among the columns {list(names)}")
    types = set()
    for name in names:
        prefix, hyphen, entity_type = name.partition("-")
        if name != OUTSIDE and (not hyphen or prefix not in ("B", "I") or not entity_type):
            raise LabelError(f"{name!r} is no BIO label: soft labels are over O, B-TYPE and I-TYPE")
        if name != OUTSIDE:
            types.add(entity_type)
    return frozenset(types)


class SoftColumns:
    """The soft labels of all annotators in the documents of a corpus.

    >>> rows = SoftRows(("B-X", "I-X", "O"), np.array([[0.5, 0, 0.5]], np.float32))
    >>> document = SoftDocument("d0", ["a"], soft_labels=rows)
    >>> columns = SoftColumns()
    >>> columns.add(0, document)
    >>> columns.attach(Corpus.from_documents([document]), declared=False).soft_labels.probabilities.tolist()
    [[0.5, 0.5, 0.0]]
    """

    def __init__(self) -> None:
        self._columns: dict[str | None, dict[int, SoftRows]] = {}
        """By source, or None for the documents' own, and by number of the document."""

    def add(self, index: int, document: Document) -> None:
        """Take what a document has.

        Args:
            index: its number in the corpus.
            document: the document.
        """
        if not isinstance(document, SoftDocument):
            return
        for name, rows in document.soft_sources.items():
            self._columns.setdefault(name, {})[index] = rows
        if document.soft_labels is not None:
            self._columns.setdefault(None, {})[index] = document.soft_labels

    @property
    def annotators(self) -> set[str | None]:
        """The sources that gave soft labels, and None if the documents have some of their own."""
        return {*self._columns}

    def attach(self, corpus: Corpus, declared: bool) -> Corpus:
        """The corpus with its soft labels and with the sources that give probabilities.

        Args:
            corpus: what was built from spans; sources with soft labels take the place of empty columns.
            declared: whether the types of the corpus were declared, so that there may be no others.

        Raises:
            FormatError: a document has no soft labels, but others have.
            LabelError: a row is no distribution, or has a type that was not declared.
        """
        if not self._columns:
            return corpus
        labels = {rows.labels for column in self._columns.values() for rows in column.values()}
        found = set[str]().union(*map(_types_of, labels))
        unknown = sorted(found.difference(corpus.types))
        if unknown and declared:
            raise LabelError(
                f"soft labels of the types {', '.join(unknown)}, but only {', '.join(corpus.types)} were declared"
            )
        corpus = corpus.with_types(sorted(found.union(corpus.types)) if unknown else corpus.types)
        built = {name: _column(rows, corpus) for name, rows in self._columns.items()}
        soft_labels = built.pop(None, None)
        sources = {name: column for name, column in built.items() if name is not None}
        return replace(corpus, sources={**corpus.sources, **sources}, soft_labels=soft_labels)


def _column(rows: Mapping[int, SoftRows], corpus: Corpus) -> SoftLabels:
    """The soft labels of one annotator, checked."""
    missing = set(range(len(corpus))).difference(rows)
    if missing:
        raise FormatError(f"document {corpus.id_list[min(missing)]!r} has no soft labels, but others have")
    order = {name: column for column, name in enumerate(LabelSet(corpus.types).names)}
    table = np.zeros((int(corpus.offsets[-1]), len(order)), np.float32)
    for index, (names, part) in rows.items():
        table[corpus.offsets[index] : corpus.offsets[index + 1], [order[name] for name in names]] = part
    soft = SoftLabels(corpus.types, corpus.offsets, table)
    soft.check(corpus.id_list)
    return soft
