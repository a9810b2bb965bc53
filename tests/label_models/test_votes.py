from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError
from tagweave.label_models import BestConsensus, LabelModel, MajorityVote, SpanVote

Votes = Mapping[str, Sequence[Span] | None]


def corpus(votes: Votes, gold: Sequence[Span] | None = None, **options: object) -> Corpus:
    return Corpus.from_documents([Document("d", ["w"] * 6, entities=gold, sources=votes)], **options)  # type: ignore[arg-type]


def found(model: LabelModel, votes: Votes, gold: Sequence[Span] | None = None, **options: object) -> list[Span]:
    made = corpus(votes, gold, **options)
    return [span._replace(score=None) for span in model.fit(made).predict(made)[0].entities or ()]


@pytest.mark.parametrize("types", [("PER", "LOC"), ("LOC", "PER")])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_tie_shows_in_the_probabilities_and_falls_by_the_alphabet(
    types: tuple[str, str], names: tuple[str, str]
) -> None:
    made = corpus({names[0]: [Span(0, 1, "PER")], names[1]: [Span(0, 1, "LOC")]}, types=types)
    predicted = MajorityVote().fit(made).predict(made)
    assert predicted.soft_labels is not None
    by_type = dict(zip(types, predicted.soft_labels.io()[0, 1:], strict=True))
    assert by_type == {"PER": 0.5, "LOC": 0.5}
    assert [span.type for span in predicted[0].entities or ()] == ["LOC"]


def test_silence_decides_whether_a_lone_vote_wins() -> None:
    votes = {"a": [Span(0, 2, "PER")], "b": [], "c": []}
    assert found(MajorityVote(), votes) == [Span(0, 2, "PER")]
    assert found(MajorityVote(silence="never"), votes) == []


def test_votes_for_outside_count() -> None:
    votes = {"a": [Span(0, 2, "PER")], "b": [Span(0, 2, "O")], "c": [Span(0, 2, "O")]}
    assert found(MajorityVote(), votes) == []
    assert found(SpanVote(), votes) == []
    assert found(SpanVote(), {**votes, "c": None}) == [Span(0, 2, "PER")]


def test_fragments_are_joined_in_io_and_kept_apart_in_bio() -> None:
    votes = {"a": [Span(0, 1, "PER"), Span(1, 3, "PER")]}
    assert found(MajorityVote(state_space="io"), votes) == [Span(0, 3, "PER")]
    assert found(MajorityVote(state_space="bio"), votes) == [Span(0, 1, "PER"), Span(1, 3, "PER")]


def test_the_longest_span_wins_or_the_one_with_most_votes() -> None:
    votes = {"a": [Span(0, 3, "PER")], "b": [Span(1, 2, "LOC")], "c": [Span(1, 2, "LOC"), Span(3, 5, "LOC")]}
    assert found(SpanVote(), votes) == [Span(0, 3, "PER"), Span(3, 5, "LOC")]
    assert found(SpanVote(order="votes"), votes) == [Span(1, 2, "LOC"), Span(3, 5, "LOC")]


def test_among_equally_long_spans_votes_decide_then_place_then_alphabet() -> None:
    votes = {"a": [Span(0, 2, "PER")], "b": [Span(1, 3, "LOC")], "c": [Span(1, 3, "LOC")]}
    assert found(SpanVote(), votes) == [Span(1, 3, "LOC")]
    assert found(SpanVote(), {"a": [Span(0, 2, "PER")], "b": [Span(1, 3, "LOC")]}) == [Span(0, 2, "PER")]
    assert found(SpanVote(), {"a": [Span(0, 2, "PER")], "b": [Span(0, 2, "LOC")]}) == [Span(0, 2, "LOC")]


def test_a_coarse_span_takes_the_type_of_finer_ones_over_it() -> None:
    votes = {"a": [Span(0, 3, "ENT")], "b": [Span(1, 2, "PER")], "c": [Span(4, 5, "LOC"), Span(5, 6, "LOC")]}
    made = found(SpanVote(), votes, coarse={"ENT": ("LOC", "PER")})
    assert made == [Span(0, 3, "PER"), Span(4, 5, "LOC"), Span(5, 6, "LOC")]
    alone = found(SpanVote(), {**votes, "b": []}, types=("LOC", "PER"), coarse={"ENT": ("LOC", "PER")})
    assert alone[0] == Span(0, 3, "LOC")


GOLD = [Span(0, 2, "PER"), Span(3, 5, "LOC")]


def test_span_oracle_wants_the_whole_span_from_one_source() -> None:
    votes = {"a": [Span(0, 1, "PER"), Span(3, 5, "LOC")], "b": [Span(0, 2, "LOC"), Span(5, 6, "PER")]}
    assert found(BestConsensus(), votes, GOLD) == [Span(3, 5, "LOC")]


def test_token_oracle_puts_a_span_together_from_several_sources() -> None:
    whole = {"a": [Span(0, 1, "PER")], "b": [Span(0, 2, "PER")], "c": [Span(3, 4, "LOC")]}
    assert found(BestConsensus(oracle="token"), whole, GOLD) == [Span(0, 2, "PER"), Span(3, 4, "LOC")]
    headless = {"a": [Span(2, 5, "LOC"), Span(5, 6, "PER")]}
    assert found(BestConsensus(oracle="token"), headless, GOLD) == []


def test_oracles_need_gold() -> None:
    with pytest.raises(DataError, match="the corpus has none"):
        found(BestConsensus(), {"a": [Span(0, 1, "PER")]})


@pytest.mark.parametrize(
    ("name", "majority", "spans", "oracle"),
    [("ncbi-disease", 78.44, 78.85, 81.63), ("laptop-review", 73.27, 73.81, 77.37)],
)
def test_published_votes_are_met(name: str, majority: float, spans: float, oracle: float, data_folder: object) -> None:
    import json
    from pathlib import Path

    from tagweave.evaluation import evaluate
    from tagweave.formats import read

    folder = Path(str(data_folder)) / "weak" / name
    chosen = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["recommended_sources"]
    test = read(folder / "test.jsonl.gz").select_sources(chosen)
    scores = [100 * evaluate(test, m.fit(test).predict(test)).f1 for m in (MajorityVote(), SpanVote(), BestConsensus())]
    np.testing.assert_allclose(scores, [majority, spans, oracle], atol=0.01)
