"""`Source`: whatever looks at documents and votes; and the check that what it yields are votes."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import groupby
from numbers import Integral, Real
from typing import ClassVar

from tagweave.annotations import Span
from tagweave.corpus import LINK_TYPES, Document
from tagweave.errors import SourceError, unknown_name
from tagweave.formats.words import Alignment, align
from tagweave.labels import OUTSIDE

Vote = Span | tuple[int, int] | tuple[int, int, str] | tuple[int, int, str, float | None]
"""What a source yields: first token, first token after, entity type (may be left out if the source has only one; `O`
is a vote that the tokens are no entity), and a probability if it has one."""

Votes = Iterable[Vote] | None
"""The votes on one document, or None: the source did not run on it and abstains altogether."""


@dataclass
class Source(ABC):
    """A labelling source.

    A source is a dataclass whose fields are its settings. It gives `types`, and either `find`, for one document, or
    `annotate`, for several at a time, where that is faster or where the documents of a group belong together.

    The documents have text and places of the tokens (joined by blanks where a file had only tokens), and the votes of
    the sources that ran before in `sources` and `links`. The documents of a group come together. They must not be
    changed.

    Attributes:
        name: its name in the corpus.
        description: one line for people; by default the first line of the class's docstring.
        hidden: whether its votes serve only later sources and are left out of the output.
        kind: name of the class in files of sources.
        linking: whether it is a linking rule, which says `same` or `different` of neighbouring tokens.
        keeps_time: whether it bounds its own time, because it waits for a server; the limit of a run is not for it.
        pipeline: name of a spaCy pipeline whose analysis it needs in `document.parse`, or None. A class that needs one
            makes this a field.

    >>> @dataclass
    ... class Shouting(Source):
    ...     "Words in capitals."
    ...     kind = "shouting"
    ...     types = ("LOUD",)
    ...     def find(self, document):
    ...         return [(i, i + 1) for i, token in enumerate(document.tokens) if token.isupper()]
    >>> source = Shouting("loud")
    >>> [list(votes) for votes in source.annotate([Document("d", ["Do", "NOT", "run"])])], source.summary
    ([[(1, 2)]], 'Words in capitals.')
    """

    kind: ClassVar[str] = ""
    linking: ClassVar[bool] = False
    keeps_time: ClassVar[bool] = False

    name: str
    _: KW_ONLY
    description: str = ""
    hidden: bool = False

    @property
    @abstractmethod
    def types(self) -> tuple[str, ...]:
        """The entity types that it may vote for; `O` need not be named."""

    @property
    def pipeline(self) -> str | None:
        """Name of the pipeline that it needs."""
        return None

    def find(self, document: Document) -> Votes:
        """The votes on one document."""
        raise NotImplementedError(f"{type(self).__name__} has neither find nor annotate")

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The votes on each document."""
        return (self.find(document) for document in documents)

    def load(self) -> None:  # noqa: B027
        """Make ready what is slow to make (a model, an automaton); called once in each process, before any document."""

    @cached_property
    def counters(self) -> Counter[str]:
        """What the source counts as it runs (requests, say); added up over processes and shown at the end."""
        return Counter()

    @property
    def summary(self) -> str:
        """One line for people."""
        return self.description or (type(self).__doc__ or "").strip().partition("\n")[0]


def checked(source: Source, document: Document, votes: Votes) -> list[Span] | None:
    """The votes of a source as spans.

    Raises:
        SourceError: it yields something else than votes; the message names source, document and vote.

    >>> from tagweave.sources.functions import labeling_function
    >>> @labeling_function(types=["LOC"])
    ... def cities(document):
    ...     return []
    >>> checked(cities, Document("d", ["Oslo"]), [(0, 1)])
    [Span(start=0, end=1, type='LOC', score=None)]
    """
    if votes is None:
        return None
    try:
        found = iter(votes)
    except TypeError:
        raise SourceError(
            f"source {source.name!r}, document {document.id!r}: yields {votes!r}, not a list of (start, end, type)"
        ) from None
    allowed = LINK_TYPES if source.linking else (*source.types, OUTSIDE)
    length = len(document.tokens)
    spans = []
    for vote in found:
        if type(vote) is tuple and len(vote) == 3:  # by far the most frequent, so not through `_span`
            start, end, name = vote
            if type(start) is int and type(end) is int and 0 <= start < end <= length and name in allowed:
                spans.append(Span(start, end, name))
                continue
        spans.append(_span(source, document, vote, allowed))
    return spans if len(spans) < 2 else list(dict.fromkeys(spans))


def _span(source: Source, document: Document, vote: object, allowed: Sequence[str]) -> Span:
    place = f"source {source.name!r}, document {document.id!r}: vote {vote!r}"
    if not isinstance(vote, tuple | list) or not 2 <= len(vote) <= 4:
        raise SourceError(f"{place} is not (start, end, type)")
    start, end, *rest = vote
    if len(rest) == 0:
        rest = ["same" if source.linking else _only_type(source, place)]
    name, score = rest[0], rest[1] if len(rest) == 2 else None
    if not isinstance(start, Integral) or not isinstance(end, Integral):
        raise SourceError(f"{place}: start and end must be whole numbers of tokens")
    if not 0 <= int(start) < int(end) <= len(document.tokens):
        raise SourceError(f"{place} does not lie within the {len(document.tokens)} tokens")
    if name not in allowed:
        raise SourceError(f"{place}: {unknown_name('declared type', str(name), allowed)}")
    if score is not None and not (isinstance(score, Real) and 0 <= float(score) <= 1):
        raise SourceError(f"{place}: the score must be a probability")
    return Span(int(start), int(end), str(name), None if score is None else float(score))


def _only_type(source: Source, place: str) -> str:
    if len(source.types) != 1:
        raise SourceError(f"{place} names no type, and the source has {len(source.types)}: {', '.join(source.types)}")
    return source.types[0]


def groups(documents: Sequence[Document]) -> list[list[Document]]:
    """The documents of each larger document; one without a group is by itself.

    >>> documents = [Document("1", [], group="a"), Document("2", [], group="a"), Document("3", [])]
    >>> [len(members) for members in groups(documents)]
    [2, 1]
    """
    keyed = groupby(enumerate(documents), key=lambda item: (item[1].group, item[0] if item[1].group is None else None))
    return [[document for _, document in members] for _, members in keyed]


def tokens_at(document: Document, start: int, end: int, alignment: Alignment = "expand") -> tuple[int, int] | None:
    """The tokens of a stretch of characters of the document's text; None when none is left.

    Args:
        document: a document with text, as sources get it.
        start: first character.
        end: first character after.
        alignment: what becomes of a stretch that begins or ends inside a token, see `tagweave.formats.words.align`.

    >>> tokens_at(Document("d", ["Oslo", "."], "Oslo.", [(0, 4), (4, 5)]), 0, 4)
    (0, 1)
    """
    places = document.characters or ()
    return align(start, end, places if isinstance(places, list) else list(places), alignment).tokens
