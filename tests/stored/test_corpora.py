"""Corpora on disk: parts come back as they went, with the types and sources of all; models learn the same from them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, StorageError, UsageError
from tagweave.label_models import LABEL_MODELS, LabelModel, create_label_model
from tagweave.soft_labels import SoftLabels
from tagweave.stored import Spool, StoredCorpus

WORDS = "old Ada Lovelace met Bo in rainy Oslo near Lake Como today".split()
GOLD = [Span(1, 3, "PER"), Span(4, 5, "PER"), Span(7, 8, "LOC"), Span(9, 11, "LOC")]


def documents(count: int = 90, seed: int = 0) -> Iterator[Document]:
    """Sentences with sources that err; some types, sources and scores come late."""
    chance = np.random.default_rng(seed)
    for number in range(count):
        words = WORDS[: int(chance.integers(1, len(WORDS) + 1))]
        gold = [span for span in GOLD if span.end <= len(words)]
        sources: dict[str, list[Span] | None] = {}
        for source, recall in (("good", 0.9), ("fair", 0.7), ("poor", 0.4), ("late", 0.8)):
            said = [span for span in gold if chance.random() < recall]
            said = [s._replace(end=s.start + 1) if chance.random() < 0.2 else s for s in said]
            said = [s._replace(type="PER") if chance.random() < 0.2 else s for s in said]
            sources[source] = [s._replace(type="NAME") if chance.random() < 0.2 else s for s in said]
        if number % 7 == 3:
            sources["poor"] = None
        if number < 40:
            sources = {name: [s for s in said or () if s.type != "LOC"] for name, said in sources.items()}
            del sources["late"]
        if number > 60:
            sources["fair"] = [s._replace(score=0.7) for s in sources["fair"] or ()]
        yield Document(f"d{number}", words, group=f"g{number // 4}", entities=gold, sources=sources)


COARSE = {"NAME": ("LOC", "PER")}


def in_parts(corpus: Corpus, size: int) -> StoredCorpus:
    """The corpus on disk, with a tagger's probabilities, in parts that know only their own types and sources."""
    every = list(corpus)
    parts = []
    for first in range(0, len(every), size):
        part = Corpus.from_documents((replace(d, sources=_ran(d)) for d in every[first : first + size]), coarse=COARSE)
        tagger = corpus.sources["tagger"].subset(np.arange(first, first + len(part)))
        parts.append(part.with_types(corpus.types).with_source("tagger", tagger))
    stored = StoredCorpus(parts)
    assert set(stored.sources) == set(corpus.sources)
    return stored.select_sources(list(corpus.sources))


def _ran(document: Document) -> dict[str, Sequence[Span] | None]:
    return {name: said for name, said in document.sources.items() if name != "tagger" and said is not None}


@pytest.fixture(scope="module")
def whole() -> Corpus:
    corpus = Corpus.from_documents(documents(), coarse=COARSE)
    rows = np.random.default_rng(1).dirichlet(np.ones(5), len(corpus.tokens)).astype(np.float32)
    return corpus.with_source("tagger", SoftLabels(corpus.types, corpus.offsets, rows))


def adding_up() -> list[str]:
    return sorted(name for name, model in LABEL_MODELS.items() if model.adds_up)


@pytest.mark.parametrize("size", [4, 28, 90])
@pytest.mark.parametrize("name", adding_up())
@pytest.mark.parametrize("silence", ["token", "document"])
def test_a_corpus_in_parts_teaches_what_it_teaches_in_memory(whole: Corpus, name: str, silence: str, size: int) -> None:
    stored = in_parts(whole, size)
    in_memory: LabelModel = create_label_model(name, {"silence": silence}).fit(whole)
    streamed = create_label_model(name, {"silence": silence}).fit(stored)
    assert streamed.sources_ is not None
    assert len(streamed.history_) == len(in_memory.history_)
    for mine, theirs in zip(streamed.history_, in_memory.history_, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-9)
    for key, value in in_memory.parameters().items():
        np.testing.assert_allclose(streamed.parameters()[key], value, rtol=1e-9, atol=1e-9, err_msg=key)
    labelled = [document for part in streamed.predict_parts(stored) for document in part]
    expected = in_memory.predict(whole)
    assert [d.id for d in labelled] == [d.id for d in expected]
    for one, other in zip(labelled, expected, strict=True):
        assert [s[:3] for s in one.entities or ()] == [s[:3] for s in other.entities or ()]


def test_all_that_a_corpus_has_comes_back() -> None:
    text = "Ada left Oslo"
    places = [(0, 3), (4, 8), (9, 13)]
    said = {"a": [Span(0, 1, "PER", 0.25)], "b": None}
    links = {"caps": [Span(0, 3, "same")]}
    first = Document("d0", text.split(), text, places, "g", [Span(2, 3, "LOC")], said, links)
    second = Document("d1", ["Bo"], sources={"a": [Span(0, 1, "O")], "b": []})
    corpora = [Corpus.from_documents([document], ("PER", "LOC")) for document in (first, second)]
    corpora = [
        corpus.with_entities(
            corpus.entities, SoftLabels.from_labels(np.array([1] * tokens), corpus.offsets, ("PER", "LOC"))
        )
        for corpus, tokens in zip(corpora, (3, 1), strict=True)
    ]
    stored = StoredCorpus(iter(corpora))
    assert (len(stored), stored.documents, stored.tokens, stored.types) == (2, 2, 4, ("PER", "LOC"))
    for _ in range(2):
        one, other = stored
        assert one.soft_labels is not None
        assert one.soft_labels.probabilities[:, 1].tolist() == [1, 1, 1]
        assert one[0] == first
        assert other[0] == replace(second, links={"caps": None})


def test_models_that_do_not_add_up_say_so_unless_there_is_one_part() -> None:
    corpora = [Corpus.from_documents([document]) for document in documents(60)]
    with pytest.raises(UsageError, match="swellshark model learns from all documents at once.*60 parts.*hmm"):
        create_label_model("swellshark").fit(StoredCorpus(corpora))
    create_label_model("swellshark").fit(StoredCorpus([Corpus.from_documents(documents(), coarse=COARSE)]))


def test_a_group_in_two_parts_is_an_error_where_silence_looks_at_groups() -> None:
    stored = StoredCorpus(Corpus.from_documents([document]) for document in list(documents(90))[50:])
    assert stored.split_group == "g12"
    create_label_model("majority-vote").fit(stored)
    with pytest.raises(DataError, match="whole groups, but the documents of group 'g12'"):
        create_label_model("majority-vote", {"silence": "document"}).fit(stored)


def test_a_source_is_soft_in_all_parts_or_in_none() -> None:
    one, other = (Corpus.from_documents([d], ("PER",)) for d in (Document("a", ["x"]), Document("b", ["y"])))
    soft = SoftLabels(("PER",), one.offsets, np.array([[1, 0, 0]], np.float32))
    for parts in ([one.with_source("t", soft), other], [one, other.with_source("t", soft)]):
        with pytest.raises(DataError, match="'t' gives a probability for every label in some parts only"):
            StoredCorpus(parts)


def test_coarse_types_are_the_same_in_all_parts() -> None:
    parts = [Corpus.from_documents([Document("a", ["x"])], coarse=coarse) for coarse in (COARSE, {})]
    with pytest.raises(DataError, match="coarse types"):
        StoredCorpus(parts)


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool()

    def full(raw: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "_write", full)
    with pytest.raises(StorageError, match="No space left on device.*TMPDIR"):
        spool.add({"a": np.arange(3)})
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(StorageError, match="/nowhere: a temporary file cannot be written"):
        Spool()


def test_arrays_of_any_shape_and_none_at_all_come_back() -> None:
    spool = Spool()
    arrays = {"a": np.zeros((0, 3), np.int8), "b": np.arange(6.0).reshape(2, 3)[:, ::2], "c": np.array([], bool)}
    spool.add(arrays)
    spool.add({})
    (found, _), (empty, _) = spool
    assert empty == {}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
