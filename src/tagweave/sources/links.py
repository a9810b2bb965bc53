"""Linking rules: they say of neighbouring tokens that they have one label (Safranchik et al., 2020).

A rule yields stretches; all tokens of a stretch have the same label. `LinkedSpans` makes spans of them, as Li et al.
(2021, appendix) turn links into votes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.sources.base import Source, Vote, Votes, groups
from tagweave.sources.dictionary import Dictionary
from tagweave.sources.phrase_files import Phrase
from tagweave.sources.pipelines import DEFAULT

HYPHENS = ("-", "\u2010", "\u2011", "\u2013", "\u2212")


@dataclass
class LinkingRule(Source):
    """A rule about neighbouring tokens."""

    linking: ClassVar[bool] = True

    @property
    def types(self) -> tuple[str, ...]:
        """No entity types: links are `same` or `different`."""
        return ()


def stretches(linked: Iterable[bool]) -> Iterator[tuple[int, int]]:
    """Runs of linked pairs as stretches of tokens; `linked[t]` is about the tokens `t` and `t + 1`.

    >>> list(stretches([True, True, False, True]))
    [(0, 3), (3, 5)]
    """
    start, count = None, 0
    for place, same in enumerate(linked):
        count = place + 1
        if same and start is None:
            start = place
        if not same and start is not None:
            yield start, place + 1
            start = None
    if start is not None:
        yield start, count + 1


@dataclass
class PossessiveLinks(LinkingRule):
    """A possessive ending is linked to what is before and after it.

    >>> list(PossessiveLinks("possessive").find(Document("d", ["Alzheimer", "'s", "disease"])))
    [(0, 3)]
    """

    kind = "possessive-links"

    endings: tuple[str, ...] = ("'s", "\u2019s", "'", "\u2019")

    def find(self, document: Document) -> Votes:
        """The stretches."""
        marks = [token in self.endings for token in document.tokens]
        return list(stretches(a or b for a, b in zip(marks, marks[1:], strict=False)))


@dataclass
class HyphenLinks(LinkingRule):
    """A hyphen that is a token of its own is linked to what is before and after it, where no blank stands between.

    Attributes:
        short_prefix: whether the token before it must be a single sign or the name of a Greek letter.
        after_only: whether only the hyphen and the token after it are linked.

    >>> list(HyphenLinks("hyphens").find(Document("d", ["X", "-", "linked"])))
    [(0, 3)]
    """

    kind = "hyphen-links"

    short_prefix: bool = False
    after_only: bool = False

    def find(self, document: Document) -> Votes:
        """The stretches."""
        tokens = document.tokens
        for place in range(1, len(tokens) - 1):
            if tokens[place] in HYPHENS and (not self.short_prefix or _short(tokens[place - 1])):
                yield (place if self.after_only else place - 1), place + 2


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
    """Two tokens that stand together often in one document are linked.

    Attributes:
        min_count: how often, in the whole group of documents.

    >>> documents = [Document("1", ["heart", "failure"], group="g"), Document("2", ["heart", "failure"], group="g")]
    >>> list(BigramLinks("bigrams", min_count=2).annotate(documents))
    [[(0, 2)], [(0, 2)]]
    """

    kind = "bigram-links"

    min_count: int = 6

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The stretches in each document."""
        for members in groups(documents):
            pairs = [list(zip(member.tokens, member.tokens[1:], strict=False)) for member in members]
            counts = Counter(pair for found in pairs for pair in found)
            for found in pairs:
                frequent = (counts[pair] >= self.min_count and all(map(_wordlike, pair)) for pair in found)
                yield list(stretches(frequent))


def _wordlike(token: str) -> bool:
    return any(letter.isalnum() for letter in token)


@dataclass
class CapitalLinks(LinkingRule):
    """Tokens that begin with a capital, one after the other, are linked, but not the first two of a text.

    Tokens all in capitals do not count.

    >>> list(CapitalLinks("capitals").find(Document("d", ["My", "new", "Mac", "Book", "Air"])))
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
        return list(stretches(a and b for a, b in zip(capital, capital[1:], strict=False)))


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
        linked = [False] * max(len(document.tokens) - 1, 0)
        for token in document.parse:
            if token.dep_ in self.relations and abs(token.head.i - token.i) == 1:
                linked[min(token.i, token.head.i)] = True
        return list(stretches(linked))


@dataclass
class EmbeddingLinks(LinkingRule):
    """Neighbouring tokens with similar embeddings are linked.

    Attributes:
        threshold: cosine of the two embeddings from which on they are.
        encoder: an encoder by folder or name, or `default`.
        layer: layer of the encoder; 0 is the one without context.
    """

    kind = "embedding-links"

    threshold: float = 0.8
    encoder: str = "default"
    layer: int = -1

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The stretches in each document."""
        from tagweave.embeddings import embed

        corpus = Corpus.from_documents(
            Document(str(number), document.tokens) for number, document in enumerate(documents)
        )
        rows = np.asarray(embed(corpus, self.encoder, layers=(self.layer,)), np.float32)
        lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
        cosines = (rows[:-1] * rows[1:]).sum(axis=1) / (lengths[:-1] * lengths[1:])
        for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
            yield list(stretches((cosines[first : max(last - 1, first)] > self.threshold).tolist()))


@dataclass
class LinkedSpans(Source):
    """Each linked stretch as one entity, of the type for which most votes are cast on its tokens.

    A vote of a source on a token counts once, and so does a vote for O; where O wins or nobody votes, there is no
    entity. Ties go to an entity, then to the type that comes first in the alphabet.

    Attributes:
        links: name of the linking rule.
        labels: the entity types.
        of: the sources whose votes count; without any, all that come before.

    >>> votes = {"dictionary": [Span(1, 2, "Disease")]}
    >>> document = Document("d", ["breast", "cancer"], sources=votes, links={"phrases": [Span(0, 2, "same")]})
    >>> list(LinkedSpans("linked", "phrases", ("Disease",)).find(document))
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
        """The linked stretches that are entities; None where the linking rule did not run."""
        linked = document.links[self.links]
        if linked is None:
            return None
        votes = [vote for name in self.of or document.sources for vote in document.sources[name] or ()]
        return [found for link in linked for found in self._entity(link, votes)]

    def _entity(self, link: Span, votes: Sequence[Span]) -> Iterator[Vote]:
        if link.type != "same":
            return
        counts: Counter[str] = Counter()
        for vote in votes:
            shared = min(vote.end, link.end) - max(vote.start, link.start)
            if shared > 0 and vote.type in ("O", *self.labels):
                counts[vote.type] += shared
        if counts:
            best = max(sorted(counts, key=lambda name: (name == "O", name)), key=lambda name: counts[name])
            if best != "O":
                yield link.start, link.end, best
