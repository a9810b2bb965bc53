"""One JSON record and the documents that it stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError, LabelError
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions, text_documents
from tagweave.formats.soft_columns import SoftDocument, soft_rows, softened
from tagweave.formats.spans import token_spans
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tagged import TagOptions
from tagweave.formats.tags import spans_from_parsed
from tagweave.formats.words import Offsets, locate
from tagweave.labels import OUTSIDE

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
class ReadRecords(TextOptions, TagOptions):
    """Options of reading JSON lines; those of `TextOptions` concern records that have no tokens."""


class _Items(NamedTuple):
    """What annotators say in a record, as it stands there."""

    entities: list[Any] | None
    key: str
    """The key under which the entities stand."""
    sources: dict[str, list[Any] | None]
    links: dict[str, list[Any] | None]
    soft_sources: dict[str, Mapping[str, Any]]

    @property
    def tags(self) -> bool:
        """Whether the entities are tags."""
        return self.entities is not None and (self.key == "tags" or isinstance(next(iter(self.entities), None), str))


class RecordReader:
    """Makes documents of records; errors name the key, and whoever calls adds file, line and id."""

    def __init__(self, options: ReadRecords, problems: Problems) -> None:
        self.tags = TagParser(options.scheme)
        self.problems = problems
        self._options = options
        self._annotated = False
        self._strange: dict[str, None] = {}

    def documents(self, fields: Mapping[str, Any], name: str) -> list[Document]:
        """The documents of a record: one, or the sentences of its text.

        Args:
            fields: the record.
            name: its id.

        Raises:
            FormatError, AlignmentError, LabelError: something in the record is wrong.
        """
        group = fields.get("group")
        group = None if group is None else identifier(group, "group")
        items = _items(fields)
        if fields.get("tokens") is None:
            documents = self._from_text(fields, name, group, items)
        else:
            documents = [self._from_tokens(fields, name, group, items)]
        probabilities = _probabilities(fields)
        if probabilities is not None or items.soft_sources:
            documents = [self._softened(documents, fields, items, probabilities)]
        self._annotated = (
            self._annotated or items.entities is not None or bool(items.sources) or probabilities is not None
        )
        if not self._annotated:
            self._strange.update(dict.fromkeys(key for key, value in fields.items() if _is_strange(key, value)))
        return documents

    def note_tags(self, fields: Mapping[str, Any]) -> None:
        """Only take in the tags of a record, to find out their scheme."""
        for key in entity_keys(fields):
            if isinstance(fields[key], list) and all(isinstance(tag, str) for tag in fields[key]):
                self.tags.add([self.tags.parse(tag, key) for tag in fields[key]])

    def report(self) -> None:
        """Note what concerns the whole file."""
        self.tags.report(self.problems, self._options.mode)
        if self._strange and not self._annotated:
            keys = ", ".join(map(repr, self._strange))
            title = "file in which no annotations were found under any known key, though records have other lists"
            self.problems.add(
                "no_annotations", title, None, f"keys {keys}; known are {', '.join(_ENTITY_KEYS)}, sources"
            )

    def _from_text(self, fields: Mapping[str, Any], name: str, group: str | None, items: _Items) -> list[Document]:
        text = fields.get("text")
        if text is None:
            raise FormatError(f"has neither 'tokens' nor 'text', only {', '.join(map(repr, fields)) or 'nothing'}")
        if not isinstance(text, str):
            raise FormatError(f"text: must be a string, not {_kind(text)}")
        if items.tags:
            raise FormatError(f"{items.key}: tags need 'tokens' to belong to")
        found = text_documents(
            name,
            text,
            self._options,
            self.problems,
            entities=items.entities,
            sources=items.sources,
            links=items.links,
            group=group,
        )
        return list(found)

    def _from_tokens(self, fields: Mapping[str, Any], name: str, group: str | None, items: _Items) -> Document:
        tokens, text, characters = _words(fields)
        if items.tags:
            entities: list[Span] | None = self._tagged(items, tokens, name)
        else:
            entities = _laid(items.key, items.entities, tokens)
            if any(span.type == OUTSIDE for span in entities or ()):
                raise LabelError(f"{items.key}: {OUTSIDE!r} is no entity type")
        return Document(
            id=name,
            tokens=tokens,
            text=text,
            characters=characters,
            group=group,
            entities=entities,
            sources={source: _laid(f"source {source!r}", votes, tokens) for source, votes in items.sources.items()},
            links={rule: _laid(f"link {rule!r}", spans, tokens) for rule, spans in items.links.items()},
        )

    def _tagged(self, items: _Items, tokens: list[str], name: str) -> list[Span]:
        tags = items.entities or []
        if not all(isinstance(tag, str) for tag in tags):
            raise FormatError(f"{items.key}: tags must be strings")
        if len(tags) != len(tokens):
            raise AlignmentError(f"{items.key}: {len(tokens)} tokens, but {len(tags)} tags")
        try:
            parsed = [self.tags.parse(tag, f"record {name!r}") for tag in tags]
        except LabelError as error:
            raise LabelError(f"{items.key}: {error}") from None
        self.tags.add(parsed)
        return spans_from_parsed(parsed, self.tags.scheme, self._options.mode)

    def _softened(
        self, documents: list[Document], fields: Mapping[str, Any], items: _Items, probabilities: object
    ) -> SoftDocument:
        """The one document of a record, with its soft labels."""
        if self._options.sentences and fields.get("tokens") is None:
            raise FormatError("probabilities need 'tokens' to belong to where text is parted into sentences")
        [document] = documents
        length = len(document.tokens)
        return softened(
            document,
            None if probabilities is None else soft_rows(fields.get("labels"), probabilities, length),
            {
                name: soft_rows(rows.get("labels"), rows.get("probabilities"), length)
                for name, rows in items.soft_sources.items()
            },
        )


def _items(fields: Mapping[str, Any]) -> _Items:
    """What annotators say in a record.

    Raises:
        FormatError: something is not what it should be.
    """
    present = entity_keys(fields)
    if len(present) > 1:
        raise FormatError(f"has entities under {' and '.join(map(repr, present))}: leave one")
    key = present[0] if present else "entities"
    entities = fields[key] if present else None
    if entities is not None and not isinstance(entities, list):
        raise FormatError(f"{key}: must be a list, not {_kind(entities)}")
    sources, soft_sources = _source_items(fields)
    for name, votes in _outside_votes(fields).items():
        sources[name] = [*(sources.get(name) or ()), *votes]
    return _Items(entities, key, sources, _link_items(fields), soft_sources)


def _source_items(fields: Mapping[str, Any]) -> tuple[dict[str, list[Any] | None], dict[str, Mapping[str, Any]]]:
    """The spans of sources, and the soft labels of others, for which no span stands among the spans."""
    sources: dict[str, list[Any] | None] = {}
    soft: dict[str, Mapping[str, Any]] = {}
    for key in _SOURCE_KEYS:
        value = fields.get(key)
        if value is None or (key == "spans" and isinstance(value, list)):
            continue
        if not isinstance(value, dict):
            raise FormatError(f"{key}: must be an object with a list of spans for each source, not {_kind(value)}")
        for name, items in value.items():
            if isinstance(items, dict) and items:
                sources[name], soft[name] = [], items
            else:
                sources[name] = _list_or_null(f"source {name!r}", items)
    return sources, soft


def _outside_votes(fields: Mapping[str, Any]) -> dict[str, list[Any]]:
    """By source the stretches that are no entity, as spans of type O."""
    votes = fields.get("votes_o")
    if votes is None:
        return {}
    if not isinstance(votes, dict):
        raise FormatError(f"votes_o: must be an object with a list of [start, end] for each source, not {_kind(votes)}")
    for name, items in votes.items():
        if not isinstance(items, list) or not all(isinstance(item, list) and len(item) in (2, 3) for item in items):
            raise FormatError(f"votes_o of source {name!r}: must be a list of [start, end]")
    return {name: [[*item[:2], OUTSIDE, *item[2:]] for item in items] for name, items in votes.items()}


def _link_items(fields: Mapping[str, Any]) -> dict[str, list[Any] | None]:
    value = fields.get("links")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FormatError(f"links: must be an object with a list of spans for each rule, not {_kind(value)}")
    links: dict[str, list[Any] | None] = {}
    for name, given in value.items():
        items = _list_or_null(f"link {name!r}", given)
        typed = [[*item, "same"] if isinstance(item, list) and len(item) == 2 else item for item in items or ()]
        links[name] = None if items is None else typed
    return links


def _list_or_null(what: str, items: object) -> list[Any] | None:
    """What an annotator says: spans, or null if it did not run."""
    if items is None or isinstance(items, list):
        return items
    raise FormatError(f"{what}: must be a list of spans or null, not {_kind(items)}")


def _laid(what: str, items: list[Any] | None, tokens: list[str]) -> list[Span] | None:
    """Spans that count the given tokens."""
    if items is None:
        return None
    try:
        return token_spans(items, tokens)
    except (FormatError, AlignmentError) as error:
        raise type(error)(f"{what}: {error}") from None


def _words(fields: Mapping[str, Any]) -> tuple[list[str], str | None, Offsets | None]:
    """The given tokens, their text if there is one, and their places in it."""
    text, tokens, offsets = fields.get("text"), fields["tokens"], fields.get("offsets")
    if text is not None and not isinstance(text, str):
        raise FormatError(f"text: must be a string, not {_kind(text)}")
    if not isinstance(tokens, list) or not {*map(type, tokens)} <= {str}:
        objects = isinstance(tokens, list) and any(isinstance(token, dict) for token in tokens)
        hint = ". Objects are tokens of Prodigy: read with the format 'prodigy'" if objects else ""
        raise FormatError(f"tokens: must be a list of strings, not {_kind(tokens)}{hint}")
    if text is None:
        return tokens, None, None
    return tokens, text, locate(tokens, text) if offsets is None else _checked_offsets(offsets, tokens, text)


def _probabilities(fields: Mapping[str, Any]) -> object:
    """The rows of the record's own soft labels, None if it has none."""
    return next((fields[key] for key in _PROBABILITY_KEYS if fields.get(key) is not None), None)


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
