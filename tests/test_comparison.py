import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tagweave import Corpus, DataError, Document, LabelModel, MajorityVote, Span, SpanVote, TagweaveWarning
from tagweave.comparison import compare

TOKENS = ["Ada", "Lovelace", "left", "Oslo"]
GOLD = [Span(0, 2, "PER"), Span(3, 4, "LOC")]
VOTES = {"names": [Span(0, 2, "PER")], "cities": [Span(3, 4, "LOC")]}


@dataclass(kw_only=True)
class Impossible(LabelModel):
    name: ClassVar[str] = "impossible"

    def _fit(self, corpus: Corpus, dev: Corpus | None) -> None:
        raise DataError("three sources are needed")

    def _infer(self, corpus: Corpus, features: Any) -> Any:  # noqa: ANN401
        raise AssertionError


@dataclass(kw_only=True)
class OnlyPeople(MajorityVote):
    """Leaves all places out."""

    name: ClassVar[str] = "only-people"

    def predict(self, corpus: Corpus) -> Corpus:
        found = super().predict(corpus)
        people = [[span for span in document.entities or [] if span.type == "PER"] for document in found]
        documents = [Document(d.id, d.tokens, entities=e) for d, e in zip(found, people, strict=True)]
        return Corpus.from_documents(documents, found.types)


def corpus(gold: bool = True) -> Corpus:
    entities = GOLD if gold else None
    return Corpus.from_documents([Document(f"d{i}", TOKENS, entities=entities, sources=VOTES) for i in range(4)])


def test_the_best_model_comes_first() -> None:
    found = compare(corpus(), {"people": OnlyPeople(), "all": MajorityVote()})
    assert [(result.name, result.entities) for result in found.results] == [("all", 8), ("people", 4)]
    scores = [result.scores for result in found.results]
    assert [s.f1 for s in scores if s is not None] == pytest.approx([1.0, 2 / 3])
    assert "gold" in found.text()
    assert [row["f1"] for row in found.table().records()] == pytest.approx([100, 200 / 3])


def test_models_are_scored_on_dev() -> None:
    dev = Corpus.from_documents([Document("x", TOKENS, entities=[Span(0, 2, "PER")], sources=VOTES)])
    found = compare(corpus(gold=False), {"all": MajorityVote()}, dev)
    assert found.on == "dev"
    (result,) = found.results
    assert result.scores is not None
    assert (result.scores.micro.support, result.entities) == (1, 2)


def test_without_gold_there_is_agreement_and_the_given_order() -> None:
    found = compare(corpus(gold=False), {"people": OnlyPeople(), "all": MajorityVote(), "spans": SpanVote()})
    assert not found.has_gold
    assert [result.name for result in found.results] == ["people", "all", "spans"]
    assert found.results[0].agreement == pytest.approx({"all": 2 / 3, "spans": 2 / 3})
    assert found.results[1].mean_agreement == pytest.approx((2 / 3 + 1) / 2)
    assert found.agreement_table().rows[1] == ("all", pytest.approx(200 / 3), None, 100.0)


def test_a_model_that_cannot_be_fitted_is_named() -> None:
    with pytest.warns(TagweaveWarning, match="left out of the comparison: odd: three sources are needed"):
        found = compare(corpus(), {"odd": Impossible(), "all": MajorityVote()})
    assert [result.name for result in found.results] == ["all"]


@pytest.mark.parametrize(
    ("models", "message"), [({"odd": Impossible()}, "three sources"), ({}, "no label model given")]
)
def test_nothing_to_compare(models: dict[str, LabelModel], message: str) -> None:
    with warnings.catch_warnings(), pytest.raises(DataError, match=message):
        compare(corpus(), models)
