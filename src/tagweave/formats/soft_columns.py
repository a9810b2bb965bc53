"""Soft labels gathered record by record, and put in the order of the corpus's labels at the end."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Corpus
from tagweave.errors import AlignmentError, FormatError, LabelError
from tagweave.labels import OUTSIDE, LabelSet
from tagweave.soft_labels import SoftLabels


class SoftColumn:
    """The soft labels of one annotator.

    >>> column = SoftColumn()
    >>> column.add(0, ["B-X", "I-X", "O"], [[0.5, 0, 0.5]], 1)
    >>> column.build(np.array([0, 1]), ("X",), ["d0"]).probabilities.tolist()
    [[0.5, 0.5, 0.0]]
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[tuple[str, ...], NDArray[np.float32]]] = {}
        self._types: dict[tuple[str, ...], frozenset[str]] = {}

    @property
    def types(self) -> set[str]:
        """The entity types of all labels so far."""
        return set().union(*self._types.values())

    def add(self, document: int, names: object, rows: object, length: int) -> None:
        """The probabilities of one document.

        Args:
            document: its number.
            names: BIO labels of the columns, in any order.
            rows: one list of probabilities a token.
            length: number of tokens.

        Raises:
            FormatError, AlignmentError, LabelError: these are no probabilities of BIO labels for all tokens.
        """
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise FormatError("probabilities need 'labels', the list of the names of their columns")
        columns = tuple(names)
        if columns not in self._types:
            self._types[columns] = _types_of(columns)
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
        self._rows[document] = columns, np.clip(table, -1e30, 1e30).astype(np.float32)

    def forget(self, document: int) -> None:
        """Drop what was said of a document that is left out after all."""
        self._rows.pop(document, None)

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._rows)

    def build(self, offsets: NDArray[np.int64], types: tuple[str, ...], ids: list[str]) -> SoftLabels:
        """All documents together, checked.

        Raises:
            FormatError: a document has no soft labels.
            LabelError: a row is no distribution; the message names document and token.
        """
        missing = set(range(len(ids))).difference(self._rows)
        if missing:
            raise FormatError(f"document {ids[min(missing)]!r} has no soft labels, but others have")
        order = {name: column for column, name in enumerate(LabelSet(types).names)}
        table = np.zeros((int(offsets[-1]), len(order)), np.float32)
        for document, (names, rows) in self._rows.items():
            table[offsets[document] : offsets[document + 1], [order[name] for name in names]] = rows
        soft = SoftLabels(types, offsets, table)
        soft.check(ids)
        return soft


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


def attach(corpus: Corpus, labels: SoftColumn | None, sources: dict[str, SoftColumn], declared: bool) -> Corpus:
    """The corpus with its soft labels and with the sources that give probabilities.

    Args:
        corpus: what was built from spans.
        labels: the corpus's own soft labels.
        sources: sources by name; they take the place of the (empty) columns of the same name.
        declared: whether the types of the corpus were declared, so that there may be no others.
    """
    sources = {name: column for name, column in sources.items() if len(column)}
    labels = labels if labels is not None and len(labels) else None
    columns = [*sources.values(), *([labels] if labels is not None else [])]
    if not columns:
        return corpus
    found = set[str]().union(*(column.types for column in columns))
    unknown = sorted(found.difference(corpus.types))
    if unknown and declared:
        raise LabelError(
            f"soft labels of the types {', '.join(unknown)}, but only {', '.join(corpus.types)} were declared"
        )
    corpus = corpus.with_types(sorted(found.union(corpus.types)) if unknown else corpus.types)
    built = {name: column.build(corpus.offsets, corpus.types, corpus.id_list) for name, column in sources.items()}
    soft = None if labels is None else labels.build(corpus.offsets, corpus.types, corpus.id_list)
    return replace(corpus, sources={**corpus.sources, **built}, soft_labels=soft)
