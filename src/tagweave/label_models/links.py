"""What linking rules say of neighbouring tokens, as numbers; and published spans that once were links."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import LINK_TYPES, Corpus
from tagweave.errors import DataError, unknown_name
from tagweave.labels import LabelSet
from tagweave.observations import Observations

SAME, DIFFERENT = 1, -1
"""What a linking rule says of a token and the one before it; 0 where it says nothing."""


def link_votes(corpus: Corpus, names: Sequence[str]) -> NDArray[np.int8]:
    """What each linking rule says of each token and the one before it.

    Where one rule says both, it says that they differ: the exception is the more special rule.

    Args:
        corpus: documents with links, or without any.
        names: the rules, in the order of the columns.

    Returns:
        `SAME`, `DIFFERENT` or 0, of shape [tokens, rules]; 0 at the first token of a document, and everywhere where the
        corpus has no links at all.

    Raises:
        UsageError: the corpus has links, but not all of these.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> document = Document("d", ["breast", "cancer", "gene"], links={"phrases": [Span(0, 2, "same")]})
    >>> link_votes(Corpus.from_documents([document]), ["phrases"]).tolist()
    [[0], [1], [0]]
    """
    votes = np.zeros((int(corpus.offsets[-1]), len(names)), np.int8)
    for column, name in enumerate(names if corpus.links else ()):
        if name not in corpus.links:
            raise unknown_name("linking rule", name, corpus.links)
        spans = corpus.links[name]
        for said in (SAME, DIFFERENT):
            chosen = spans.where(spans.type_ids == LINK_TYPES.index("same" if said == SAME else "different"))
            votes[_later_tokens(chosen, corpus.offsets), column] = said
    return votes


def _later_tokens(spans: Annotations, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """All tokens under some spans but the first of each."""
    lengths = (spans.ends - spans.starts).astype(np.int64) - 1
    first = offsets[spans.documents] + spans.starts + 1
    tokens: NDArray[np.int64] = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return tokens


def same_label(labels: LabelSet) -> NDArray[np.bool_]:
    """Which pairs of neighbouring labels a link means by `same`, of shape [labels, labels] (from, to).

    Equal labels in the io state space. In bio the second label continues the first: O after O, I-X after B-X or I-X. A
    linking rule says that two tokens belong to one phrase, so B-X after B-X, two entities side by side, differs.

    >>> same_label(LabelSet(("PER",), "bio")).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    """
    equal = labels.type_ids[:, None] == labels.type_ids[None, :]
    same: NDArray[np.bool_] = equal & ~labels.begins[None, :]
    return same


def where_linked(links: NDArray[np.int8], then: Observations, otherwise: Observations) -> Observations:
    """Votes of one reading of silence on the tokens that links tie to an entity, and of another on all others.

    Args:
        links: `SAME`, `DIFFERENT` or 0, of shape [tokens, rules]. A token is tied to the one before it where some rule
            says `SAME` and none `DIFFERENT`.
        then: votes on tokens on which, or on a token tied to which, a source votes for an entity.
        otherwise: the votes on the other tokens, of the same sources.
    """
    tied = (links == SAME).any(axis=1) & ~(links == DIFFERENT).any(axis=1)
    stretches = np.cumsum(~tied)
    entity = (then.votes > 0).any(axis=1) | (then.soft[:, :, 1:].sum(axis=2) > 0.5).any(axis=1)
    spoken = np.zeros(len(links) + 1, bool)
    spoken[stretches[entity]] = True
    chosen = spoken[stretches]
    return replace(
        otherwise,
        votes=np.where(chosen[:, None], then.votes, otherwise.votes),
        soft=np.where(chosen[:, None, None], then.soft, otherwise.soft),
    )


def links_from_sources(corpus: Corpus, names: Sequence[str]) -> Corpus:
    """The corpus with some sources turned into linking rules: the tokens of each of their spans have the same label.

    Published votes have linking rules as sources: each linked stretch became a span of the type that most tagging rules
    gave its tokens. Taken as links, such spans no longer count these votes twice.

    Args:
        corpus: documents with votes.
        names: sources that mark spans; they are sources no longer. What type a span has is forgotten.

    Raises:
        UsageError: there is no such source.
        DataError: a source gives label probabilities, or a linking rule of that name is there already.

    >>> from tagweave.annotations import Span
    >>> from tagweave.corpus import Document
    >>> votes = {"dictionary": [Span(1, 2, "Disease")], "link-phrases": [Span(0, 2, "Disease")]}
    >>> corpus = Corpus.from_documents([Document("d", ["breast", "cancer"], sources=votes)])
    >>> linked = links_from_sources(corpus, ["link-phrases"])[0]
    >>> list(linked.sources), linked.links["link-phrases"]
    (['dictionary'], [Span(start=0, end=2, type='same', score=None)])
    """
    same, links = LINK_TYPES.index("same"), dict(corpus.links)
    for name in names:
        if name not in corpus.sources:
            raise unknown_name("source", name, corpus.sources)
        if name in corpus.links:
            raise DataError(f"a linking rule is called {name!r} already: rename the source")
        column = corpus.sources[name]
        if not isinstance(column, Annotations):
            raise DataError(f"source {name!r} gives label probabilities; only a source of spans can become links")
        links[name] = replace(column, type_ids=np.full(len(column), same, np.int16), scores=None)
    return replace(corpus, sources={n: c for n, c in corpus.sources.items() if n not in names}, links=links)
