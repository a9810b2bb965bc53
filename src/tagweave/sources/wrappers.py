"""Sources that change what an earlier source says, without running it again."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.sources.base import Source, Votes

DETERMINERS = ("the", "a", "an", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their")
EDGES = (
    ",",
    ".",
    ";",
    ":",
    "!",
    "?",
    "(",
    ")",
    "[",
    "]",
    '"',
    "``",
    "''",
    "'",
    "'s",
    "\u2019s",
    "-",
    "\u201c",
    "\u201d",
)
"""Tokens that neither begin nor end an entity."""


@dataclass
class Wrapper(Source):
    """A source on top of another one.

    Attributes:
        of: name of the earlier source.
        labels: the entity types that come out.
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
    """The same spans with other types; those without a new name are left out, votes for O stay.

    Attributes:
        rename: new names; several types may become one.

    >>> source = Renamed("merged", "ner", ("LOC",), {"GPE": "LOC"})
    >>> source.find(Document("d", ["Oslo"], sources={"ner": [Span(0, 1, "GPE")]}))
    [Span(start=0, end=1, type='LOC', score=None)]
    """

    kind = "renamed"

    rename: dict[str, str] = field(default_factory=dict)

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans under their new names."""
        names = {"O": "O", **self.rename}
        return (vote._replace(type=names[vote.type]) for vote in votes if vote.type in names)


@dataclass
class Corrected(Wrapper):
    """The same spans without a determiner in front and without punctuation at the edges; what is empty then is gone.

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
            if vote.type != "O":
                while start < end and document.tokens[start].lower() in (*self.leading, *self.edges):
                    start += 1
                while start < end and document.tokens[end - 1] in self.edges:
                    end -= 1
            if start < end:
                yield vote._replace(start=start, end=end)


@dataclass
class TokenCount(Wrapper):
    """The spans of some number of tokens.

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
            if size >= self.min_tokens and (not self.max_tokens or size <= self.max_tokens):
                yield vote


@dataclass
class Exclusive(Wrapper):
    """The spans that touch no span of some other sources, which come first where they say anything.

    Attributes:
        over: names of the earlier sources that take precedence.

    >>> votes = {"ner": [Span(0, 1, "ORG"), Span(1, 2, "ORG")], "dates": [Span(0, 1, "DATE")]}
    >>> Exclusive("rest", "ner", ("ORG",), ("dates",)).find(Document("d", ["May", "Ltd"], sources=votes))
    [Span(start=1, end=2, type='ORG', score=None)]
    """

    kind = "exclusive"

    over: tuple[str, ...] = ()

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans that are free."""
        taken = [other for name in self.over for other in document.sources[name] or () if other.type != "O"]
        return (vote for vote in votes if not any(_touch(vote, other) for other in taken))


@dataclass
class Specified(Wrapper):
    """A type that stands for several (`ENT`) made one of them: the one that other sources say most often on the span.

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

    coarse: dict[str, tuple[str, ...]] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    keep: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared, and those that stand for several if they may stay."""
        return (*self.labels, *self.coarse) if self.keep else self.labels

    def changed(self, document: Document, votes: Sequence[Span]) -> Iterable[Span]:
        """The spans with their specific types."""
        others = [other for name in self.over for other in document.sources[name] or ()]
        for vote in votes:
            allowed = self.coarse.get(vote.type)
            if allowed is None:
                yield vote
                continue
            said = Counter(other.type for other in others if other.type in allowed and _touch(vote, other))
            if said:
                yield vote._replace(type=max(sorted(said), key=lambda name: said[name]))
            elif self.keep:
                yield vote


def _touch(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
