"""Places of strings in a text: what a language model or a file says is an entity, without saying where.

A string is looked for in three ways, and the first that finds it anywhere decides: as it is, but for blanks and for
forms of quotation marks and dashes; also without case and accents; and last by similarity. What is found covers whole
tokens, so `York` is not found in `Yorkshire`.
"""

import json
import unicodedata
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import TagweaveWarning
from tagweave.formats.words import Alignment, Offsets, tokenize
from tagweave.sources.base import Source, tokens_at

Stretch = tuple[int, int]
"""First character and first character after."""

Occurrences = Literal["all", "listed"]
"""How often a string counts: at all its places in the text, or as often as it is listed, from left to right."""

SIMILARITY = 90.0
"""How alike two strings must be by default to be taken for the same, of 100."""

_SHORTEST = 4
"""Shorter strings must have the right case; `US` is not `us`."""


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds strings in one text.

    Args:
        text: the text.
        places: start and end of each token in it.
        whole: whether what is found must begin and end with a token; otherwise it is enough that no letter or digit
            goes on beyond it.
        similarity: how alike strings must be in the last way, of 100: twice the letters that they have in common, in
            order, as a share of the letters of both. Digits must be the same. Above 100 there is no such way.

    >>> finder = Finder.of("Ms. O\u2019Hara left New  York. New York wept.")
    >>> finder.text[slice(*finder.first("O'Hara"))]
    'O\u2019Hara'
    >>> finder.all("New York"), finder.first("New York", taken=[(16, 25)]), finder.first("York Times")
    ([(16, 25), (27, 35)], (27, 35), None)
    """

    text: str
    places: Offsets
    whole: bool = True
    similarity: float = SIMILARITY

    @classmethod
    def of(cls, text: str, *, whole: bool = True, similarity: float = SIMILARITY) -> "Finder":
        """A finder in a text that is not yet cut into tokens."""
        return cls(text, tokenize(text), whole, similarity)

    def first(self, surface: str, taken: Sequence[Stretch] = ()) -> Stretch | None:
        """The first place of a string that shares no character with those that are taken; None if there is none."""
        return next((place for place in self._places(surface) if _is_free(place, taken)), None)

    def all(self, surface: str, taken: Sequence[Stretch] = ()) -> list[Stretch]:
        """All places of a string, from left to right, that share no character with each other or with those taken."""
        found: list[Stretch] = []
        for place in self._places(surface):
            if _is_free(place, taken) and (not found or found[-1][1] <= place[0]):
                found.append(place)
        return found

    def _places(self, surface: str) -> list[Stretch]:
        found = self._in_folded(surface, self._plain, loose=False)
        if not found and len(surface.strip()) >= _SHORTEST:
            found = self._in_folded(surface, self._loose, loose=True) or self._similar(surface)
        return found

    def _fitting(self, places: Iterable[Stretch]) -> Iterator[Stretch]:
        for start, end in places:
            inside = (start not in self._starts, end not in self._ends)
            if not any(inside) or not self.whole and not self._cuts(start) and not self._cuts(end):
                yield start, end

    def _cuts(self, position: int) -> bool:
        """Whether a letter or digit stands on both sides."""
        return 0 < position < len(self.text) and all(sign.isalnum() for sign in self.text[position - 1 : position + 1])

    @cached_property
    def _starts(self) -> frozenset[int]:
        return frozenset(start for start, _ in self.places)

    @cached_property
    def _ends(self) -> frozenset[int]:
        return frozenset(end for _, end in self.places)

    @cached_property
    def _plain(self) -> "_Folded":
        return _fold(self.text, loose=False)

    @cached_property
    def _loose(self) -> "_Folded":
        return _fold(self.text, loose=True)

    def _in_folded(self, surface: str, folded: "_Folded", *, loose: bool) -> list[Stretch]:
        wanted = _fold(surface, loose=loose).text
        found = (folded.origin(start, end) for start, end in _find(folded.text, wanted)) if wanted else ()
        return list(self._fitting(place for place in found if place is not None))

    def _similar(self, surface: str) -> list[Stretch]:
        """The stretches of tokens that are most like a string, if they are like enough; they may overlap."""
        from rapidfuzz import fuzz, process

        wanted = _fold(surface, loose=True).text
        if not wanted or self.similarity > 100:
            return []
        windows = [window for window in self._windows(len(wanted)) if _digits(window[0]) == _digits(wanted)]
        choices = dict.fromkeys(text for text, _ in windows)
        best = process.extractOne(wanted, list(choices), scorer=fuzz.ratio, score_cutoff=self.similarity)
        return [] if best is None else [place for text, place in windows if text == best[0]]

    def _windows(self, length: int) -> Iterator[tuple[str, Stretch]]:
        """Stretches of tokens, with their text, that are long enough and short enough to be alike."""
        share = max(self.similarity, 1.0) / 100
        least, most = length * share / (2 - share), length * (2 - share) / share
        for first, (start, _) in enumerate(self.places):
            begin = self._bounds[first][0]
            for last in range(first, len(self.places)):
                text = self._loose.text[begin : self._bounds[last][1]].strip()
                if len(text) > most:
                    break
                if len(text) >= least:
                    yield text, (start, self.places[last][1])

    @cached_property
    def _bounds(self) -> list[Stretch]:
        """Where each token lies in the loosely folded text."""
        origins = self._loose.origins
        return [(bisect_left(origins, start), bisect_left(origins, end)) for start, end in self.places]


def _is_free(place: Stretch, taken: Iterable[Stretch]) -> bool:
    return all(end <= place[0] or place[1] <= start for start, end in taken)


def _find(text: str, wanted: str) -> Iterator[Stretch]:
    start = text.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = text.find(wanted, start + 1)


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdecimal())


# Folding


@dataclass(frozen=True, eq=False)
class _Folded:
    """A text in which what may differ is alike.

    Attributes:
        text: the folded text.
        origins: for each of its characters, where the character stands that it was made of.
        source: the text as it was.
    """

    text: str
    origins: list[int]
    source: str

    def origin(self, start: int, end: int) -> Stretch | None:
        """The characters that a stretch was made of, with accents that follow; None if it has a part of one."""
        inside = (start > 0 and self.origins[start - 1] == self.origins[start]) or (
            end < len(self.origins) and self.origins[end - 1] == self.origins[end]
        )
        if inside:
            return None
        last = self.origins[end - 1] + 1
        while last < len(self.source) and unicodedata.combining(self.source[last]):
            last += 1
        return self.origins[start], last


def _fold(text: str, *, loose: bool) -> _Folded:
    signs: list[str] = []
    origins: list[int] = []
    blank = False
    for place, sign in enumerate(text):
        if sign.isspace():
            blank = True
            continue
        made = _made_of(sign, loose)
        if not made:
            continue
        if blank and signs and signs[-1].isalnum() and made[0].isalnum():
            signs.append(" ")
            origins.append(place - 1)
        blank = False
        signs.extend(made)
        origins.extend([place] * len(made))
    return _Folded("".join(signs), origins, text)


_ALIKE = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'"),
    **dict.fromkeys('\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"', "''"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
}


@cache
def _made_of(sign: str, loose: bool) -> str:
    """What a character becomes; nothing for what cannot be seen."""
    if sign in _ALIKE:
        return _ALIKE[sign]
    if unicodedata.category(sign) == "Cf":
        return ""
    if not loose:
        return unicodedata.normalize("NFKC", sign).replace(" ", "")
    parts = unicodedata.normalize("NFKD", sign).casefold().replace(" ", "")
    return "".join(part for part in parts if not unicodedata.combining(part))


# Votes


Named = tuple[str, str] | tuple[str, str, float | None]
"""A string with its type, and a probability if it has one."""


def place(
    document: Document,
    named: Iterable[Named],
    *,
    occurrences: Occurrences = "all",
    alignment: Alignment = "strict",
    similarity: float = SIMILARITY,
) -> tuple[list[Span], list[tuple[str, str]]]:
    """The votes that named strings stand for, and the strings that have no place.

    Longer strings take their places first, so that `York` is not found in `New York` if that is named too. Different
    types may share a place.

    Args:
        document: a document with text, as sources get it.
        named: strings with their types, see `Named`.
        occurrences: `all` takes all places of a string, `listed` as many as it is named, from left to right.
        alignment: what becomes of strings that begin or end inside a token: `strict` does not find them there.
        similarity: see `Finder`.

    >>> document = Document("d", ["New", "York", "or", "York"], "New York or York", [(0, 3), (4, 8), (9, 11), (12, 16)])
    >>> place(document, [("York", "LOC"), ("New York", "LOC"), ("Oslo", "LOC")])[0]
    [Span(start=0, end=2, type='LOC', score=None), Span(start=3, end=4, type='LOC', score=None)]
    """
    finder = Finder(document.text or "", list(document.characters or ()), alignment == "strict", similarity)
    ordered = sorted(named if occurrences == "listed" else dict.fromkeys(named), key=lambda item: -len(item[0]))
    taken: dict[str, list[Stretch]] = {}
    spans: list[Span] = []
    lost: list[tuple[str, str]] = []
    for surface, name, *score in ordered:
        before = taken.setdefault(name, [])
        if occurrences == "all":
            found = finder.all(surface, before)
        else:
            first = finder.first(surface, before)
            found = [] if first is None else [first]
        before.extend(found)
        tokens = [tokens_at(document, *stretch, alignment) for stretch in found]
        spans.extend(Span(*pair, name, *score) for pair in tokens if pair is not None)
        within_longer = not found and occurrences == "all" and finder.first(surface) is not None
        if not any(tokens) and not within_longer:
            lost.append((surface, name))
    return sorted(dict.fromkeys(spans), key=lambda span: span[:3]), lost


@dataclass
class Unaligned:
    """What a source named that has no place in the text; said once, counted always.

    Args:
        source: the source; its counter `not in the text` is raised.
        path: a JSON lines file to which each case is appended, or None.
    """

    source: Source
    path: Path | None = None
    _said: bool = field(default=False, init=False)

    def add(self, document: Document, lost: Sequence[tuple[str, str]]) -> None:
        """Note strings, with their types, that have no place in a document."""
        self.source.counters["not in the text"] += len(lost)
        if lost and not self._said:
            self._said = True
            surface, name = lost[0]
            written = "" if self.path is None else f"; all are in {self.path}"
            warnings.warn(
                TagweaveWarning(
                    f"source {self.source.name!r} names what is not in the text, which is left out (first: document "
                    f"{document.id!r}, {name} {surface!r}){written}"
                ),
                stacklevel=2,
            )
        if lost and self.path is not None:
            case = {"source": self.source.name, "id": document.id}
            lines = [json.dumps({**case, "label": name, "text": text}, ensure_ascii=False) for text, name in lost]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
