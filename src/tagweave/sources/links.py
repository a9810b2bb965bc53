"""Linking rules: they say of neighbouring tokens that they have one label (Safranchik et al., 2020).

A rule yields stretches; all tokens of a stretch have the same label. `LinkedSpans` makes spans of them, as Li et al.
(2021, appendix) turn links into votes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.labels import OUTSIDE
from tagweave.pipelines import DEFAULT
from tagweave.sources.base import Source, Votes, groups
from tagweave.sources.dictionary import Dictionary
from tagweave.sources.phrase_files import Phrase
from tagweave.sources.words import analysis, runs

HYPHENS = ("-", "\u2010", "\u2011", "\u2013", "\u2212")


@dataclass
class LinkingRule(Source):
    """A rule about neighbouring tokens."""

    linking: ClassVar[bool] = True

    @property
    def types(self) -> tuple[str, ...]:
        """No entity types: links are `same` or `different`."""
        return ()


def stretches(linked: Iterable[bool]) -> list[tuple[int, int]]:
    """Runs of linked pairs as stretches of tokens; `linked[t]` is about the tokens `t` and `t + 1`.

    >>> stretches([True, True, False, True])
    [(0, 3), (3, 5)]
    """
    return [(start, end + 1) for start, end in runs(linked)]


def pairs(document: Document) -> range:
    """The numbers of the first tokens of all pairs of neighbours."""
    return range(len(document.tokens) - 1)


@dataclass
class PossessiveLinks(LinkingRule):
    """A possessive ending is linked to what is before and after it.

    Attributes:
        endings: tokens that are one.

    >>> PossessiveLinks("possessive").find(Document("d", ["Alzheimer", "'s", "disease"]))
    [(0, 3)]
    """

    kind = "possessive-links"

    endings: tuple[str, ...] = ("'s", "\u2019s")

    def find(self, document: Document) -> Votes:
        """The stretches."""
        marks = [token in self.endings for token in document.tokens]
        return stretches(marks[place] or marks[place + 1] for place in pairs(document))


@dataclass
class HyphenLinks(LinkingRule):
    """A hyphen that is a token of its own, between two others, is linked to what is before and after it.

    Attributes:
        touching: whether no blank may stand before or after the hyphen, so that it is no dash. This needs text; where
            there are only tokens, blanks stand between all of them.
        short_prefix: whether the token before it must be a single sign or the name of a Greek letter.
        after_only: whether only the hyphen and the token after it are linked.

    >>> HyphenLinks("hyphens").find(Document("d", ["X", "-", "linked", "gene"]))
    [(0, 3)]
    """

    kind = "hyphen-links"

    touching: bool = False
    short_prefix: bool = False
    after_only: bool = False

    def find(self, document: Document) -> Votes:
        """The stretches."""
        counts = [self._counts(document, place) for place in range(len(document.tokens))]
        return stretches(counts[place] or (counts[place + 1] and not self.after_only) for place in pairs(document))

    def _counts(self, document: Document, place: int) -> bool:
        """Whether the token is a hyphen that links."""
        tokens, places = document.tokens, document.characters
        if not 0 < place < len(tokens) - 1 or tokens[place] not in HYPHENS:
            return False
        if self.touching and (places is None or places[place - 1][1] < places[place][0]):
            return False
        if self.touching and places is not None and places[place][1] < places[place + 1][0]:
            return False
        return not self.short_prefix or _short(tokens[place - 1])


_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi "
    "psi omega".split()
)


def _short(token: str) -> bool:
    return len(token) == 1 or token.lower() in _GREEK


@dataclass
class PhraseLinks(Dictionary):
    """The tokens of a phrase from a list are linked; for lists of good phrases whose types are not known.

    Settings are those of a dictionary without types.

    >>> rule = PhraseLinks("phrases", words=("breast cancer",))
    >>> [list(votes) for votes in rule.annotate([Document("d", ["breast", "cancer", "gene"])])]
    [[(0, 2, 'same')]]
    """

    kind = "phrase-links"
    linking: ClassVar[bool] = True

    type: str = "same"
    min_tokens: int = 2

    def _type_of(self, phrase: Phrase) -> str:
        return "same"


@dataclass
class BigramLinks(LinkingRule):
    """Two words that stand together often in the documents of a group are linked.

    Attributes:
        min_count: how often.

    >>> documents = [Document("1", ["heart", "failure"], group="g"), Document("2", ["heart", "failure"], group="g")]
    >>> list(BigramLinks("bigrams", min_count=2).annotate(documents))
    [[(0, 2)], [(0, 2)]]
    """

    kind = "bigram-links"

    min_count: int = 6

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The stretches in each document."""
        for members in groups(documents):
            bigrams = [[_bigram(member, place) for place in pairs(member)] for member in members]
            counts = Counter(bigram for found in bigrams for bigram in found)
            for found in bigrams:
                yield stretches(counts[bigram] >= self.min_count and all(map(_wordlike, bigram)) for bigram in found)


def _bigram(document: Document, place: int) -> tuple[str, str]:
    return document.tokens[place], document.tokens[place + 1]


def _wordlike(token: str) -> bool:
    return any(letter.isalnum() for letter in token)


@dataclass
class CapitalLinks(LinkingRule):
    """Tokens that begin with a capital, one after the other, are linked; tokens all in capitals do not count.

    Attributes:
        skip: tokens at the beginning of a text that do not count either.

    >>> CapitalLinks("capitals").find(Document("d", ["My", "new", "Mac", "Book", "Air"]))
    [(2, 5)]
    """

    kind = "capital-links"

    skip: int = 2

    def find(self, document: Document) -> Votes:
        """The stretches."""
        capital = [
            place >= self.skip and token[:1].isupper() and not (len(token) > 1 and token.isupper())
            for place, token in enumerate(document.tokens)
        ]
        return stretches(capital[place] and capital[place + 1] for place in pairs(document))


@dataclass
class DependencyLinks(LinkingRule):
    """A token is linked to its head where it stands right before or after it and depends on it in a given way.

    Attributes:
        relations: the ways, as the pipeline names them.
    """

    kind = "dependency-links"

    relations: tuple[str, ...] = ("compound",)
    pipeline: str | None = DEFAULT

    def find(self, document: Document) -> Votes:
        """The stretches."""
        linked = [False for _ in pairs(document)]
        for token in analysis(self, document, "DEP"):
            if token.dep_ in self.relations and abs(token.head.i - token.i) == 1:
                linked[min(token.i, token.head.i)] = True
        return stretches(linked)


@dataclass
class EmbeddingLinks(LinkingRule):
    """Neighbouring tokens with similar embeddings are linked.

    Attributes:
        threshold: cosine of the two embeddings above which they are; 0.7 suits the default encoder.
        encoder: an encoder by folder or name, or `default`.
        layer: layer of the encoder; 0 is the one without context.
    """

    kind = "embedding-links"

    threshold: float = 0.7
    encoder: str = "default"
    layer: int = -1

    def load(self) -> None:
        """See whether there is such an encoder."""
        from tagweave.encoder import Encoder

        Encoder.load(self.encoder)

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The stretches in each document."""
        from tagweave.encoder.embeddings import embed

        corpus = Corpus.from_documents(
            Document(str(number), document.tokens) for number, document in enumerate(documents)
        )
        with TemporaryDirectory() as folder:
            rows = np.array(embed(corpus, self.encoder, layers=(self.layer,), cache=Path(folder)), np.float32)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        similar = np.einsum("ij,ij->i", rows[:-1], rows[1:]) > self.threshold
        for document, first in zip(documents, corpus.offsets, strict=False):
            yield stretches(similar[first + place] for place in pairs(document))


@dataclass
class LinkedSpans(Source):
    """Each linked stretch as one entity, of the type for which most votes are cast on its tokens.

    On each token, each source has one vote for each type that it gives the token, and one for O where it says O. Where
    O wins or nobody votes, there is no entity. Ties go to an entity, then to the type that comes first in the alphabet.
    Stretches that share a token are one.

    Attributes:
        links: name of the linking rule.
        labels: the entity types.
        of: the sources whose votes count; without any, all that are there, hidden ones too.

    >>> votes = {"dictionary": [Span(1, 2, "Disease")]}
    >>> document = Document("d", ["breast", "cancer"], sources=votes, links={"phrases": [Span(0, 2, "same")]})
    >>> LinkedSpans("linked", "phrases", ("Disease",)).find(document)
    [(0, 2, 'Disease')]
    """

    kind = "linked-spans"

    links: str
    labels: tuple[str, ...]
    of: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types that were declared."""
        return self.labels

    def find(self, document: Document) -> Votes:
        """The linked stretches that are entities; None where the linking rule or none of the sources ran."""
        links = document.links[self.links]
        votes = [document.sources[name] for name in self.of or document.sources]
        if links is None or all(spans is None for spans in votes):
            return None
        cast = self._cast([spans for spans in votes if spans is not None])
        found = []
        for start, end in stretches(_linked(document, links)):
            counts = Counter(name for token in range(start, end) for name in cast.get(token, ()))
            ranked = sorted(counts, key=lambda name: (-counts[name], name == OUTSIDE, name))
            if ranked and ranked[0] != OUTSIDE:
                found.append((start, end, ranked[0]))
        return found

    def _cast(self, votes: Iterable[Sequence[Span]]) -> dict[int, list[str]]:
        """The types that sources vote for on each token, each source once for a type."""
        cast: dict[int, list[str]] = {}
        for spans in votes:
            said = {
                (token, span.type)
                for span in spans
                if span.type in (OUTSIDE, *self.labels)
                for token in range(span.start, span.end)
            }
            for token, name in said:
                cast.setdefault(token, []).append(name)
        return cast


def _linked(document: Document, links: Sequence[Span]) -> list[bool]:
    """Of each pair of neighbours, whether a rule says that they have one label and not that they differ."""
    linked = [False for _ in pairs(document)]
    for link in sorted(links, key=lambda link: link.type, reverse=True):  # `same` first
        for place in range(link.start, link.end - 1):
            linked[place] = link.type == "same"
    return linked
