"""Spans as files spell them: lists `[start, end, type]` or `[start, end, type, score]`, and mappings with names.

In a mapping the names are `start` or `start_offset`, `end` or `end_offset`, `label` or `type`, and if there is more,
`score` and `text` (what the span covers, which is checked).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tagweave.annotations import Span
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats.problems import Problems
from tagweave.formats.words import Alignment, Offsets, align, code_points_of_utf16

OffsetUnit = Literal["codepoint", "utf16"]
"""What character offsets count: code points as in Python, or UTF-16 units as in JavaScript and Java."""

BadSpans = Literal["report", "raise"]
"""What a span of characters does that is not in the text: it is left out and reported, or it is an error."""


class _Raw(NamedTuple):
    start: int
    end: int
    type: str
    score: float | None
    surface: str | None


def _raw(item: object) -> _Raw:
    """A span as it stands in a file.

    Raises:
        FormatError: it is no span.
    """
    surface = None
    if isinstance(item, dict):
        start, end = item.get("start", item.get("start_offset")), item.get("end", item.get("end_offset"))
        name, score, surface = item.get("label", item.get("type")), item.get("score"), item.get("text")
    elif isinstance(item, list) and len(item) in (3, 4):
        start, end, name, score = item if len(item) == 4 else (*item, None)
    else:
        raise FormatError(f"{_shown(item)} is no span: [start, end, type] or [start, end, type, score] is expected")
    if type(start) is not int or type(end) is not int:
        raise FormatError(f"span {_shown(item)}: start and end must be whole numbers")
    if not isinstance(name, str) or not name:
        raise FormatError(f"span {_shown(item)}: the entity type must be a name")
    if score is not None and (type(score) not in (int, float) or not 0 <= score <= 1):
        raise FormatError(f"span {_shown(item)}: the score must be a probability")
    if surface is not None and not isinstance(surface, str):
        raise FormatError(f"span {_shown(item)}: its text must be a string")
    return _Raw(start, end, name, None if score is None else float(score), surface)


def _shown(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _once(spans: list[Span]) -> list[Span]:
    """Exact doubles count once."""
    return spans if len(spans) < 2 or len(spans) == len(set(spans)) else list(dict.fromkeys(spans))


def token_spans(items: Iterable[Any], tokens: Sequence[str]) -> list[Span]:
    """Spans that count tokens.

    Raises:
        FormatError: an item is no span.
        AlignmentError: a span does not lie within the tokens, or does not cover the text that it says.

    >>> token_spans([[0, 2, "PER"], [0, 2, "PER"]], ["Ada", "Lovelace"])
    [Span(start=0, end=2, type='PER', score=None)]
    """
    length = len(tokens)
    spans = []
    for item in items:
        if type(item) is list and len(item) == 3:  # by far the most frequent, so not through `_raw`
            start, end, name = item
            if type(start) is int and type(end) is int and type(name) is str and name and 0 <= start < end <= length:
                spans.append(Span(start, end, name, None))
                continue
        start, end, name, score, surface = _raw(item)
        if not 0 <= start < end <= length:
            raise AlignmentError(f"span {_shown(item)} does not lie within the {length} tokens")
        if surface is not None and _squeezed(surface) != _squeezed("".join(tokens[start:end])):
            raise AlignmentError(
                f"span {_shown(item)} covers the tokens {list(tokens[start:end])}. Spans count tokens where a record "
                "has tokens: does it count characters?"
            )
        spans.append(Span(start, end, name, score))
    return _once(spans)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@dataclass(frozen=True)
class CharacterSpans:
    """Turns spans that count characters into spans of tokens.

    Attributes:
        problems: where repairs are noted.
        alignment: what becomes of spans that begin or end inside a token.
        offset_unit: what their offsets count.
        bad_spans: what a span does that is not in the text.
    """

    problems: Problems
    alignment: Alignment = "expand"
    offset_unit: OffsetUnit = "codepoint"
    bad_spans: BadSpans = "report"

    def read(self, items: Iterable[Any], document: str, text: str, offsets: Offsets) -> list[Span]:
        """The spans of one document.

        Raises:
            FormatError, AlignmentError: a span is not in the text and `bad_spans` is `raise`, or a span covers
                something else than the text that it says.
        """
        places = code_points_of_utf16(text) if self.offset_unit == "utf16" else None
        spans = []
        for item in items:
            try:
                raw = self._placed(_raw(item), text, places)
            except DataError as error:
                if self.bad_spans == "raise":
                    raise
                self.problems.add("invalid_span", "spans left out that are not in the text", document, str(error))
                continue
            _check_surface(raw, text)
            span = self._aligned(self._trimmed(raw, document, text), document, text, offsets)
            if span is not None:
                spans.append(span)
        return _once(spans)

    def _placed(self, raw: _Raw, text: str, places: list[int] | None) -> _Raw:
        """The span in code points, checked to lie in the text."""
        limit = len(text) if places is None else len(places) - 1
        if not 0 <= raw.start < raw.end <= limit:
            raise AlignmentError(f"span {[*raw[:3]]} does not lie within the {limit} characters of the text")
        if places is None:
            return raw
        start, end = places[raw.start], places[raw.end]
        if start < 0 or end < 0:
            raise AlignmentError(f"span {[*raw[:3]]} begins or ends inside a UTF-16 pair")
        return raw._replace(start=start, end=end)

    def _trimmed(self, raw: _Raw, document: str, text: str) -> _Raw | None:
        """The span without blanks at its edges, None if nothing is left."""
        start, end = raw.start, raw.end
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start >= end:
            title = "spans left out that cover only blanks"
            self.problems.add("whitespace_only", title, document, f"span {[*raw[:3]]}")
            return None
        if (start, end) != (raw.start, raw.end):
            title = "spans freed from blanks at their edges"
            self.problems.add("trimmed", title, document, f"span {[*raw[:3]]} is now {[start, end]}")
        return raw._replace(start=start, end=end)

    def _aligned(self, raw: _Raw | None, document: str, text: str, offsets: Offsets) -> Span | None:
        if raw is None:
            return None
        tokens, exact = align(raw.start, raw.end, offsets, self.alignment)
        if not exact:
            what = f"span {[*raw[:3]]}, {text[raw.start : raw.end]!r}, begins or ends inside a token"
            if tokens is None:
                done = "is left out"
            else:
                first, last = offsets[tokens[0]][0], offsets[tokens[1] - 1][1]
                done = f"is now {[first, last]}, {text[first:last]!r}"
            title = f"spans that begin or end inside a token (alignment {self.alignment})"
            self.problems.add("misaligned", title, document, f"{what}; it {done}")
        return None if tokens is None else Span(*tokens, raw.type, raw.score)


def _check_surface(raw: _Raw, text: str) -> None:
    covered = text[raw.start : raw.end]
    if raw.surface is not None and _squeezed(raw.surface) != _squeezed(covered):
        raise AlignmentError(
            f"span {[*raw[:3]]} says that it covers {raw.surface!r}, but there is {covered!r}. If its offsets count "
            "UTF-16 units, read with offset_unit='utf16'"
        )
