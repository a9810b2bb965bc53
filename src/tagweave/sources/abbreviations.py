"""`Abbreviations`: short forms that a document defines itself, "myocardial infarction (MI)", and all their places."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources.base import Source, Votes, groups
from tagweave.sources.words import longest, votes_of

BRACKETS = {"(": ")", "[": "]"}

MOST_TOKENS = 5
MOST_CHARACTERS = 10
"""How long a short form may be; what is longer explains something."""

WITHIN_WORDS = frozenset("-/'\u2019+")


@dataclass
class Abbreviations(Source):
    """Short forms of entities that stand in brackets, and every occurrence of them.

    A short form in brackets right after an entity of an earlier source gets its type: "renal failure (RF)". So do all
    places of the same word in the document, and in the other documents of its group. Where a short form is defined more
    than once, the type that is given most often counts.

    Attributes:
        of: name of the earlier source, or names, whose entities are long forms.
        types: the types that are passed on; entities of other types are no long forms.
        letters: whether the letters of the short form must occur, in order, in the words before the bracket, the first
            one at the beginning of a word. Then "RF (renal failure)" is a definition too. Without it, a short form only
            needs a capital letter.
        long_forms: whether the words that the letters show to be the long form are voted for too. They may begin before
            or inside the entity, and so correct its beginning.

    A token such as "(MI)", which is not divided from its brackets, is not found.

    Source:
        Schwartz and Hearst (2003), A simple algorithm for identifying abbreviation definitions in biomedical text.

    >>> words = "Acute renal failure ( ARF ) is rare . ARF hurts .".split()
    >>> document = Document("d", words, sources={"heads": [Span(1, 3, "DISEASE")]})
    >>> source = Abbreviations("short", "heads", types=("DISEASE",), long_forms=True)
    >>> list(source.annotate([document]))
    [[(0, 3, 'DISEASE'), (4, 5, 'DISEASE'), (9, 10, 'DISEASE')]]
    """

    kind = "abbreviations"

    of: str | tuple[str, ...]
    types: tuple[str, ...] = ()
    letters: bool = True
    long_forms: bool = False

    def __post_init__(self) -> None:
        if not self.types:
            raise UsageError(f"source {self.name!r} needs types: the types of entities that it passes on")
        if self.long_forms and not self.letters:
            raise UsageError(f"source {self.name!r}: long_forms needs letters")

    def annotate(self, documents: Sequence[Document]) -> Iterator[Votes]:
        """The votes on each document; it abstains where no source of `of` ran on any document of the group."""
        for members in groups(documents):
            entities = [votes_of(document, self.of) for document in members]
            if all(spans is None for spans in entities):
                yield from [None] * len(members)
            else:
                yield from self._of_group(members, entities)

    def _of_group(self, documents: list[Document], entities: list[list[Span] | None]) -> Iterator[Votes]:
        defined = [list(self._definitions(d, spans or [])) for d, spans in zip(documents, entities, strict=True)]
        types: dict[tuple[str, ...], Counter[str]] = {}
        for definition in (definition for definitions in defined for definition in definitions):
            types.setdefault(definition.short, Counter())[definition.type] += 1
        chosen = {short: counts.most_common(1)[0][0] for short, counts in types.items()}
        for document, definitions in zip(documents, defined, strict=True):
            found = list(_occurrences(document.tokens, chosen))
            if self.long_forms:
                found.extend((*definition.long, definition.type) for definition in definitions)
            yield longest(found)

    def _definitions(self, document: Document, entities: list[Span]) -> Iterator["Definition"]:
        ending = {span.end: span for span in sorted(entities, key=lambda s: s.end - s.start) if span.type in self.types}
        places = Places.of(document)
        for opening, closing in _bracketed(document.tokens):
            entity = ending.get(opening)
            if entity is not None:
                short = _first_part(document.tokens[opening + 1 : closing])
                long = self._long_form(places, short, entity)
                if long is not None:
                    yield Definition(tuple(short), long, entity.type)
            inner = ending.get(closing)
            if inner is not None and inner.start == opening + 1 and opening > 0 and self.letters:
                short = document.tokens[opening - 1 : opening]
                if _is_short(short) and places.long_form(short, opening + 1, closing) == inner[:2]:
                    yield Definition(tuple(short), inner[:2], inner.type)

    def _long_form(self, places: "Places", short: Sequence[str], entity: Span) -> tuple[int, int] | None:
        if not _is_short(short):
            return None
        if not self.letters:
            return entity[:2] if any(letter.isupper() for letter in "".join(short)) else None
        return places.long_form(short, 0, entity.end)


class Definition(NamedTuple):
    """A short form as tokens, the tokens of its long form, and the type of what it stands for."""

    short: tuple[str, ...]
    long: tuple[int, int]
    type: str


@dataclass(frozen=True)
class Places:
    """A text and where each token begins in it."""

    text: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, document: Document) -> "Places":
        """Those of a document; words joined by blanks, if it has no text."""
        if document.text is not None and document.characters is not None:
            return cls(
                document.text, [start for start, _ in document.characters], [end for _, end in document.characters]
            )
        ends = [end + place for place, end in enumerate(accumulate(map(len, document.tokens)))]
        return cls(
            " ".join(document.tokens), [end - len(t) for end, t in zip(ends, document.tokens, strict=True)], ends
        )

    def long_form(self, short: Sequence[str], first: int, after: int) -> tuple[int, int] | None:
        """The tokens up to `after`, but none before `first`, that begin where the letters of the short form do.

        >>> Places.of(Document("d", ["A", "chronic", "renal", "failure"])).long_form(["CRF"], 0, 4)
        (1, 4)
        """
        letters = [letter for letter in "".join(short).lower() if letter.isalnum()]
        most = min(len(letters) + 5, 2 * len(letters))
        low = self.starts[max(first, after - 4 * most)]
        place = end = self.ends[after - 1]
        for number in reversed(range(len(letters))):
            place -= 1
            while place >= low and not self._fits(place, letters[number], low, begins=number == 0):
                place -= 1
            if place < low:
                return None
        while place > low and (self.text[place - 1].isalnum() or self.text[place - 1] in WITHIN_WORDS):
            place -= 1
        token = bisect_right(self.ends, place)
        if self.starts[token] != place or len(self.text[place:end].split()) > most or end - place <= len(letters):
            return None
        return token, after

    def _fits(self, place: int, letter: str, low: int, *, begins: bool) -> bool:
        if self.text[place].lower() != letter:
            return False
        return not begins or place == low or not self.text[place - 1].isalnum()


def _bracketed(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of the brackets of each pair that has no other pair inside."""
    opening = None
    for place, token in enumerate(tokens):
        if token in BRACKETS:
            opening = place
        elif opening is not None and token == BRACKETS[tokens[opening]]:
            yield opening, place
            opening = None


def _first_part(tokens: Sequence[str]) -> Sequence[str]:
    """What stands before a comma or semicolon."""
    return tokens[: next((place for place, token in enumerate(tokens) if token in {",", ";"}), len(tokens))]


def _is_short(tokens: Sequence[str]) -> bool:
    text = "".join(tokens)
    return (
        len(tokens) <= MOST_TOKENS
        and 2 <= len(text) <= MOST_CHARACTERS
        and text[0].isalnum()
        and any(letter.isalpha() for letter in text)
        and all(letter.isalnum() or letter in WITHIN_WORDS or letter == "." for letter in text)
        and sum(any(letter.isalnum() for letter in token) for token in tokens) <= 3
    )


def _occurrences(tokens: Sequence[str], types: Mapping[tuple[str, ...], str]) -> Iterator[tuple[int, int, str]]:
    lengths = {len(short) for short in types}
    for place in range(len(tokens)):
        for length in lengths:
            label = types.get(tuple(tokens[place : place + length]))
            if label is not None and place + length <= len(tokens):
                yield place, place + length, label
