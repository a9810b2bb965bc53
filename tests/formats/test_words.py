import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.errors import AlignmentError
from tagweave.formats.words import align, code_points_of_utf16, locate, tokenize

TEXT = st.text(st.sampled_from("ab1_ .,-'\t\n\u00e9\u0301\u0939\u093f\u4e2d\U0001f680\u2028\u200d"), max_size=30)


@given(TEXT, st.sampled_from(["words", "whitespace", "characters"]))
def test_tokens_are_pieces_of_the_text_and_nothing_but_blanks_is_left(text: str, tokenizer: str) -> None:
    offsets = tokenize(text, tokenizer)  # type: ignore[arg-type]
    assert all(start < end for start, end in offsets)
    assert [place for pair in offsets for place in pair] == sorted(place for pair in offsets for place in pair)
    covered = {place for start, end in offsets for place in range(start, end)}
    assert all(text[place].isspace() != (place in covered) for place in range(len(text)))


def test_marks_stay_with_their_letter() -> None:
    text = "cafe\u0301 \u0939\u093f\u0902\u0926\u0940 \u2764\ufe0fVestara"
    tokens = [text[start:end] for start, end in tokenize(text)]
    assert tokens == ["cafe\u0301", "\u0939\u093f\u0902\u0926\u0940", "\u2764\ufe0f", "Vestara"]
    characters = [text[start:end] for start, end in tokenize(text, "characters")]
    assert characters[3:7] == ["e\u0301", "\u0939\u093f\u0902", "\u0926\u0940", "\u2764\ufe0f"]


@given(TEXT)
def test_own_tokens_are_found_again(text: str) -> None:
    offsets = tokenize(text)
    assert locate([text[start:end] for start, end in offsets], text) == offsets


def test_the_first_token_that_is_not_there_is_named() -> None:
    with pytest.raises(AlignmentError, match="token 1, 'an'"):
        locate(["Eis", "an", "dem"], "Eis im Dom")


@given(TEXT, st.data())
def test_alignment_against_all_tokens(text: str, data: st.DataObject) -> None:
    offsets = tokenize(text)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    if start == end:
        return
    touched = [n for n, (first, last) in enumerate(offsets) if first < end and last > start]
    inside = [n for n in touched if start <= offsets[n][0] and offsets[n][1] <= end]
    expected = {"expand": touched, "contract": inside, "strict": touched if touched == inside else []}
    for mode, numbers in expected.items():
        found = align(start, end, offsets, mode)  # type: ignore[arg-type]
        assert found.tokens == ((numbers[0], numbers[-1] + 1) if numbers else None)
        assert found.exact == (bool(touched) and touched == inside)


@given(TEXT)
def test_utf16_units(text: str) -> None:
    places = code_points_of_utf16(text)
    assert len(places) == len(text.encode("utf-16-le")) // 2 + 1
    for index in range(len(text) + 1):
        assert places[len(text[:index].encode("utf-16-le")) // 2] == index
