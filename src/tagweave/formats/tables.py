"""Arrow tables with a document a row, as Hugging Face datasets have them, whatever file they come from.

=================  ====================================================================================================
column             what stands there
=================  ====================================================================================================
`id`               name of the document
`tokens`           words; without this column `text` is cut into words
`ner_tags`         a tag for each token, as number of a ClassLabel or as string; null where no entities are known
`text`, `offsets`  the text, and start and end of each token in it; without offsets the tokens are looked up
`group`            name of the larger document
`soft_labels`      for each token the probabilities of the labels, in the order of the names of `ner_tags`
`weak_SOURCE`      a tag for each token by that source, null where it did not run; or probabilities like `soft_labels`
=================  ====================================================================================================
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tagweave.corpus import Column, Corpus, Document
from tagweave.errors import AlignmentError, FormatError, LabelError, UsageError
from tagweave.formats import features
from tagweave.formats.arrow_sizes import held
from tagweave.formats.base import AnyPath
from tagweave.formats.features import Feature, class_label, class_names, listed, value
from tagweave.formats.losses import held_votes, report_losses, without_nested
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.rows import Row, row_documents, tag_scheme
from tagweave.formats.streams import LEAST_LIMIT, packed_too_well, too_well_packed
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tags import spans_from_parsed
from tagweave.labels import OUTSIDE, LabelSet
from tagweave.soft_labels import SoftLabels

WEAK = "weak_"
SOFT = "soft_labels"
TAG_COLUMNS = ("ner_tags", "tags")
ROWS = 1000
"""Documents in a batch that is written."""


@dataclass(frozen=True)
class ReadTable(ReadRecords):
    """Options of reading tables."""

    tokens: str = "tokens"
    """Column with the words."""
    text: str = "text"
    """Column with the text."""
    tags: str | None = None
    """Column with the tags; None takes `ner_tags` or `tags`."""
    names: tuple[str, ...] = ()
    """Names of the numbers in the column with the tags, for tables that have none."""


@dataclass(frozen=True)
class Table:
    """A table that is read.

    Attributes:
        name: what messages call it.
        schema: its columns.
        features: its features by column.
        batches: gives its rows, from the first; each call reads anew. Columns may have dictionaries of their values.
        size: bytes of its files.
    """

    name: str
    schema: pa.Schema
    features: Mapping[str, Any]
    batches: Callable[[], Iterable[pa.RecordBatch]]
    size: int


def table_documents(path: AnyPath, table: Table, options: ReadTable, problems: Problems) -> Iterator[Document]:
    """The documents of a table.

    Args:
        path: what documents without id are called after.
        table: the table.
        options: which columns are read, and how.
        problems: where is noted what is repaired.

    Raises:
        UsageError: there is no such column.
        FormatError, AlignmentError, LabelError: a row is wrong; the message names it.
    """
    columns = _Columns.of(table, options, problems)
    if options.mode == "strict" and options.scheme is None:
        options = replace(options, scheme=tag_scheme(_rows(table, columns), options))
    return row_documents(path, _rows(table, replace(columns, options=options)), options, problems)


def _rows(table: Table, columns: "_Columns") -> Iterator[Row]:
    number = 0
    for batch in table.batches():
        wanted = batch.select([name for name in batch.schema.names if name in columns.wanted])
        size = sum(map(held, wanted.columns))
        if packed_too_well(table.size, size):
            raise FormatError(f"{table.name}: {too_well_packed('write it as JSON lines')}")
        rows = max(1, len(batch) * LEAST_LIMIT // max(size, LEAST_LIMIT))
        plain = pa.schema([table.schema.field(name) for name in wanted.schema.names])
        for first in range(0, len(batch), rows):
            for fields in wanted.slice(first, rows).cast(plain).to_pylist():
                yield f"{table.name}, row {number}", partial(columns.record, fields)
                number += 1


@dataclass(frozen=True)
class _Columns:
    """What the columns of a table mean, and the records of its rows."""

    options: ReadTable
    wanted: frozenset[str]
    tags: str | None
    names: Mapping[str, list[str] | None]
    """Names of the numbers by column."""
    soft: frozenset[str]
    """Columns of sources that are lists of lists, so probabilities."""
    parsers: dict[str, TagParser] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, options: ReadTable, problems: Problems) -> "_Columns":
        known = table.schema.names
        if options.tokens not in known and options.text not in known:
            raise UsageError(
                f"{table.name} has neither a column {options.tokens!r} nor {options.text!r}, but {', '.join(known)}. "
                "Name another by 'tokens' or 'text'"
            )
        if options.tags is not None and options.tags not in known:
            raise UsageError(f"{table.name} has no column {options.tags!r}, but {', '.join(known)}")
        names = {column: class_names(table.features.get(column)) for column in known}
        tags = options.tags or next((column for column in TAG_COLUMNS if column in known), None)
        others = [column for column in known if names[column] and not column.startswith(WEAK)]
        if tags is None and others:
            title = "tables read without tags, which have other columns of labels"
            problems.add("no_annotations", title, None, f"{', '.join(others)}; name one by 'tags'")
        if tags is not None and options.names:
            names[tags] = [*options.names]
        wanted = {"id", "group", "offsets", SOFT, options.tokens, options.text, tags}
        weak = {column for column in known if column.startswith(WEAK)}
        soft = {column for column in weak if _is_list(table.schema.field(column).type, 2)}
        return cls(
            options, frozenset({name for name in wanted if name is not None} | weak), tags, names, frozenset(soft)
        )

    def record(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The record of a row."""
        record = {key: fields[key] for key in ("id", "group", "offsets") if fields.get(key) is not None}
        for key, column in (("tokens", self.options.tokens), ("text", self.options.text)):
            if fields.get(column) is not None:
                record[key] = fields[column]
        if self.tags is not None:
            record["tags"] = self._strings(self.tags, fields.get(self.tags))
        tokens = record.get("tokens")
        record["sources"] = {
            column.removeprefix(WEAK): self._votes(column, value, tokens)
            for column, value in fields.items()
            if column.startswith(WEAK)
        }
        if fields.get(SOFT) is not None:
            record.update(self._soft(SOFT, fields[SOFT]))
        return record

    def _strings(self, column: str, values: object) -> list[str] | None:
        """Tags as strings; None where nobody knows: the list is null, or all its numbers are -1."""
        if values is None or (isinstance(values, list) and values and all(item == -1 for item in values)):
            return None
        if not isinstance(values, list):
            raise FormatError(f"{column}: must be a list of tags")
        if all(isinstance(item, str) for item in values):
            return values
        names = self.names[column]
        if names is None:
            raise FormatError(f"{column} holds numbers without names: give them by 'names', in order")
        for item in values:
            if type(item) is not int or not 0 <= item < len(names):
                raise LabelError(f"{column}: {item!r} is no number of one of the {len(names)} names")
        return [names[item] for item in values]

    def _votes(self, column: str, values: object, tokens: object) -> list[list[Any]] | dict[str, Any] | None:
        """The spans of a source, or its probabilities."""
        if column in self.soft:
            return None if values is None else self._soft(column, values)
        length = len(tokens) if isinstance(tokens, list) else 0
        names = self.names[column]
        if names and names[0] == OUTSIDE and isinstance(values, list) and values == [0] * length:
            return []  # what most sources say of most documents
        tags = self._strings(column, values)
        if tags is None:
            return None
        if len(tags) != length:
            raise AlignmentError(f"{column}: {length} tokens, but {len(tags)} tags")
        parser = self.parsers.setdefault(column, TagParser(self.options.scheme))
        parsed = [parser.parse(tag, column) for tag in tags]
        parser.add(parsed)
        return [[*span[:3]] for span in spans_from_parsed(parsed, parser.scheme, self.options.mode)]

    def _soft(self, column: str, rows: object) -> dict[str, Any]:
        names = None if self.tags is None else self.names[self.tags]
        if names is None:
            raise FormatError(f"{column}: probabilities need the names of a ClassLabel in the column of tags")
        return {"labels": names, "probabilities": rows}


def _is_list(kind: Any, depth: int) -> bool:  # noqa: ANN401
    """Whether an Arrow type is lists of lists, so deep."""
    for _ in range(depth):
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            return False
        kind = kind.value_type
    return True


@dataclass(frozen=True)
class TableWriter:
    """Makes rows of a corpus, which holds no more than tables can (see `held_by_tables`)."""

    corpus: Corpus

    @property
    def labels(self) -> LabelSet:
        """The labels of entities, whose probabilities soft labels are."""
        return LabelSet(self.corpus.types)

    @property
    def vote_labels(self) -> LabelSet:
        """The labels of votes."""
        return LabelSet((*self.corpus.types, *self.corpus.coarse))

    @property
    def features(self) -> dict[str, Feature]:
        """The feature of each column."""
        corpus, tags = self.corpus, listed(class_label(self.labels.names))
        soft = listed(listed(value("float32"), len(self.labels)))
        found = {"id": value("string"), "tokens": listed(value("string"))}
        votes = listed(class_label(self.vote_labels.names))
        weak = {name: soft if isinstance(column, SoftLabels) else votes for name, column in corpus.sources.items()}
        if corpus.entities is not None or corpus.soft_labels is not None or soft in weak.values():
            found["ner_tags"] = tags
        if corpus.texts is not None:
            found |= {"text": value("string"), "offsets": listed(listed(value("int32"), 2))}
        if corpus.groups is not None:
            found["group"] = value("string")
        if corpus.soft_labels is not None:
            found[SOFT] = soft
        return {**found, **{f"{WEAK}{name}": feature for name, feature in weak.items()}}

    @property
    def schema(self) -> pa.Schema:
        """The columns, with their features as metadata."""
        fields = [pa.field(name, _arrow(feature)) for name, feature in self.features.items()]
        return pa.schema(fields, metadata=features.metadata(self.features))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, `ROWS` at a time."""
        schema = self.schema
        for first in range(0, len(self.corpus), ROWS):
            part = self.corpus.subset(np.arange(first, min(first + ROWS, len(self.corpus))))
            columns = replace(self, corpus=part).columns()
            yield pa.record_batch([columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema)

    def columns(self) -> dict[str, Any]:
        """The Arrow arrays of all columns."""
        corpus = self.corpus
        found = {"id": corpus.ids, "tokens": _lists(corpus.tokens, corpus.offsets)}
        found["ner_tags"] = self._labelled(corpus.entities, self.labels)
        if corpus.texts is not None:
            found |= {"text": corpus.texts, "offsets": _places(corpus)}
        if corpus.groups is not None:
            found["group"] = corpus.groups
        if corpus.soft_labels is not None:
            found[SOFT] = self._labelled(corpus.soft_labels, self.labels)
        weak = {name: self._labelled(column, self.vote_labels) for name, column in corpus.sources.items()}
        return {**found, **{f"{WEAK}{name}": column for name, column in weak.items()}}

    def _labelled(self, column: Column | None, labels: LabelSet) -> Any:  # noqa: ANN401
        """Numbers of labels or probabilities for each token, null where an annotator did not run."""
        offsets = self.corpus.offsets
        if column is None:
            return pa.nulls(len(self.corpus), pa.list_(pa.int64()))
        if isinstance(column, SoftLabels):
            table = column.with_types(self.corpus.types).probabilities
            rows = pa.FixedSizeListArray.from_arrays(pa.array(table.reshape(-1)), len(self.labels))
            return _lists(rows, offsets)
        return _lists(pa.array(column.labels(offsets, labels)), offsets, column.ran)


def _arrow(feature: Feature) -> Any:  # noqa: ANN401
    """The Arrow type of a feature."""
    if feature["_type"] == "List":
        inner = _arrow(feature["feature"])
        return pa.list_(inner, feature["length"]) if "length" in feature else pa.list_(inner)
    return pa.int64() if feature["_type"] == "ClassLabel" else pa.type_for_alias(feature["dtype"])


def _lists(values: Any, offsets: NDArray[np.int64], known: NDArray[np.bool_] | None = None) -> Any:  # noqa: ANN401
    """Lists of values, null where they are not known."""
    mask = None if known is None or known.all() else pa.array(~known)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=mask)


def _places(corpus: Corpus) -> Any:  # noqa: ANN401
    """Start and end of each token in its text, null where one is not known."""
    places = np.full((int(corpus.offsets[-1]), 2), -1, np.int32) if corpus.characters is None else corpus.characters
    unknown = np.concatenate([[0], np.cumsum(places[:, 0] < 0)])[corpus.offsets]
    known = (np.diff(unknown) == 0) & np.asarray(corpus.texts.is_valid())
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(places.reshape(-1)), 2)
    return _lists(pairs, corpus.offsets, known)


def held_by_tables(corpus: Corpus, problems: Problems) -> Corpus:
    """The corpus with what tags and probabilities in tables can hold, and notes on what they cannot.

    Raises:
        LabelError: an entity is of a coarse type.
    """
    if corpus.entities is not None and (corpus.entities.type_ids > len(corpus.types)).any():
        raise LabelError(f"entities are of the coarse types {', '.join(corpus.coarse)}, which are for sources only")
    report_losses(corpus, problems, "tables", ("entities", "sources", "soft_labels", "groups"))
    plain = without_nested(held_votes(corpus, problems, "tables", ("soft", "not_run")), problems)
    entities = None if plain.entities is None else replace(plain.entities, scores=None)
    return replace(plain, entities=entities, links={})
