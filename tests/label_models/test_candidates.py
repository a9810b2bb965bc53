"""Candidate spans, and what sources say of them."""

import re

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.label_models.candidates import (
    Candidates,
    noun_phrases,
    observe_candidates,
    parts_of_speech,
    source_places,
    span_probabilities,
)
from tagweave.observations import ABSTAIN
from tagweave.soft_labels import SoftLabels

TYPES = ("LOC", "PER")
SILENT = 3
"""Number of the pattern that is silence, where there are two types and no coarse one."""


def votes_on(sources: dict[str, list[Span] | None], places: list[tuple[int, int]], **settings: str) -> list[list[int]]:
    corpus = Corpus.from_documents([Document("d", ["w"] * 6, sources=sources)], TYPES)
    candidates = Candidates.of([np.array(places)], corpus.offsets)
    votes: list[list[int]] = observe_candidates(corpus, candidates, **settings).votes.T.tolist()  # type: ignore[arg-type]
    return votes


def test_candidates_are_distinct_and_in_order() -> None:
    votes = {"a": [Span(2, 4, "PER"), Span(5, 6, "O")], "b": [Span(2, 4, "LOC"), Span(2, 3, "LOC")]}
    documents = [Document(f"d{i}", ["w"] * 6, sources=votes if i != 1 else {}) for i in range(3)]
    corpus = Corpus.from_documents(documents, TYPES)
    candidates = Candidates.of(source_places(corpus), corpus.offsets)
    assert candidates.starts.tolist() == [2, 14]
    assert candidates.ends.tolist() == [4, 16]
    assert candidates.offsets.tolist() == [0, 1, 1, 2]


def test_a_source_votes_for_its_span_and_against_what_overlaps_it() -> None:
    sources: dict[str, list[Span] | None] = {"a": [Span(0, 2, "PER")], "b": [Span(1, 2, "LOC")], "c": []}
    places = [(0, 2), (1, 2), (3, 4)]
    assert votes_on(sources, places, silence="always") == [[2, 0, SILENT], [0, 1, SILENT], [SILENT] * 3]
    assert votes_on(sources, places, silence="always", overlap="abstain") == [
        [2, SILENT, SILENT],
        [SILENT, 1, SILENT],
        [SILENT] * 3,
    ]


def test_votes_for_outside_count_in_either_case() -> None:
    sources: dict[str, list[Span] | None] = {"a": [Span(1, 2, "O")], "b": [Span(0, 3, "PER")]}
    for overlap in ("outside", "abstain"):
        assert votes_on(sources, [(0, 3), (3, 4)], silence="always", overlap=overlap)[0] == [0, SILENT]


def test_silence_is_a_vote_where_the_setting_says_so() -> None:
    sources: dict[str, list[Span] | None] = {"a": [Span(0, 1, "PER")], "b": [], "c": None}
    places = [(0, 1), (3, 4)]
    assert votes_on(sources, places, silence="token") == [[2, 0], [SILENT, 0], [ABSTAIN, ABSTAIN]]
    assert votes_on(sources, places, silence="never") == [[2, 0], [0, 0], [ABSTAIN, ABSTAIN]]
    assert votes_on(sources, places, silence="sentence") == [[2, 0], [SILENT] * 2, [ABSTAIN, ABSTAIN]]


def test_coarse_and_scored_votes_are_spread() -> None:
    sources = {"a": [Span(0, 1, "ENT")], "b": [Span(0, 1, "PER", 0.75)]}
    corpus = Corpus.from_documents([Document("d", ["w"] * 2, sources=sources)], TYPES, {"ENT": TYPES})
    candidates = Candidates.of([np.array([(0, 1), (1, 2)])], corpus.offsets)
    observed = observe_candidates(corpus, candidates, "always")
    assert observed.patterns[observed.votes[:, 0]].tolist() == [[0, 0.5, 0.5, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(observed.soft[:, 0], np.array([[0.25, 0, 0.75, 0], [0, 0, 0, 1]]), atol=2e-6)


def test_noun_phrases_are_those_of_the_pattern() -> None:
    chance = np.random.default_rng(0)
    kinds = chance.integers(0, 3, 300).astype(np.int8)
    offsets = np.array([0, 40, 40, 41, 150, 300])
    expected = set()
    for first, last in zip(offsets, offsets[1:], strict=False):
        for chunk in re.finditer("[12]*2", "".join(map(str, kinds[first:last]))):
            for start in range(chunk.start(), chunk.end()):
                for end in range(start + 1, min(chunk.end(), start + 3) + 1):
                    expected.add((int(first) + start, int(first) + end))
    found = [(int(start), int(end)) for start, end in noun_phrases(kinds, offsets, 3)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert noun_phrases(np.zeros(0, np.int8), np.array([0]), 3).shape == (0, 2)


def test_parts_of_speech_of_given_tokens() -> None:
    corpus = Corpus.from_documents([Document("a", "the severe colon cancer was treated".split()), Document("b", [])])
    assert parts_of_speech(corpus, "en_core_web_sm").tolist() == [0, 1, 2, 2, 0, 0]
    with pytest.raises(UsageError, match="no component 'tagger'"):
        parts_of_speech(corpus, "blank:en")


def test_the_least_sure_token_decides_about_a_span() -> None:
    rows = np.array([[0.1, 0.6, 0.0, 0.3, 0.0], [0.2, 0.0, 0.7, 0.1, 0.0], [0.5, 0.0, 0.5, 0.0, 0.0]], np.float32)
    soft = SoftLabels(TYPES, np.array([0, 3, 6]), np.vstack([rows, rows]))
    candidates = Candidates.of([np.array([(0, 1), (0, 2), (0, 3), (3, 4)])], soft.offsets)
    found = span_probabilities(soft, candidates)
    np.testing.assert_allclose(found[:, 1], [1 - 0.7, 1 - 0.5, 0.5, 1 - 0.7], atol=1e-6)
    np.testing.assert_allclose(found[:, 2], [0.3, 0, 0, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
