import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.errors import LabelError, UsageError
from tagweave.formats.problems import Problems
from tagweave.formats.tag_parser import TagParser
from tagweave.formats.tags import Scheme, detect_scheme, parse_tag, scheme_named, spans_from_tags, tags_from_spans

TYPES = st.sampled_from(["PER", "Multi-part_thing", "E", "B-X"])


@st.composite
def tiled(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans that do not overlap, and the length of their sentence."""
    spans, position = [], 0
    for gap, length, name in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), TYPES), max_size=5)):
        spans.append(Span(position + gap, position + gap + length, name))
        position += gap + length
    return spans, position + draw(st.integers(0, 2))


def in_scheme(spans: list[Span], length: int, scheme: Scheme) -> list[str]:
    """Tags by the definition of each scheme."""
    tags, before = ["O"] * length, ""
    ends = {"BIOES": "IES", "BILOU": "ILU", "BMES": "MES"}
    for number, span in enumerate(spans):
        middle, last, single = ends.get(scheme, "IIB")
        if scheme == "IOB1":
            touches = number > 0 and spans[number - 1].end == span.start and before == span.type
            first = single = "B" if touches else "I"
        else:
            first = "B"
        size = span.end - span.start
        prefixes = [single] if size == 1 else [first, *[middle] * (size - 2), last]
        tags[span.start : span.end] = [f"{prefix}-{span.type}" for prefix in prefixes]
        before = span.type
    return tags


@given(tiled(), st.sampled_from(["BIO", "IOB1", "BIOES", "BILOU", "BMES"]), st.sampled_from(["lenient", "strict"]))
def test_every_scheme_gives_its_spans_back(case: tuple[list[Span], int], scheme: Scheme, mode: str) -> None:
    spans, length = case
    tags = in_scheme(spans, length, scheme)
    assert spans_from_tags(tags, scheme, mode) == spans  # type: ignore[arg-type]


@given(tiled(), st.sampled_from(["BIO", "IOB1", "BIOES", "BILOU", "BMES"]))
def test_a_scheme_that_is_found_out_gives_the_same_spans(case: tuple[list[Span], int], scheme: Scheme) -> None:
    spans, length = case
    assert spans_from_tags(in_scheme(spans, length, scheme)) == spans


@given(tiled())
def test_bio_tags_and_back(case: tuple[list[Span], int]) -> None:
    spans, length = case
    tags = tags_from_spans(spans, length)
    assert len(tags) == length
    assert spans_from_tags(tags, "BIO", "strict") == spans


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        ([["B-X", "I-X", "O"], ["B-X"]], "BIO"),
        ([["O"]], "BIO"),
        ([["I-X", "O"], ["I-X", "B-X"]], "IOB1"),
        ([["I-X", "O"], ["B-X", "B-X"]], "BIO"),
        ([["I-X", "I-Y"]], "IO"),
        ([["B-X", "E-X"]], "BIOES"),
        ([["B-X", "I-X"], ["S-X"]], "BIOES"),
        ([["U-X"]], "BILOU"),
        ([["B-X", "M-X", "E-X"]], "BMES"),
        ([["X", "O", "Y-Z"]], "bare"),
    ],
)
def test_the_scheme_is_found_out(sentences: list[list[str]], scheme: str) -> None:
    assert detect_scheme(sentences) == scheme


def test_lenient_and_strict_reading() -> None:
    tags = ["I-X", "O", "B-X", "I-Y"]
    assert spans_from_tags(tags, "BIO") == [Span(0, 1, "X"), Span(2, 3, "X"), Span(3, 4, "Y")]
    assert spans_from_tags(tags, "BIO", "strict") == [Span(2, 3, "X")]
    assert spans_from_tags(["B-X", "I-X", "O", "S-X"], "BIOES", "strict") == [Span(3, 4, "X")]


def test_a_closed_entity_does_not_go_on() -> None:
    assert spans_from_tags(["B-X", "E-X", "I-X"], "BIOES") == [Span(0, 2, "X"), Span(2, 3, "X")]


@pytest.mark.parametrize(("tag", "guess"), [("0", "'O'"), ("o", "'O'"), ("b-PER", "'B-PER'"), ("PER-B", "'B-PER'")])
def test_a_stray_tag_comes_with_a_guess(tag: str, guess: str) -> None:
    with pytest.raises(LabelError, match=f"Did you mean {guess}"):
        parse_tag(tag, "BIO")


@pytest.mark.parametrize("tag", ["B-", "", "X-PER", "S-PER", "7", "B_"])
def test_stray_tags_are_errors(tag: str) -> None:
    with pytest.raises(LabelError):
        parse_tag(tag, "BIO")


def test_digits_are_no_bare_types() -> None:
    with pytest.raises(LabelError, match="'12'"):
        parse_tag("12")


def test_io_takes_no_other_prefix() -> None:
    assert parse_tag("I-PER", "IO") == parse_tag("PER", "IO")
    with pytest.raises(LabelError, match="B-PER"):
        parse_tag("B-PER", "IO")


def test_bare_types_may_look_prefixed() -> None:
    assert parse_tag("B-cell", "bare") == ("I", "B-cell")


@pytest.mark.parametrize(("name", "scheme"), [("iob2", "BIO"), ("IOBES", "BIOES"), ("io", "IO"), ("BARE", "bare")])
def test_scheme_names(name: str, scheme: str) -> None:
    assert scheme_named(name) == scheme


def test_an_unknown_scheme_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="BIOES"):
        scheme_named("BIOEX")


def test_tags_with_and_without_prefix_do_not_mix() -> None:
    with pytest.raises(LabelError, match="'LOC'"):
        detect_scheme([["B-PER"], ["LOC"]])
    parser = TagParser(None)
    parser.parse("LOC", "line 3")
    with pytest.raises(LabelError, match="line 3"):
        parser.parse("B-PER", "line 9")


def test_merging_and_loose_starts_are_reported() -> None:
    found = []
    for tags in (["I-X", "I-X"], ["I-X", "O", "B-X"], ["B-X", "I-X"], ["I-X", "B-X"]):
        problems, parser = Problems("f"), TagParser(None)
        parser.add([parser.parse(tag, "line 1") for tag in tags])
        parser.report(problems)
        found.append(problems.summary())
    assert "merges adjacent entities" in found[0]
    assert "1 entities that do not begin as the scheme BIO wants" in found[1]
    assert found[2] == found[3] == "f: "
