import gzip
import re
import warnings
from pathlib import Path

import pytest

from formats.mention_texts import ASTRAL, EMOJI, HEBREW, mentions
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats import FormatWarning, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.xml"


def sentences(path: Path, *inside: str) -> Path:
    path.write_text(f'<?xml version="1.0"?>\n<sentences>\n{chr(10).join(inside)}\n</sentences>', encoding="utf-8")
    return path


def term(term: str, start: int, end: int) -> str:
    return f'<aspectTerm term="{term}" polarity="positive" from="{start}" to="{end}"/>'


def sentence(name: str, text: str, *terms: str) -> str:
    return f'<sentence id="{name}"><text>{text}</text><aspectTerms>{"".join(terms)}</aspectTerms></sentence>'


def test_sentences_with_aspect_terms(path: Path) -> None:
    sentences(
        path,
        sentence(
            "805:2",
            "The &quot;sales&quot; team &amp; cord",
            term("cord", 19, 23),
            term("&quot;sales&quot; team", 4, 16),
        ),
        '<sentence id="2"><text>It works.</text></sentence>',
    )
    corpus = read(path)
    assert corpus.types == ("TERM",)
    assert corpus.groups is None
    assert {name: sorted(found) for name, found in mentions(corpus).items()} == {
        "805:2": [("TERM", '"sales" team'), ("TERM", "cord")],
        "2": [],
    }
    assert corpus[1].entities == []


def test_the_type_may_be_named(path: Path) -> None:
    sentences(path, sentence("1", "a cord", term("cord", 2, 6)))
    assert read(path, type="ASPECT").types == ("ASPECT",)


def test_sentences_without_id_are_numbered(path: Path) -> None:
    sentences(path, "<sentence><text>a</text></sentence>", "<sentence><text/></sentence>")
    corpus = read(path)
    assert [(document.id, document.text) for document in corpus] == [("in-0", "a"), ("in-1", "")]


@pytest.mark.parametrize("text", [EMOJI, HEBREW, ASTRAL])
def test_offsets_count_code_points(path: Path, text: str) -> None:
    word = text.split()[-1]
    sentences(path, sentence("1", text, term(word, text.rindex(word), len(text))))
    assert mentions(read(path)) == {"1": [("TERM", word)]}


def test_line_ends_are_read_as_xml_has_them(path: Path) -> None:
    path.write_bytes(
        sentences(path, sentence("1", "the\nred cord&#13;\n.", term("red cord", 4, 12)))
        .read_bytes()
        .replace(b"\n", b"\r\n")
    )
    corpus = read(path)
    assert corpus[0].text == "the\nred cord\r\n."
    assert mentions(corpus) == {"1": [("TERM", "red cord")]}


def test_categories_are_left_out_with_a_note(path: Path) -> None:
    categories = '<aspectCategories><aspectCategory category="food" polarity="negative"/></aspectCategories>'
    sentences(path, f'<sentence id="1"><text>a</text>{categories}</sentence>')
    with pytest.warns(FormatWarning, match="1 categories of aspects left out"):
        assert read(path)[0].entities == []


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<sentence id="1"/>', "line 3, sentence '1': has no text"),
        (
            sentence("1", "a cord", term("cord", 1, 5)),
            r"the aspect term in line 3 says that 1 to 5 is 'cord'.*at 2 to 6",
        ),
        (
            sentence("1", "a cord", '<aspectTerm term="cord" from="2"/>'),
            "the to of the aspect term in line 3 must be a whole",
        ),
        (sentence("1", "a cord", term("cord", 2, 60)), "does not lie within the 6 characters"),
    ],
)
def test_sentences_that_are_wrong(path: Path, inside: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"in\.xml, line 3, sentence '1'.*{message}|in\.xml, {message}"):
        read(sentences(path, inside))


def test_an_id_that_comes_twice(path: Path) -> None:
    with pytest.raises(FormatError, match="in.xml.*'1' occurs twice"):
        read(sentences(path, sentence("1", "a"), sentence("1", "b")))


def test_another_root_is_refused(path: Path) -> None:
    path.write_text("<Reviews/>")
    with pytest.raises(FormatError, match="the root element is 'Reviews', not 'sentences'"):
        read(path, format="semeval")


def test_writing(path: Path) -> None:
    document = Document("805:2", ["a", "<b>"], text="a <b>", characters=[(0, 1), (2, 5)], entities=[Span(1, 2, "X")])
    write(
        Corpus.from_documents([document, Document("2", ["c"], text="c", characters=[(0, 1)])]), path, format="semeval"
    )
    assert path.read_text().splitlines()[1:] == [
        "<sentences>",
        '<sentence id="805:2"><text>a &lt;b&gt;</text><aspectTerms><aspectTerm term="&lt;b&gt;" from="2" to="5"/>'
        "</aspectTerms></sentence>",
        '<sentence id="2"><text>c</text></sentence>',
        "</sentences>",
    ]


def test_types_are_lost_with_a_note(path: Path) -> None:
    document = Document(
        "1", ["a", "b"], text="a b", characters=[(0, 1), (2, 3)], entities=[Span(0, 1, "X"), Span(1, 2, "Y")]
    )
    with pytest.warns(FormatWarning, match="2 names of entity types left out"):
        write(Corpus.from_documents([document]), path, format="semeval")
    assert mentions(read(path)) == {"1": [("TERM", "a"), ("TERM", "b")]}


def test_control_characters_are_refused(path: Path) -> None:
    corpus = Corpus.from_documents([Document("1", ["a"], text="a\x1b", characters=[(0, 1)])])
    with pytest.raises(AlignmentError, match="cannot hold document '1'"):
        write(corpus, path, format="semeval")
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "reported"), [("train", {"misaligned": 1, "trimmed": 1}), ("test", {"misaligned": 1})]
)
def test_real_files_are_read_whole(data_folder: Path, name: str, reported: dict[str, int]) -> None:
    path = data_folder / "raw" / "laptop-review" / f"{name}.xml.gz"
    text = gzip.open(path, "rt", encoding="utf-8").read()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read(path)
    assert len(corpus) == len(re.findall(r"<sentence\b", text)) > 700
    assert len(corpus.entities) == len(re.findall(r"<aspectTerm\b", text)) > 600  # type: ignore[arg-type]
    assert [warning.message.counts for warning in caught] == [reported]  # type: ignore[union-attr]
