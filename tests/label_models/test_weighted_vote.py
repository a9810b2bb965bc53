import math

import numpy as np
import pytest

from label_models.simulated_votes import simulate
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import UsageError
from tagweave.label_models import MajorityVote, WeightedVote, create_label_model
from tagweave.label_models.weighted_vote import agreements
from tagweave.observations import observe

TYPES = ("LOC", "PER")
BALANCE, ACCURACIES = (0.4, 0.3, 0.3), (0.9, 0.7, 0.5, 0.3)


def corpus(*rows: tuple[str, ...]) -> Corpus:
    """One token a row; what each source says there: L, P, O or nothing (-)."""
    names = {"L": "LOC", "P": "PER", "O": "O"}
    sources = {
        f"s{k}": [Span(t, t + 1, names[said[k]]) for t, said in enumerate(rows) if said[k] != "-"]
        for k in range(len(rows[0]))
    }
    return Corpus.from_documents([Document("d", ["w"] * len(rows), sources=sources)], TYPES)


def test_with_equal_weights_it_is_the_majority_vote() -> None:
    votes = simulate(BALANCE, ACCURACIES, (0.8,) * 4, 500).corpus(TYPES)
    equal = WeightedVote(weights=dict.fromkeys(votes.sources, 0.7)).fit(votes).predict(votes)
    plain = MajorityVote().fit(votes).predict(votes)
    assert list(equal) == list(plain)


def test_the_given_weights_decide() -> None:
    votes = corpus(("L", "P", "P"))
    soft = WeightedVote(weights={"s0": 3, "s2": 0}).fit(votes).predict_proba(votes)
    np.testing.assert_allclose(soft.io(), [[0, 0.75, 0.25]])
    ignored = WeightedVote(weights={"s0": 0, "s1": 0, "s2": 0}).fit(votes)
    np.testing.assert_allclose(ignored.predict_proba(votes).io(), [[1, 0, 0]])


def test_agreement_is_counted_by_hand() -> None:
    votes = corpus(("L", "L", "L"), ("L", "P", "P"), ("P", "L", "-"), ("P", "-", "-"), ("O", "O", "O"), ("L", "P", "L"))
    # s0: agrees, disagrees, disagrees with s1; alone; only O; half, as s1 and s2 tie: 1.5 of 4.
    # s1: agrees; half; disagrees; disagrees: 1.5 of 4. s2: agrees; half; half: 2 of 3.
    found = agreements([observe(votes, "io", "always")], np.ones(3))
    mean = 5 / 11
    np.testing.assert_allclose(found, [(1.5 + mean) / 5, (1.5 + mean) / 5, (2 + mean) / 4])


def test_weights_order_sources_by_their_accuracy_and_help() -> None:
    simulated = simulate(BALANCE, ACCURACIES, (1.0,) * 4, 4000)
    votes = simulated.corpus(TYPES)
    model = WeightedVote(rounds=3).fit(votes)
    assert (np.diff(model.parameters()["weights"]) < 0).all()
    assert len(model.history_) == 3
    right = [
        (m.fit(votes).predict_proba(votes).io().argmax(axis=1) == simulated.labels).mean()
        for m in (model, MajorityVote())
    ]
    assert right[0] > right[1] + 0.02


def test_a_source_that_nobody_can_judge_counts_as_the_others() -> None:
    votes = corpus(*[("L", "L", "-")] * 3, ("L", "P", "-"), ("-", "-", "P"))
    weights = WeightedVote().fit(votes).parameters()["weights"]
    np.testing.assert_allclose(weights, 0.75)
    alone = corpus(("L",), ("P",))
    np.testing.assert_allclose(WeightedVote().fit(alone).parameters()["weights"], 1)


def test_weights_come_from_text() -> None:
    model = create_label_model("weighted-vote", {"weights": {"s0": "2.5"}})
    votes = corpus(("L", "P", "P"))
    assert model.fit(votes).parameters()["weights"].tolist() == [2.5, 1, 1]
    assert "2.500" in model.tables()[0].text()


def test_wrong_weights_are_errors() -> None:
    votes = corpus(("L", "P", "P"))
    with pytest.raises(UsageError, match="no source is called 's9'"):
        WeightedVote(weights={"s9": 1}).fit(votes)
    for weight in (-1, math.nan, math.inf):
        with pytest.raises(UsageError, match="weight of source 's0'"):
            WeightedVote(weights={"s0": weight}).fit(votes)
