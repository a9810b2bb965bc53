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
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, TagweaveWarning, UsageError, unknown_name
from tagweave.labels import OUTSIDE
from tagweave.sources.base import Source, Votes, groups
from tagweave.sources.words import longest

if TYPE_CHECKING:
    from tagweave.label_models import LabelModel

UNFITTED = ("majority-vote", "span-vote")
"""Label models that learn nothing."""


class Opinion(NamedTuple):
    """What the voter makes of a document.

    Attributes:
        entities: with probabilities.
        probabilities: of each declared type on each token, of shape [tokens, types].
    """

    entities: Sequence[Span]
    probabilities: NDArray[np.float32]


@dataclass
class Voter(Source):
    """What a label model makes of the votes of earlier sources.

    On a document on which none of them ran it abstains.

    Attributes:
        labels: the entity types.
        of: the earlier sources; without any, those of the saved label model, or else all that are there, hidden ones
            too.
        voter: `majority-vote` or `span-vote`, which need no fitting.
        model: folder of a saved label model to be used in their place.
        coarse: types that stand for several: `{"ENT": ["PER", "LOC"]}`.

    >>> votes = {"a": [Span(0, 1, "LOC")], "b": [Span(0, 1, "LOC")], "c": [Span(0, 1, "PER")]}
    >>> list(Voter("vote", ("LOC", "PER")).annotate([Document("d", ["Paris", "sleeps"], sources=votes)]))
    [[Span(start=0, end=1, type='LOC', score=0.6666666865348816)]]
    """

    kind = "voter"

    labels: tuple[str, ...]
    of: tuple[str, ...] = ()
    voter: Literal["majority-vote", "span-vote"] = "majority-vote"
    model: Path | None = None
    coarse: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.voter not in UNFITTED:
            raise unknown_name("voter", self.voter, UNFITTED)

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared."""
        return self.labels

    @cached_property
    def _saved(self) -> "LabelModel | None":
        """The saved label model, if one was named."""
        from tagweave.label_models import LabelModel

        if self.model is None:
            return None
        model = LabelModel.load(Path(self.model))
        for what, given, known in (("labels", self.labels, model.types_), ("of", self.of, model.sources_)):
            if given and set(given) != set(known or ()):
                raise UsageError(
                    f"source {self.name!r}: `{what}` is {', '.join(given)}, but the label model in {self.model} was "
                    f"fitted on {', '.join(known or ())}"
                )
        return model

    def load(self) -> None:
        """Load the label model.

        Raises:
            UsageError: it was fitted on other types or sources than those that were named.
        """
        _ = self._saved

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities that the voter finds."""
        return (None if opinion is None else opinion.entities for opinion in self.opinions(documents))

    def opinions(self, documents: Sequence[Document]) -> list[Opinion | None]:
        """What the voter makes of each document; None where none of its sources ran."""
        from tagweave.label_models import create_label_model

        corpus = self._corpus(documents)
        if not corpus.sources:
            return [None] * len(documents)
        with warnings.catch_warnings():
            # That some type has no vote in a few documents is no news.
            warnings.simplefilter("ignore", TagweaveWarning)
            # Fitted on nothing, so that no document's result depends on which others it comes with.
            model = self._saved or create_label_model(self.voter).fit(corpus.subset([]))
            found = model.predict(corpus)
        assert found.soft_labels is not None
        columns = [1 + found.types.index(name) for name in self.labels]
        beliefs = np.split(found.soft_labels.io()[:, columns], found.offsets[1:-1])
        return [
            Opinion(result.entities or [], belief)
            if any(votes is not None for votes in result.sources.values())
            else None
            for result, belief in zip(found, beliefs, strict=True)
        ]

    def _corpus(self, documents: Sequence[Document]) -> Corpus:
        """The documents with the votes that count, of the types that were declared."""
        wanted = self.of or (() if self._saved is None else self._saved.sources_ or ())
        types = {OUTSIDE, *self.labels, *self.coarse}
        kept = [
            Document(
                str(number),
                document.tokens,
                sources={
                    name: None if votes is None else [vote for vote in votes if vote.type in types]
                    for name, votes in self._chosen(document, wanted).items()
                },
            )
            for number, document in enumerate(documents)
        ]
        return Corpus.from_documents(kept, self.labels, self.coarse)

    def _chosen(self, document: Document, wanted: Sequence[str]) -> Mapping[str, Sequence[Span] | None]:
        """The votes of the wanted sources, or of all."""
        missing = [name for name in wanted if name not in document.sources]
        if missing:
            raise SourceError(
                f"source {self.name!r}, document {document.id!r}: no votes of {', '.join(missing)}. Name them in `of` "
                "if only some documents of the input have them"
            )
        return {name: document.sources[name] for name in wanted} if wanted else document.sources


@dataclass
class DocumentLevel(Voter):
    """What sources of whole documents share: they vote on tokens of a group, after the voter has spoken."""

    ignore_case: bool = False

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The votes in each document, group by group; None in a group on which no source ran."""
        opinions = iter(self.opinions(documents))
        for members in groups(documents):
            found = [next(opinions) for _ in members]
            if all(opinion is None for opinion in found):
                yield from [None] * len(members)
            else:
                nothing = np.zeros((0, len(self.labels)), np.float32)
                yield from self.in_group(members, [opinion or Opinion([], nothing) for opinion in found])

    @abstractmethod
    def in_group(self, documents: Sequence[Document], opinions: Sequence[Opinion]) -> Iterable[Votes]:
        """The votes in each document of a group, given what the voter makes of them."""

    def key(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """A string as it is compared."""
        return tuple(token.lower() for token in tokens) if self.ignore_case else tuple(tokens)


@dataclass
class DocumentMajority(DocumentLevel):
    """The most likely type of a string in its document, for every occurrence.

    A string counts that occurs at least `min_count` times in the documents of a group and is an entity for the voter
    somewhere. Its type is the one whose probability, summed over these entities, is largest.

    Attributes:
        min_count: occurrences that a string needs.

    >>> votes = {"a": [Span(0, 1, "PER")], "b": [Span(0, 1, "PER")]}
    >>> group = [Document("1", ["Lund", "won"], group="g", sources=votes), Document("2", ["So", "Lund"], group="g")]
    >>> list(DocumentMajority("majority", ("PER",)).annotate(group))
    [[(0, 1, 'PER')], [(1, 2, 'PER')]]
    """

    kind = "document-majority"

    min_count: int = 2

    def in_group(self, documents: Sequence[Document], opinions: Sequence[Opinion]) -> Iterable[Votes]:
        """The votes in each document of a group."""
        beliefs: dict[tuple[str, ...], list[NDArray[np.float32]]] = defaultdict(list)
        for document, opinion in zip(documents, opinions, strict=True):
            for start, end, *_ in opinion.entities:
                beliefs[self.key(document.tokens[start:end])].append(opinion.probabilities[start:end].mean(axis=0))
        best = {string: self._likeliest(means) for string, means in beliefs.items()}
        places = [list(_occurrences(self.key(document.tokens), best)) for document in documents]
        counts = Counter(string for found in places for _, _, string in found)
        for found in places:
            yield longest((start, end, best[part]) for start, end, part in found if counts[part] >= self.min_count)

    def _likeliest(self, means: Sequence[NDArray[np.float32]]) -> str:
        """The type with the largest sum, the first in the alphabet of those that have it."""
        sums = {name: fsum(column) for name, column in zip(self.labels, np.stack(means).T.tolist(), strict=True)}
        return max(sorted(sums), key=lambda name: sums[name])


@dataclass
class DocumentHistory(DocumentLevel):
    """The short forms of a full name, labelled as the name: `Turing` after `Alan Turing`.

    Every span of at least two tokens that the voter finds lends its type to the other occurrences of its parts in the
    documents of the group. A part has at least `min_length` characters, begins and ends with a word that has a capital
    (unless the name has none), and is not the part of several names of different types.

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

    def in_group(self, documents: Sequence[Document], opinions: Sequence[Opinion]) -> Iterable[Votes]:
        """The votes in each document of a group."""
        names = [self._names(opinion.entities) for opinion in opinions]
        owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
        first: dict[tuple[str, ...], tuple[int, int]] = {}
        for number, (document, spans) in enumerate(zip(documents, names, strict=True)):
            for span, part in self._parts(document, spans):
                owners[part].add(span.type)
                first.setdefault(part, (number, span.start))
        known = {part: next(iter(types)) for part, types in owners.items() if len(types) == 1}
        for number, (document, opinion) in enumerate(zip(documents, opinions, strict=True)):
            whole = [range(start, end) for start, end, *_ in opinion.entities if end - start > 1]
            taken = {place for places in whole for place in places}
            yield longest(
                (start, end, known[part])
                for start, end, part in _occurrences(self.key(document.tokens), known)
                if taken.isdisjoint(range(start, end)) and not (self.later_only and (number, start) < first[part])
            )

    def _names(self, entities: Sequence[Span]) -> list[Span]:
        """The entities that have short forms, from the left."""
        return sorted(span for span in entities if span.type in self.history_types and span.end - span.start > 1)

    def _parts(self, document: Document, names: Sequence[Span]) -> Iterator[tuple[Span, tuple[str, ...]]]:
        """The strings of tokens within names, shorter than they are, each with its name."""
        for span in names:
            capital = [token != token.lower() for token in document.tokens[span.start : span.end]]
            size = len(capital)
            for first in range(size):
                for last in range(first, min(size, first + size - 1)):
                    tokens = document.tokens[span.start + first : span.start + last + 1]
                    named = not any(capital) or (capital[first] and capital[last])
                    if named and len(" ".join(tokens)) >= self.min_length:
                        yield span, self.key(tokens)


def _occurrences(
    tokens: Sequence[str], strings: Mapping[tuple[str, ...], object]
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Every occurrence of the strings in tokens."""
    lengths = sorted({len(string) for string in strings})
    for start in range(len(tokens)):
        for length in lengths:
            string = tuple(tokens[start : start + length])
            if len(string) == length and string in strings:
                yield start, start + length, string
