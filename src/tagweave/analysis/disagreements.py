"""The places where sources contradict each other most, as sentences to look at."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.soft_labels import SoftLabels

_CONTEXT = 8
"""Tokens shown on each side of the place."""

_SILENCE = "nothing"
_NAMED = 5
"""The most silent sources that are named for a reader."""


class Disagreement(NamedTuple):
    """A stretch of a document on which sources disagree.

    Attributes:
        document: id.
        start, end: tokens of the stretch, half-open.
        before, text, after: the stretch and some words around it.
        votes: what is said of it, `TYPE words` for a span, with the sources that say so, the most first; under
            `nothing` those that ran on the document and are silent here.
        uncertainty: entropy of the label model's answer on the least certain token, in nats; without a model, of the
            votes.
    """

    document: str
    start: int
    end: int
    before: str
    text: str
    after: str
    votes: dict[str, list[str]]
    uncertainty: float

    def show(self) -> str:
        """A few lines for a terminal."""
        lines = [f"{self.document}: {self.before} [{self.text}] {self.after}".replace("  ", " ")]
        for what, names in self.votes.items():
            many = what == _SILENCE and len(names) > _NAMED
            lines.append(f"    {what}: {f'{len(names)} others' if many else ', '.join(names)}")
        return "\n".join(lines)


def uncertainty(soft_labels: SoftLabels) -> NDArray[np.float64]:
    """Entropy of the label of each token in nats, of shape [tokens]."""
    probabilities = soft_labels.probabilities.astype(np.float64)
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return np.asarray(-(probabilities * logs).sum(axis=1))


def vote_entropy(labels: NDArray[np.int16]) -> NDArray[np.float64]:
    """Entropy of the votes on each token in nats, of shape [tokens]; `labels` is of shape [sources, tokens]."""
    spoken = (labels >= 0).sum(axis=0)
    entropy = np.zeros(labels.shape[1])
    for label in range(int(labels.max(initial=0)) + 1):
        share = (labels == label).sum(axis=0) / np.maximum(spoken, 1)
        entropy -= share * np.log(np.where(share > 0, share, 1.0))
    return entropy


def disagreements(
    corpus: Corpus, weights: NDArray[np.float64], disputed: NDArray[np.bool_], count: int
) -> list[Disagreement]:
    """The documents with the least certain disputed token, one place each, and no words twice.

    Args:
        corpus: documents with votes.
        weights: how uncertain each token is, of shape [tokens].
        disputed: on which tokens sources contradict each other, of shape [tokens].
        count: how many are wanted.
    """
    places = (
        _place(corpus[index], token - int(corpus.offsets[index]), float(weights[token]))
        for token in _most_uncertain(corpus, np.where(disputed, weights, -1.0))
        for index in [int(np.searchsorted(corpus.offsets, token, side="right")) - 1]
    )
    return _distinct(places, count)


def worst(places: Iterable[Disagreement], count: int) -> list[Disagreement]:
    """The least certain of the places of several parts, no words twice; of equal ones those that come first."""
    return _distinct(iter(sorted(places, key=lambda place: -place.uncertainty)), count)


def _distinct(places: Iterator[Disagreement], count: int) -> list[Disagreement]:
    found: dict[str, Disagreement] = {}
    while len(found) < count and (place := next(places, None)) is not None:
        found.setdefault(place.text.lower(), place)
    return list(found.values())


def _most_uncertain(corpus: Corpus, weights: NDArray[np.float64]) -> Iterator[int]:
    """The heaviest token of each document, the heaviest document first; those without weight are left out."""
    filled = np.flatnonzero(np.diff(corpus.offsets) > 0)
    if not len(filled):
        return
    heaviest = np.maximum.reduceat(weights, corpus.offsets[filled])
    for rank in np.argsort(-heaviest, kind="stable"):
        if heaviest[rank] < 0:
            return
        first, last = corpus.offsets[filled[rank]], corpus.offsets[filled[rank] + 1]
        yield int(first + np.argmax(weights[first:last]))


def _place(document: Document, token: int, weight: float) -> Disagreement:
    spans = [(name, span) for name, votes in document.sources.items() for span in votes or ()]
    start, end = _stretch([span for _, span in spans], token)
    votes: dict[str, list[str]] = defaultdict(list)
    silent = [name for name, said in document.sources.items() if said is not None]
    for name, span in spans:
        if span.start < end and span.end > start:
            votes[f"{span.type} {' '.join(document.tokens[span.start : span.end])!r}"].append(name)
            silent = [other for other in silent if other != name]
    ranked = dict(sorted(votes.items(), key=lambda item: (-len(item[1]), item[0])))
    if silent:
        ranked[_SILENCE] = silent
    tokens = document.tokens
    return Disagreement(
        document=document.id,
        start=start,
        end=end,
        before=" ".join(tokens[max(start - _CONTEXT, 0) : start]),
        text=" ".join(tokens[start:end]),
        after=" ".join(tokens[end : end + _CONTEXT]),
        votes=ranked,
        uncertainty=weight,
    )


def _stretch(spans: list[Span], token: int) -> tuple[int, int]:
    """The tokens of all spans that overlap in a chain, one of which has the token in it."""
    start, end = token, token + 1
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < end and span.end > start:
            start, end = min(start, span.start), max(end, span.end)
    for span in sorted(spans, key=lambda span: -span.end):
        if span.start < end and span.end > start:
            start, end = min(start, span.start), max(end, span.end)
    return start, end
