"""One JSON record and the document that it stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError, LabelError
from tagweave.formats.base import OnError
from tagweave.formats.problems import Problems
from tagweave.formats.soft_columns import SoftColumn
from tagweave.formats.spans import BadSpans, CharacterSpans, OffsetUnit, token_spans
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tags import spans_from_parsed
from tagweave.formats.words import Alignment, Offsets, Tokenizer, locate, tokenize
from tagweave.labels import OUTSIDE, Decoding

_ENTITY_KEYS = ("entities", "gold", "label", "labels", "spans", "tags")
_SOURCE_KEYS = ("sources", "weak", "spans")
_PROBABILITY_KEYS = ("probabilities", "probs")
_KNOWN_KEYS = {
    "id",
    "tokens",
    "text",
    "offsets",
    "group",
    "votes_o",
    "links",
    *_ENTITY_KEYS,
    *_SOURCE_KEYS,
    *_PROBABILITY_KEYS,
}


@dataclass(frozen=True)
class ReadRecords:
    """Options of reading JSON lines; those about characters and tokens concern records that have no tokens."""

    tokenizer: Tokenizer = "words"
    """How text is cut into tokens."""
    alignment: Alignment = "expand"
    """What becomes of spans that begin or end inside a token."""
    offset_unit: OffsetUnit = "codepoint"
    """What the offsets of spans in text count."""
    bad_spans: BadSpans = "report"
    """What a span does that is not in the text."""
    scheme: str | None = None
    """Name of the scheme of tags; None finds it out."""
    mode: Decoding = "lenient"
    """How tags are read, see `tagweave.formats.tags.spans_from_tags`."""
    on_error: OnError = "raise"
    """What a record that cannot be read does."""


@dataclass
class _Record:
    """A record in the making: its fields, its number in the file, and its words."""

    fields: Mapping[str, Any]
    index: int
    id: str
    tokens: list[str]
    text: str | None
    characters: Offsets | None
    given: bool
    """Whether the tokens were given, so that spans count them."""


class RecordReader:
    """Makes documents of records; errors name the key, and whoever calls adds file, line and id."""

    def __init__(self, options: ReadRecords, problems: Problems) -> None:
        self.tags = TagParser(options.scheme)
        self.soft_labels: SoftColumn | None = None
        self.soft_sources: dict[str, SoftColumn] = {}
        self.problems = problems
        self._tokenizer, self._mode = options.tokenizer, options.mode
        self._characters = CharacterSpans(problems, options.alignment, options.offset_unit, options.bad_spans)
        self._annotated = False
        self._strange: dict[str, None] = {}

    def document(self, fields: Mapping[str, Any], index: int, name: str) -> Document:
        """The document of a record.

        Args:
            fields: the record.
            index: number of the document in the corpus.
            name: its id.

        Raises:
            FormatError, AlignmentError, LabelError: something in the record is wrong.
        """
        record = self._words(fields, index, name)
        entities = self._entities(record)
        sources = self._sources(record)
        links = self._links(record)
        self._soft(record)
        self._annotated = self._annotated or entities is not None or bool(sources)
        if not self._annotated:
            self._strange.update(dict.fromkeys(key for key, value in fields.items() if _is_strange(key, value)))
        group = fields.get("group")
        return Document(
            id=name,
            tokens=record.tokens,
            text=record.text,
            characters=record.characters,
            group=None if group is None else identifier(group, "group"),
            entities=entities,
            sources=sources,
            links=links,
        )

    def forget(self, index: int) -> None:
        """Drop the soft labels of a document that is left out after all."""
        for column in (*self.soft_sources.values(), *([self.soft_labels] if self.soft_labels is not None else [])):
            column.forget(index)

    def report(self) -> None:
        """Note what concerns the whole file."""
        self.tags.report(self.problems, self._mode)
        if self._strange and not self._annotated and self.soft_labels is None:
            keys = ", ".join(map(repr, self._strange))
            title = "file in which no annotations were found under any known key, though records have other lists"
            self.problems.add(
                "no_annotations", title, None, f"keys {keys}; known are {', '.join(_ENTITY_KEYS)}, sources"
            )

    def _words(self, fields: Mapping[str, Any], index: int, name: str) -> _Record:
        text, tokens, offsets = fields.get("text"), fields.get("tokens"), fields.get("offsets")
        if text is not None and not isinstance(text, str):
            raise FormatError(f"text: must be a string, not {_kind(text)}")
        if tokens is None:
            if text is None:
                raise FormatError(f"has neither 'tokens' nor 'text', only {', '.join(map(repr, fields)) or 'nothing'}")
            characters = tokenize(text, self._tokenizer)
            tokens = [text[start:end] for start, end in characters]
            return _Record(fields, index, name, tokens, text, characters, given=False)
        if not isinstance(tokens, list) or not {*map(type, tokens)} <= {str}:
            raise FormatError(f"tokens: must be a list of strings, not {_kind(tokens)}")
        if text is None:
            return _Record(fields, index, name, tokens, None, None, given=True)
        found = locate(tokens, text) if offsets is None else _checked_offsets(offsets, tokens, text)
        return _Record(fields, index, name, tokens, text, found, given=True)

    def _entities(self, record: _Record) -> list[Span] | None:
        present = entity_keys(record.fields)
        if not present:
            return None
        if len(present) > 1:
            raise FormatError(f"has entities under {' and '.join(map(repr, present))}: leave one")
        key = present[0]
        value = record.fields[key]
        if not isinstance(value, list):
            raise FormatError(f"{key}: must be a list, not {_kind(value)}")
        if value and isinstance(value[0], str) or key == "tags":
            return self._tagged(value, record, key)
        spans = self._spans(value, record, key)
        if any(span.type == OUTSIDE for span in spans):
            raise LabelError(f"{key}: {OUTSIDE!r} is no entity type")
        return spans

    def _tagged(self, tags: list[Any], record: _Record, key: str) -> list[Span]:
        if not record.given:
            raise FormatError(f"{key}: tags need 'tokens' to belong to")
        if not all(isinstance(tag, str) for tag in tags):
            raise FormatError(f"{key}: tags must be strings")
        if len(tags) != len(record.tokens):
            raise AlignmentError(f"{key}: {len(record.tokens)} tokens, but {len(tags)} tags")
        try:
            parsed = [self.tags.parse(tag, f"record {record.id!r}") for tag in tags]
        except LabelError as error:
            raise LabelError(f"{key}: {error}") from None
        self.tags.add(parsed)
        return spans_from_parsed(parsed, self.tags.scheme, self._mode)

    def _sources(self, record: _Record) -> dict[str, list[Span] | None]:
        sources: dict[str, list[Span] | None] = {}
        for key in _SOURCE_KEYS:
            value = record.fields.get(key)
            if value is None or (key == "spans" and isinstance(value, list)):
                continue
            if not isinstance(value, dict):
                raise FormatError(f"{key}: must be an object with a list of spans for each source, not {_kind(value)}")
            for name, items in value.items():
                sources[name] = self._source(name, items, record) if items else _empty(name, items)
        self._add_outside_votes(record, sources)
        return sources

    def _source(self, name: str, items: Any, record: _Record) -> list[Span]:  # noqa: ANN401
        if isinstance(items, dict):
            column = self.soft_sources.setdefault(name, SoftColumn())
            column.add(record.index, items.get("labels"), items.get("probabilities"), len(record.tokens))
            return []
        if not isinstance(items, list):
            raise FormatError(f"source {name!r}: must be a list of spans or null, not {_kind(items)}")
        return self._spans(items, record, f"source {name!r}")

    def _add_outside_votes(self, record: _Record, sources: dict[str, list[Span] | None]) -> None:
        votes = record.fields.get("votes_o")
        if votes is None:
            return
        if not isinstance(votes, dict):
            raise FormatError(
                f"votes_o: must be an object with a list of [start, end] for each source, not {_kind(votes)}"
            )
        for name, items in votes.items():
            if not isinstance(items, list) or not all(isinstance(item, list) and len(item) in (2, 3) for item in items):
                raise FormatError(f"votes_o of source {name!r}: must be a list of [start, end]")
            stretches = [[*item[:2], OUTSIDE, *item[2:]] for item in items]
            spans = self._spans(stretches, record, f"votes_o of {name}")
            sources[name] = [*(sources.get(name) or ()), *spans]

    def _links(self, record: _Record) -> dict[str, list[Span] | None]:
        value = record.fields.get("links")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise FormatError(f"links: must be an object with a list of spans for each rule, not {_kind(value)}")
        return {
            name: self._link(name, items, record) if items else _empty(name, items) for name, items in value.items()
        }

    def _link(self, name: str, items: Any, record: _Record) -> list[Span]:  # noqa: ANN401
        if not isinstance(items, list):
            raise FormatError(f"link {name!r}: must be a list of spans or null, not {_kind(items)}")
        typed = [[*item, "same"] if isinstance(item, list) and len(item) == 2 else item for item in items]
        return self._spans(typed, record, f"link {name!r}")

    def _spans(self, items: list[Any], record: _Record, what: str) -> list[Span]:
        try:
            if record.given:
                return token_spans(items, record.tokens)
            return self._characters.read(items, record.id, record.text or "", record.characters or [])
        except (FormatError, AlignmentError) as error:
            raise type(error)(f"{what}: {error}") from None

    def _soft(self, record: _Record) -> None:
        for key in _PROBABILITY_KEYS:
            if record.fields.get(key) is not None:
                self.soft_labels = SoftColumn() if self.soft_labels is None else self.soft_labels
                self.soft_labels.add(record.index, record.fields.get("labels"), record.fields[key], len(record.tokens))


def entity_keys(fields: Mapping[str, Any]) -> list[str]:
    """The keys under which a record has entities.

    >>> entity_keys({"tokens": ["Oslo"], "tags": ["B-LOC"], "gold": None})
    ['tags']
    """
    return [key for key in _ENTITY_KEYS if fields.get(key) is not None and _holds_entities(key, fields)]


def _holds_entities(key: str, fields: Mapping[str, Any]) -> bool:
    if key == "spans":
        return not isinstance(fields[key], dict)
    return key != "labels" or not any(name in fields for name in _PROBABILITY_KEYS)


def identifier(value: object, key: str) -> str:
    """A name as text; whole numbers are names too.

    Raises:
        FormatError: it is neither text nor a whole number.
    """
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    raise FormatError(f"{key}: must be a string or a whole number, not {_kind(value)}")


def _empty(name: str, items: object) -> list[Span] | None:
    """What a source says that gives no span: nothing, or null if it did not run."""
    if items is None or items == []:
        return None if items is None else []
    raise FormatError(f"source {name!r}: must be a list of spans or null, not {_kind(items)}")


def _checked_offsets(offsets: object, tokens: list[str], text: str) -> Offsets:
    """Offsets of tokens that come with the record."""
    if not isinstance(offsets, list) or len(offsets) != len(tokens):
        count = len(offsets) if isinstance(offsets, list) else _kind(offsets)
        raise AlignmentError(f"offsets: {len(tokens)} tokens, but offsets for {count}")
    pairs = []
    for number, (pair, token) in enumerate(zip(offsets, tokens, strict=True)):
        if not isinstance(pair, list) or len(pair) != 2 or not {*map(type, pair)} <= {int}:
            raise FormatError(f"offsets: {pair!r} is no pair of whole numbers")
        start, end = pair
        if not 0 <= start <= end <= len(text) or text[start:end] != token:
            raise AlignmentError(f"offsets: token {number}, {token!r}, is not what the text has at {pair}")
        pairs.append((start, end))
    return pairs


def _is_strange(key: str, value: object) -> bool:
    if key in _KNOWN_KEYS:
        return False
    lists = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(item, list) for item in lists)


_KINDS = {bool: "true or false", dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")
