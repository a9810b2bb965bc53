"""Runs of tokens that look like names, and what lists of first names and endings make of them (Lison et al., 2020)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources.base import Source, Vote, Votes
from tagweave.sources.phrase_files import read_phrases
from tagweave.sources.proper import proper_tokens

GAPS = ("the", "of", "and", "for", "de", "da", "del", "der", "van", "von", "du", "la", "al", "bin", "-", "&", "'s")
"""Words that may stand inside a name."""


@dataclass
class ProperNames(Source):
    """Runs of tokens that look like names.

    Attributes:
        type: the type that they get.
        gaps: words that may stand between two such tokens.
        min_length: characters of a run.
        pipeline: spaCy pipeline whose part of speech PROPN makes a name too; None goes by the letters only.

    >>> list(ProperNames("proper", "ENT").find(Document("d", ["The", "Bank", "of", "Oslo", "closed"])))
    [(1, 4, 'ENT')]
    """

    kind = "proper-names"

    type: str
    gaps: tuple[str, ...] = GAPS
    min_length: int = 3
    pipeline: str | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def find(self, document: Document) -> Votes:
        """The runs."""
        return [vote for start, end in self.runs(document) for vote in self.judged(document, start, end)]

    def judged(self, document: Document, start: int, end: int) -> Iterable[Vote]:
        """The votes on a run."""
        return [(start, end, self.type)]

    def runs(self, document: Document) -> Iterator[tuple[int, int]]:
        """Start and end of each run, gap words inside included."""
        tokens, gaps = document.tokens, {gap.lower() for gap in self.gaps}
        proper = proper_tokens(document)
        inside = [named or token.lower() in gaps for named, token in zip(proper, tokens, strict=True)]
        for is_run, places in groupby(range(len(tokens)), key=inside.__getitem__):
            named = [place for place in places if proper[place]]
            if is_run and named:
                start, end = named[0], named[-1] + 1
                if len(" ".join(tokens[start:end])) >= self.min_length:
                    yield start, end


@dataclass
class _ListedNames(ProperNames):
    """Runs that are judged by a list of words."""

    words: tuple[str, ...] = ()
    lists: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if not self.words and not self.lists:
            raise UsageError(f"source {self.name!r} needs words, or lists (files) of them")

    @cached_property
    def listed(self) -> frozenset[str]:
        """The words."""
        return frozenset([*self.words, *(phrase.text for path in self.lists for phrase in read_phrases(Path(path)))])

    def load(self) -> None:
        """Read the lists."""
        _ = self.listed


@dataclass
class FullNames(_ListedNames):
    """Runs of two to five tokens that begin with a first name and end with a word in title case.

    Attributes:
        words, lists: first names, given here or in files of phrases.
        max_tokens: tokens of a name.

    >>> source = FullNames("full_names", "PER", words=("Ada",))
    >>> list(source.find(Document("d", ["Then", "Ada", "Lovelace", "wrote", "to", "Ada"])))
    [(1, 3, 'PER')]
    """

    kind = "full-names"

    gaps: tuple[str, ...] = ("de", "da", "del", "der", "van", "von", "du", "la", "al", "bin")
    max_tokens: int = 5

    def judged(self, document: Document, start: int, end: int) -> Iterable[Vote]:
        """The run, if it is a full name."""
        first, last = document.tokens[start], document.tokens[end - 1]
        named = first in self.listed or (first.isupper() and first.title() in self.listed)
        ending = last.replace("-", "").replace("'", "").isalpha() and last[0].isupper() and len(last) > 1
        return [(start, end, self.type)] if named and ending and 2 <= end - start <= self.max_tokens else []


@dataclass
class NameEndings(_ListedNames):
    """Runs that end with one of some words: *Ltd* or *Inc.* for companies, *Cup* for events.

    `Acme Ltd and Ajax Ltd` are two, `Acme Ltd Ajax Ltd` is one.

    Attributes:
        words, lists: the last words, given here or in files of phrases; their case counts, and so do capitals.
        min_tokens: tokens of a run.

    >>> source = NameEndings("companies", "ORG", words=("Ltd",))
    >>> list(source.find(Document("d", ["He", "sold", "Acme", "Anvils", "Ltd", "to", "Oslo"])))
    [(2, 5, 'ORG')]
    """

    kind = "name-endings"

    min_tokens: int = 2

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return self.listed | {word.upper() for word in self.listed}

    def judged(self, document: Document, start: int, end: int) -> Iterable[Vote]:
        """The run up to the last of the words, cut where a gap follows one."""
        tokens = document.tokens
        places = [place for place in range(start, end) if tokens[place] in self._spellings]
        for place in places:
            if place == places[-1] or tokens[place + 1] in self.gaps:
                if place + 1 - start >= self.min_tokens:
                    yield start, place + 1, self.type
                start = place + 1
                while start < end and tokens[start] in self.gaps:
                    start += 1
