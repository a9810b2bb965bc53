from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats import FormatWarning, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.conll"


def test_ids_and_documents(path: Path) -> None:
    path.write_text("a O\n\n-DOCSTART- -X- O\nb O\n\n-DOCSTART-\n\nc B-X\n\nd B-X\n")
    corpus = read(path)
    assert corpus.id_list == ["in-0", "in-1", "in-2", "in-3"]
    assert [document.group for document in corpus] == [None, "in-document-1", "in-document-2", "in-document-2"]


def test_comments_only_before_a_sentence(path: Path) -> None:
    path.write_text("# id = 1\n#x\tO\n# key = value\tO\n\n# text = a b\n\n#\tO\n=\tO\n")
    assert [list(document.tokens) for document in read(path)] == [["#x", "#"], ["#", "="]]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a O\nb\n", {}, "line 2: no tag after the token 'b'"),
        ("a O\nb 0\n", {}, "line 2: '0' is no tag. Did you mean 'O'"),
        ("a B-X\nb Y\n", {}, r"line 2: tag 'Y' has no prefix, but 'B-X' \(line 1\) has one"),
        ("a B-\n", {}, "line 1: tag 'B-' names no entity type"),
        ("a X-Y\n", {"scheme": "BIO"}, "line 1: 'X-Y' is no tag of the scheme BIO"),
        ("a\tn\tO\nb\tO\n", {"delimiter": "\t"}, "line 2: 2 columns between '.t', but 3 are expected"),
        ("a\tO\n\tO\n", {"delimiter": "\t"}, "line 2: no token before the tag 'O'"),
        ("a\t\n\tO\n", {"delimiter": "\t", "tags": False}, "line 2: no token"),
        ("a O\nb O n\n", {"column": 3}, "line 1: no column 3, only 2"),
        ("a n O\nO\n", {"token": -1}, "line 1: no tag after the token 'O'"),
        ("a n O\nb O\n", {"column": -3, "token": 2}, "line 2: no column -3, only 2"),
    ],
)
def test_a_line_that_cannot_be_read(path: Path, text: str, arguments: dict[str, str], message: str) -> None:
    path.write_text(text)
    with pytest.raises(FormatError, match=f"in.conll, {message}"):
        read(path, **arguments)


def test_skipping_drops_the_bad_sentence_only(path: Path) -> None:
    path.write_text("a B-X\n\nb O\nc\n\nd 0\n\ne O\n")
    with pytest.warns(FormatWarning, match="2 sentences left out.*line 4") as caught:
        corpus = read(path, on_error="skip")
    assert corpus.tokens.to_pylist() == ["a", "e"]
    assert len(caught) == 1


def test_tokens_may_hold_blanks_with_a_delimiter(path: Path) -> None:
    path.write_text("New York\tB-X\n\n. \tO\n")
    assert read(path, delimiter="\t").tokens.to_pylist() == ["New York", ". "]


def test_columns_by_number(path: Path) -> None:
    path.write_text("1 Ada B-PER O\n2 wrote O B-X\n")
    assert [span[:3] for span in read(path, token=2, column=3)[0].entities or ()] == [(0, 1, "PER")]
    assert [span[:3] for span in read(path, token=2, column=-1)[0].entities or ()] == [(1, 2, "X")]
    assert read(path, token=-3)[0].tokens == ["Ada", "wrote"]
    for arguments in ({"token": 0}, {"column": 0}):
        with pytest.raises(UsageError, match="there is no column 0"):
            read(path, **arguments)


def test_tokens_without_tags(path: Path) -> None:
    path.write_text("-DOCSTART-\n\nAda\nwrote V x\n\n# a = b\nO\n")
    documents = [*read(path, tags=False)]
    assert [(document.tokens, document.entities) for document in documents] == [(["Ada", "wrote"], None), (["O"], None)]
    assert {document.group for document in documents} == {"in-document-1"}


def test_loose_starts_are_reported(path: Path) -> None:
    path.write_text("a I-X\nb O\nc B-X\n")
    with pytest.warns(FormatWarning, match="1 entities that do not begin as the scheme BIO"):
        corpus = read(path)
    assert corpus[0].entities == [Span(0, 1, "X"), Span(2, 3, "X")]


def test_unknown_arguments_are_errors(path: Path) -> None:
    path.write_text("a O\n")
    with pytest.raises(UsageError, match="delimiter"):
        read(path, delimeter="\t")
    with pytest.raises(UsageError, match="BIOES"):
        read(path, scheme="BIOS")


def test_declared_types(path: Path) -> None:
    path.write_text("a B-X\n")
    assert read(path, types=["Y", "X"]).types == ("Y", "X")
    with pytest.raises(DataError, match="in.conll: entity types X"):
        read(path, types=["Y"])


@pytest.mark.parametrize("content", ["", "\n \n", "-DOCSTART- O\n"])
def test_nothing_in_a_file(path: Path, content: str) -> None:
    path.write_text(content)
    assert len(read(path)) == 0


TOKEN = st.text(st.characters(exclude_characters=" \t\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(st.lists(st.lists(TOKEN, min_size=1, max_size=5), max_size=5), st.data())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]], data: st.DataObject) -> None:
    documents = []
    for number, tokens in enumerate(sentences):
        end = data.draw(st.integers(0, len(tokens)))
        entities = [Span(0, end, data.draw(st.sampled_from(["X", "B-Y-0"])))] if end else []
        documents.append(Document(str(number), tokens, entities=entities))
    path = tmp_path_factory.mktemp("conll") / "out.conll.gz"
    if sentences and sentences[0][0].startswith("\ufeff"):
        with pytest.raises(AlignmentError, match="'0'"):
            write(Corpus.from_documents(documents), path)
        return
    write(Corpus.from_documents(documents), path)
    again = read(path)
    assert [(list(d.tokens), d.entities) for d in again] == [(d.tokens, d.entities) for d in documents]


def test_groups_are_written_as_documents(path: Path) -> None:
    documents = [Document(str(n), ["a"], entities=[], group=group) for n, group in enumerate(["x", "x", "y"])]
    write(Corpus.from_documents(documents), path)
    assert path.read_bytes() == b"-DOCSTART-\tO\n\na\tO\n\na\tO\n\n-DOCSTART-\tO\n\na\tO\n\n"
    assert read(path).group_numbers.tolist() == [0, 0, 1]


@pytest.mark.parametrize("token", ["", " ", "a b", "\t", "a\nb", "\r", "-DOCSTART-", "\0", "\ufeffa"])
def test_tokens_that_columns_cannot_hold(path: Path, token: str) -> None:
    corpus = Corpus.from_documents([Document("d7", [token, "x"])])
    with pytest.raises(AlignmentError, match="token 0 of document 'd7'"):
        write(corpus, path)
    assert not path.exists()


def test_documents_and_types_that_columns_cannot_hold(path: Path) -> None:
    with pytest.raises(AlignmentError, match="'d7', which has no token"):
        write(Corpus.from_documents([Document("d7", [])]), path)
    with pytest.raises(LabelError, match="'a b'"):
        write(Corpus.from_documents([Document("d", ["x"], entities=[Span(0, 1, "a b")])]), path)


def test_what_is_lost_is_reported(path: Path) -> None:
    entities = [Span(0, 1, "X", 0.5), Span(0, 2, "Y")]
    document = Document("d", ["a", "b"], entities=entities, sources={"s": [], "t": []}, links={"l": []})
    with pytest.warns(FormatWarning, match="first: document 'e'") as caught:
        write(Corpus.from_documents([document, Document("e", ["c"])]), path)
    (warning,) = caught
    assert isinstance(warning.message, FormatWarning)
    assert warning.message.counts == {"sources": 2, "links": 1, "overlap": 1, "scores": 1, "unlabelled": 1}
    assert path.read_text() == "a\tB-Y\nb\tI-Y\n\nc\tO\n\n"


def test_texts_and_unknown_entities_are_not_lost_without_a_word(path: Path) -> None:
    with pytest.warns(FormatWarning) as caught:
        write(Corpus.from_documents([Document("d", ["a"], "a", [(0, 1)])]), path)
    (warning,) = caught
    assert isinstance(warning.message, FormatWarning)
    assert warning.message.counts == {"texts": 1, "unlabelled": 1}
