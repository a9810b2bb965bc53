"""Sources that change what an earlier source says, without running it again."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.labels import OUTSIDE
from tagweave.sources.base import Source, Votes

DETERMINERS = ("the", "a", "an", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their")
EDGES = (*",.;:!?()[]\"'`-\u2013\u2014\u2018\u2019\u201c\u201d", "``", "''", "'s", "\u2019s")
"""Tokens that neither begin nor end an entity."""

_CLOSING = {"(": ")", "[": "]", "``": "''", "\u201c": "\u201d", "\u2018": "\u2019", '"': '"'}
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}


@dataclass
class Wrapper(Source):
    """A source on top of another one; it abstains where that one does.

    Attributes:
        of: name of the earlier source.
        labels: the entity types that come out; one that is not declared is an error.
    """

    of: str
    labels: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared."""
        return self.labels

    def find(self, document: Document) -> Votes:
        """The changed votes; None where the earlier source did not run."""
        votes = document.sources[self.of]
        return None if votes is None else list(self.changed(document, votes))

    @abstractmethod
    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The votes that become of the votes of the earlier source."""


@dataclass
class Renamed(Wrapper):
    """The same spans with other types; votes for O stay.

    Attributes:
        rename: new names; several types may become one.
        keep: whether spans whose type has no new name stay as they are; otherwise they are left out.

    >>> source = Renamed("merged", "ner", ("LOC",), {"GPE": "LOC"})
    >>> source.find(Document("d", ["Oslo"], sources={"ner": [Span(0, 1, "GPE")]}))
    [Span(start=0, end=1, type='LOC', score=None)]
    """

    kind = "renamed"

    rename: dict[str, str]
    keep: bool = False

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans under their new names."""
        for vote in votes:
            if vote.type in self.rename:
                yield vote._replace(type=self.rename[vote.type])
            elif self.keep or vote.type == OUTSIDE:
                yield vote


@dataclass
class Corrected(Wrapper):
    """The same spans without a determiner in front and without punctuation at the edges; what is empty then is gone.

    A bracket or quotation mark stays whose partner is inside the span: `vitamin B (12)` keeps its last token, `(12)`
    loses both. Votes for O stay as they are.

    Attributes:
        leading: words that are taken off the front, in any case.
        edges: tokens that are taken off both ends.

    >>> source = Corrected("edited", "ner", ("ORG",))
    >>> source.find(Document("d", ["The", "Bank", "'s"], sources={"ner": [Span(0, 3, "ORG")]}))
    [Span(start=1, end=2, type='ORG', score=None)]
    """

    kind = "corrected"

    leading: tuple[str, ...] = DETERMINERS
    edges: tuple[str, ...] = EDGES

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans with other boundaries."""
        for vote in votes:
            start, end = vote.start, vote.end
            if vote.type != OUTSIDE:
                start, end = self._trimmed(document.tokens, start, end)
            if start < end:
                yield vote._replace(start=start, end=end)

    def _trimmed(self, tokens: Sequence[str], start: int, end: int) -> tuple[int, int]:
        """The boundaries without what is taken off."""
        while start < end:
            first, last, inner = tokens[start], tokens[end - 1], tokens[start + 1 : end - 1]
            if first.lower() in self.leading or (first in self.edges and _CLOSING.get(first) not in inner):
                start += 1
            elif last in self.edges and _OPENING.get(last) not in inner:
                end -= 1
            else:
                break
        return start, end


@dataclass
class TokenCount(Wrapper):
    """The spans of some number of tokens; votes for O stay.

    Attributes:
        min_tokens, max_tokens: bounds; max_tokens 0 is none.

    >>> source = TokenCount("multi", "ner", ("PER",), min_tokens=2)
    >>> source.find(Document("d", ["Ada"], sources={"ner": [Span(0, 1, "PER")]}))
    []
    """

    kind = "token-count"

    min_tokens: int = 2
    max_tokens: int = 0

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans within the bounds."""
        for vote in votes:
            size = vote.end - vote.start
            if vote.type == OUTSIDE or self.min_tokens <= size <= (self.max_tokens or size):
                yield vote


@dataclass
class Exclusive(Wrapper):
    """The votes that share no token with an entity of some other sources.

    Attributes:
        over: names of the earlier sources that take precedence.

    >>> votes = {"ner": [Span(0, 1, "ORG"), Span(1, 2, "ORG")], "dates": [Span(0, 1, "DATE")]}
    >>> Exclusive("rest", "ner", ("ORG",), ("dates",)).find(Document("d", ["May", "Ltd"], sources=votes))
    [Span(start=1, end=2, type='ORG', score=None)]
    """

    kind = "exclusive"

    over: tuple[str, ...]

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The votes that are free."""
        taken = _by_token(document, self.over)
        for vote in votes:
            if all(other.type == OUTSIDE for place in range(vote.start, vote.end) for _, other in taken.get(place, ())):
                yield vote


@dataclass
class Specified(Wrapper):
    """A type that stands for several (`ENT`) made one of them: that of most spans of other sources that touch the span.

    Of types with equally many the first in the alphabet counts. Spans of other types stay as they are.

    Attributes:
        coarse: the types that stand for several, with what they stand for: `{"ENT": ["PER", "LOC"]}`.
        over: names of the earlier sources that know better.
        keep: whether spans stay as they are on which no other source says anything.

    >>> votes = {"caps": [Span(0, 2, "ENT")], "cities": [Span(1, 2, "LOC")]}
    >>> source = Specified("known", "caps", ("LOC", "PER"), {"ENT": ("PER", "LOC")}, ("cities",))
    >>> source.find(Document("d", ["Big", "Oslo"], sources=votes))
    [Span(start=0, end=2, type='LOC', score=None)]
    """

    kind = "specified"

    coarse: dict[str, tuple[str, ...]]
    over: tuple[str, ...]
    keep: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared, and those that stand for several if they may stay."""
        return (*self.labels, *self.coarse) if self.keep else self.labels

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans with their specific types."""
        others = _by_token(document, self.over)
        for vote in votes:
            allowed = self.coarse.get(vote.type)
            if allowed is None:
                yield vote
                continue
            near = {found for place in range(vote.start, vote.end) for found in others.get(place, ())}
            said = Counter(other.type for _, other in near if other.type in allowed)
            if said:
                yield vote._replace(type=max(sorted(said), key=lambda name: said[name]))
            elif self.keep:
                yield vote


def _by_token(document: Document, names: Sequence[str]) -> dict[int, list[tuple[str, Span]]]:
    """The votes of the named sources on each token, each with its source."""
    found: dict[int, list[tuple[str, Span]]] = {}
    for name in names:
        for span in document.sources[name] or ():
            for place in range(span.start, span.end):
                found.setdefault(place, []).append((name, span))
    return found
