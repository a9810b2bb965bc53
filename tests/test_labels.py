import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.errors import UsageError
from tagweave.formats.tags import spans_from_tags
from tagweave.labels import LabelSet, decode

BIO = LabelSet(("PER", "LOC"))
IO = LabelSet(("PER", "LOC"), "io")


def test_names_and_their_parts() -> None:
    assert BIO.names == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    assert IO.names == ("O", "PER", "LOC")
    assert BIO.type_ids.tolist() == [0, 1, 1, 2, 2]
    assert IO.type_ids.tolist() == [0, 1, 2]
    assert BIO.begins.tolist() == [False, True, False, True, False]
    assert not IO.begins.any()
    assert len(LabelSet(())) == len(LabelSet((), "io")) == 1


@pytest.mark.parametrize("labels", [BIO, IO])
def test_first_and_inside_are_labels_of_their_type(labels: LabelSet) -> None:
    for number, name in enumerate(("O", "PER", "LOC")):
        first, inside = labels.names[labels.first[number]], labels.names[labels.inside[number]]
        expected = (name, name) if name == "O" or labels is IO else (f"B-{name}", f"I-{name}")
        assert (first, inside) == expected


def test_legal_moves_by_name() -> None:
    for source, before in enumerate(BIO.names):
        for target, after in enumerate(BIO.names):
            legal = not after.startswith("I-") or before in (after, f"B-{after[2:]}")
            assert BIO.legal_moves[source, target] == legal
    assert BIO.legal_starts.tolist() == [True, True, False, True, False]
    assert IO.legal_moves.all()
    assert IO.legal_starts.all()


def test_an_unknown_state_space_is_an_error() -> None:
    with pytest.raises(UsageError, match="Did you mean 'bio'"):
        LabelSet(("X",), "bioo")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=4), st.sampled_from(["lenient", "strict"]))
def test_decoding_against_one_sentence_at_a_time(sentences: list[list[int]], mode: str) -> None:
    labels = np.array([label for sentence in sentences for label in sentence], np.int8)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    span_offsets, starts, ends, types = decode(labels, offsets, BIO, mode)  # type: ignore[arg-type]
    for index, sentence in enumerate(sentences):
        rows = slice(span_offsets[index], span_offsets[index + 1])
        found = [
            Span(int(start), int(end), ("O", *BIO.types)[name])
            for start, end, name in zip(starts[rows], ends[rows], types[rows], strict=True)
        ]
        assert found == spans_from_tags([BIO.names[label] for label in sentence], "BIO", mode)  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=4))
def test_decoding_io(sentences: list[list[int]]) -> None:
    labels = np.array([label for sentence in sentences for label in sentence], np.int8)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    results = [decode(labels, offsets, IO, mode) for mode in ("lenient", "strict")]
    for lenient, strict in zip(*results, strict=True):
        assert lenient.tolist() == strict.tolist()
    expected = [span for sentence in sentences for span in spans_from_tags([IO.names[n] for n in sentence], "IO")]
    assert results[0][1].tolist() == [span.start for span in expected]
    assert results[0][2].tolist() == [span.end for span in expected]
