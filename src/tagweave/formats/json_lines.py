"""JSON lines: one document a line, everything that a corpus holds.

Reading accepts the native keys and the common spellings of annotation tools:

==================================  ===========================================================================
key                                 meaning
==================================  ===========================================================================
`id`                                name; without it the file's name and a number
`tokens`                            words; spans then count tokens
`text`                              text; without tokens it is cut into words, and spans count its characters
`offsets`                           start and end of each token in the text; without it the tokens are looked up
`group`                             name of the larger document
`entities`, `label`, `labels`,      gold or predicted spans, or one tag a token
`spans`, `gold`, `tags`
`sources`, `weak`, `spans`          spans by source; null is a source that did not run
`votes_o`                           stretches `[start, end]` by source that it says are no entity
`links`                             stretches by linking rule whose tokens have one label, or with a third item
                                    `different`, in which no two neighbours have
`labels` with `probabilities`       soft labels: names of BIO labels, and a row of probabilities for each token
==================================  ===========================================================================

A source may give soft labels too: an object with `labels` and `probabilities` in place of its spans.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords, entity_keys
from tagweave.formats.rows import Row, row_documents, tag_scheme
from tagweave.formats.soft_columns import SoftDocument, SoftRows, softened
from tagweave.formats.streams import Lines, read_lines, shown_name, written
from tagweave.labels import OUTSIDE
from tagweave.soft_labels import SoftLabels

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def parse_json(text: str) -> Any:  # noqa: ANN401
    """A JSON value, strictly: no NaN, no halves of characters, no nesting without end.

    Raises:
        FormatError: the text is no such value.
    """
    try:
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FormatError("holds half a character (a lone UTF-16 surrogate)") from None
    except RecursionError:
        raise FormatError("lists or objects are nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"not JSON: {error}") from None
    return value


def json_documents(path: AnyPath, options: ReadRecords, problems: Problems) -> Iterator[Document]:
    """The documents of JSON lines; see the module's text for the keys.

    Raises:
        FormatError, AlignmentError, LabelError: a record is wrong; the message names file, line and id.
    """
    lines = Lines(path)
    if options.mode == "strict" and options.scheme is None:
        lines.keep()
        options = replace(options, scheme=tag_scheme(_rows(path, lines), options))
    yield from row_documents(path, _rows(path, lines), options, problems)


def _rows(path: AnyPath, lines: Lines) -> Iterator[Row]:
    for number, line in lines:
        if line.strip():
            yield f"{shown_name(path)}, line {number}", partial(json_object, line)


def holds_tags(path: AnyPath) -> bool:
    """Whether the first record with entities has them as tags."""
    for _, line in read_lines(path):
        try:
            record = json_object(line) if line.strip() else {}
        except DataError:
            return False
        for value in (record[key] for key in entity_keys(record)):
            if isinstance(value, list) and value:
                return isinstance(value[0], str)
    return False


def json_object(line: str) -> dict[str, Any]:
    """The JSON object that a line is.

    Raises:
        FormatError: the line is none.
    """
    value = parse_json(line)
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else "no object"
        raise FormatError(f"one JSON object a line is expected, but this is {kind}")
    return value


def write_json_lines(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write JSON lines, one document after the other.

    Scores are rounded to four decimals and soft labels to five.
    """
    write_json_batches([corpus], path, options)


def write_json_batches(batches: Iterable[Corpus], path: AnyPath, options: NoOptions) -> None:
    """Write the documents of several corpora, one after the other."""
    with written(path) as handle:
        for corpus in batches:
            for record in records(corpus):
                handle.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


def records(corpus: Corpus, documents: Iterable[Document] | None = None) -> Iterator[dict[str, Any]]:
    """The documents of a corpus as JSON records.

    Args:
        corpus: the corpus.
        documents: its documents with other votes; soft labels still come from the corpus.

    >>> document = Document("d", ["Oslo"], sources={"map": [Span(0, 1, "LOC", 0.9)], "old": None})
    >>> list(records(Corpus.from_documents([document])))
    [{'id': 'd', 'tokens': ['Oslo'], 'sources': {'map': [[0, 1, 'LOC', 0.9]], 'old': None}}]
    """
    soft = {name: column for name, column in corpus.sources.items() if isinstance(column, SoftLabels)}
    if not soft and corpus.soft_labels is None:
        yield from map(document_record, corpus if documents is None else documents)
        return
    if documents is None:
        plain = replace(corpus, sources={name: votes for name, votes in corpus.sources.items() if name not in soft})
        documents = (
            replace(document, sources={name: document.sources.get(name, ()) for name in corpus.sources})
            for document in plain
        )
    for index, document in enumerate(documents):
        sources = {name: [] if name in soft else votes for name, votes in document.sources.items()}
        yield document_record(
            softened(
                replace(document, sources=sources),
                None if corpus.soft_labels is None else _soft_rows(corpus.soft_labels, index),
                {name: _soft_rows(column, index) for name, column in soft.items()},
            )
        )


def _soft_rows(soft: SoftLabels, index: int) -> SoftRows:
    return SoftRows(soft.labels.names, soft.document(index))


def document_record(document: Document) -> dict[str, Any]:
    """One document as a JSON record.

    >>> document_record(Document("d", ["Oslo"], sources={"stop": [Span(0, 1, "O")]}, links={"caps": []}))
    {'id': 'd', 'tokens': ['Oslo'], 'sources': {'stop': []}, 'votes_o': {'stop': [[0, 1]]}, 'links': {'caps': []}}
    """
    record = _without_votes(document)
    if document.sources:
        record["sources"] = {name: _plain_spans(spans) for name, spans in document.sources.items()}
    votes = {name: found for name, items in document.sources.items() if (found := _outside_votes(items))}
    if votes:
        record["votes_o"] = votes
    if document.links:
        record["links"] = {name: _links(spans) for name, spans in document.links.items()}
    if isinstance(document, SoftDocument):
        for name, rows in document.soft_sources.items():
            record["sources"][name] = _soft_fields(rows)
        if document.soft_labels is not None:
            record.update(_soft_fields(document.soft_labels))
    return record


def _links(spans: Sequence[Span] | None) -> list[list[Any]] | None:
    if spans is None:
        return None
    return [[span.start, span.end, *([] if span.type == "same" else [span.type])] for span in spans]


def _without_votes(document: Document) -> dict[str, Any]:
    record: dict[str, Any] = {"id": document.id, "tokens": list(document.tokens)}
    if document.text is not None:
        record["text"] = document.text
        if document.characters is not None and all(start >= 0 for start, _ in document.characters):
            record["offsets"] = [list(pair) for pair in document.characters]
    if document.group is not None:
        record["group"] = document.group
    if document.entities is not None:
        record["entities"] = _plain_spans(document.entities)
    return record


def _plain_spans(spans: Any) -> list[list[Any]] | None:  # noqa: ANN401
    if spans is None:
        return None
    return [_fields(span) for span in spans if span.type != OUTSIDE]


def _outside_votes(spans: Any) -> list[list[Any]]:  # noqa: ANN401
    return [[span.start, span.end, *_fields(span)[3:]] for span in spans or () if span.type == OUTSIDE]


def _fields(span: Span) -> list[Any]:
    fields = [span.start, span.end, span.type]
    return fields if span.score is None else [*fields, round(span.score, 4)]


def _soft_fields(soft: SoftRows) -> dict[str, Any]:
    rows = np.round(soft.table.astype(np.float64), 5)
    return {"labels": list(soft.labels), "probabilities": rows.tolist()}


JSON_LINES = Format(
    name="jsonl",
    suffixes=(".jsonl", ".ndjson"),
    documents=json_documents,
    read_options=ReadRecords,
    holds_tags=holds_tags,
    write=write_json_lines,
    write_batches=write_json_batches,
)
