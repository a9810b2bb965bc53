"""Mentions beside a text: places counted in characters, perhaps in several pieces, with the words that they cover.

What a file says that a mention covers is compared with the text at its place, so that no span is ever shifted unseen:

- Blanks do not count: files often have one blank where the text has a line end.
- Where only signs other than letters and digits differ, one for one, the mention is kept and reported.
- Anything else is an error.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions, text_documents
from tagweave.formats.words import Offsets, code_points_of_utf16, locate

Discontinuous = Literal["envelope", "fragments"]
"""What a mention in several pieces becomes: one span from the first to the last, or one span a piece. Pieces with only
blanks or line ends between them are one piece."""

LONGEST_NUMBER = 15
"""Digits of the longest number that is taken for an offset."""


class Mention(NamedTuple):
    """A mention as it stands in a file.

    Attributes:
        pieces: start and end of each piece in code points, half-open, in order.
        type: its entity type.
        surface: what the file says that it covers, if it says so.
        name: what messages call it, e.g. `T3` or `the mention in line 12`.
    """

    pieces: tuple[tuple[int, int], ...]
    type: str
    surface: str | None
    name: str


def mention_documents(
    name: str,
    text: str,
    mentions: Iterable[Mention] | None,
    options: TextOptions,
    problems: Problems,
    *,
    discontinuous: Discontinuous = "envelope",
    hint: str = "",
) -> Iterator[Document]:
    """The documents of a text with mentions: one, or one for each sentence.

    Args:
        name: id of the text.
        text: the text.
        mentions: its mentions, None if nobody looked for any.
        options: how the text is cut, what places count, and what one does that is not in the text.
        problems: where is noted what is not as it should be.
        discontinuous: what a mention in several pieces becomes.
        hint: what an error about a mention that is somewhere else may tell in the end.

    Raises:
        AlignmentError: a mention says that it covers something else than it does.
        LabelError: the type of a mention is none.

    >>> mention = Mention(((0, 3), (13, 17)), "THING", "red pens", "T1")
    >>> [document] = mention_documents(
    ...     "d", "red and blue pens", [mention], TextOptions(), Problems("f"), discontinuous="fragments")
    >>> [span[:3] for span in document.entities]
    [(0, 1, 'THING'), (3, 4, 'THING')]
    """
    placing = _Placing(text, name, options, problems, discontinuous, hint)
    spans = None if mentions is None else [span for mention in mentions for span in placing.spans(mention)]
    return text_documents(name, text, replace(options, offset_unit="codepoint"), problems, entities=spans)


def units_hint(text: str, options: TextOptions, hint: str = "") -> str:
    """What to do about places that are not in a text: what offsets count may be another unit."""
    if options.offset_unit == "codepoint" and any(ord(character) > 0xFFFF for character in text):
        return f"If offsets count UTF-16 units, read with offset_unit='utf16'. {hint}".strip()
    return hint or "Offsets must count characters of this very text"


def refuse_or_report(
    error: AlignmentError, surface: str | None, document: str, options: TextOptions, problems: Problems
) -> None:
    """Leave out a mention that is not in the text, with a note.

    Raises:
        AlignmentError: the mention says what it covers, so its place must be wrong, or the options want an error.
    """
    if surface is not None or options.bad_spans == "raise":
        raise error
    problems.add("invalid_span", "spans left out that are not in the text", document, str(error))


@dataclass(frozen=True)
class _Placing:
    """Places the mentions of one text."""

    text: str
    document: str
    options: TextOptions
    problems: Problems
    discontinuous: Discontinuous
    hint: str

    def spans(self, mention: Mention) -> list[list[int | str]]:
        """The spans `[start, end, type]` of a mention, in code points."""
        try:
            placed = self._in_code_points(mention)
        except AlignmentError as error:
            refuse_or_report(error, mention.surface, self.document, self.options, self.problems)
            return []
        self._check(placed)
        return [[start, end, mention.type] for start, end in self._policy(placed)]

    def _in_code_points(self, mention: Mention) -> Mention:
        limit = len(self.text) if self._units is None else len(self._units) - 1
        for start, end in mention.pieces:
            if not 0 <= start < end <= limit:
                raise AlignmentError(
                    f"{mention.name}, {start} to {end}, does not lie within the {limit} characters of the text. "
                    f"{self._hint}"
                )
        units = self._units
        if units is None:
            return mention
        pieces = tuple((units[start], units[end]) for start, end in mention.pieces)
        if min(map(min, pieces)) < 0:
            raise AlignmentError(f"{mention.name}, {_shown(mention.pieces)}, begins or ends inside a UTF-16 pair")
        return mention._replace(pieces=pieces)

    @cached_property
    def _units(self) -> list[int] | None:
        return code_points_of_utf16(self.text) if self.options.offset_unit == "utf16" else None

    def _policy(self, mention: Mention) -> list[tuple[int, int]]:
        pieces = self._joined(mention.pieces)
        if len(pieces) == 1:
            return pieces
        envelope = (pieces[0][0], max(end for _, end in pieces))
        self.problems.add(
            "discontinuous",
            f"mentions in several pieces, read as {_DONE[self.discontinuous]}",
            self.document,
            f"{mention.name}, {mention.type}, {_shown(pieces)}",
        )
        return [envelope] if self.discontinuous == "envelope" else pieces

    def _joined(self, pieces: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
        """The pieces, with those that only blanks set apart made one."""
        joined = [pieces[0]]
        for (_, before), (start, end) in pairwise(pieces):
            if start > before and self.text[before:start].strip():
                joined.append((start, end))
            else:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        return joined

    def _check(self, mention: Mention) -> None:
        surface = mention.surface
        if surface is None:
            return
        first, last = mention.pieces[0][0], mention.pieces[-1][1]
        covered = " ".join(self.text[start:end] for start, end in mention.pieces)
        if _squeezed(covered) == _squeezed(surface):
            return
        several = len(mention.pieces) > 1
        if several and _letters(surface) in (_letters(covered), _letters(self.text[first:last])):
            return
        if several or not _signs_differ(covered, surface):
            raise AlignmentError(
                f"{mention.name} says that {_shown(mention.pieces)} is {surface!r}, but there is {covered!r}"
                f"{self._elsewhere(surface, first)}. {self._hint}"
            )
        title = "mentions that have other signs than the text, which counts"
        self.problems.add("surface", title, self.document, f"{mention.name}: {surface!r} stands for {covered!r}")

    @property
    def _hint(self) -> str:
        return units_hint(self.text, self.options, self.hint)

    def _elsewhere(self, surface: str, start: int) -> str:
        """Where the words of a mention are, if they are not where it says."""
        places = [match.start() for match in re.finditer(re.escape(surface), self.text)]
        if not surface or not places:
            return ""
        nearest = min(places, key=lambda place: abs(place - start))
        return f" ({surface!r} is at {nearest} to {nearest + len(surface)})"


_DONE = {"envelope": "one span from the first to the last", "fragments": "one span a piece"}


def _shown(pieces: Iterable[tuple[int, int]]) -> str:
    """Places as messages show them."""
    return " and ".join(f"{start} to {end}" for start, end in pieces)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _signs_differ(covered: str, surface: str) -> bool:
    """Whether two strings of one length have letters and digits in common, and differ in other signs only."""
    if len(covered) != len(surface) or not _letters(covered):
        return False
    return all(a == b or not (a.isalnum() or b.isalnum()) for a, b in zip(covered, surface, strict=True))


def text_and_places(document: Document, problems: Problems) -> tuple[str, Offsets]:
    """The text of a document and the places of its tokens, for writing; tokens without text are joined by blanks.

    >>> text_and_places(Document("d", ["New", "York"]), Problems("f"))
    ('New York', [(0, 3), (4, 8)])
    """
    text = document.text
    if text is None:
        text = " ".join(document.tokens)
        problems.add("no_text", "documents without text, whose tokens were joined by blanks", document.id, "no text")
    places: Offsets = list(document.characters or ())
    if document.text is None or len(places) < len(document.tokens) or any(end < 0 for _, end in places):
        places = locate(document.tokens, text)
    return text, places


def text_and_spans(document: Document, problems: Problems) -> tuple[str, list[tuple[int, int, str]]]:
    """The text of a document and its entities in characters, for writing; tokens without text are joined by blanks.

    >>> from tagweave.annotations import Span
    >>> document = Document("d", ["in", "New", "York"], entities=[Span(1, 3, "LOC")])
    >>> text_and_spans(document, Problems("f"))
    ('in New York', [(3, 11, 'LOC')])
    """
    text, places = text_and_places(document, problems)
    spans = spans_in_text(document.entities or (), text, places, document.id, problems)
    return text, [span[:3] for span in spans]


def spans_in_text(
    spans: Iterable[Span], text: str, places: Offsets, document: str, problems: Problems
) -> list[tuple[int, int, str, float | None]]:
    """Spans of tokens as start, end, type and score in characters, without those that cover only blanks.

    >>> spans_in_text([Span(0, 2, "LOC")], "New York", [(0, 3), (4, 8)], "d", Problems("f"))
    [(0, 8, 'LOC', None)]
    """
    found = []
    for first, last, name, score in spans:
        start, end = places[first][0], places[last - 1][1]
        if text[start:end].strip():
            found.append((start, end, name, score))
        else:
            problems.add("whitespace_only", "spans left out that cover only blanks", document, f"at {start}, {name}")
    return found
