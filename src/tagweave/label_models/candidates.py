"""Candidate spans, and what every source says of each: the input of a label model that decides about whole spans."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.errors import UsageError
from tagweave.labels import LabelSet
from tagweave.observations import ABSTAIN, Observations, Silence, settle_silence
from tagweave.pipelines import load_pipeline, parse
from tagweave.progress import track
from tagweave.soft_labels import SoftLabels

Generator = Literal["sources", "noun-phrases"]
"""Where candidates come from: the spans of sources, or pieces of noun phrases."""

Overlap = Literal["outside", "abstain"]
"""What a source says of a candidate that one of its spans overlaps: a vote for O, or nothing."""

_MODIFIERS = ("JJ", "JJR", "JJS", "VBG", "CD", "HYPH")
"""Penn tags that may stand before the nouns of a noun phrase; determiners are not among them."""

_LEAST = 1e-6
"""Probabilities in votes are at least this, as `Observations.log_evidence` reads them."""


class Candidates(NamedTuple):
    """Distinct spans, in order of their starts and ends; tokens are counted through the whole corpus.

    Attributes:
        starts, ends: half-open, each of shape [candidates].
        offsets: candidates of document `d` are `offsets[d]:offsets[d + 1]`, of shape [documents + 1].
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, places: Sequence[NDArray[np.int64]], documents: NDArray[np.int64]) -> "Candidates":
        """Distinct spans out of several arrays of shape [spans, 2]; `documents` are the offsets of the corpus."""
        rows = np.unique(np.concatenate([np.zeros((0, 2), np.int64), *places]), axis=0)
        return cls(rows[:, 0], rows[:, 1], np.searchsorted(rows[:, 0], documents).astype(np.int64))


def source_places(corpus: Corpus, soft_only: bool = False) -> list[NDArray[np.int64]]:
    """Start and end of all spans of each source that are no votes for O, each of shape [spans, 2].

    Args:
        corpus: documents with votes.
        soft_only: only of sources that give a probability for every label.
    """
    chosen = [column for column in corpus.sources.values() if isinstance(column, SoftLabels) or not soft_only]
    return [_places(column, corpus.offsets)[column.type_ids > 0] for column in map(_spans, chosen)]


def parts_of_speech(corpus: Corpus, pipeline: str) -> NDArray[np.int8]:
    """Whether each token is a noun (2), may stand before one in a noun phrase (1), or neither (0), of shape [tokens].

    Args:
        corpus: documents.
        pipeline: a spaCy pipeline for English with a tagger of Penn tags, see `tagweave.pipelines.load_pipeline`.

    Raises:
        MissingExtraError: spaCy is not installed.
        UsageError: there is no such pipeline, or it gives no Penn tags.
    """
    nlp = load_pipeline(pipeline)
    if "tagger" not in nlp.pipe_names:
        raise UsageError(
            f"noun phrases need parts of speech, and the pipeline {pipeline!r} has no component 'tagger' that gives "
            "them: set pipeline=en_core_web_sm, or candidates=sources"
        )
    documents = list(replace(corpus, sources={}, links={}, entities=None, soft_labels=None))
    kinds: list[int] = []
    parses = parse(documents, pipeline, ("tok2vec", "transformer", "tagger"))
    for doc in track(parses, "parts of speech", len(corpus)):
        kinds.extend(2 if token.tag_.startswith("NN") else int(token.tag_ in _MODIFIERS) for token in doc)
    return np.array(kinds, np.int8)


def noun_phrases(tags: NDArray[np.int8], offsets: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """All stretches of at most `longest` tokens inside the chunks `(modifier | noun)* noun`.

    Args:
        tags: 2 for a noun, 1 for a word that may stand before one, 0 for any other, of shape [tokens].
        offsets: where each document starts, of shape [documents + 1].
        longest: most tokens of a stretch.

    Returns:
        Starts and ends, of shape [stretches, 2].

    >>> noun_phrases(np.array([0, 1, 2, 1]), np.array([0, 4]), 2).tolist()
    [[1, 2], [2, 3], [1, 3]]
    """
    tokens = np.arange(len(tags))
    stops = np.union1d(np.flatnonzero(tags == 0), offsets)
    last_noun = np.maximum.accumulate(np.where(tags == 2, tokens, -1)) if len(tags) else tokens
    run = np.searchsorted(stops, tokens, side="right")
    limit = np.minimum(np.append(stops, len(tags))[run], len(tags))
    chunk_end = np.where(tags > 0, last_noun[np.maximum(limit - 1, 0)] + 1, 0) if len(tags) else tokens
    found = [np.zeros((0, 2), np.int64)]
    for length in range(1, longest + 1):
        starts = np.flatnonzero((tags > 0) & (tokens + length <= chunk_end))
        found.append(np.stack([starts, starts + length], axis=1))
    return np.concatenate(found)


def observe_candidates(
    corpus: Corpus, candidates: Candidates, silence: Silence = "token", overlap: Overlap = "outside"
) -> Observations:
    """What every source says of every candidate: observations whose "tokens" are candidates and whose O is no entity.

    A source whose span is the candidate votes for its type. A source that votes O on one of its tokens, or has a span
    that overlaps it, votes for O, see `Overlap`. Patterns and probabilities have one column more than there are
    labels: the last one is the silence of a source that ran, where it is no vote for O (`silence`). A source that did
    not run abstains.

    Args:
        corpus: documents with votes.
        candidates: spans of these documents.
        silence: where the silence of a source is a vote for O, see `tagweave.observations.Silence`; read "candidate"
            for "token".
        overlap: what overlapping spans of a source say.
    """
    labels = LabelSet(corpus.types, "io")
    hard = {n: c for n, c in corpus.sources.items() if isinstance(c, Annotations) and c.scores is None}
    soft = {n: c for n, c in corpus.sources.items() if n not in hard}
    patterns = _patterns(labels, corpus)
    votes = np.full((len(candidates.starts), len(hard)), ABSTAIN, np.int8)
    for column, spans in enumerate(hard.values()):
        votes[:, column] = span_votes(spans.without_overlaps(), corpus.offsets, candidates, overlap)[0]
    said = np.zeros((len(votes), len(soft), patterns.shape[1]), np.float32)
    for column, source in enumerate(soft.values()):
        if isinstance(source, SoftLabels):
            said[:, column, :-1] = span_probabilities(source, candidates)
        else:
            said[:, column] = _scored(source.without_overlaps(), corpus.offsets, candidates, overlap, patterns)
    document = np.repeat(np.arange(len(corpus)), np.diff(candidates.offsets))
    columns = [*hard.values(), *soft.values()]
    ran = [c.ran if isinstance(c, Annotations) else np.ones(len(corpus), bool) for c in columns]
    present = np.array(ran, bool).reshape(len(ran), len(corpus)).T
    settle_silence(corpus, document, silence, votes, said, present)
    present = present[document]
    votes[(votes == ABSTAIN) & present[:, : len(hard)]] = len(patterns) - 1
    said[..., -1] = ~said.any(axis=2) & present[:, len(hard) :]
    said = np.where(said.any(axis=2, keepdims=True), np.maximum(said, _LEAST), 0).astype(np.float32)
    positions = np.flatnonzero([name in hard for name in corpus.sources])
    judged = np.flatnonzero([isinstance(column, SoftLabels) for column in corpus.sources.values()])
    return Observations(labels, tuple(corpus.sources), positions, candidates.offsets, votes, patterns, said, judged)


def span_probabilities(soft: SoftLabels, candidates: Candidates) -> NDArray[np.float32]:
    r"""Probability that a candidate is exactly one entity, from probabilities of labels on tokens.

    \[ p(y) = \min \big( p(\text{B-}y \text{ at } s),\; p(\text{I-}y \text{ at } s + 1), \ldots,\;
       p(\text{I-}y \text{ at } e - 1),\; 1 - p(\text{I-}y \text{ at } e) \big) \]

    The labels of an entity stand or fall together, so the least sure of them decides; a product would count one doubt
    once for every token. What the types leave is the probability of no entity.

    Args:
        soft: of the corpus of the candidates.
        candidates: half-open spans.

    Returns:
        Of shape [candidates, types + 1]; rows sum to one.
    """
    begin, inside = soft.probabilities[:, 1::2], soft.probabilities[:, 2::2]
    starts, ends = candidates.starts, candidates.ends
    least = begin[starts]
    for step in range(1, int((ends - starts).max(initial=0))):
        rows = np.flatnonzero(starts + step < ends)
        least[rows] = np.minimum(least[rows], inside[starts[rows] + step])
    rows = np.flatnonzero(~np.isin(ends, soft.offsets))
    least[rows] = np.minimum(least[rows], 1 - inside[ends[rows]])
    least = np.clip(least, 0, 1)
    return np.concatenate([np.maximum(1 - least.sum(axis=1, keepdims=True), 0), least], axis=1)


def _patterns(labels: LabelSet, corpus: Corpus) -> NDArray[np.float64]:
    """The meaning of vote numbers: O, the types, the coarse types (spread over members), and silence."""
    patterns = np.zeros((len(labels) + len(corpus.coarse) + 1, len(labels) + 1))
    patterns[: len(labels), :-1] = np.eye(len(labels))
    for row, members in enumerate(corpus.coarse.values(), len(labels)):
        patterns[row, [1 + corpus.types.index(name) for name in members]] = 1 / len(members)
    patterns[-1, -1] = 1
    return patterns


def span_votes(
    spans: Annotations, offsets: NDArray[np.int64], candidates: Candidates, overlap: Overlap
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """What spans say of candidates: the type of the span that is the candidate; O where one overlaps it; else nothing.

    Args:
        spans: of one annotator; they do not overlap each other.
        offsets: where each document starts, of shape [documents + 1].
        candidates: spans of the same documents.
        overlap: what a span of an entity type says that overlaps the candidate; one of type O always says O.

    Returns:
        Type numbers or `ABSTAIN`, and the row of the span that is the candidate or -1, each of shape [candidates].
    """
    places, tokens = _places(spans, offsets), int(offsets[-1]) + 1
    keys, wanted = places @ [tokens, 1], candidates.starts * tokens + candidates.ends
    order = np.argsort(keys)
    found = np.searchsorted(keys[order], wanted)
    row = np.append(order, -1)[found]
    row[np.append(keys, -1)[row] != wanted] = -1
    speaking = np.ones(len(spans), bool) if overlap == "outside" else spans.type_ids == 0
    depth = np.zeros(tokens + 1, np.int64)
    np.add.at(depth, places[speaking, 0], 1)
    np.subtract.at(depth, places[speaking, 1], 1)
    covered = np.concatenate([[0], np.cumsum(np.cumsum(depth) > 0)])
    votes = np.where(covered[candidates.ends] > covered[candidates.starts], 0, ABSTAIN)
    return np.where(row >= 0, np.append(spans.type_ids, 0)[row], votes).astype(np.int8), row


def _scored(
    spans: Annotations,
    offsets: NDArray[np.int64],
    candidates: Candidates,
    overlap: Overlap,
    patterns: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Votes of a source whose spans have probabilities: a span of probability p leaves 1 - p to O."""
    votes, row = span_votes(spans, offsets, candidates, overlap)
    scores = np.ones(len(spans) + 1) if spans.scores is None else np.append(spans.scores, 1.0)
    probability = np.where(np.isnan(scores), 1, scores)[row]
    said = np.where(votes[:, None] == ABSTAIN, 0, probability[:, None] * patterns[votes])
    said[:, 0] += np.where(votes == ABSTAIN, 0, 1 - probability)
    return said.astype(np.float32)


def _spans(column: Annotations | SoftLabels) -> Annotations:
    return column.without_overlaps() if isinstance(column, Annotations) else column.annotations()


def _places(spans: Annotations, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """First token and end of each span in the corpus, of shape [spans, 2]."""
    base = offsets[spans.documents]
    return np.stack([base + spans.starts, base + spans.ends], axis=1)
