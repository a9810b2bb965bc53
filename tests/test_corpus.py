import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Corpus, CorpusBuilder, Document
from tagweave.errors import AlignmentError, DataError, UsageError
from tagweave.soft_labels import SoftLabels


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    """Documents of one to four tokens or none, with spans of one token."""
    made = []
    for number in range(draw(st.integers(0, 5))):
        tokens = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=4))
        places = st.integers(0, max(len(tokens) - 1, 0))
        spans = st.lists(st.builds(lambda at, name: Span(at, at + 1, name), places, st.sampled_from("OXY")), max_size=3)
        column = (st.none() | spans) if tokens else st.none() | st.just([])
        text = " ".join(tokens) if draw(st.booleans()) else None
        starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])[:-1].tolist()
        characters = None if text is None else [(at, at + len(token)) for at, token in zip(starts, tokens, strict=True)]
        entities = draw(column)
        made.append(
            Document(
                id=f"d{number}",
                tokens=tokens,
                text=text,
                characters=characters,
                group=draw(st.none() | st.sampled_from("gh")),
                entities=None if entities is None else [span for span in entities if span.type != "O"],
                sources={name: draw(column) for name in ("s", "t")},
            )
        )
    return made


@given(documents())
def test_documents_come_back(made: list[Document]) -> None:
    corpus = Corpus.from_documents(made)
    assert list(corpus) == made
    assert len(corpus) == len(made)
    assert corpus.tokens.to_pylist() == [token for document in made for token in document.tokens]


@given(documents(), st.data())
def test_subset(made: list[Document], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=6)) if made else []
    part = Corpus.from_documents(made).subset(chosen)
    assert list(part) == [made[index] for index in chosen]


@given(documents(), st.integers(1, 8))
def test_batches_hold_every_document_once_and_few_tokens(made: list[Document], tokens: int) -> None:
    parts = list(Corpus.from_documents(made).batches(tokens))
    assert [document for part in parts for document in part] == made
    assert all(len(part) == 1 or int(part.offsets[-1]) <= tokens for part in parts)


def test_group_numbers() -> None:
    groups = ["b", None, "a", "b", None]
    corpus = Corpus.from_documents([Document(str(n), [], group=group) for n, group in enumerate(groups)])
    assert corpus.group_numbers.tolist() == [0, 1, 2, 0, 3]
    assert Corpus.from_documents([Document("a", []), Document("b", [])]).group_numbers.tolist() == [0, 1]


def test_indexing_counts_from_both_ends() -> None:
    corpus = Corpus.from_documents([Document("a", ["x"]), Document("b", ["y"])])
    assert corpus[-1].id == corpus[1].id == "b"
    for index in (2, -3):
        with pytest.raises(IndexError):
            corpus[index]


def test_a_source_that_comes_late_did_not_run_before() -> None:
    builder = CorpusBuilder()
    builder.add(Document("a", ["x"]))
    builder.add(Document("b", ["x"], sources={"s": []}))
    corpus = builder.build()
    assert corpus.sources["s"].ran.tolist() == [False, True]  # type: ignore[union-attr]
    assert corpus.entities is None


@pytest.mark.parametrize("span", [(0, 2), (1, 1), (1, 0), (-1, 1)])
def test_a_span_outside_the_tokens_is_an_error(span: tuple[int, int]) -> None:
    with pytest.raises(AlignmentError, match="document 'a', s: span"):
        CorpusBuilder().add(Document("a", ["x"], sources={"s": [Span(*span, "X")]}))


def test_places_are_one_a_token() -> None:
    with pytest.raises(AlignmentError, match="document 'a': 2 tokens, but places in the text for 1"):
        CorpusBuilder().add(Document("a", ["x", "y"], text="x y", characters=[(0, 1)]))
    corpus = Corpus.from_documents([Document("a", ["x"]), Document("b", ["y"], text=" y", characters=[(1, 2)])])
    assert corpus.characters.tolist() == [[-1, -1], [1, 2]]  # type: ignore[union-attr]


def test_ids_must_differ() -> None:
    with pytest.raises(DataError, match="'a' occurs twice"):
        Corpus.from_documents([Document("a", []), Document("a", [])])


def test_declared_and_coarse_types() -> None:
    made = [Document("a", ["x"], sources={"s": [Span(0, 1, "ENT"), Span(0, 1, "X")]})]
    corpus = Corpus.from_documents(made, coarse={"ENT": ["X", "Y"]})
    assert corpus.types == ("X", "Y")
    assert corpus.vocabulary == ("O", "X", "Y", "ENT")
    assert list(corpus) == made
    with pytest.raises(DataError, match="entity types ENT occur, but only X"):
        Corpus.from_documents(made, types=["X"])
    assert Corpus.from_documents(made, types=["Z", "X", "ENT"]).types == ("Z", "X", "ENT")


@given(documents())
def test_other_types_keep_the_spans(made: list[Document]) -> None:
    corpus = Corpus.from_documents(made)
    moved = corpus.with_types(["Z", *reversed(corpus.types)])
    assert list(moved) == made
    assert moved.types[0] == "Z"
    if corpus.types:
        with pytest.raises(DataError, match="are not among Z"):
            corpus.with_types(["Z"])


def soft(lengths: list[int]) -> SoftLabels:
    labels = np.ones(sum(lengths), np.int64)
    return SoftLabels.from_labels(labels, np.cumsum([0, *lengths]).astype(np.int64), ("X",))


def test_sources_are_added_and_chosen() -> None:
    corpus = Corpus.from_documents([Document("a", ["x", "y"], sources={"s": [Span(0, 1, "X")], "t": []})])
    more = corpus.with_source("soft", soft([2]))
    assert more[0].sources == {"s": [Span(0, 1, "X")], "t": [], "soft": [Span(0, 1, "X", 1), Span(1, 2, "X", 1)]}
    assert list(more.select_sources(["soft", "s"]).sources) == ["soft", "s"]
    assert list(corpus.sources) == ["s", "t"]
    with pytest.raises(UsageError, match="no source is called 'sof'. Did you mean 'soft'"):
        more.select_sources(["sof"])


def test_columns_must_be_of_the_corpus() -> None:
    corpus = Corpus.from_documents([Document("a", ["x"]), Document("b", ["x", "y"])])
    with pytest.raises(AlignmentError, match="1 documents, but the corpus has 2"):
        corpus.with_source("s", soft([3]))
    with pytest.raises(AlignmentError, match="document 'a' has 1 tokens, but soft labels for 2"):
        corpus.with_entities(None, soft([2, 1]))
    assert corpus.with_entities(None, soft([1, 2])).soft_labels is not None


def test_soft_labels_follow_their_documents() -> None:
    corpus = Corpus.from_documents([Document("a", ["x"]), Document("b", ["x", "y"])], types=["X"])
    table = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    corpus = corpus.with_entities(None, SoftLabels(("X",), corpus.offsets, table))
    part = corpus.subset([1, 0]).with_types(["Y", "X"])
    assert part.soft_labels is not None
    assert part.soft_labels.probabilities.argmax(axis=1).tolist() == [3, 4, 0]
