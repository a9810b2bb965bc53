import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError, LabelError, MissingExtraError, UsageError
from tagweave.formats import blank_pipelines
from tagweave.formats.problems import FormatWarning, Problems
from tagweave.formats.raw_text import TextOptions, text_documents

SENTENCES = TextOptions(tokenizer="spacy", sentences=True)


def documents(
    text: str,
    options: TextOptions,
    problems: Problems | None = None,
    **annotations: Any,  # noqa: ANN401
) -> list[Document]:
    return [*text_documents("t", text, options, problems or Problems("f"), **annotations)]


def counts(problems: Problems) -> dict[str, int]:
    with pytest.warns(FormatWarning) as caught:
        problems.warn()
    return caught[0].message.counts  # type: ignore[union-attr]


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters", "spacy"])
@pytest.mark.parametrize("sentences", [False, True])
def test_tokens_are_where_they_say(tokenizer: Any, sentences: bool) -> None:  # noqa: ANN401
    if sentences and tokenizer != "spacy":
        return

    @given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab .!?\n\u00a0\u0301'"), max_size=30))
    def check(text: str) -> None:
        found = documents(text, TextOptions(tokenizer=tokenizer, sentences=sentences))
        assert "".join(document.text or "" for document in found) == text
        for document in found:
            assert [(document.text or "")[start:end] for start, end in document.characters or ()] == document.tokens
            assert not any(not token or token.isspace() for token in document.tokens)
        if tokenizer != "spacy":
            kept = "".join("".join(document.tokens) for document in found)
            assert kept == "".join(text.split())

    check()


def test_sentences_have_their_own_votes() -> None:
    [first, second] = documents(
        "Ada wrote.  She\nmoved to Oslo! ",
        SENTENCES,
        entities=[[0, 3, "PER"], [25, 29, "LOC", 0.5]],
        sources={"s": [[12, 15, "O"]], "none": None, "empty": []},
        links={"l": [[16, 24, "same"]]},
    )
    assert (first.id, first.group, first.text) == ("t-0", "t", "Ada wrote.  ")
    assert (second.id, second.group, second.text) == ("t-1", "t", "She\nmoved to Oslo! ")
    assert second.tokens == ["She", "moved", "to", "Oslo", "!"]
    assert (first.entities, second.entities) == ([Span(0, 1, "PER")], [Span(3, 4, "LOC", 0.5)])
    assert first.sources == {"s": [], "none": None, "empty": []}
    assert second.sources == {"s": [Span(0, 1, "O")], "none": None, "empty": []}
    assert (first.links, second.links) == ({"l": []}, {"l": [Span(1, 3, "same")]})


@pytest.mark.parametrize("annotator", ["entities", "source", "link"])
def test_a_span_over_a_border_joins_the_sentences(annotator: str) -> None:
    text = "See J. Smith. He left. So did I."
    span = [7, 16, "same"]
    given: dict[str, Any] = {
        "entities": {"entities": [span]},
        "source": {"sources": {"source": [span]}},
        "link": {"links": {"link": [span]}},
    }[annotator]
    problems = Problems("f")
    [first, second] = documents(text, SENTENCES, problems, **given)
    assert (first.text, second.text) == ("See J. Smith. He left. ", "So did I.")
    [spans] = [first.entities, *first.sources.values(), *first.links.values()][annotator != "entities" :]
    assert spans == [Span(2, 5, "same")]
    assert second.id == "t-1"
    assert f"span [2, 5, 'same'] of {annotator} goes over the border before token 4, 'He'" in problems.summary()
    assert counts(problems) == {"joined": 1}


def test_a_span_that_is_left_out_joins_nothing() -> None:
    problems = Problems("f")
    options = TextOptions(tokenizer="spacy", sentences=True, alignment="strict")
    found = documents("Ada left. She cried.", options, problems, entities=[[1, 13, "X"]])
    assert [document.entities for document in found] == [[], []]
    assert counts(problems) == {"misaligned": 1}


def test_sentences_of_nothing() -> None:
    [document] = documents(" \n", SENTENCES, entities=[])
    assert (document.id, document.tokens, document.text, document.entities) == ("t-0", [], " \n", [])


def test_sentences_stay_in_the_group_of_their_text() -> None:
    assert {document.group for document in documents("A b. C d.", SENTENCES, group="g")} == {"g"}


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters"])
def test_only_spacy_finds_sentences(tokenizer: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match=f"'{tokenizer}' finds no sentences.*tokenizer='spacy'"):
        TextOptions(tokenizer=tokenizer, sentences=True)


def test_languages() -> None:
    assert documents("z.B. heute", TextOptions(tokenizer="spacy", language="de"))[0].tokens == ["z.B.", "heute"]
    assert documents("奎萨", TextOptions(tokenizer="spacy", language="zh"))[0].tokens == ["奎", "萨"]
    for language in ("english", "qq", "../x", ""):
        with pytest.raises(UsageError, match="spaCy knows no language"):
            documents("a", TextOptions(tokenizer="spacy", language=language))
    with pytest.raises(MissingExtraError, match="'vi': Pyvi not installed"):
        documents("a", TextOptions(tokenizer="spacy", language="vi"))


def test_without_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tagweave\[spacy\]'"):
        blank_pipelines.BlankPipeline("en")


def test_memory_does_not_grow_with_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = blank_pipelines.BlankPipeline("xx")
    before = pipeline._strings
    monkeypatch.setattr(blank_pipelines, "_MOST_STRINGS", len(before) + 1)
    pipeline.cut("one two three", False)
    assert pipeline._strings is before
    assert pipeline.cut("four", False) == ([(0, 4)], [0])
    assert pipeline._strings is not before


@pytest.mark.parametrize(
    ("annotations", "error", "message"),
    [
        ({"entities": [[0, 1, "O"]]}, LabelError, "entities: 'O' is no entity type"),
        ({"entities": [[0, 1]]}, FormatError, r"entities: \[0, 1\] is no span"),
        ({"sources": {"a": [[0, 9, "X"]]}}, AlignmentError, "source 'a': span .* does not lie within"),
        ({"links": {"a": [{"start": 0, "end": 1, "label": "same", "text": "x"}]}}, AlignmentError, "link 'a': .*'x'"),
    ],
)
def test_errors_name_the_annotator(annotations: Any, error: type[Exception], message: str) -> None:  # noqa: ANN401
    with pytest.raises(error, match=message):
        documents("ab", TextOptions(bad_spans="raise"), **annotations)
