from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.standard_input import standard_input
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import FormatError, UsageError
from tagweave.formats import FormatWarning, read, read_batches, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.txt"


def test_a_document_a_line(path: Path) -> None:
    path.write_text("Ada wrote.\n  \tShe left. \n")
    first, second = read(path)
    assert (first.id, first.tokens, first.group, first.entities) == ("in-0", ["Ada", "wrote", "."], None, None)
    assert (second.id, second.text, second.characters) == ("in-1", "  \tShe left. ", [(3, 6), (7, 11), (11, 12)])


def test_empty_lines_end_groups(path: Path) -> None:
    path.write_text("\n\na\nb\n \n\nc\n\n")
    corpus = read(path)
    assert corpus.id_list == ["in-0", "in-1", "in-2"]
    assert [document.group for document in corpus] == ["in-paragraph-0", "in-paragraph-0", "in-paragraph-1"]


def test_empty_lines_at_the_edges_make_no_groups(path: Path) -> None:
    path.write_text("\n\na\nb\n\n")
    assert [document.group for document in read(path)] == [None, None]


def test_paragraphs_and_files(path: Path) -> None:
    path.write_bytes(b"a\r\nb\r\n\r\n\r\nc\n")
    assert [(d.id, d.text, d.group) for d in read(path, unit="paragraph")] == [
        ("in-0", "a\r\nb", None),
        ("in-1", "c", None),
    ]
    [whole] = read(path, unit="file")
    assert (whole.id, whole.text) == ("in", "a\r\nb\r\n\r\n\r\nc\n")


@pytest.mark.parametrize("content", ["", "\n \n", "\f\n"])
@pytest.mark.parametrize("unit", ["line", "paragraph", "file"])
def test_nothing_in_a_file(path: Path, content: str, unit: str) -> None:
    path.write_text(content)
    assert len(read(path, unit=unit)) == 0


@pytest.mark.parametrize(
    ("content", "texts", "tokens"),
    [
        ("\ufeffAda\r\n\ufeffOslo\r\n", ["Ada", "\ufeffOslo"], [["Ada"], ["\ufeff", "Oslo"]]),
        ("a\fb\n\f\nc\n", ["a\fb", "c"], [["a", "b"], ["c"]]),
        ("a\u2028b\x85c\rd\n", ["a\u2028b\x85c\rd"], [["a", "b", "c", "d"]]),
        ("👩🏽\u200d🚀 in 🇳🇴\n", ["👩🏽\u200d🚀 in 🇳🇴"], [["👩", "🏽", "\u200d", "🚀", "in", "🇳", "🇴"]]),
        ("عدا في أوسلو.\n", ["عدا في أوسلو."], [["عدا", "في", "أوسلو", "."]]),
        ("שָׁלוֹם\u200f, Oslo\n", ["שָׁלוֹם\u200f, Oslo"], [["שָׁלוֹם", "\u200f", ",", "Oslo"]]),
    ],
    ids=["order marks", "form feeds", "other breaks", "emoji", "Arabic", "Hebrew"],
)
def test_texts_stay_as_they_are(path: Path, content: str, texts: list[str], tokens: list[list[str]]) -> None:
    path.write_bytes(content.encode())
    documents = [*read(path)]
    assert [document.text for document in documents] == texts
    assert [document.tokens for document in documents] == tokens
    for document in documents:
        assert [(document.text or "")[start:end] for start, end in document.characters or ()] == document.tokens


def test_sentences(path: Path) -> None:
    path.write_text("Ada wrote. She left.\nOslo.\n")
    corpus = read(path, tokenizer="spacy", sentences=True)
    assert corpus.id_list == ["in-0-0", "in-0-1", "in-1-0"]
    assert [document.group for document in corpus] == ["in-0", "in-0", "in-1"]


COLUMNS = [
    "Ada B-PER\nwrote O\n",
    "-DOCSTART- -X- O O\n\nAda NNP B-NP B-PER\nwrote VBD B-VP O\n",
    "a\tO\nb\tO\n\nc\tO\nd\tO\ne\tO\n",
    " \nAda\tU-PER\r\nwrote\tO\r\n",
]


@pytest.mark.parametrize("content", COLUMNS)
def test_columns_are_no_text(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(FormatError, match=r"in.txt looks like \d columns.*--from conll"):
        read(path)
    assert read(path, check=False)[0].text is not None
    assert len(read(path, format="conll")) > 0


@pytest.mark.parametrize(
    "content",
    ["Ada B-PER\n", "blood group O\nblood group A\n", "a B-1\nb B-2\n", "x y O\n" + "a b c d\n" * 9, "O\nO\nO\nO\nO\n"],
)
def test_texts_that_are_no_columns(path: Path, content: str) -> None:
    path.write_text(content)
    assert len(read(path)) == content.count("\n")


def test_standard_input_is_looked_at_before(monkeypatch: pytest.MonkeyPatch) -> None:
    standard_input(monkeypatch, b"a\n\nb\n")
    assert [document.group for document in read("-", format="text")] == ["stdin-paragraph-0", "stdin-paragraph-1"]
    standard_input(monkeypatch, b"a\n" * 1000 + b"\nb\n")
    corpus = read("-", format="text")
    assert corpus.groups is None
    assert corpus.id_list[-1] == "stdin-1000"
    standard_input(monkeypatch, COLUMNS[0].encode())
    with pytest.raises(FormatError, match="standard input looks like"):
        read("-", format="text")


def test_batches_keep_paragraphs(path: Path) -> None:
    path.write_text("a\n\nb\nc\nd\n\ne\n")
    assert [corpus.id_list for corpus in read_batches(path, documents=2)] == [
        ["in-0", "in-1", "in-2", "in-3"],
        ["in-4"],
    ]


LINE = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=6)


@given(st.lists(st.tuples(LINE.filter(str.strip), st.integers(0, 2)), max_size=6), st.booleans())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, int]], grouped: bool) -> None:
    lines = sorted(lines, key=lambda line: line[1])
    documents = [
        Document(str(number), [], text, [], str(group) if grouped else None)
        for number, (text, group) in enumerate(lines)
    ]
    path = tmp_path_factory.mktemp("text") / "out.txt.gz"
    corpus = Corpus.from_documents(documents)
    write(corpus, path)
    again = read(path, check=False)
    assert [document.text for document in again] == [document.text for document in documents]
    numbers = corpus.group_numbers.tolist()
    if grouped and len(set(numbers)) > 1:
        assert again.group_numbers.tolist() == numbers
    else:
        assert again.groups is None


def test_what_is_lost_is_reported(path: Path) -> None:
    documents = [
        Document("d0", ["a", "b"], entities=[Span(0, 1, "X", 0.5)], sources={"s": [], "t": []}, links={"l": []}),
        Document("d1", ["c"], text="c\r\nd\n", characters=[(0, 1)]),
        Document("d2", [], text=" "),
    ]
    with pytest.warns(FormatWarning, match="'d1'") as caught:
        write(Corpus.from_documents(documents), path)
    assert caught[0].message.counts == {  # type: ignore[union-attr]
        "entities": 1,
        "sources": 2,
        "links": 1,
        "line_breaks": 3,
        "empty": 1,
    }
    assert path.read_bytes() == b"a b\nc  d \n"


def test_options(path: Path) -> None:
    path.write_text("a\n")
    with pytest.raises(UsageError, match="Did you mean 'line'"):
        read(path, unit="lines")
    with pytest.raises(UsageError, match="needs tokenizer='spacy'"):
        read(path, sentences=True)
