"""The JSON of Argilla: records with a text, responses of people and suggestions of models to questions on spans.

::

    [{"id": "d", "fields": {"text": "Ada moved"},
      "suggestions": {"spans": {"value": [{"start": 0, "end": 3, "label": "PER"}], "score": [0.9], "agent": "hmm"}},
      "responses": {"spans": [{"value": [{"start": 0, "end": 3, "label": "PER"}], "user_id": "..."}]}}]

Reading
    Entities are the first response to the question `spans` (another by `question`), or the one by `user_id`.
    Suggestions are sources, called like their questions; with `entities="suggestions"` those to the question `spans`
    are the entities instead, and responses do not count. A question without suggestion is a source that did not run.

Writing
    Entities are suggestions to the question `spans`, and the spans of each source are to a question called like it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError, UsageError
from tagweave.formats.base import AnyPath, Format
from tagweave.formats.losses import held_votes, report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.standoff import spans_in_text, text_and_places
from tagweave.formats.streams import shown_name
from tagweave.formats.tool_files import is_list_with, tool_documents, write_tool_records
from tagweave.formats.words import Offsets

_QUESTION = re.compile(r"(?=.*[a-z0-9])[a-z0-9_-]+")
"""What Argilla allows as the name of a question."""


@dataclass(frozen=True)
class ReadArgilla(ReadRecords):
    """Options of reading the JSON of Argilla."""

    field: str = "text"
    """Name of the field with the text."""
    question: str = "spans"
    """The question on entities."""
    entities: Literal["responses", "suggestions"] = "responses"
    """What the entities are."""
    user_id: str | None = None
    """The person whose responses count; None takes the first response to each record."""


@dataclass(frozen=True)
class WriteArgilla:
    """Options of writing the JSON of Argilla."""

    question: str = "spans"
    """The question on entities."""
    entities_as: Literal["suggestions", "responses"] = "suggestions"
    """Whether entities are suggestions to be corrected, or responses that people gave."""


def argilla_documents(path: AnyPath, options: ReadArgilla, problems: Problems) -> Iterator[Document]:
    """The documents of an export of Argilla; see the module's text for what becomes of responses and suggestions.

    Raises:
        FormatError, AlignmentError: a record is wrong; the message names file, item or line, and id.
    """
    return tool_documents(path, _Translator(options, problems).record, options, problems)


@dataclass(frozen=True)
class _Translator:
    """Turns records of Argilla into ours."""

    options: ReadArgilla
    problems: Problems

    def record(self, item: dict[str, Any]) -> Mapping[str, Any]:
        fields = _object(item, "fields")
        text = fields.get(self.options.field)
        if not isinstance(text, str):
            keys = ", ".join(map(repr, fields)) or "nothing"
            raise FormatError(f"fields has no text under {self.options.field!r}, but {keys}: name another by 'field'")
        record: dict[str, Any] = {"text": text}
        if item.get("id") is not None:
            record["id"] = item["id"]
        group = _object(item, "metadata").get("group")
        if isinstance(group, str):
            record["group"] = group
        suggested = {
            question: _scored(question, suggestion)
            for question, suggestion in _object(item, "suggestions").items()
            if self._is_about_spans(question, suggestion, item)
        }
        if self.options.entities == "suggestions":
            record["entities"] = suggested.pop(self.options.question, None)
        else:
            record["entities"] = self._responded(item)
        record["sources"] = suggested
        return record

    def _is_about_spans(self, question: str, suggestion: object, item: Mapping[str, Any]) -> bool:
        if not isinstance(suggestion, dict) or "value" not in suggestion:
            raise FormatError(f"suggestions.{question}: an object with 'value' is expected")
        value = suggestion["value"]
        if isinstance(value, list) and all(isinstance(span, dict) for span in value):
            return True
        title = "suggestions left out that are not about spans"
        self.problems.add("other_questions", title, str(item.get("id")), f"question {question!r}")
        return False

    def _responded(self, item: Mapping[str, Any]) -> list[Any] | None:
        """The spans of the response that counts, None if there is none."""
        responses = _object(item, "responses").get(self.options.question) or []
        if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
            raise FormatError(f"responses.{self.options.question}: must be a list of objects")
        if self.options.user_id is not None:
            responses = [response for response in responses if response.get("user_id") == self.options.user_id]
        if not responses:
            return None
        if len(responses) > 1:
            title = "responses left out of records that have several"
            message = "the first counts, or name a person by 'user_id'"
            self.problems.add("several_responses", title, str(item.get("id")), message, len(responses) - 1)
        value = responses[0].get("value")
        if not isinstance(value, list):
            raise FormatError(f"responses.{self.options.question}: 'value' must be a list of spans")
        return value


def _object(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = fields.get(key)
    if value is None and key != "fields":
        return {}
    if not isinstance(value, dict):
        raise FormatError(f"{key}: must be an object")
    return value


def _scored(question: str, suggestion: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The spans of a suggestion, with their scores if each has one."""
    spans, scores = suggestion["value"], suggestion.get("score")
    if not isinstance(scores, list):
        return [*spans]
    if len(scores) != len(spans):
        raise AlignmentError(f"suggestions.{question}: {len(spans)} spans, but {len(scores)} scores")
    return [{**span, "score": score} for span, score in zip(spans, scores, strict=True)]


def write_argilla(corpus: Corpus, path: AnyPath, options: WriteArgilla) -> None:
    """Write records, as a list or, if the name does not end in `.json`, one a line; see the module's text.

    Raises:
        UsageError: a source is called like the question on entities.
    """
    if options.question in corpus.sources:
        raise UsageError(f"a source is called {options.question!r} like the question: name another 'question'")
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "records of Argilla", ("entities", "sources", "scores", "groups"))
    held = held_votes(corpus, problems, "records of Argilla", ("scores", "not_run", "overlaps"))
    for name in (options.question, *held.sources):
        if not _QUESTION.fullmatch(name):
            title = "names that Argilla does not allow for questions (small letters, digits, - and _)"
            problems.add("question_name", title, None, repr(name))
    write_tool_records(path, (_record(document, options, problems) for document in held))
    problems.warn()


def _record(document: Document, options: WriteArgilla, problems: Problems) -> dict[str, Any]:
    text, places = text_and_places(document, problems)
    suggestions = {
        name: _suggestion(_values(spans, text, places, document.id, problems), name, document.id, problems)
        for name, spans in document.sources.items()
        if spans is not None
    }
    responses: dict[str, Any] = {}
    if document.entities is not None:
        values = _values(document.entities, text, places, document.id, problems)
        if options.entities_as == "suggestions":
            suggestions[options.question] = _suggestion(values, "entities", document.id, problems)
        else:
            _report_scores(values, document.id, problems)
            responses[options.question] = [{"value": [span for span, _ in values]}]
    return {
        "id": document.id,
        "fields": {"text": text},
        "metadata": {} if document.group is None else {"group": document.group},
        "suggestions": suggestions,
        "responses": responses,
    }


Value = tuple[dict[str, Any], float | None]


def _values(spans: Sequence[Span], text: str, places: Offsets, document: str, problems: Problems) -> list[Value]:
    """Spans as Argilla spells them, and their scores."""
    found = spans_in_text(spans, text, places, document, problems)
    return [({"start": start, "end": end, "label": name}, score) for start, end, name, score in found]


def _suggestion(values: list[Value], agent: str, document: str, problems: Problems) -> dict[str, Any]:
    """A suggestion; it has scores only if all spans have one."""
    scores = [round(score, 4) for _, score in values if score is not None]
    whole = len(scores) == len(values)
    if not whole:
        _report_scores(values, document, problems)
    return {"value": [span for span, _ in values], "score": scores if whole and scores else None, "agent": agent}


def _report_scores(values: list[Value], document: str, problems: Problems) -> None:
    """Note scores that are left out: of responses, and of suggestions in which not every span has one."""
    count = sum(score is not None for _, score in values)
    if count:
        title = "scores left out, of responses or where not every span has one"
        problems.add("vote_scores", title, document, f"{count} of {len(values)} spans", count)


ARGILLA = Format(
    name="argilla",
    suffixes=(".json",),
    documents=argilla_documents,
    read_options=ReadArgilla,
    recognises=lambda path: is_list_with(path, "fields"),
    write=write_argilla,
    write_options=WriteArgilla,
)
