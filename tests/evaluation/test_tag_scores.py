"""Scores of tag sequences, with seqeval as oracle."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

from tagweave.errors import AlignmentError, LabelError, UsageError
from tagweave.evaluation import Scores, score_tags
from tagweave.labels import Decoding

TAGS = ["O", "B-A", "I-A", "B-B", "I-B", "B-C-C", "I-C-C"]


@st.composite
def tagged(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    lengths = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    sides = [
        [draw(st.lists(st.sampled_from(TAGS), min_size=length, max_size=length)) for length in lengths]
        for _ in range(2)
    ]
    return sides[0], sides[1]


def values(scores: Scores, average: str) -> list[float]:
    score = getattr(scores, average)
    return [score.precision, score.recall, score.f1]


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("average", ["micro", "weighted"])
@given(sides=tagged())
@settings(max_examples=100, deadline=None)
def test_agrees_with_seqeval(mode: Decoding, average: str, sides: tuple[list[list[str]], list[list[str]]]) -> None:
    gold, predicted = sides
    options = {"mode": "strict", "scheme": IOB2} if mode == "strict" else {}
    ours = score_tags(gold, predicted, mode, bootstrap=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = [
                metric(gold, predicted, average=average, zero_division=0, **options)
                for metric in (precision_score, recall_score, f1_score)
            ]
        except ValueError:  # seqeval fails where neither side has an entity
            assert ours.micro.predicted == ours.micro.support == 0
            return
    assert values(ours, average) == pytest.approx(theirs)


def test_an_inside_tag_without_beginning() -> None:
    gold, predicted = [["B-X", "I-X", "O"]], [["I-X", "I-X", "O"]]
    lenient, strict = (score_tags(gold, predicted, mode) for mode in ("lenient", "strict"))
    assert (lenient.f1, strict.f1) == (1.0, 0.0)
    assert lenient.micro.support == strict.micro.support == 1
    assert (lenient.reading, strict.reading) == ("tags:lenient", "tags:strict")
    assert "tags:lenient" in lenient.text()


def test_averages_are_what_they_say() -> None:
    gold = [["B-G", "O", "B-G", "O", "B-T", "I-T"], ["B-G", "O", "B-A", "O"], ["B-G", "B-T", "O"]]
    predicted = [["B-G", "O", "B-G", "O", "B-T", "I-T"], ["B-G", "O", "O", "O"], ["B-T", "O", "O"]]
    scores = score_tags(gold, predicted)
    assert values(scores, "micro") == pytest.approx([0.8, 4 / 7, 2 / 3])
    assert values(scores, "macro") == pytest.approx([0.5, 5 / 12, 19 / 42])
    assert values(scores, "weighted") == pytest.approx([5 / 7, 4 / 7, 31 / 49])
    assert scores.by_type["A"].f1 == 0.0
    assert scores.by_type["A"].undefined == ("precision",)


def test_other_schemes() -> None:
    assert score_tags([["B-X", "E-X", "S-X"]], [["B-X", "E-X", "O"]], scheme="BIOES").recall == 0.5


def test_lengths_are_checked() -> None:
    with pytest.raises(AlignmentError, match="2 gold tag sequences, but 1"):
        score_tags([["O"], ["O"]], [["O"]])
    with pytest.raises(AlignmentError, match="sequence 1 has 2 gold tags, but 1"):
        score_tags([["O"], ["O", "O"]], [["O"], ["O"]])


def test_bad_tags_and_modes_are_named() -> None:
    with pytest.raises(LabelError, match="'0'"):
        score_tags([["0"]], [["O"]])
    with pytest.raises(UsageError, match="'lenient'"):
        score_tags([], [], "leniant")  # type: ignore[arg-type]


def test_a_million_tags() -> None:
    sentence = ["B-A", "I-A", "O", "I-B", "O"] * 4
    gold = [sentence] * 50_000
    scores = score_tags(gold, gold, "lenient")
    assert scores.tokens == 1_000_000
    assert scores.micro.support == 400_000
    assert scores.f1 == 1.0
