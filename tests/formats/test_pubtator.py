import gzip
import io
import re
import warnings
from itertools import pairwise
from pathlib import Path

import bioc.pubtator
import pytest

from formats.mention_texts import ASTRAL, EMOJI, HEBREW, mentions
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError
from tagweave.formats import FormatWarning, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.pubtator"


ARTICLE = (
    "1|t|Lithium in newborns\n1|a|A newborn had flutter.\n"
    "1\t0\t7\tLithium\tChemical\tD1\n1\t34\t41\tflutter\tDisease\tD2\n"
)


def test_offsets_count_the_title_one_character_and_the_abstract(path: Path) -> None:
    path.write_text(ARTICLE)
    corpus = read(path)
    assert corpus[0].text == "Lithium in newborns\nA newborn had flutter."
    assert mentions(corpus) == {"1": [("Chemical", "Lithium"), ("Disease", "flutter")]}
    assert corpus.types == ("Chemical", "Disease")


def test_titles_keep_their_blanks(path: Path) -> None:
    path.write_text("1|t|Flutter \n1|a|  it is\n1\t9\t13\t  it\tX\n")
    with pytest.warns(FormatWarning) as caught:
        corpus = read(path)
    assert corpus[0].text == "Flutter \n  it is"
    assert mentions(corpus) == {"1": [("X", "it")]}
    assert caught[0].message.counts == {"trimmed": 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("between", ["{}", "{0}{0}", " {0}", ""])
def test_articles_are_parted_by_blank_lines_or_titles(path: Path, end: str, between: str) -> None:
    lines = f"1|t|a\n1|a|b\n1\t0\t1\ta\tX\t-\n{between.format(chr(10))}2|t|c\n2|a|d\n3|t|e"
    path.write_bytes(lines.replace("\n", end).encode())
    corpus = read(path)
    assert [(document.id, document.text, document.entities) for document in corpus] == [
        ("1", "a\nb", [Span(0, 1, "X")]),
        ("2", "c\nd", []),
        ("3", "e", []),
    ]


def test_an_empty_file(path: Path) -> None:
    path.write_text("\n\n")
    assert len(read(path)) == 0


@pytest.mark.parametrize("text", [EMOJI, HEBREW, ASTRAL])
def test_offsets_count_code_points(path: Path, text: str) -> None:
    word = text.split()[-1]
    start = text.rindex(word)
    path.write_text(f"1|t|{text}\n1|a|{text}\n1\t{start}\t{len(text)}\t{word}\tX\n", encoding="utf-8")
    assert mentions(read(path)) == {"1": [("X", word)]}


def test_offsets_in_utf16_units(path: Path) -> None:
    path.write_text("1|t|\U0001f680 Oslo\n1\t3\t7\tOslo\tX\n", encoding="utf-8")
    with pytest.raises(AlignmentError, match="read with offset_unit='utf16'"):
        read(path)
    assert mentions(read(path, offset_unit="utf16")) == {"1": [("X", "Oslo")]}


def test_relations_and_lists_are_left_out_with_a_note(path: Path) -> None:
    path.write_text(ARTICLE + "1\tCID\tD1\tD2\n1\tBind\tD1\tD2\tNovel\n1\t22\t29\tnewborn\tX\tD3|D4\tnew|born\n")
    with pytest.warns(FormatWarning, match="document '1': 2 relations.*1 lists of the single mentions") as caught:
        corpus = read(path)
    assert len(corpus.entities) == 3  # type: ignore[arg-type]
    assert caught[0].message.counts == {"relations": 2, "single_mentions": 1}  # type: ignore[union-attr]


def test_titles_and_abstracts_only(path: Path) -> None:
    path.write_text(ARTICLE + "1\tCID\tD1\tD2\n1\t0\t7\tWRONG\tX\n")
    corpus = read(path, text_only=True)
    assert corpus.entities is None
    assert corpus[0].text == "Lithium in newborns\nA newborn had flutter."


def test_one_type_for_all(path: Path) -> None:
    path.write_text(ARTICLE)
    assert read(path, one_type="ENT").types == ("ENT",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "1\t0\t7\tlithium\tX\n",
            "document '1': the mention in line 5 says that 0 to 7 is 'lithium'.*there is 'Lithium'",
        ),
        ("1\t1\t8\tLithium\tX\n", r"the mention in line 5.*'ithium '.*\('Lithium' is at 0 to 7\)"),
        ("1\t0\t70\tLithium\tX\n", "the mention in line 5, 0 to 70, does not lie within the 42 characters"),
        ("1\t0\t7\tLithium\tO\n", "document '1': entities: 'O' is no entity type"),
    ],
)
def test_a_mention_that_is_not_there(path: Path, lines: str, message: str) -> None:
    path.write_text(ARTICLE + lines)
    with pytest.raises(DataError, match=rf"in\.pubtator, .*{message}"):
        read(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1|a|b\n", r"line 1: no title \(ID\|t\|TITLE\)"),
        ("1\t0\t1\ta\tX\n", "line 1: no title"),
        ("1|t|a\n2|a|b\n", "line 2: an abstract of '2' in the article '1'"),
        ("1|t|a\n1|a|b\n1|a|c\n", "line 3: an abstract of '1' in the article '1'"),
        ("1|t|a\n2\t0\t1\ta\tX\n", "line 2: '2' is not the article '1'"),
        ("1|t|a\nand more of it\n", "line 2: 'and more of it' is not the article '1'"),
        ("1|t|a\n1\t0\t1\ta\n", "line 2: neither title"),
        ("1|t|a\n1\t0\t1\ta\t\tD1\n", "line 2: neither title"),
        ("1|t|a\n1\t0\tx\ta\tX\n", "line 2: neither title"),
        ("1|t|a\n1\tCID\n", "line 2: neither title"),
        ("1|t|a\n\n1|t|b\n", "the article '1' comes twice, with different content"),
    ],
)
def test_lines_that_are_not_pubtator(path: Path, lines: str, message: str) -> None:
    path.write_text(lines)
    with pytest.raises(FormatError, match=rf"in\.pubtator(, |: ){message}"):
        read(path)


def test_an_article_that_comes_again_is_left_out(path: Path) -> None:
    path.write_text(f"{ARTICLE}\n{ARTICLE}")
    with pytest.warns(FormatWarning, match="1 articles left out that are there already"):
        assert len(read(path)) == 1


def test_sentences(path: Path) -> None:
    path.write_text(ARTICLE)
    corpus = read(path, tokenizer="spacy", sentences=True)
    assert {document.group for document in corpus} == {"1"}
    assert sum(len(document.entities or ()) for document in corpus) == 2


def corpus(text: str, *places: tuple[int, int, str], name: str = "1") -> Corpus:
    """A corpus of one document whose tokens are its entities."""
    tokens = [text[start:end] for start, end, _ in places]
    spans = [Span(index, index + 1, type) for index, (_, _, type) in enumerate(places)]
    characters = [place[:2] for place in places]
    return Corpus.from_documents([Document(name, tokens, text=text, characters=characters, entities=spans)])


def test_writing(path: Path) -> None:
    write(corpus("In Oslo\nit is", (3, 7, "LOC")), path)
    assert path.read_text() == "1|t|In Oslo\n1|a|it is\n1\t3\t7\tOslo\tLOC\t-\n\n"


def test_line_ends_become_blanks_and_offsets_hold(path: Path) -> None:
    given = corpus("In\r\nOslo\nand\n\tRome", (4, 8, "X"), (4, 18, "Y"))
    with pytest.warns(FormatWarning, match="3 line ends after the first, written as blanks"):
        write(given, path)
    assert path.read_text().splitlines() == [
        "1|t|In ",
        "1|a|Oslo and \tRome",
        "1\t4\t8\tOslo\tX\t-",
        "1\t4\t18\tOslo and  Rome\tY\t-",
        "",
    ]
    with pytest.warns(FormatWarning, match="overlap"):
        assert mentions(read(path)) == {"1": [("X", "Oslo"), ("Y", "Oslo and \tRome")]}


@pytest.mark.parametrize("name", ["", "a|b", "a\tb", "a\nb"])
def test_ids_that_cannot_be_written(path: Path, name: str) -> None:
    with pytest.raises(AlignmentError, match="cannot hold the document id"):
        write(corpus("a", (0, 1, "X"), name=name), path)
    assert not path.exists()


def test_types_and_texts_that_cannot_be_written(path: Path) -> None:
    with pytest.raises(LabelError, match="cannot hold the entity type 'X.tY'"):
        write(corpus("a", (0, 1, "X\tY")), path)
    with pytest.raises(AlignmentError, match="document '1', which has a NUL"):
        write(corpus("a\0", (0, 1, "X")), path)


def test_another_reader_reads_what_is_written(path: Path) -> None:
    given = corpus(f"{EMOJI}\n{HEBREW}", (2, 5, "PER"), (16, 19, "PER"), (28, 34, "LOC"))
    write(given, path)
    [found] = bioc.pubtator.load(io.StringIO(path.read_text(encoding="utf-8")))
    bioc.pubtator.validate(found)
    assert found.text == given[0].text
    assert [(a.start, a.end, a.type) for a in found.annotations] == [(2, 5, "PER"), (16, 19, "PER"), (28, 34, "LOC")]


def test_what_another_writer_writes_is_read(path: Path) -> None:
    document = bioc.pubtator.PubTator("7", EMOJI, HEBREW)
    document.add_annotation(bioc.pubtator.PubTatorAnn("7", 2, 5, "Ada", "PER", "-"))
    path.write_text(bioc.pubtator.dumps([document]), encoding="utf-8")
    with pytest.warns(FormatWarning, match="single mentions"):  # of which there is an empty column
        assert mentions(read(path)) == {"7": [("PER", "Ada")]}


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("ncbi-disease/train", {"misaligned": 2, "surface": 1, "repeated": 1}),
        ("ncbi-disease/dev", {}),
        ("ncbi-disease/test", {}),
        ("bc5cdr/train", {"relations": 1038, "single_mentions": 107}),
        ("bc5cdr/dev", {"relations": 1012, "single_mentions": 89, "misaligned": 10}),
    ],
)
def test_real_files_are_read_whole(data_folder: Path, name: str, reported: dict[str, int]) -> None:
    path = data_folder / "raw" / f"{name}.pubtator.gz"
    lines = set(gzip.open(path, "rt", encoding="utf-8").read().splitlines())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        corpus = read(path)
    assert len(corpus) == sum(1 for line in lines if re.match(r"\d+\|t\|", line))
    rows = [line for line in lines if re.match(r"\d+\t\d+\t\d+\t", line)]
    assert sum(map(len, mentions(corpus).values())) == len(rows)
    assert [warning.message.counts for warning in caught] == ([reported] if reported else [])  # type: ignore[union-attr]
    for document in corpus:
        assert document.text is not None and document.characters is not None
        assert all(a[1] <= b[0] for a, b in pairwise(document.characters))
