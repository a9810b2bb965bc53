import contextlib
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.mention_texts import contents, corpora
from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, TagweaveError
from tagweave.formats import FormatWarning, read, write
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions
from tagweave.formats.standoff import Discontinuous, Mention, mention_documents, text_and_spans

FORMATS = ["pubtator", "bioc", "brat", "semeval"]
SOUND = Corpus.from_documents(
    [
        Document(
            "d",
            ["Ada", "left", "\U0001f680", "Oslo"],
            text="Ada left \U0001f680\nOslo",
            characters=[(0, 3), (4, 8), (9, 10), (11, 15)],
            entities=[Span(0, 1, "PER"), Span(2, 4, "LOC")],
        )
    ]
)


def found(
    text: str, *mentions: Mention, discontinuous: Discontinuous = "envelope", **options: str
) -> tuple[list[str], Problems]:
    problems = Problems("f")
    chosen = TextOptions(**options)  # type: ignore[arg-type]
    [document] = mention_documents("d", text, mentions, chosen, problems, discontinuous=discontinuous)
    assert document.characters is not None
    places = document.characters
    spans = document.entities or ()
    return [text[places[span.start][0] : places[span.end - 1][1]] for span in spans], problems


def mention(surface: str | None, *pieces: tuple[int, int]) -> Mention:
    return Mention(pieces, "X", surface, "T1")


@pytest.mark.parametrize(
    ("text", "surface", "place"),
    [
        ("in New\r\nYork", "New York", (3, 12)),
        ("in New\u00a0 York", "New York", (3, 12)),
        ("a b", None, (0, 3)),
        ("'a' b", "'a'", (0, 3)),
    ],
)
def test_blanks_do_not_count(text: str, surface: str | None, place: tuple[int, int]) -> None:
    words, problems = found(text, mention(surface, place))
    assert words == [text[slice(*place)]]
    assert problems.summary() == "f: "


def test_other_signs_are_reported_and_the_text_counts() -> None:
    words, problems = found('plus " seizures "', mention("plus   seizures  ", (0, 17)))
    assert words == ['plus " seizures "']
    assert "1 mentions that have other signs than the text" in problems.summary()


@pytest.mark.parametrize("surface", ["Pris", "paris", "aris ", "Paris.", "", "Par-s"])
def test_other_letters_are_an_error(surface: str) -> None:
    with pytest.raises(AlignmentError, match=r"T1 says that 3 to 8 is '.*', but there is 'Paris'"):
        found("in Paris.", mention(surface, (3, 8)))


def test_signs_alone_prove_nothing() -> None:
    with pytest.raises(AlignmentError, match="T1 says"):
        found("a --- b", mention("+++", (2, 5)))


def test_an_error_says_where_the_words_are() -> None:
    with pytest.raises(AlignmentError, match=r"but there is 'n Osl' \('Oslo' is at 11 to 15\)"):
        found("Oslo or in Oslo", mention("Oslo", (9, 14)))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("one\ntwo!", ((0, 3), (4, 7))),
        ("one\r\n\ttwo!", ((0, 3), (6, 9))),
        ("one-two!", ((0, 3), (3, 7))),
        ("one two!", ((0, 5), (4, 7))),
        ("one two!", ((0, 7), (4, 5))),
    ],
)
def test_pieces_with_only_blanks_between_are_one(text: str, pieces: tuple[tuple[int, int], ...]) -> None:
    words, problems = found(text, mention(None, *pieces), discontinuous="fragments")
    assert words == [text.removesuffix("!")]
    assert problems.summary() == "f: "


@pytest.mark.parametrize(("policy", "words"), [("envelope", ["red and blue pens"]), ("fragments", ["red", "pens"])])
@pytest.mark.parametrize("surface", ["red pens", "red ... pens", "redpens", "red and blue pens", None])
def test_a_mention_in_several_pieces(policy: Discontinuous, words: list[str], surface: str | None) -> None:
    spans, problems = found("red and blue pens", mention(surface, (0, 3), (13, 17)), discontinuous=policy)
    assert spans == words
    assert "1 mentions in several pieces, read as one span" in problems.summary()


def test_pieces_that_cover_something_else_are_an_error() -> None:
    with pytest.raises(AlignmentError, match=r"0 to 3 and 12 to 16 is 'red pens', but there is 'red  pen'"):
        found("red and blue pens", mention("red pens", (0, 3), (12, 16)))


ROCKET = "\U0001f680 in Oslo"


def test_utf16_units_are_changed_to_code_points() -> None:
    assert found(ROCKET, mention("Oslo", (6, 10)), offset_unit="utf16")[0] == ["Oslo"]
    with pytest.raises(AlignmentError, match="read with offset_unit='utf16'"):
        found(ROCKET, mention("Oslo", (6, 10)))
    with pytest.raises(AlignmentError, match="T1, 1 to 5, begins or ends inside a UTF-16 pair"):
        found(ROCKET, mention("x", (1, 5)), offset_unit="utf16")


@pytest.mark.parametrize("place", [(0, 9), (9, 10), (2, 2), (3, 2), (0, 10**14)])
def test_places_outside_the_text(place: tuple[int, int]) -> None:
    words, problems = found("in Oslo", mention(None, place))
    assert words == []
    assert "1 spans left out that are not in the text" in problems.summary()
    with pytest.raises(AlignmentError, match="does not lie within the 7 characters"):
        found("in Oslo", mention(None, place), bad_spans="raise")
    with pytest.raises(AlignmentError, match="does not lie within the 7 characters"):
        found("in Oslo", mention("Oslo", place))


def test_nobody_looked_for_mentions() -> None:
    [document] = mention_documents("d", "in Oslo", None, TextOptions(), Problems("f"))
    assert document.entities is None


def test_sentences_take_their_mentions_with_them() -> None:
    options = TextOptions(tokenizer="spacy", sentences=True)
    text = "Ada left. She saw Oslo."
    documents = list(mention_documents("d", text, [mention("Oslo", (18, 22))], options, Problems("f")))
    assert [(item.id, item.group, item.entities) for item in documents] == [
        ("d-0", "d", []),
        ("d-1", "d", [Span(2, 3, "X")]),
    ]


def test_tokens_without_text_are_joined_for_writing() -> None:
    problems = Problems("f")
    document = Document("d", ["in", "New", "York", " "], entities=[Span(1, 3, "LOC"), Span(3, 4, "X")])
    assert text_and_spans(document, problems) == ("in New York  ", [(3, 11, "LOC")])
    assert "1 documents without text" in problems.summary()
    assert "1 spans left out that cover only blanks" in problems.summary()


def test_places_of_tokens_are_looked_up_where_they_are_missing() -> None:
    [document] = Corpus.from_documents([Document("d", ["b"], text="a b", entities=[Span(0, 1, "X")])])
    assert text_and_spans(document, Problems("f")) == ("a b", [(2, 3, "X")])


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60)
@given(corpus=corpora())
def test_what_is_written_is_read(format: str, corpus: Corpus) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        path = Path(folder, "out")
        write(corpus, path, format=format)
        again = read(path, format=format, **({"type": "X"} if format == "semeval" else {}))
    expected, result = contents(corpus), contents(again)
    if format == "pubtator":  # which has no line ends but one
        assert {name: [" ".join((text or "").split()), *rest] for name, (text, *rest) in result.items()} == {
            name: [" ".join((text or "").split()), *rest] for name, (text, *rest) in expected.items()
        }
    else:
        assert result == expected


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=150)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(format: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        write(SOUND, Path(folder, "out"), format=format)
        path = Path(folder, "out", "d.ann") if format == "brat" else Path(folder, "out")
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(content) - 1))
            end = start + data.draw(st.integers(0, 3))
            content[start:end] = data.draw(
                st.sampled_from([b"", b"9", b"-", b"\t", b"\n", b"<", b"&x;", b"\xff", b";", b"|"])
            )
        path.write_bytes(content)
        with contextlib.suppress(TagweaveError):
            for document in read(path, format=format):
                assert document.entities is not None


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_format_cannot_hold_is_said_once(format: str, tmp_path: Path) -> None:
    document = Document("d", ["Oslo"], text="Oslo", characters=[(0, 4)], group="g", sources={"s": [Span(0, 1, "X")]})
    corpus = Corpus.from_documents([document])
    scored = Annotations.from_lists([[Span(0, 1, "X", 0.5)]], ("O", "X"))
    with pytest.warns(FormatWarning) as caught:
        write(corpus.with_entities(scored), tmp_path / "out", format=format)
    assert len(caught) == 1
    assert caught[0].message.counts == {"sources": 1, "groups": 1, "scores": 1}  # type: ignore[union-attr]
