"""`SpanFile`: entities that something else has found before, from a file."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, DataError, FormatError, TagweaveWarning, UsageError
from tagweave.formats.json_lines import parse_json
from tagweave.formats.problems import Problems
from tagweave.formats.records import identifier
from tagweave.formats.spans import CharacterSpans, token_spans
from tagweave.formats.streams import read_lines
from tagweave.formats.words import Alignment
from tagweave.sources.aligning import SIMILARITY, Named, Occurrences, Unaligned, place
from tagweave.sources.base import Source, Votes

Unit = Literal["codepoint", "utf16", "token"]
"""What places count: characters as Python counts them, UTF-16 units as JavaScript and Java do, or tokens."""


class _Entry(NamedTuple):
    """What the file says of a document: spans as they stand there, None if nothing ran, and the text if it is there."""

    spans: list[Any] | None
    text: str | None


@dataclass
class SpanFile(Source):
    r"""Entities from a file of JSON lines: what a model, a service or a person has found before.

    A line is `{"id": ..., "spans": [...]}`. A span is `[start, end, type]`, with a probability as a fourth item, or an
    object with `start`, `end`, `label` (or `type`), `score` and `text`, which is checked. An object without places is
    `{"text": "New York", "label": "LOC"}`: its text is looked for, see `tagweave.sources.aligning`. Lines of the same
    id add up. `"spans": null` says that nothing ran. A `text` beside the spans must be that of the document.

    The file is held in memory, once in each process.

    Attributes:
        file: the file; its name may end in `.gz`.
        labels: the types to take; by default all that occur.
        unit: what places count: `codepoint`, `utf16`, or `token`.
        alignment: what becomes of spans that begin or end inside a token: `strict` leaves them out, `expand` takes the
            whole token in, `contract` leaves the token out.
        occurrences: for spans without places: `all` places where the text occurs, or as many as it is `listed`.
        similarity: for spans without places: how alike a place in the text must be, of 100; above 100 it must be the
            same but for blanks, case and accents.
        missing: what it means that a document is not in the file: `abstain`, or `nothing` was found.
        unaligned: file to which spans without places are appended that are not in the text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "answers.jsonl")
    ...     _ = file.write_text('{"id": "d", "spans": [{"text": "New York", "label": "LOC"}]}\n')
    ...     SpanFile("old", file).find(Document("d", ["New", "York"], "New York", [(0, 3), (4, 8)]))
    [Span(start=0, end=2, type='LOC', score=None)]
    """

    kind = "span-file"

    file: Path
    labels: tuple[str, ...] = ()
    unit: Unit = "codepoint"
    alignment: Alignment = "strict"
    occurrences: Occurrences = "all"
    similarity: float = SIMILARITY
    missing: Literal["abstain", "nothing"] = "abstain"
    unaligned: Path | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were chosen, or all in the file, which is read then."""
        return tuple(self.labels or self._content[1])

    @cached_property
    def _content(self) -> tuple[dict[str, _Entry], tuple[str, ...]]:
        """What the file says of each document, and all types in it."""
        entries: dict[str, _Entry] = {}
        names: dict[str, None] = {}
        for number, line in read_lines(self.file):
            if line.strip():
                try:
                    name, entry = _entry(line)
                    names |= {_label(item): None for item in entry.spans or ()}
                    entries[name] = _joined(entries[name], entry) if name in entries else entry
                except DataError as error:
                    raise type(error)(f"{self.file}, line {number}: {error}") from None
        return entries, tuple(sorted(names))

    @cached_property
    def _unaligned(self) -> Unaligned:
        return Unaligned(self, self.unaligned)

    def __getstate__(self) -> dict[str, Any]:
        """Other processes read the file themselves."""
        return {name: value for name, value in vars(self).items() if name not in ("_content", "_unaligned", "_warned")}

    def load(self) -> None:
        """Read the file.

        Raises:
            UsageError: the file cannot be opened, or has none of the chosen types.
            FormatError: a line is wrong; the message names it.
        """
        _, found = self._content
        if self.labels and not set(self.labels) & set(found):
            raise UsageError(f"{self.file} has none of the types {', '.join(self.labels)}, but {', '.join(found)}")

    def find(self, document: Document) -> Votes:
        """The spans that the file has for the document.

        Raises:
            AlignmentError: its text is another one, or a span does not cover the text that it says.
            FormatError: a span is wrong.
        """
        entry = self._content[0].get(document.id)
        if entry is None:
            self.counters["documents not in the file"] += 1
            return None if self.missing == "abstain" else []
        if entry.spans is None:
            return None
        if entry.text is not None and entry.text != document.text:
            raise AlignmentError(f"{self.file} has another text for it: {entry.text[:60]!r}...")
        wanted = [item for item in entry.spans if _label(item) in self.types]
        named = [item for item in wanted if _is_named(item)]
        spans = self._placed(document, [item for item in wanted if not _is_named(item)])
        return [*spans, *self._named(document, named)] if named else spans

    def _placed(self, document: Document, items: list[Any]) -> list[Span]:
        if self.unit == "token":
            return token_spans(items, document.tokens)
        problems = Problems(str(self.file))
        reader = CharacterSpans(problems, self.alignment, "utf16" if self.unit == "utf16" else "codepoint")
        spans = reader.read(items, document.id, document.text or "", list(document.characters or ()))
        for kind, count in problems.counts.items():
            self.counters[kind.replace("_", " ")] += count
        if problems.counts and "_warned" not in vars(self):
            self._warned = True
            warnings.warn(TagweaveWarning(f"source {self.name!r}: {problems.summary()}"), stacklevel=2)
        return spans

    def _named(self, document: Document, items: Iterable[dict[str, Any]]) -> list[Span]:
        named: list[Named] = [(item["text"], _label(item), item.get("score")) for item in items]
        spans, lost = place(
            document, named, occurrences=self.occurrences, alignment=self.alignment, similarity=self.similarity
        )
        self._unaligned.add(document, lost)
        return spans


def _entry(line: str) -> tuple[str, _Entry]:
    record = parse_json(line)
    if not isinstance(record, dict) or "id" not in record or "spans" not in record:
        raise FormatError('an object with "id" and "spans" is expected')
    spans, text = record["spans"], record.get("text")
    if spans is not None and not isinstance(spans, list):
        raise FormatError(f"spans must be a list, or null if nothing ran, not {type(spans).__name__}")
    if text is not None and not isinstance(text, str):
        raise FormatError("text must be a string")
    return identifier(record["id"], "id"), _Entry(spans, text)


def _joined(first: _Entry, second: _Entry) -> _Entry:
    if first.text is not None and second.text is not None and first.text != second.text:
        raise FormatError("an earlier line of the same id has another text")
    spans = [*(first.spans or ()), *(second.spans or ())]
    nothing = first.spans is None and second.spans is None
    return _Entry(None if nothing else spans, first.text if first.text is not None else second.text)


def _label(item: object) -> str:
    """The type of a span as it stands in the file.

    Raises:
        FormatError: it is no span.
    """
    name: object = None
    if isinstance(item, dict):
        name = item.get("label", item.get("type"))
        if _is_named(item) and not isinstance(item.get("text"), str):
            raise FormatError(f"span {item!r} has neither a place nor a text")
    elif isinstance(item, list) and len(item) in (3, 4):
        name = item[2]
    if not isinstance(name, str) or not name:
        raise FormatError(f"{item!r} is no span with a type")
    return name


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and not {"start", "end", "start_offset", "end_offset"} & item.keys()
