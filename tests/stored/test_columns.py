"""A corpus of parts as one whose columns lie on disk: it is the one that would be in memory."""

import resource
from dataclasses import replace

import numpy as np
import pytest

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, StorageError
from tagweave.soft_labels import SoftLabels
from tagweave.stored import StoredCorpus


def documents() -> list[Document]:
    """With text, groups, scores, sources and links that only some have; one is empty, one has letters of all widths."""
    spans = [Span(0, 1, "PER"), Span(2, 3, "LOC", 0.5)]
    found = []
    for number in range(11):
        tokens = ["Ada", "sah", ("Oslo", "Ålesund", "東京")[number % 3]][: 3 if number else 0]
        text = " ".join(tokens) if number % 4 == 1 else None
        starts = [sum(len(token) + 1 for token in tokens[:place]) for place in range(len(tokens))]
        known = [span for span in spans if span.end <= len(tokens)]
        found.append(
            Document(
                f"d{number}",
                tokens,
                text=text,
                characters=[(s, s + len(t)) for s, t in zip(starts, tokens, strict=True)] if text else None,
                group=f"g{number}" if number > 5 else None,
                entities=known if number % 2 else None,
                sources={"a": known, "b": None if number < 6 else known[:1]},
                links={"l": [Span(0, 2, "same")] if number == 7 else []},
            )
        )
    return found


def soft(corpus: Corpus) -> Corpus:
    rows = np.random.default_rng(0).dirichlet(np.ones(1 + 2 * len(corpus.types)), len(corpus.tokens)).astype(np.float32)
    return corpus.with_entities(corpus.entities, SoftLabels(corpus.types, corpus.offsets, rows))


@pytest.mark.parametrize("size", [1, 4, 11])
@pytest.mark.parametrize("labelled", [False, True])
def test_all_is_there_in_order(size: int, labelled: bool) -> None:
    corpus = Corpus.from_documents(documents(), coarse={"NAME": ("LOC", "PER")})
    corpus = soft(corpus) if labelled else corpus
    whole = StoredCorpus(corpus.subset(range(first, min(first + size, 11))) for first in range(0, 11, size)).whole()
    assert list(whole) == list(corpus)
    assert (whole.types, whole.coarse, list(whole.sources)) == (corpus.types, corpus.coarse, list(corpus.sources))
    assert whole.ids.equals(corpus.ids)
    assert whole.tokens.equals(corpus.tokens)
    assert (whole.soft_labels is None) == (corpus.soft_labels is None)
    if corpus.soft_labels is not None and whole.soft_labels is not None:
        np.testing.assert_array_equal(whole.soft_labels.probabilities, corpus.soft_labels.probabilities)
        assert whole.soft_labels.types == corpus.types
    assert list(whole.subset([7, 0, 9])) == list(corpus.subset([7, 0, 9]))


def test_what_no_document_has_is_not_there() -> None:
    plain = [Document(name, ["a"], sources={"s": [Span(0, 1, "X")]}) for name in "abc"]
    whole = StoredCorpus(Corpus.from_documents([document]) for document in plain).whole()
    assert whole.texts is None
    assert whole.characters is None
    assert whole.groups is None
    assert whole.entities is None
    assert whole.links == {}
    assert whole.sources["s"].scores is None  # type: ignore[union-attr]


def test_types_that_come_late_have_their_columns_everywhere() -> None:
    early = soft(Corpus.from_documents([Document("a", ["x", "y"], entities=[Span(0, 1, "PER")])]))
    late = soft(Corpus.from_documents([Document("b", ["z"], entities=[Span(0, 1, "LOC")])]))
    whole = StoredCorpus([early, late]).whole()
    assert whole.types == ("LOC", "PER")
    assert whole.soft_labels is not None
    assert early.soft_labels is not None
    np.testing.assert_array_equal(whole.soft_labels.probabilities[:2, [0, 3, 4]], early.soft_labels.probabilities)
    assert whole.soft_labels.probabilities[:2, [1, 2]].max() == 0
    assert [document.entities for document in whole] == [[Span(0, 1, "PER")], [Span(0, 1, "LOC")]]


def test_soft_labels_are_for_all_or_none() -> None:
    plain = Corpus.from_documents([Document("a", ["x"], entities=[Span(0, 1, "X")])])
    other = replace(soft(plain), ids=Corpus.from_documents([Document("b", ["x"])]).ids)
    with pytest.raises(DataError, match="document 'b' has soft labels, unlike those before it"):
        StoredCorpus([plain, other]).whole()
    with pytest.raises(DataError, match="document 'a' has no soft labels, unlike those before it"):
        StoredCorpus([other, plain]).whole()


def test_many_sources_need_no_files_of_their_own() -> None:
    names = [f"s{number}" for number in range(300)]
    votes = [Document(id, ["x"], sources={name: [Span(0, 1, "X")] for name in names}) for id in "ab"]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    stored = StoredCorpus(Corpus.from_documents([document]) for document in votes)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
        whole = stored.whole()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(whole) == votes


def test_an_empty_corpus() -> None:
    assert len(StoredCorpus([]).whole()) == 0
    assert len(StoredCorpus([Corpus.from_documents([])]).whole()) == 0


def test_where_there_is_no_space_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    stored = StoredCorpus([Corpus.from_documents(documents())])
    monkeypatch.setattr("tempfile.tempdir", f"{tmp_path}/nowhere")
    with pytest.raises(StorageError, match="a temporary file cannot be written"):
        stored.whole()
