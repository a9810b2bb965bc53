"""Sources that look at a whole document: what a string is elsewhere in it, and which full name a short form belongs to.

They start from what earlier sources say, brought together by a voter: a label model that needs no fitting, or one that
was fitted and saved before. The ideas are those of Lison et al. (2020), section 3.
"""

import warnings
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import TagweaveWarning, UsageError
from tagweave.sources.base import Source, Vote, Votes, groups
from tagweave.sources.proper import is_proper

if TYPE_CHECKING:
    from tagweave.label_models import LabelModel

_UNFITTED = "majority-vote"


@dataclass
class Voter(Source):
    """What a label model makes of the votes of earlier sources.

    Attributes:
        labels: the entity types.
        of: the earlier sources; without any, all entity votes that are there.
        voter: `majority-vote`, which needs no fitting, or the folder of a label model that `tagweave aggregate --save`
            wrote (it knows its sources, so `of` is left out).
        coarse: types that stand for several: `{"ENT": ["PER", "LOC"]}`.

    >>> votes = {"a": [Span(0, 1, "LOC")], "b": [Span(0, 1, "LOC")], "c": [Span(0, 1, "PER")]}
    >>> list(Voter("vote", ("LOC", "PER")).annotate([Document("d", ["Paris", "sleeps"], sources=votes)]))
    [[Span(start=0, end=1, type='LOC', score=0.6666666865348816)]]
    """

    kind = "voter"

    labels: tuple[str, ...]
    of: tuple[str, ...] = ()
    voter: str = _UNFITTED
    coarse: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared."""
        return self.labels

    @cached_property
    def _model(self) -> "LabelModel | None":
        """The saved label model; None for one that needs no fitting."""
        from tagweave.label_models import LabelModel

        if self.voter == _UNFITTED:
            return None
        if not Path(self.voter).is_dir():
            raise UsageError(
                f"source {self.name!r}: the voter must be {_UNFITTED}, or the folder of a saved label model, not "
                f"{self.voter!r}"
            )
        return LabelModel.load(Path(self.voter))

    def load(self) -> None:
        """Load the label model."""
        _ = self._model

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities that the voter finds."""
        return self.entities(documents)

    def entities(self, documents: Sequence[Document]) -> list[list[Span]]:
        """The entities that the voter finds in each document, with probabilities."""
        from tagweave.label_models import create_label_model

        corpus = self._corpus(documents)
        if not corpus.sources:
            return [[] for _ in documents]
        with warnings.catch_warnings():
            # That some type has no vote in a few documents is no news.
            warnings.simplefilter("ignore", TagweaveWarning)
            model = self._model or create_label_model(self.voter).fit(corpus)
            found = model.predict(corpus)
        assert found.entities is not None
        return [found.entities.document(index, found.vocabulary) or [] for index in range(len(found))]

    def _corpus(self, documents: Sequence[Document]) -> Corpus:
        wanted = self.of or (self._model.sources_ if self._model is not None else None)
        kept = [
            Document(
                str(number),
                document.tokens,
                sources={
                    name: self._known(votes)
                    for name, votes in document.sources.items()
                    if wanted is None or name in wanted
                },
            )
            for number, document in enumerate(documents)
        ]
        return Corpus.from_documents(kept, self.labels, self.coarse)

    def _known(self, votes: Sequence[Span] | None) -> list[Span] | None:
        """The votes for O and for types that are declared."""
        names = {"O", *self.labels, *self.coarse}
        return None if votes is None else [vote for vote in votes if vote.type in names]


@dataclass
class DocumentLevel(Voter):
    """What sources of whole documents share: they vote on tokens of a group, after the voter has spoken."""

    ignore_case: bool = False

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The votes in each document, group by group."""
        found = iter(self.entities(documents))
        for members in groups(documents):
            yield from self.in_group(members, [next(found) for _ in members])

    @abstractmethod
    def in_group(self, documents: Sequence[Document], entities: Sequence[Sequence[Span]]) -> Iterable[list[Vote]]:
        """The votes in each document of a group, given the voter's entities."""

    def key(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """A string as it is compared."""
        return tuple(token.lower() for token in tokens) if self.ignore_case else tuple(tokens)


@dataclass
class DocumentMajority(DocumentLevel):
    """The most likely type of a string in its document, for every occurrence.

    A string counts that occurs at least `min_count` times in the document and is an entity for the voter somewhere. Its
    type is the one with the largest summed probability.

    Attributes:
        min_count: occurrences that a string needs.

    >>> votes = {"a": [Span(0, 1, "PER")], "b": [Span(0, 1, "PER")]}
    >>> group = [Document("1", ["Lund", "won"], group="g", sources=votes), Document("2", ["So", "Lund"], group="g")]
    >>> list(DocumentMajority("majority", ("PER",)).annotate(group))
    [[(0, 1, 'PER')], [(1, 2, 'PER')]]
    """

    kind = "document-majority"

    min_count: int = 2

    def in_group(self, documents: Sequence[Document], entities: Sequence[Sequence[Span]]) -> Iterable[list[Vote]]:
        """The votes in each document of a group."""
        belief: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for document, spans in zip(documents, entities, strict=True):
            for span in spans:
                belief[self.key(document.tokens[span.start : span.end])][span.type] += span.score or 1.0
        places = [list(_occurrences(self.key(document.tokens), belief)) for document in documents]
        counts = Counter(string for found in places for _, _, string in found)
        best = {string: max(sorted(types), key=lambda name: types[name]) for string, types in belief.items()}
        for found in places:
            frequent = [place for place in found if counts[place[2]] >= self.min_count]
            yield [(start, end, best[string]) for start, end, string in _apart(frequent)]


@dataclass
class DocumentHistory(DocumentLevel):
    """The short forms of a full name, labelled as the name: `Turing` after `Alan Turing`.

    Every span of at least two tokens that the voter finds lends its type to the other occurrences of its parts in the
    document. A part has at least `min_length` characters, begins and ends with a token that looks like a name, and is
    not the part of several names of different types.

    Attributes:
        history_types: types whose names have short forms.
        min_length: characters of a part.
        later_only: whether only occurrences after the full name count.

    >>> votes = {"a": [Span(0, 2, "PER")]}
    >>> group = [Document("1", ["Alan", "Turing", "left"], group="g", sources=votes),
    ...          Document("2", ["Then", "Turing", "came"], group="g")]
    >>> list(DocumentHistory("history", ("PER",)).annotate(group))
    [[], [(1, 2, 'PER')]]
    """

    kind = "document-history"

    history_types: tuple[str, ...] = ("PER", "ORG")
    min_length: int = 4
    later_only: bool = False

    def in_group(self, documents: Sequence[Document], entities: Sequence[Sequence[Span]]) -> Iterable[list[Vote]]:
        """The votes in each document of a group."""
        owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
        first: dict[tuple[str, ...], tuple[int, int]] = {}
        for number, (document, spans) in enumerate(zip(documents, entities, strict=True)):
            for span in spans:
                for part in self._parts(document, span):
                    owners[part].add(span.type)
                    first[part] = min(first.get(part, (number, span.start)), (number, span.start))
        known = {part: next(iter(types)) for part, types in owners.items() if len(types) == 1}
        for number, (document, spans) in enumerate(zip(documents, entities, strict=True)):
            free = [
                (start, end, part)
                for start, end, part in _occurrences(self.key(document.tokens), known)
                if not any(span.start < end and start < span.end for span in spans if span.end - span.start > 1)
                and not (self.later_only and (number, start) < first[part])
            ]
            yield [(start, end, known[part]) for start, end, part in _apart(free)]

    def _parts(self, document: Document, span: Span) -> Iterator[tuple[str, ...]]:
        """The strings of tokens within a name, shorter than it."""
        if span.type not in self.history_types or span.end - span.start < 2:
            return
        proper = [is_proper(document, place) for place in range(span.start, span.end)]
        for start in range(span.start, span.end):
            for end in range(start + 1, span.end + 1):
                tokens = document.tokens[start:end]
                named = not any(proper) or (proper[start - span.start] and proper[end - 1 - span.start])
                if end - start < span.end - span.start and named and len(" ".join(tokens)) >= self.min_length:
                    yield self.key(tokens)


_Place = tuple[int, int, tuple[str, ...]]


def _occurrences(tokens: Sequence[str], strings: Mapping[tuple[str, ...], object]) -> Iterator[_Place]:
    """Every occurrence of the strings in tokens."""
    lengths = sorted({len(string) for string in strings})
    for start in range(len(tokens)):
        for length in lengths:
            string = tuple(tokens[start : start + length])
            if len(string) == length and string in strings:
                yield start, start + length, string


def _apart(places: Sequence[_Place]) -> list[_Place]:
    """The longest places first, then from the left, without overlaps."""
    kept: list[_Place] = []
    for place in sorted(places, key=lambda place: (place[0] - place[1], place[0])):
        if all(place[1] <= other[0] or other[1] <= place[0] for other in kept):
            kept.append(place)
    return sorted(kept)
