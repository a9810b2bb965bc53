import warnings
from pathlib import Path
from typing import Any

import bioc
import pytest

from formats.mention_texts import ASTRAL, EMOJI, HEBREW, mentions
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats import FormatWarning, read, read_batches, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.xml"


def documents(path: Path, *inside: str) -> Path:
    """A file of documents, of which each is what stands after its id."""
    made = "".join(f"<document><id>{number}</id>{one}</document>" for number, one in enumerate(inside, 1))
    head = '<!DOCTYPE collection SYSTEM "BioC.dtd"><collection><source>s</source><date/><key/>'
    path.write_text(f"{head}{made}</collection>", encoding="utf-8")
    return path


def passage(offset: int, text: str, *rest: str) -> str:
    return f"<passage><offset>{offset}</offset><text>{text}</text>{''.join(rest)}</passage>"


def annotation(surface: str | None, *places: tuple[int, int], type: str = "X") -> str:
    """An annotation at places with offset and length."""
    locations = "".join(f'<location offset="{offset}" length="{length}"/>' for offset, length in places)
    text = "" if surface is None else f"<text>{surface}</text>"
    infons = f'<infon key="identifier">D1</infon><infon key="type">{type}</infon>'
    return f'<annotation id="T7">{infons}{locations}{text}</annotation>'


def test_offsets_count_from_the_start_of_the_document(path: Path) -> None:
    documents(
        path,
        passage(0, "Lithium here", annotation("Lithium", (0, 7), type="Chemical"))
        + passage(13, "and flutter", annotation("flutter", (17, 7), type="Disease")),
        passage(0, "None."),
    )
    corpus = read(path)
    assert corpus[0].text == "Lithium here\nand flutter"
    assert corpus[0].characters == [(0, 7), (8, 12), (13, 16), (17, 24)]
    assert mentions(corpus) == {"1": [("Chemical", "Lithium"), ("Disease", "flutter")], "2": []}
    assert corpus[1].entities == []


@pytest.mark.parametrize("second", [12, 13, 15, 5000])
def test_passages_with_any_gap_between_them(path: Path, second: int) -> None:
    documents(path, passage(second, "and flutter", annotation("flutter", (second + 4, 7))) + passage(0, "Lithium here"))
    corpus = read(path)
    assert corpus[0].text == "Lithium here\nand flutter"
    assert mentions(corpus) == {"1": [("X", "flutter")]}


def test_a_document_that_begins_late(path: Path) -> None:
    assert mentions(read(documents(path, passage(10**9, "a b", annotation("b", (10**9 + 2, 1)))))) == {
        "1": [("X", "b")]
    }


def test_sentences_in_place_of_a_text(path: Path) -> None:
    first = f"<sentence><offset>4</offset><text>Ada left.</text>{annotation('Ada', (4, 3))}</sentence>"
    second = f"<sentence><offset>15</offset><text>She ran.</text>{annotation('ran', (19, 3))}</sentence>"
    corpus = read(documents(path, f"<passage><offset>4</offset>{first}{second}</passage>"))
    assert corpus[0].text == "Ada left.\nShe ran."
    assert mentions(corpus) == {"1": [("X", "Ada"), ("X", "ran")]}


def test_sentences_beside_a_text_only_have_annotations(path: Path) -> None:
    inner = f"<sentence><offset>4</offset><text>left.</text>{annotation('left', (4, 4))}</sentence>"
    corpus = read(documents(path, passage(0, "Ada left.", inner)))
    assert corpus[0].text == "Ada left."
    assert mentions(corpus) == {"1": [("X", "left")]}


def test_annotations_may_belong_to_the_document(path: Path) -> None:
    corpus = read(documents(path, passage(0, "Ada") + passage(4, "left") + annotation("Ada left", (0, 8))))
    assert mentions(corpus) == {"1": [("X", "Ada\nleft")]}


@pytest.mark.parametrize("policy", [None, "envelope", "fragments"])
def test_an_annotation_in_several_pieces(path: Path, policy: str | None) -> None:
    pieces = annotation("red pens", (13, 4), (0, 3))
    documents(path, passage(0, "red and blue pens", pieces))
    with pytest.warns(
        FormatWarning, match=r"1 mentions in several pieces.*'T7' in line 1 .offset 13., X, 0 to 3 and 13 to 17"
    ):
        corpus = read(path, **({} if policy is None else {"discontinuous": policy}))
    words = ["red", "pens"] if policy == "fragments" else ["red and blue pens"]
    assert mentions(corpus) == {"1": [("X", word) for word in words]}


def test_the_type_may_have_another_key(path: Path) -> None:
    documents(path, passage(0, "Ada", annotation("Ada", (0, 3))))
    assert read(path, type_key="identifier").types == ("D1",)
    with pytest.raises(FormatError, match="'T7' in line 1 .offset 0. has no infon 'kind', only 'identifier', 'type'"):
        read(path, type_key="kind")


def test_relations_and_annotations_without_location_are_left_out_with_a_note(path: Path) -> None:
    relation = '<relation id="R1"><node refid="T7" role="a"/></relation>'
    documents(path, passage(0, "Ada", annotation(None), relation) + relation)
    with pytest.warns(FormatWarning) as caught:
        assert read(path)[0].entities == []
    assert caught[0].message.counts == {"relations": 2, "no_location": 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("text", [EMOJI, HEBREW, ASTRAL])
def test_offsets_count_code_points(path: Path, text: str) -> None:
    word = text.split()[-1]
    start = text.rindex(word)
    documents(
        path, passage(0, text) + passage(len(text) + 1, text, annotation(word, (len(text) + 1 + start, len(word))))
    )
    assert mentions(read(path)) == {"1": [("X", word)]}


def test_offsets_in_utf16_units(path: Path) -> None:
    rocket = "\U0001f680 Oslo"
    documents(path, passage(0, rocket) + passage(8, rocket, annotation("Oslo", (11, 4))))
    with pytest.raises(AlignmentError, match="offset_unit='utf16'"):
        read(path)
    corpus = read(path, offset_unit="utf16")
    assert corpus[0].text == f"{rocket}\n{rocket}"
    assert corpus[0].entities == [Span(3, 4, "X")]


def test_line_ends_are_read_as_xml_has_them(path: Path) -> None:
    documents(path, passage(0, "In\r\nOslo&#13;\r\nit", annotation("Oslo", (3, 4)), annotation("it", (9, 2))))
    corpus = read(path)
    assert corpus[0].text == "In\nOslo\r\nit"
    assert mentions(corpus) == {"1": [("X", "Oslo"), ("X", "it")]}


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            passage(0, "Ada", annotation("Ada", (1, 3))),
            r"annotation 'T7' in line 1 .offset 1. does not lie within the passages with its length 3",
        ),
        (
            passage(0, "Ada left", annotation("Ada", (1, 3))),
            r"'T7' in line 1 .offset 1. says that 1 to 4 is 'Ada'.*\('Ada' is at 0 to 3\)",
        ),
        (passage(9, "Ada", annotation("Ada", (0, 3))), "offset 0. does not lie within the passages"),
        (passage(0, "a") + passage(5, "b", annotation("b", (1, 5))), "offset 1. does not lie within the passages"),
        (passage(0, "Ada") + passage(2, "left"), "at offset 2 begins before the one at 0 ends"),
        ("<passage><text>a</text></passage>", "the offset of a passage must be a whole number"),
        (
            passage(0, "a", '<annotation id="T1"><location offset="0"/></annotation>'),
            "the length of the annotation 'T1'",
        ),
        (
            passage(0, "a", annotation("a", (0, 1), type="")),
            "'T7' in line 1 .offset 0. has no infon 'type', only 'identifier'",
        ),
        (passage(0, "a", annotation("a", (0, 1), type="O")), "'O' is no entity type"),
    ],
)
def test_documents_that_are_wrong(path: Path, inside: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"in\.xml, line 1, document '1': .*{message}"):
        read(documents(path, inside))


@pytest.mark.parametrize("place", [(1, 3), (7, 1), (0, 0)])
def test_places_that_say_nothing_may_be_left_out(path: Path, place: tuple[int, int]) -> None:
    documents(path, passage(0, "Ada", annotation(None, place)))
    with pytest.warns(FormatWarning, match="1 spans left out that are not in the text"):
        assert read(path)[0].entities == []
    with pytest.raises(AlignmentError, match="'T7'"):
        read(path, bad_spans="raise")


def test_ids_and_empty_documents(path: Path) -> None:
    path.write_text(f"<collection><document>{passage(0, 'a')}</document><document><id> x </id></document></collection>")
    assert [(document.id, document.text) for document in read(path)] == [("in-0", "a"), ("x", "")]
    with pytest.raises(FormatError, match=r"in.xml, line 1, document '1': .*occurs twice"):
        read(documents(path, "", "</document><document><id>1</id>"))


def test_entities_and_broken_files(path: Path) -> None:
    path.write_text('<!DOCTYPE collection [<!ENTITY a "b">]><collection><document><id>&a;</id></document></collection>')
    with pytest.raises(FormatError, match="declares the entity 'a'"):
        read(path)
    documents(path, passage(0, "a"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match="not well-formed"):
        read(path, format="bioc")


def test_a_stream_of_documents(path: Path) -> None:
    documents(path, *[passage(0, "Ada left", annotation("Ada", (0, 3)))] * 7)
    assert [len(batch) for batch in read_batches(path, documents=3)] == [3, 3, 1]


def corpus(text: str, *spans: tuple[int, int, str]) -> Corpus:
    """A corpus of one document whose tokens are its entities."""
    characters = [(start, end) for start, end, _ in spans]
    entities = [Span(index, index + 1, name) for index, (_, _, name) in enumerate(spans)]
    tokens = [text[start:end] for start, end in characters]
    return Corpus.from_documents([Document("d<1>", tokens, text=text, characters=characters, entities=entities)])


TEXT = f"{EMOJI}\r\n{HEBREW} & {ASTRAL}"
SPANS = [(2, 5, "PER"), (16, 19, "PER"), (29, 35, "LOC & more"), (44, 47, "X")]


def test_another_reader_reads_what_is_written(path: Path) -> None:
    write(corpus(TEXT, *SPANS), path, format="bioc")
    with path.open(encoding="utf-8") as file:
        [document] = bioc.biocxml.load(file).documents
    bioc.validate(bioc_collection(document))
    [passage] = document.passages
    assert (document.id, passage.offset, passage.text) == ("d<1>", 0, TEXT)
    found = [(a.total_span.offset, a.total_span.end, a.infons["type"]) for a in passage.annotations]
    assert found == SPANS
    assert [a.text for a in passage.annotations] == [TEXT[start:end] for start, end, _ in SPANS]


def bioc_collection(*documents: Any) -> bioc.BioCCollection:  # noqa: ANN401
    made = bioc.BioCCollection()
    for document in documents:
        made.add_document(document)
    return made


def test_what_another_writer_writes_is_read(path: Path) -> None:
    document = bioc.BioCDocument()
    document.id = "d"
    for offset, text in ((0, EMOJI), (len(EMOJI) + 3, f"{HEBREW}\r\n{ASTRAL}")):
        part = bioc.BioCPassage()
        part.offset, part.text = offset, text
        document.add_passage(part)
    for number, places in enumerate([[(2, 3)], [(30, 6)], [(2, 3), (16, 3)]]):
        made = bioc.BioCAnnotation()
        made.id, made.infons["type"] = str(number), f"X{number}"
        made.text = ("Ada", "\u05d1\u05d0\u05d5\u05e1\u05dc\u05d5", "Ada Zo\u00eb")[number]
        for offset, length in places:
            made.add_location(bioc.BioCLocation(offset, length))
        document.passages[0].add_annotation(made)
    path.write_text(bioc.biocxml.dumps(bioc_collection(document)), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        found = read(path)
    assert found[0].text == f"{EMOJI}\n{HEBREW}\r\n{ASTRAL}"
    assert sorted(mentions(found)["d"]) == [
        ("X0", "Ada"),
        ("X1", "\u05d1\u05d0\u05d5\u05e1\u05dc\u05d5"),
        ("X2", EMOJI[2:]),
    ]


def test_characters_that_xml_cannot_hold(path: Path) -> None:
    with pytest.raises(AlignmentError, match="cannot hold document 'd<1>'"):
        write(corpus("a\x1b", (0, 1, "X")), path, format="bioc")
    with pytest.raises(DataError, match="cannot hold"):
        write(corpus("a", (0, 1, "X\x1b")), path, format="bioc")
    assert not path.exists()
