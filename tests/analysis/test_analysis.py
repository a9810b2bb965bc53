"""What `analyze` says of small corpora whose answer is known."""

import json
from typing import Any

import numpy as np
import pytest

from stored.test_corpora import COARSE, documents, in_parts
from tagweave.analysis import Analysis, analyze, with_gold
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, UsageError
from tagweave.evaluation import source_scores
from tagweave.soft_labels import SoftLabels
from tagweave.stored import StoredCorpus

TOKENS = ["Ada", "Byron", "left", "New", "York", "today"]


def corpus_of(sources: dict[str, list[Span] | None], entities: list[Span] | None = None, copies: int = 1) -> Corpus:
    documents = [Document(f"d{i}", TOKENS, entities=entities, sources=sources) for i in range(copies)]
    return Corpus.from_documents(documents, types=("LOC", "PER"), coarse={"ENT": ("LOC", "PER")})


PER, LOC = Span(0, 2, "PER"), Span(3, 5, "LOC")
VOTES: dict[str, list[Span] | None] = {
    "good": [PER, LOC],
    "copy": [PER, LOC],
    "short": [Span(0, 1, "PER"), Span(4, 5, "LOC")],
    "stop": [Span(2, 3, "O")],
    "silent": [],
    "absent": None,
    "bad": [Span(5, 6, "LOC"), Span(2, 3, "LOC")],
    "any": [Span(0, 2, "ENT")],
}


def test_coverage_overlaps_and_conflicts_are_fractions_of_tokens() -> None:
    rows = {row["source"]: row for row in analyze(corpus_of(VOTES), None).sources.records()}
    shares = {name: [rows[name][key] for key in ("coverage", "overlaps", "conflicts")] for name in VOTES}
    sixth = pytest.approx(100 / 6)
    # `good` votes on four tokens, always with company. On `York` the source `short` says B-LOC where `good` says I-LOC.
    assert shares["good"] == [pytest.approx(400 / 6), pytest.approx(400 / 6), sixth]
    assert shares["stop"] == [sixth, sixth, sixth]
    assert shares["bad"] == [pytest.approx(200 / 6), sixth, sixth]
    assert shares["any"] == [pytest.approx(200 / 6), pytest.approx(200 / 6), 0]
    assert shares["silent"] == shares["absent"] == [0, 0, 0]
    assert rows["stop"]["O votes"] == 1 and rows["stop"]["spans"] == 0
    assert rows["good"]["types"] == "LOC PER"


def test_a_coarse_vote_conflicts_with_nothing() -> None:
    rows = analyze(corpus_of({"any": [Span(0, 2, "ENT")], "good": [PER]}), None).sources.records()
    assert [row["conflicts"] for row in rows] == [0, 0]


def test_scores_with_and_without_gold_stand_side_by_side() -> None:
    corpus = corpus_of(VOTES, [PER, LOC], copies=5)
    found = analyze(corpus, "span-vote")
    rows = {row["source"]: row for row in found.sources.records()}
    assert rows["good"]["f1"] == 100
    assert rows["bad"]["precision"] == 0
    assert rows["any"]["precision"] == 100
    assert rows["good"]["inferred f1"] > rows["short"]["inferred f1"]
    types = {(row["source"], row["type"]): row for row in found.types.records()}
    assert types["good", "LOC"]["recall"] == 100
    assert types["short", "PER"]["precision"] == 0


def test_gold_does_not_reach_the_label_model() -> None:
    with_it, without = corpus_of(VOTES, [Span(5, 6, "LOC")], copies=5), corpus_of(VOTES, copies=5)
    inferred = [
        [row["inferred f1"] for row in analyze(corpus, "hmm").sources.records()] for corpus in (with_it, without)
    ]
    assert inferred[0] == inferred[1]


def test_redundant_silent_and_harmful_sources_are_named() -> None:
    found = analyze(corpus_of(VOTES, [PER, LOC], copies=5), None).findings
    assert [(pair.first, pair.second, pair.overlap) for pair in found.redundant] == [("good", "copy", 1.0)]
    assert found.silent == ("silent",)
    assert found.not_run == ("absent",)
    assert [harm.source for harm in found.harmful] == ["bad"]
    assert found.harmful[0].gain == pytest.approx(0.2, abs=0.15)
    assert "bad does harm" in found.text()


def test_harm_without_gold_is_what_the_label_model_says() -> None:
    found = analyze(corpus_of({**VOTES, "third": [PER, LOC]}, copies=20), "majority-vote").findings
    assert {harm.source for harm in found.harmful} >= {"short"}
    assert all(harm.gain is None and harm.precision is not None and harm.precision < 0.5 for harm in found.harmful)


def test_disagreements_show_each_side_once() -> None:
    found = analyze(corpus_of({"long": [PER], "short": [Span(1, 2, "PER")], "quiet": []}, copies=3), None)
    (place,) = found.disagreements
    assert (place.document, place.start, place.end, place.text, place.after) == (
        "d0",
        0,
        2,
        "Ada Byron",
        "left New York today",
    )
    assert place.votes == {"PER 'Ada Byron'": ["long"], "PER 'Byron'": ["short"], "nothing": ["quiet"]}
    assert place.uncertainty == pytest.approx(np.log(2))


def test_agreement_counts_tokens_on_which_both_vote() -> None:
    found = analyze(corpus_of(VOTES), None)
    shares = {(pair.first, pair.second): (pair.agreement, pair.overlap) for pair in found.pairs}
    assert shares["good", "short"] == (pytest.approx(0.5), 0)
    assert shares["good", "copy"] == (1, 1)
    assert shares["good", "silent"] == (None, 0)
    assert found.agreement.records()[0]["short"] == pytest.approx(50)


def test_everything_is_valid_json_and_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    found = analyze(corpus_of(VOTES, [PER, LOC]), "majority-vote", descriptions={"good": "Names and places."})
    assert set(json.loads(json.dumps(found.to_json(), allow_nan=False))) == {
        "sources",
        "types",
        "pairs",
        "findings",
        "disagreements",
    }
    frame = found.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.set_index("source").loc["good", "description"] == "Names and places."
    assert found.frame("types").shape[0] == len(found.types.rows)


def test_many_sources_show_the_pairs_that_agree_least() -> None:
    many = {f"s{i}": [PER] for i in range(14)} | {"odd": [Span(0, 1, "LOC"), Span(1, 2, "LOC")]}
    text = analyze(corpus_of(many), None).text()
    assert "Pairs that agree least" in text
    assert text.index("odd") < text.index("Findings")


def test_no_source_is_an_error() -> None:
    with pytest.raises(DataError, match="no source"):
        analyze(corpus_of({}))


def test_gold_of_some_documents_is_joined_by_id() -> None:
    corpus = corpus_of({"good": [PER, LOC]}, copies=3)
    gold = Corpus.from_documents([Document("d2", TOKENS, entities=[PER]), Document("d0", TOKENS, entities=[])])
    joined = with_gold(corpus, gold)
    assert [document.entities for document in joined] == [[], None, [PER]]
    score = source_scores(joined)["good"]
    assert (score.support, score.predicted, score.correct) == (1, 4, 1)


def test_gold_may_have_types_that_no_source_votes_for() -> None:
    corpus = Corpus.from_documents([Document("a", ["Oslo"], sources={"s": []})])
    gold = Corpus.from_documents([Document("a", ["Oslo"], entities=[Span(0, 1, "LOC")])])
    assert with_gold(corpus, gold).types == ("LOC",)


@pytest.mark.parametrize(
    ("gold", "error", "message"),
    [
        (Document("x", TOKENS, entities=[]), DataError, "1 documents with gold are not among .* first 'x'"),
        (Document("d0", TOKENS[:5], entities=[]), AlignmentError, "'d0': 6 tokens with votes, but 5 with gold"),
        (Document("d0", [*TOKENS[:5], "now"], entities=[]), AlignmentError, "token 5 is 'today' with votes, but 'now'"),
        (Document("d0", TOKENS), DataError, "the gold has no entities"),
    ],
)
def test_gold_that_does_not_fit(gold: Document, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        with_gold(corpus_of({"good": [PER]}), Corpus.from_documents([gold]))


def many(gold: bool) -> Corpus:
    corpus = Corpus.from_documents(documents(), coarse=COARSE)
    rows = np.random.default_rng(1).dirichlet(np.ones(5), len(corpus.tokens)).astype(np.float32)
    corpus = corpus.with_source("tagger", SoftLabels(corpus.types, corpus.offsets, rows))
    return corpus if gold else corpus.with_entities(None)


def rounded(found: Analysis) -> Any:  # noqa: ANN401
    return json.loads(json.dumps(found.to_json()), parse_float=lambda text: round(float(text), 5))


@pytest.mark.parametrize("gold", [True, False], ids=["gold", "no gold"])
@pytest.mark.parametrize("model", [None, "naive-bayes"])
def test_a_corpus_on_disk_is_told_the_same_part_by_part(model: str | None, gold: bool) -> None:
    corpus = many(gold)
    here = rounded(analyze(corpus, model, examples=5))
    assert here["disagreements"] and here["pairs"][0]["agreement"]
    assert rounded(analyze(in_parts(corpus, 28), model, examples=5)) == here


def test_a_model_that_needs_all_documents_takes_no_parts() -> None:
    with pytest.raises(UsageError, match="learns from all documents at once"):
        analyze(in_parts(many(False), 28), "swellshark")


def test_gold_for_some_documents_of_parts() -> None:
    corpus, gold = many(False), many(True).subset([3, 50, 89])
    stored = in_parts(corpus, 28)
    joined = [document.entities for part in with_gold(stored, gold) for document in part]
    assert joined == [document.entities for document in with_gold(corpus, gold)]
    assert sum(entities is not None for entities in joined) == 3
    with pytest.raises(DataError, match="1 documents with gold are not among the documents with votes, first 'd89'"):
        with_gold(StoredCorpus([corpus.subset(range(80))]), gold)
    with pytest.raises(AlignmentError, match="document 'd3'"):
        with_gold(stored, Corpus.from_documents([Document("d3", ["Ada"], entities=[])]))
