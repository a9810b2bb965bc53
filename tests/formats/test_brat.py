import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from bioc import brat

from formats.mention_texts import ASTRAL, EMOJI, HEBREW, mentions
from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, LabelError, UsageError
from tagweave.formats import FormatWarning, read, write

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a document `d` and returns its `.ann`."""

    def made(text: str, annotations: str) -> Path:
        (tmp_path / "d.txt").write_bytes(text.encode())
        (tmp_path / "d.ann").write_bytes(annotations.encode())
        return tmp_path / "d.ann"

    return made


def test_a_document_by_its_annotations(put: Put) -> None:
    corpus = read(put("Tim Cook leads Apple.", "T1\tPER 0 8\tTim Cook\nT2\tORG 15 20\tApple\n"))
    assert corpus[0].text == "Tim Cook leads Apple."
    assert mentions(corpus) == {"d": [("PER", "Tim Cook"), ("ORG", "Apple")]}


def test_a_folder(tmp_path: Path, put: Put) -> None:
    put("Tim Cook", "T1\tPER 0 8\tTim Cook\n")
    (tmp_path / "b.x.txt").write_text("nobody looked")
    (tmp_path / "a.txt").write_text("nothing there")
    (tmp_path / "a.ann").touch()
    (tmp_path / "annotation.conf").write_text("[entities]")
    found = {document.id: document.entities for document in read(tmp_path)}
    assert found == {"a": [], "b.x": None, "d": [Span(0, 2, "PER")]}
    assert list(found) == sorted(found)


def test_packed_files(tmp_path: Path) -> None:
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"Tim Cook"))
    (tmp_path / "d.ann.gz").write_bytes(gzip.compress(b"T1\tPER 0 8\tTim Cook\n"))
    for path in (tmp_path / "d.ann.gz", tmp_path):
        assert mentions(read(path, format="brat")) == {"d": [("PER", "Tim Cook")]}


@pytest.mark.parametrize("text", [EMOJI, HEBREW, ASTRAL])
def test_offsets_count_code_points(put: Put, text: str) -> None:
    word = text.split()[-1]
    path = put(f"{text}\r\n{text}", f"T1\tX {text.rindex(word)} {len(text)}\t{word}\r\n")
    assert mentions(read(path)) == {"d": [("X", word)]}


CRLF = "Ada left.\r\n\U0001f680 Rome stayed\r\nin Oslo.\r\n"
TWICE = "T1\tPER 0 3\tAda\nT2\tLOC 13 17\tRome\nT3\tX 13 28\tRome stayed in\n"
ONCE = "T1\tPER 0 3\tAda\nT2\tLOC 12 16\tRome\nT3\tX 12 26\tRome stayed in\n"
ONCE_UTF16 = "T1\tPER 0 3\tAda\nT2\tLOC 13 17\tRome\nT3\tX 13 27\tRome stayed in\n"


@pytest.mark.parametrize(
    ("annotations", "options"),
    [
        (TWICE, {}),
        (TWICE, {"newlines": "as-is"}),
        (ONCE, {"newlines": "collapsed"}),
        (ONCE_UTF16, {"newlines": "collapsed", "offset_unit": "utf16"}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*overlap")
def test_line_ends_that_count_once_or_twice(put: Put, annotations: str, options: dict[str, str]) -> None:
    corpus = read(put(CRLF, annotations), **options)
    assert corpus[0].text == CRLF
    assert mentions(corpus) == {"d": [("PER", "Ada"), ("LOC", "Rome"), ("X", "Rome stayed\r\nin")]}


def test_an_error_tells_of_line_ends(put: Put) -> None:
    with pytest.raises(AlignmentError, match=r"d\.ann: T2 in line 2 says.*newlines='collapsed'"):
        read(put(CRLF, ONCE))
    with pytest.raises(AlignmentError, match=r"T2 in line 2 says that 14 to 18 is 'Rome'.*newlines='as-is'"):
        read(put(CRLF, TWICE), newlines="collapsed")
    with pytest.raises(AlignmentError) as caught:
        read(put(CRLF.replace("\r", ""), TWICE))
    assert "newlines=" not in str(caught.value)


@pytest.mark.parametrize("places", ["0 3;4 8", "4 8;0 3", "0 3;3 8", "0 6;2 8"])
def test_pieces_with_a_line_end_between_them_are_one(put: Put, places: str) -> None:
    assert mentions(read(put("Ada\nleft Oslo", f"T1\tX {places}\n"))) == {"d": [("X", "Ada\nleft")]}


def test_other_pieces_become_an_envelope_or_stay(put: Put) -> None:
    path = put("Ada\nleft Oslo", "T1\tX 0 3;9 13\tAda Oslo\n")
    with pytest.warns(FormatWarning, match=r"document 'd': T1 in line 1, X, 0 to 3 and 9 to 13"):
        assert mentions(read(path)) == {"d": [("X", "Ada\nleft Oslo")]}
    with pytest.warns(FormatWarning, match="read as one span a piece"):
        assert mentions(read(path, discontinuous="fragments")) == {"d": [("X", "Ada"), ("X", "Oslo")]}


def test_other_annotations_are_left_out_with_a_count(put: Put) -> None:
    others = (
        "R1\tOrigin Arg1:T1 Arg2:T1\n*\tEquiv T1 T1\nE1\tLead:T1\nA1\tNegation T1\nM1\tX T1\n"
        "N1\tRef T1 W:1\tA\n#1\tNote T1\tb\n"
    )
    with pytest.warns(FormatWarning) as caught:
        corpus = read(put("Ada left", f"T1\tX 0 3\tAda\n\n{others}"))
    assert mentions(corpus) == {"d": [("X", "Ada")]}
    counts = {"relations": 2, "events": 1, "attributes": 2, "normalisations": 1, "notes": 1}
    assert caught[0].message.counts == counts  # type: ignore[union-attr]


def test_a_mention_need_not_say_what_it_covers(put: Put) -> None:
    path = put("Ada left", "T1\tX 0 3\nT2\tX 4 80\n")
    with pytest.warns(FormatWarning, match="1 spans left out that are not in the text.*T2 in line 2"):
        assert mentions(read(path)) == {"d": [("X", "Ada")]}


@pytest.mark.parametrize(
    "line",
    ["T1", "T1\tX 0\tA", "T1\tX 0 1;2\tA", "T1\tX -1 1\tA", "T1\tX 0 x\tA", "T1\t0 1\tA", "T1 X 0 1 A", "X1\tY", "what",
     f"T1\tX 0 {'9' * 5000}\tA", "R1 no tab"],
)  # fmt: skip
def test_lines_that_are_not_brat(put: Put, line: str) -> None:
    with pytest.raises(FormatError, match=r"d\.ann, line 2: .* is no (mention|annotation of brat)"):
        read(put("Ada left", f"\n{line}\n"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("T7\tX 1 4\tAda", r"T7 in line 1 says that 1 to 4 is 'Ada', but there is 'da ' \('Ada' is at 0 to 3\)"),
        ("T7\tX 6 9\teft", "T7 in line 1, 6 to 9, does not lie within the 8 characters"),
        ("T7\tO 0 3\tAda", "'O' is no entity type"),
    ],
)
def test_mentions_that_are_not_there(put: Put, line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"d\.ann: .*{message}"):
        read(put("Ada left", line))


def test_files_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "a.ann").touch()
    for path in (tmp_path / "a.ann", tmp_path / "b.ann"):
        with pytest.raises(UsageError, match=r"\.txt cannot be read"):
            read(path)
    with pytest.raises(UsageError, match="has no .txt file in it"):
        read(tmp_path)
    for path in ("-", tmp_path / "a.txt"):
        with pytest.raises(UsageError, match="standard input|neither a folder nor a file that ends in .ann"):
            read(path, format="brat")


def corpus(*documents: tuple[str, str, list[tuple[int, int, str]]]) -> Corpus:
    """A corpus whose tokens are its entities."""
    made = []
    for name, text, spans in documents:
        characters = [(start, end) for start, end, _ in spans]
        entities = [Span(index, index + 1, span[2]) for index, span in enumerate(spans)]
        tokens = [text[start:end] for start, end in characters]
        made.append(Document(name, tokens, text=text, characters=characters, entities=entities))
    return Corpus.from_documents(made)


def test_writing(tmp_path: Path) -> None:
    write(corpus(("a", "Ada\r\nleft \tOslo\n", [(0, 15, "X")]), ("b", "", [])), tmp_path / "out", format="brat")
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"Ada\r\nleft \tOslo\n"
    assert (tmp_path / "out" / "a.ann").read_text() == "T1\tX 0 3;5 15\tAda left  Oslo\n"
    assert (tmp_path / "out" / "b.ann").read_text() == ""
    assert mentions(read(tmp_path / "out")) == {"a": [("X", "Ada\r\nleft \tOslo")], "b": []}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../up", "_._up"),
        ("..", "_."),
        (".", "_"),
        ("", "_"),
        ("/etc/passwd", "_etc_passwd"),
        ("a/b\\c:d", "a_b_c_d"),
        (".hidden", "_hidden"),
        ("new\nline", "new_line"),
    ],
)
def test_ids_never_lead_out_of_the_folder(tmp_path: Path, name: str, file: str) -> None:
    with pytest.warns(FormatWarning, match=f"1 documents called otherwise.*is now '{file}'"):
        write(corpus((name, "Ada", [(0, 3, "X")])), tmp_path / "in" / "out", format="brat")
    assert {path.name for path in tmp_path.rglob("*") if path.suffix in {".txt", ".ann"}} == {
        f"{file}.txt",
        f"{file}.ann",
    }
    assert sorted(path.name for path in (tmp_path / "in" / "out").glob(f"{file}.*")) == [f"{file}.ann", f"{file}.txt"]


@pytest.mark.parametrize(("first", "second"), [("a/b", "a:b"), ("doc", "DOC")])
@pytest.mark.filterwarnings("ignore:.*called otherwise")
def test_two_documents_never_share_a_file(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(AlignmentError, match=f"'{first}' and '{second}' would both have files called"):
        write(corpus((first, "a", []), (second, "b", [])), tmp_path / "out", format="brat")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("x" * 300, "a", "too long for the name of a file"),
        ("d", "\ufeffa", "document 'd', which has a byte order mark"),
        ("d", "a\0", "document 'd', which has a NUL"),
    ],
)
def test_documents_that_cannot_be_written(tmp_path: Path, name: str, text: str, error: str) -> None:
    with pytest.raises(AlignmentError, match=error):
        write(corpus((name, text, [])), tmp_path / "out", format="brat")
    assert list(tmp_path.iterdir()) == []


def test_types_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="cannot hold the entity type 'a b'"):
        write(corpus(("d", "Ada", [(0, 3, "a b")])), tmp_path / "out", format="brat")


def test_no_annotations_are_written_over(tmp_path: Path) -> None:
    given = corpus(("d", "Ada", []))
    (tmp_path / "out").mkdir()
    write(given, tmp_path / "out", format="brat")
    for path in (tmp_path / "out", tmp_path / "out" / "d.ann", "-", tmp_path / "new.txt"):
        with pytest.raises(UsageError, match="name a (new one|folder)"):
            write(given, path, format="brat")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        write(given, tmp_path / "file" / "out", format="brat")


TEXT = f"{EMOJI}\r\n{HEBREW} & {ASTRAL}"
SPANS = [(2, 5, "PER"), (16, 19, "PER"), (29, 35, "LOC-x"), (16, 24, "X")]


def test_another_reader_reads_what_is_written(tmp_path: Path) -> None:
    write(corpus(("d", TEXT, SPANS)), tmp_path / "out", format="brat")
    with (tmp_path / "out" / "d.ann").open(encoding="utf-8") as file:
        found = brat.load_ann(file)
    places = [(*sorted((place.begin, place.end) for place in one.locations), one.type) for one in found.entities]
    assert places == [((2, 5), "PER"), ((16, 19), "PER"), ((29, 35), "LOC-x"), ((16, 19), (21, 24), "X")]
    for one in found.entities:
        assert one.text == " ".join(TEXT[place.begin : place.end] for place in sorted(one.locations))


@pytest.mark.filterwarnings("ignore:.*overlap")
def test_what_another_writer_writes_is_read(put: Put, tmp_path: Path) -> None:
    document = brat.BratDocument()
    for number, (start, end, name) in enumerate(SPANS, 1):
        entity = brat.BratEntity()
        entity.id, entity.type, entity.text = f"T{number}", name, TEXT[start:end].replace("\r\n", " ")
        entity.add_span(start, end)
        document.add_annotation(entity)
    path = put(TEXT, brat.dumps_ann(document))
    assert mentions(read(path)) == {"d": [(name, TEXT[start:end]) for start, end, name in SPANS]}
