"""Entities of spaCy pipelines, a real one among them, on tokens as they are."""

from pathlib import Path

import pytest
import spacy

from source_documents import from_text, from_words, tagged
from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.pipelines import load_pipeline
from tagweave.sources import SpacyModel, create_source
from tagweave.sources.truecasing import FormTable

SENTENCE = "Angela Merkel visited Paris in March ."


def test_a_real_pipeline_finds_names() -> None:
    found = tagged(SpacyModel("s"), from_words(SENTENCE))
    assert ("Angela Merkel", "PERSON") in found
    assert ("Paris", "GPE") in found
    assert ("March", "DATE") in found


def test_types_as_those_of_conll() -> None:
    source = create_source("spacy-model", {"name": "s", "rename": "CoNLL-2003"})
    assert set(source.types) == {"PER", "LOC", "ORG", "MISC"}
    assert tagged(source, from_words(SENTENCE)) == [("Angela Merkel", "PER"), ("Paris", "LOC")]


def test_own_names_without_the_others_or_with_them() -> None:
    source = create_source("spacy-model", {"name": "s", "rename": {"GPE": "PLACE"}})
    assert source.types == ("PLACE",)
    assert tagged(source, from_words(SENTENCE)) == [("Paris", "PLACE")]
    source = SpacyModel("s", rename={"GPE": "PLACE"}, keep=True)
    assert {"PLACE", "PERSON", "DATE"} <= set(source.types)
    assert ("Angela Merkel", "PERSON") in tagged(source, from_words(SENTENCE))


def test_tokens_stay_as_they_are() -> None:
    document = Document("d", ["Angela-Merkel", ",", "Paris", "😀"])
    (votes,) = SpacyModel("s").annotate([document])
    assert all(end <= 4 for _, end, *_ in votes or ())


def test_empty_documents_stand_among_others() -> None:
    documents = [Document("a", []), from_words(SENTENCE), Document("b", [])]
    found = [list(votes or ()) for votes in SpacyModel("s", rename="CoNLL-2003").annotate(documents)]
    assert found == [[], [(0, 2, "PER"), (3, 4, "LOC")], []]


def test_headlines_are_read_in_their_usual_case(tmp_path: Path) -> None:
    story = from_words("It said Angela Merkel left Paris . Then Angela Merkel left Paris .", "story")
    FormTable.of([story.tokens]).write(tmp_path / "forms.json")
    headline = from_text("ANGELA MERKEL LEFT PARIS")
    source = SpacyModel("s", rename="CoNLL-2003", truecase=True, forms=tmp_path / "forms.json")
    assert tagged(source, headline) == [("ANGELA MERKEL", "PER"), ("PARIS", "LOC")]


@spacy.Language.component("refuses")
def refuses(doc: object) -> object:
    raise AssertionError("more is run than is needed")


def test_only_what_finds_entities_is_run() -> None:
    nlp = load_pipeline("en_core_web_sm")
    nlp.add_pipe("refuses")
    try:
        assert list(SpacyModel("s").annotate([from_words(SENTENCE)]))[0]
    finally:
        nlp.remove_pipe("refuses")


def test_rules_of_a_pipeline_count_too(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "TOWN", "pattern": "Oslo"}])
    nlp.to_disk(tmp_path / "rules")
    source = SpacyModel("s", str(tmp_path / "rules"))
    assert source.types == ("TOWN",)
    assert tagged(source, from_words("to Oslo")) == [("Oslo", "TOWN")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "blank:en"}, "no component 'ner'"),
        ({"model": "no_such_pipeline"}, "no_such_pipeline"),
        ({"rename": "CoNLL-2004"}, "Did you mean 'CoNLL-2003'"),
        ({"rename": {"GPF": "LOC"}}, "Did you mean 'GPE'"),
    ],
)
def test_what_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create_source("spacy-model", {"name": "s", **settings}).load()
