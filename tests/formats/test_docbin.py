import pickle
import struct
import sys
import tempfile
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.mention_texts import contents, corpora
from tagweave.annotations import Annotations, Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError, MissingExtraError
from tagweave.formats import FormatWarning, read, write
from tagweave.formats.docbin_bytes import array
from tagweave.soft_labels import SoftLabels

spacy = pytest.importorskip("spacy")
srsly = pytest.importorskip("srsly")

TEXT = "Ada  met\r\nZo\u00eb \U0001f680."
CHARACTERS = [(0, 3), (5, 8), (10, 13), (14, 15), (15, 16)]
TOKENS = [TEXT[start:end] for start, end in CHARACTERS]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.spacy"


def made() -> Corpus:
    """A corpus with all that there is."""
    documents = [
        Document(
            "d",
            TOKENS,
            TEXT,
            CHARACTERS,
            group="g",
            entities=[Span(0, 1, "PER", 0.5), Span(2, 4, "X y")],
            sources={
                "names": [Span(0, 1, "PER", 0.25), Span(0, 3, "ORG"), Span(3, 5, "O")],
                "no": [],
                "old": None,
                "soft": [],
            },
            links={"caps": [Span(0, 2, "same"), Span(1, 3, "different")], "none": None},
        ),
        Document("e", ["Oslo", " ", "x"], entities=[], sources={"old": [Span(1, 2, "PER")], "soft": []}),
        Document("f", [], "", [], sources={"old": [], "soft": []}, entities=[]),
        Document("g", [], " \n", [], sources={"soft": []}),
        Document("h", ["a"], sources={"soft": []}),
    ]
    corpus = Corpus.from_documents(documents)
    offsets, width = corpus.offsets, 1 + 2 * len(corpus.types)
    rows = np.random.default_rng(0).dirichlet(np.ones(width), int(offsets[-1])).astype(np.float32)
    soft = SoftLabels(corpus.types, offsets, rows)
    return corpus.with_source("soft", soft).with_entities(corpus.entities, soft)


def test_all_of_a_corpus_comes_back(path: Path) -> None:
    before = made()
    write(before, path)
    with pytest.warns(FormatWarning, match="overlap"):
        after = read(path)
    assert [*after] == [*before]
    assert after.id_list == before.id_list
    assert after.types == before.types
    for one, other in ((before.soft_labels, after.soft_labels), (before.sources["soft"], after.sources["soft"])):
        assert isinstance(one, SoftLabels) and isinstance(other, SoftLabels)
        assert np.array_equal(one.probabilities, other.probabilities)


@settings(max_examples=30)
@given(corpora())
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> None:
    path = tmp_path_factory.mktemp("docbin") / "out.spacy"
    write(corpus, path)
    assert contents(read(path)) == contents(corpus)


def test_spacy_reads_what_is_written(path: Path) -> None:
    write(made(), path)
    docs = [*spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)]
    assert docs[0].text == TEXT
    assert [(entity.text, entity.label_) for entity in docs[0].ents] == [("Ada", "PER"), ("Zo\u00eb \U0001f680", "X y")]
    groups = {name: [(span.text, span.label_) for span in group] for name, group in docs[0].spans.items()}
    assert groups.pop("soft")
    assert groups == {
        "names": [("Ada", "PER"), ("Ada  met\r\nZo\u00eb", "ORG"), ("\U0001f680.", "O")],
        "no": [],
    }
    other = docs[0].copy()
    for group in (docs[0].spans["names"], docs[0].spans["names"].copy(doc=other)):
        assert [(span.start_char, span.end_char) for span in group] == [(0, 3), (0, 13), (14, 16)]
    assert [(span.start_char, span.end_char) for span in docs[1].spans["old"]] == [(5, 6)]
    assert docs[0].spans["names"].attrs == {"scores": [0.25, None, None]}
    assert docs[0].user_data["tagweave"]["id"] == "d"
    assert docs[0].user_data["tagweave"]["probabilities"].shape == (5, 7)
    assert [token.text for token in docs[1]] == ["Oslo", " ", "x"]
    assert docs[1].has_unknown_spaces and docs[1].has_annotation("ENT_IOB")
    assert not docs[4].has_annotation("ENT_IOB")


def test_entities_that_overlap_are_counted(path: Path) -> None:
    document = Document("d", ["a", "b"], entities=[Span(0, 2, "X"), Span(1, 2, "Y")])
    with pytest.warns(FormatWarning, match="1 entities left out that overlap a longer one"):
        write(Corpus.from_documents([document]), path)
    assert read(path)[0].entities == [Span(0, 2, "X")]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document("d", ["a", ""]), "spaCy knows no empty tokens"),
        (Document("d", ["ab", "b"], "ab", [(0, 2), (1, 2)]), "token 1 begins at 1"),
    ],
)
def test_what_spacy_cannot_hold_is_an_error(path: Path, document: Document, message: str) -> None:
    with pytest.raises(AlignmentError, match=f"out.spacy, document 'd': {message}"):
        write(Corpus.from_documents([document]), path)
    assert not path.exists()


def foreign(path: Path, *docs: Any, store_user_data: bool = False) -> Path:  # noqa: ANN401
    spacy.tokens.DocBin(docs=docs, store_user_data=store_user_data).to_disk(path)
    return path


def test_blanks_of_a_foreign_file_are_no_tokens(path: Path) -> None:
    doc = spacy.blank("en")("\n Ada \n Lovelace  came.\n")
    assert [token.text for token in doc] == ["\n ", "Ada", "\n ", "Lovelace", " ", "came", ".", "\n"]
    doc.set_ents([spacy.tokens.Span(doc, 1, 4, "PER")])
    spans = [spacy.tokens.Span(doc, *place) for place in ((0, 4, "PER"), (5, 6, "V"), (4, 5, "B"), (2, 3))]
    doc.spans["skweak"] = spans
    with pytest.warns(FormatWarning, match="2 spans left out that cover only blanks"):
        document = read(foreign(path, doc))[0]
    assert document.id == "out-0"
    assert document.text == doc.text
    assert document.tokens == ["Ada", "Lovelace", "came", "."]
    assert document.entities == [Span(0, 2, "PER")]
    assert document.sources == {"skweak": [Span(0, 2, "PER"), Span(2, 3, "V")]}


def test_spans_without_a_label_are_counted(path: Path) -> None:
    doc = spacy.blank("en")("Ada came")
    doc.spans["sents"] = [doc[0:2]]
    with pytest.warns(FormatWarning, match="1 spans left out that have no label"):
        assert read(foreign(path, doc))[0].sources == {"sents": []}


def test_no_entities_and_unknown_entities(path: Path) -> None:
    nlp = spacy.blank("en")
    none, unknown = nlp("Ada"), nlp("Ada")
    none.set_ents([], default="outside")
    assert [document.entities for document in read(foreign(path, none, unknown))] == [[], None]


def test_groups_of_the_span_categorizer(path: Path) -> None:
    doc = spacy.blank("en")("Ada came")
    doc.spans["sc"] = [spacy.tokens.Span(doc, 0, 1, "PER"), spacy.tokens.Span(doc, 0, 2, "X")]
    doc.spans["sc"].attrs["scores"] = np.array([0.5, 0.75], np.float32)
    doc.user_data[("._.", "x", 0, None)] = {"a": [1]}
    with pytest.warns(FormatWarning, match="overlap"):
        document = read(foreign(path, doc, store_user_data=True), entities="sc")[0]
    assert document.entities == [Span(0, 1, "PER", 0.5), Span(0, 2, "X", 0.75)]
    assert document.sources == {}


def test_scores_that_are_none_are_left(path: Path) -> None:
    doc = spacy.blank("en")("Ada came")
    for number, scores in enumerate(([2.0], [0.5, 0.5], "x", np.array(["a"]), {b"nd": 1})):
        doc.spans[f"s{number}"] = [spacy.tokens.Span(doc, 0, 1, "PER")]
        doc.spans[f"s{number}"].attrs["scores"] = scores
    with pytest.raises(FormatError, match="out.spacy, document 0: cannot be read: an array of numbers is expected"):
        read(foreign(path, doc))
    for number in (3, 4):
        doc.spans[f"s{number}"].attrs.clear()
    assert read(foreign(path, doc))[0].sources["s0"] == [Span(0, 1, "PER")]


def packed(**changes: Any) -> bytes:  # noqa: ANN401
    """The bytes of a DocBin with some parts replaced."""
    doc = spacy.blank("en")("Ada came")
    content = srsly.msgpack_loads(zlib.decompress(spacy.tokens.DocBin(docs=[doc]).to_bytes()))
    return zlib.compress(srsly.msgpack_dumps({**content, **changes}))


class Trap:
    """A pickle of it would make a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("trapped", "w"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zlib",
        zlib.compress(b""),
        zlib.compress(b"\xc1"),
        zlib.compress(b"\x90"),
        zlib.compress(b"\x91" * 5000),
        zlib.compress(srsly.msgpack_dumps({"attrs": [65]})),
        pickle.dumps(Trap()),
        zlib.compress(pickle.dumps(Trap())),
    ],
)
def test_what_is_no_docbin_is_an_error(path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"out.spacy: not a (whole )?DocBin of spaCy"):
        read(path)
    assert not Path("trapped").exists()


LINKS = {"tagweave": {"links": 3}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attrs": []}, "not a whole DocBin"),
        ({"attrs": [65]}, "announced"),
        ({"lengths": b"\x09\0\0\0"}, "9 tokens are announced, but there are 2"),
        ({"lengths": b"\x09"}, "not a whole DocBin"),
        ({"tokens": "text"}, "not a whole DocBin"),
        ({"strings": []}, "names a string that the file does not have"),
        ({"strings": 3}, "not a whole DocBin"),
        ({"span_groups": []}, "the lists of documents are not of the same length"),
        ({"span_groups": [b"\xc1"]}, "document 0: cannot be read"),
        ({"span_groups": [3]}, "document 0: cannot be read"),
        ({"flags": [3]}, "document 0: cannot be read"),
        ({"user_data": [b"\x81\x90"]}, "document 0: cannot be read"),
        ({"user_data": [srsly.msgpack_dumps(LINKS)]}, "links: must be an object"),
        ({"user_data": [srsly.msgpack_dumps({"tagweave": {"between": [1.5]}})]}, "'between' must be a list"),
        ({"user_data": [srsly.msgpack_dumps({"tagweave": {"probabilities": [[1]]}})]}, "an array of numbers"),
        ({"user_data": [srsly.msgpack_dumps({"tagweave": {"soft_sources": {"a": 1}}})]}, "an array of numbers"),
    ],
)
def test_a_broken_docbin_is_an_error(path: Path, changes: dict[str, Any], message: str) -> None:
    path.write_bytes(packed(**changes))
    with pytest.raises(FormatError, match=f"out.spacy.*{message}"):
        read(path)


def test_a_file_that_holds_far_too_much_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagweave.formats.docbin_bytes.LEAST_LIMIT", 1000)
    path.write_bytes(zlib.compress(bytes(1_000_000)))
    with pytest.raises(FormatError, match="unpacked, it is more than 200 times as large"):
        read(path)
    whole = zlib.compress(bytes(10))
    path.write_bytes(whole[:-3])
    with pytest.raises(FormatError, match="the end is missing"):
        read(path)


def test_spans_beyond_the_tokens_are_an_error(path: Path) -> None:
    write(Corpus.from_documents([Document("d", ["a", "b"], sources={"s": [Span(0, 2, "X")]})]), path)
    content = srsly.msgpack_loads(zlib.decompress(path.read_bytes()))
    place = struct.pack(">ll", 0, 2)
    assert place in content["span_groups"][0]
    content["span_groups"][0] = content["span_groups"][0].replace(place, struct.pack(">ll", 0, 7))
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(content)))
    with pytest.raises(AlignmentError, match=r"s: span \[0, 7, 'X'\] does not lie within the 2 tokens of spaCy"):
        read(path)


@cache
def unpacked_bytes() -> bytes:
    document = Document("d", ["a", "b"], "a b", [(0, 1), (2, 3)], entities=[], sources={"s": [Span(0, 2, "X", 0.5)]})
    corpus = Corpus.from_documents([document])
    soft = SoftLabels(("X",), corpus.offsets, np.eye(3, dtype=np.float32)[:2])
    with tempfile.TemporaryDirectory() as folder:
        write(corpus.with_entities(corpus.entities, soft), Path(folder, "a.spacy"))
        return zlib.decompress(Path(folder, "a.spacy").read_bytes())


@given(st.data())
def test_any_changed_byte_is_read_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "out.spacy"
    content = bytearray(unpacked_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(zlib.compress(bytes(content[: data.draw(st.integers(len(content) // 2, 2 * len(content)))])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(path)
        except DataError as error:
            assert "out.spacy" in str(error)


def test_objects_in_arrays_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="array of numbers"):
        array({b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [1], b"data": pickle.dumps(Trap())})


def test_a_missing_spacy_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(packed())
    for name in ("spacy", "spacy.tokens", "spacy.attrs"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (lambda: read(path), lambda: write(made(), path)):
        with pytest.raises(MissingExtraError, match=r"pip install 'tagweave\[spacy\]'"):
            use()


def test_sources_that_never_ran(path: Path) -> None:
    corpus = Corpus.from_documents([Document("d", ["a"])])
    never = corpus.with_source("never", Annotations.from_lists([None], ("O",)))
    write(never, path)
    assert read(path)[0].sources == {}
