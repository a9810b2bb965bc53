"""The JSON lines of Prodigy: examples with tokens and spans, as `db-out` writes and `db-in` reads them.

::

    {"text": "Ada moved", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": true}, ...],
     "spans": [{"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}], "answer": "accept"}

`start` and `end` count characters, half-open; `token_start` and `token_end` are the first and the last token. Examples
that were rejected or ignored are left out and counted. An accepted example without spans has no entities to be found;
one without an answer and without spans has none to speak of.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.spans import CharacterSpans
from tagweave.formats.standoff import spans_in_text, text_and_places
from tagweave.formats.streams import shown_name
from tagweave.formats.tool_files import tool_documents, write_tool_records
from tagweave.formats.whole_text import pieces
from tagweave.formats.words import Offsets

ACCEPTED = "accept"


def prodigy_documents(path: AnyPath, options: ReadRecords, problems: Problems) -> Iterator[Document]:
    """The documents of an export of Prodigy.

    Raises:
        FormatError, AlignmentError: an example is wrong; the message names file, line and id.
    """
    return tool_documents(path, _Translator(options, problems).record, options, problems)


@dataclass(frozen=True)
class _Translator:
    """Turns examples into records."""

    options: ReadRecords
    problems: Problems

    def record(self, example: dict[str, Any]) -> Mapping[str, Any] | None:
        answer = example.get("answer")
        if answer not in (ACCEPTED, None):
            title = "examples left out that were not accepted"
            self.problems.add("not_accepted", title, _name(example), f"the answer is {answer!r}")
            return None
        record: dict[str, Any] = {key: example[key] for key in ("id", "text", "group") if key in example}
        spans = example.get("spans")
        if spans is None and answer == ACCEPTED:
            spans = []
        if spans is not None and not isinstance(spans, list):
            raise FormatError("spans: must be a list")
        tokens = example.get("tokens")
        if tokens is None:
            return record if spans is None else {**record, "spans": spans}
        return {**record, **self._tokenized(example, _checked_tokens(tokens), spans)}

    def _tokenized(
        self, example: dict[str, Any], tokens: list[dict[str, Any]], spans: list[Any] | None
    ) -> dict[str, Any]:
        """Tokens but for blanks, their places, and the spans over them."""
        text = example.get("text")
        if not isinstance(text, str):
            raise FormatError("text: must be a string")
        kept = [token for token in tokens if token["text"].strip()]
        offsets: Offsets = [(token["start"], token["end"]) for token in kept]
        fields: dict[str, Any] = {"tokens": [token["text"] for token in kept], "offsets": [[*pair] for pair in offsets]}
        if spans is not None:
            options = self.options
            reader = CharacterSpans(self.problems, options.alignment, "codepoint", options.bad_spans)
            items = [_with_characters(span, tokens) for span in spans]
            found = reader.read(items, _name(example) or "", text, offsets)
            fields["entities"] = [[*span] for span in found]
        return fields


def _name(example: Mapping[str, Any]) -> str | None:
    return str(example["id"]) if "id" in example else None


def _checked_tokens(tokens: object) -> list[dict[str, Any]]:
    if not isinstance(tokens, list):
        raise FormatError("tokens: must be a list")
    for token in tokens:
        good = isinstance(token, dict) and isinstance(token.get("text"), str)
        if not good or type(token.get("start")) is not int or type(token.get("end")) is not int:
            raise FormatError(f"tokens: {str(token)[:60]} is no object with text, start and end")
    return tokens


def _with_characters(span: object, tokens: list[dict[str, Any]]) -> object:
    """A span with its place in characters, checked against its tokens if it tells both."""
    if not isinstance(span, dict) or span.get("token_start") is None or span.get("token_end") is None:
        return span
    first, last = span["token_start"], span["token_end"]
    if type(first) is not int or type(last) is not int or not 0 <= first <= last < len(tokens):
        raise AlignmentError(f"span {span} does not lie within the {len(tokens)} tokens")
    start, end = tokens[first]["start"], tokens[last]["end"]
    if span.get("start", start) != start or span.get("end", end) != end:
        raise AlignmentError(
            f"span {span}: its tokens are at {[start, end]}. 'token_end' is the last token, not the one after it"
        )
    return {**span, "start": start, "end": end}


def write_prodigy(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write examples for Prodigy; those whose entities are known are accepted ones.

    What stands between tokens, more than one blank, is written as tokens too, since Prodigy knows no other text.

    Raises:
        AlignmentError: the tokens of a document overlap.
    """
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "examples of Prodigy", ("entities", "groups", "scores"))
    write_tool_records(path, (_example(document, path, problems) for document in corpus))
    problems.warn()


def _example(document: Document, path: AnyPath, problems: Problems) -> dict[str, Any]:
    text, places = text_and_places(document, problems)
    try:
        parts = pieces(text, places)
    except AlignmentError as error:
        raise placed(error, f"{shown_name(path)}, document {document.id!r}") from None
    example: dict[str, Any] = {
        "id": document.id,
        "text": text,
        "tokens": [
            {"text": text[part.start : part.end], "start": part.start, "end": part.end, "id": number, "ws": part.blank}
            for number, part in enumerate(parts)
        ],
    }
    if document.group is not None:
        example["group"] = document.group
    if document.entities is not None:
        numbers = {part.token: number for number, part in enumerate(parts)}
        example["spans"] = [
            {
                "start": start,
                "end": end,
                "token_start": numbers[span.start],
                "token_end": numbers[span.end - 1],
                "label": name,
                **({} if score is None else {"score": round(score, 4)}),
            }
            for span in document.entities
            for start, end, name, score in spans_in_text([span], text, places, document.id, problems)
        ]
        example["answer"] = ACCEPTED
    return example


PRODIGY = Format(
    name="prodigy",
    suffixes=(),
    documents=prodigy_documents,
    read_options=ReadRecords,
    write=write_prodigy,
)
