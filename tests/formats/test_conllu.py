from pathlib import Path
from typing import Any

import conllu
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.standard_input import standard_input
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats import FormatWarning, read, read_batches, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.conllu"


def row(number: str | int, form: str, misc: str = "_") -> str:
    """A line of ten columns."""
    return "\t".join([str(number), form, *["_"] * 7, misc]) + "\n"


SPANISH = (
    "# newdoc id = letter\n# newpar\n# sent_id = s1\n# text = Vámonos al mar, Ana.\n"
    + row("1-2", "Vámonos")
    + row(1, "Vamos")
    + row(2, "nos")
    + row("3-4", "al")
    + row(3, "a")
    + row(4, "el")
    + row(5, "mar", "NER=B-LOC|SpaceAfter=No")
    + row(6, ",")
    + row("6.1", "ven", "NER=B-X")
    + row(7, "Ana", "SpaceAfter=No|ner=B-PER")
    + row(8, ".")
    + "\n# sent_id = s2\n# text = don't\n"
    + row("1-2", "don't", "SpaceAfter=No")
    + row(1, "do")
    + row(2, "n't")
    + "\n\n# newdoc\n"
    + row(1, "Fin", "NER=_")
)


def test_words_and_documents(path: Path) -> None:
    path.write_text(SPANISH, encoding="utf-8")
    with pytest.warns(FormatWarning, match="'s1': 'Vámonos' stands for 'Vamos nos'") as caught:
        first, second, third = read(path)
    assert caught[0].message.counts == {"multiword": 1}  # type: ignore[union-attr]
    assert first.tokens == ["Vamos", "nos", "a", "el", "mar", ",", "Ana", "."]
    assert first.entities == [Span(4, 5, "LOC"), Span(6, 7, "PER")]
    assert (first.id, first.group, first.text, first.characters) == ("s1", "letter", None, None)
    assert (second.id, second.group, second.entities) == ("s2", "letter", [])
    assert (second.text, second.characters) == ("don't", [(0, 2), (2, 5)])
    assert (third.id, third.group, third.text) == ("in-2", "in-document-2", "Fin")


def test_the_text_without_a_comment_follows_the_blanks(path: Path) -> None:
    path.write_text(row(1, "(") + row(2, "Oslo", "SpaceAfter=No") + row(3, ")") + row(4, "x y", "SpaceAfter=No"))
    [document] = read(path)
    assert document.text == "( Oslo) x y"
    assert document.characters == [(0, 1), (2, 6), (6, 7), (8, 11)]
    assert document.entities is None


def test_whether_there_are_tags(path: Path) -> None:
    path.write_text(row(1, "a") + "\n" + row(1, "b", "NER=B-X"))
    assert [document.entities for document in read(path)] == [[], [Span(0, 1, "X")]]
    assert [document.entities for document in read(path, tags=False)] == [None, None]
    assert [document.entities for document in read(path, tag="Entity")] == [None, None]
    assert [document.entities for document in read(path, tag="Entity", tags=True)] == [[], []]


def test_a_column_of_its_own(path: Path) -> None:
    path.write_text(
        "# global.columns = ID FORM NER MISC\n# text = Ada saw Oslo\n"
        "1\tAda\tB-PER\tNER=B-X\n2\tsaw\t*\t_\n3\tOslo\tS-LOC\t_\n"
    )
    [document] = read(path)
    assert document.entities == [Span(0, 1, "PER"), Span(2, 3, "LOC")]
    path.write_text("# global.columns = FORM ID\nAda\t1\n")
    assert (read(path)[0].text, read(path)[0].entities) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\n", "line 1: 2 columns between tabs, but 10 are expected: ID FORM"),
        (row("x", "a"), "line 1: a word needs an ID"),
        (row(1, "a") + row(2, ""), "line 2: a word needs an ID"),
        (row(1, "a") + row(1, "b"), "line 2: word 1 where 2 is expected. Is the empty line"),
        (row("2-3", "ab") + row(1, "a"), "line 1: 2-3 are no words"),
        ("# text = b\n" + row(1, "a"), "line 2: token 0, 'a', is not in the text"),
        (row(1, "a", "NER=0"), "line 1: '0' is no tag. Did you mean 'O'"),
        (2 * ("# sent_id = s\n" + row(1, "a") + "\n"), "line 4: document id 's' occurs twice"),
    ],
)
def test_what_cannot_be_read(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(DataError, match=f"in.conllu, {message}"):
        read(path)
    with pytest.warns(FormatWarning, match="1 sentences left out"):
        assert len(read(path, on_error="skip")) == text.count("sent_id") // 2


def test_the_scheme_is_found_out_before_a_strict_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = row(1, "a", "NER=B-X") + "\n" + row(1, "b", "NER=B-X") + row(2, "c", "NER=E-X")
    path.write_text(text)
    wanted = [[], [Span(0, 2, "X")]]
    assert [document.entities for document in read(path, mode="strict")] == wanted
    standard_input(monkeypatch, text.encode())
    batches = read_batches("-", format="conllu", mode="strict", documents=1)
    assert [corpus[0].entities for corpus in batches] == wanted


WORD = st.text(st.characters(exclude_characters="\t\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=4)
NAME = WORD.filter(lambda name: name == name.strip())


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Documents that the format can hold in full."""
    made = []
    for name in draw(st.lists(NAME, max_size=4, unique=True)):
        tokens = draw(st.lists(WORD.filter(lambda word: word == word.strip(" ")), min_size=1, max_size=4))
        blanks = draw(st.lists(st.sampled_from(["", " ", "  "]), min_size=len(tokens), max_size=len(tokens)))
        text, places = "", []
        for token, blank in zip(tokens, blanks, strict=True):
            text += blank
            places.append((len(text), len(text) + len(token)))
            text += token
        end = draw(st.integers(0, len(tokens)))
        spans = [Span(0, end, draw(st.sampled_from(["X", "B-Y-0", "a=b"])))] if end else []
        made.append(Document(name, tokens, text, places, draw(st.none() | NAME), spans))
    return made


@given(documents(), st.booleans())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, documents: list[Document], column: bool) -> None:
    path = tmp_path_factory.mktemp("u") / f"out.{'conllup' if column else 'conllu'}.gz"
    write(Corpus.from_documents(documents), path)
    again = [*read(path)]
    assert [(d.id, d.tokens, d.text) for d in again] == [(d.id, d.tokens, d.text) for d in documents]
    assert [d.entities for d in again] == [d.entities for d in documents]
    numbers = Corpus.from_documents(documents).group_numbers.tolist()
    if numbers == sorted(numbers):
        assert Corpus.from_documents(again).group_numbers.tolist() == numbers


def parsed(path: Path) -> list[conllu.models.TokenList]:
    """What the package conllu reads."""
    return list(conllu.parse(path.read_text(encoding="utf-8")))


def test_the_package_conllu_reads_what_is_written(path: Path) -> None:
    entities = [Span(1, 3, "PER")]
    text = "With Ada Lovelace's\nnotes"
    places = [(0, 4), (5, 8), (9, 17), (17, 19), (20, 25)]
    tokens = [text[start:end] for start, end in places]
    document = Document("d 1", tokens, text, places, "g", entities)
    with pytest.warns(FormatWarning, match="line breaks in texts, written as blanks"):
        write(Corpus.from_documents([document]), path)
    [sentence] = parsed(path)
    assert sentence.metadata == {"newdoc id": "g", "sent_id": "d 1", "text": "With Ada Lovelace's notes"}
    assert [token["form"] for token in sentence] == tokens
    assert [token["misc"]["NER"] for token in sentence] == ["O", "B-PER", "I-PER", "O", "O"]
    assert [token["id"] for token in sentence if "SpaceAfter" in token["misc"]] == [3]


def test_what_the_package_conllu_writes_is_read(path: Path) -> None:
    path.write_text(SPANISH, encoding="utf-8")
    copy = path.with_name("copy.conllu")
    copy.write_text("".join(sentence.serialize() for sentence in parsed(path)), encoding="utf-8")
    found: list[Any] = []
    for name in (path, copy):
        with pytest.warns(FormatWarning, match="multi-word"):
            found.append([(d.tokens, d.entities, d.text, d.characters) for d in read(name)])
    assert found[0] == found[1]
    with pytest.warns(FormatWarning, match="multi-word"):
        corpus = read(path)
    write(corpus, copy)
    assert [[token["form"] for token in sentence] for sentence in parsed(copy)] == [d.tokens for d in corpus]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document("d", []), "'d': it has no token"),
        (Document("d", ["a", "b\tc"]), "'d': token 1, 'b.tc', is empty, or has"),
        (Document("d", [" a"]), "'d': token 0"),
        (Document("d\n", ["a"]), "the id 'd.n' is empty, or"),
        (Document("d", ["a"], group=""), "the group '' is empty, or"),
    ],
)
def test_what_cannot_be_written(path: Path, document: Document, message: str) -> None:
    with pytest.raises(AlignmentError, match=message):
        write(Corpus.from_documents([document]), path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["a|b", "a b", "a\tb"])
def test_types_that_cannot_be_written(path: Path, name: str) -> None:
    with pytest.raises(LabelError, match="cannot hold the entity type"):
        write(Corpus.from_documents([Document("d", ["x"], entities=[Span(0, 1, name)])]), path)


def test_losses_are_reported(path: Path) -> None:
    documents = [
        Document("d", ["a", "b"], entities=[Span(0, 1, "X", 0.5), Span(0, 2, "Y")], sources={"s": []}, links={"l": []}),
        Document("e", ["a"]),
    ]
    with pytest.warns(FormatWarning) as caught:
        write(Corpus.from_documents(documents), path)
    assert caught[0].message.counts == {  # type: ignore[union-attr]
        "sources": 1,
        "links": 1,
        "scores": 1,
        "overlap": 1,
        "unlabelled": 1,
    }


def test_options_have_names(path: Path) -> None:
    corpus = Corpus.from_documents([Document("d", ["a"], entities=[Span(0, 1, "X")])])
    write(corpus, path, tag="Entity", column=True)
    assert path.read_text().splitlines()[0].endswith("DEPS MISC Entity")
    assert read(path, tag="Entity")[0].entities == [Span(0, 1, "X")]
    with pytest.raises(UsageError, match="tag"):
        write(corpus, path, tagg="X")
    with pytest.raises(FormatError, match="10 are expected"):
        path.write_text("\n".join(path.read_text().splitlines()[1:]))
        read(path)
