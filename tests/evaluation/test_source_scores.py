"""Sources against gold."""

import numpy as np

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.evaluation import Score, source_scores, source_table
from tagweave.soft_labels import SoftLabels

TOKENS = ["a", "b", "c", "d"]
CORPUS = Corpus.from_documents(
    [
        Document(
            "one",
            TOKENS,
            entities=[Span(0, 2, "PER"), Span(3, 4, "LOC")],
            sources={"half": [Span(0, 2, "PER"), Span(2, 3, "O")], "coarse": [Span(0, 2, "ENT"), Span(2, 3, "ENT")]},
        ),
        Document("two", TOKENS, entities=[Span(0, 1, "LOC")], sources={"half": None, "coarse": [Span(0, 1, "LOC")]}),
        Document("three", TOKENS, sources={"half": [Span(0, 1, "PER")], "coarse": [Span(0, 1, "ENT")]}),
    ],
    coarse={"ENT": ("PER", "LOC")},
)


def test_sources_are_scored_where_there_is_gold_best_first() -> None:
    scores = source_scores(CORPUS)
    assert list(scores) == ["coarse", "half"]
    assert scores["half"] == Score.from_counts(correct=1, predicted=1, support=3)
    assert scores["coarse"] == Score.from_counts(correct=2, predicted=3, support=3)


def test_probabilities_are_scored_by_their_best_labels() -> None:
    labels = np.zeros(12, np.int64)
    labels[4] = 1
    soft = SoftLabels.from_labels(labels, CORPUS.offsets, CORPUS.types)
    assert CORPUS.types[0] == "LOC"
    assert source_scores(CORPUS.with_source("tagger", soft))["tagger"] == Score.from_counts(1, 1, 3)


def test_a_coarse_and_a_fine_vote_on_one_span_count_once() -> None:
    votes = {"both": [Span(0, 1, "ENT"), Span(0, 1, "LOC")]}
    corpus = Corpus.from_documents(
        [Document("a", ["x"], entities=[Span(0, 1, "LOC")], sources=votes)], coarse={"ENT": ("LOC", "PER")}
    )
    assert source_scores(corpus)["both"].correct == 1


def test_without_gold_or_sources() -> None:
    bare = CORPUS.with_entities(None)
    assert source_scores(bare)["half"].undefined == ("precision", "recall", "f1")
    assert source_scores(CORPUS.select_sources([])) == {}
    assert source_table(CORPUS.select_sources([])).rows == ()


def test_the_table_is_in_percent() -> None:
    records = source_table(CORPUS).records()
    assert records[0]["source"] == "coarse"
    assert records[1]["precision"] == 100.0
