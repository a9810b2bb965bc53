import pytest

from source_documents import from_words, parsed, tagged, texts
from tagweave.errors import SourceError, UsageError
from tagweave.sources import Triggers, create_source


def english(text: str):  # noqa: ANN201
    pytest.importorskip("spacy")
    return parsed(from_words(text))


LOVE = "I love the battery life and I hate this big touch pad ."


def test_the_nouns_after_a_phrase() -> None:
    assert tagged(Triggers("t", "TERM", ("love", "hate")), english(LOVE)) == [
        ("battery life", "TERM"),
        ("touch pad", "TERM"),
    ]


def test_the_window() -> None:
    assert texts(Triggers("t", "TERM", ("love", "hate"), window=1), english(LOVE)) == ["battery life"]
    assert texts(Triggers("t", "TERM", ("love", "hate"), window=0), english(LOVE)) == []


def test_no_entity_across_the_end_of_a_sentence() -> None:
    document = english("That is what I love . Batteries are heavy .")
    assert texts(Triggers("t", "TERM", ("love",)), document) == []


def test_parts_of_speech_and_the_last_word() -> None:
    document = english("He was diagnosed with chronic kidney disease in Oslo .")
    settings = {"name": "t", "type": "D", "triggers": "diagnosed with"}
    assert texts(create_source("triggers", settings), document) == ["kidney disease"]
    wider = create_source("triggers", {**settings, "parts_of_speech": ["ADJ", "NOUN", "ADP"]})
    assert texts(wider, document) == ["chronic kidney disease in"]
    cut = create_source("triggers", {**settings, "parts_of_speech": ["ADJ", "NOUN", "ADP"], "last": "NOUN"})
    assert texts(cut, document) == ["chronic kidney disease"]
    none = create_source("triggers", {**settings, "parts_of_speech": ["ADJ"], "last": "NOUN"})
    assert texts(none, document) == []


def test_the_phrase_may_belong_to_the_entity() -> None:
    document = english("She has a severe deficiency of vitamin B12 .")
    source = Triggers("t", "D", ("deficiency of",), include_trigger=True, window=0)
    assert texts(source, document) == ["deficiency of vitamin B12"]


def test_the_side_before() -> None:
    document = english("The kidney failure was diagnosed , and cancer .")
    source = Triggers("t", "D", ("was diagnosed",), side="before")
    assert texts(source, document) == ["kidney failure"]
    assert texts(Triggers("t", "D", ("was diagnosed",), side="before", longest=1), document) == ["failure"]
    inside = Triggers("t", "D", ("was diagnosed",), side="before", include_trigger=True)
    assert texts(inside, document) == ["kidney failure was diagnosed"]


def test_without_parts_of_speech_the_next_tokens_count() -> None:
    document = from_words("an External monitor stand . external . the stand external")
    source = Triggers("t", "P", ("external",), parts_of_speech=(), longest=2)
    assert source.pipeline is None
    assert texts(source, document) == ["monitor stand"]
    assert texts(Triggers("t", "P", ("external",), parts_of_speech=(), longest=1, side="before"), document) == [
        "an",
        "stand",
    ]


def test_phrases_are_found_however_they_are_cut() -> None:
    source = Triggers("t", "P", ("don't like",), parts_of_speech=(), longest=1)
    for text in ("I do n't like fans", "I don't like fans", "I don ' t like fans"):
        assert texts(source, from_words(text)) == ["fans"]
    assert texts(source, from_words("I don't likefans")) == []


def test_lemmas() -> None:
    assert texts(Triggers("t", "TERM", ("love",), form="lemma"), english("She loves the screen .")) == ["screen"]


def test_errors() -> None:
    for settings, message in (
        ({"triggers": [" "]}, "has no triggers"),
        ({"triggers": "a", "longest": 0}, "longest must be at least 1"),
        ({"triggers": "a", "window": -1}, "window at least 0"),
        ({"triggers": "a", "parts_of_speech": [], "last": ["NOUN"]}, "last needs parts_of_speech"),
    ):
        with pytest.raises(UsageError, match=message):
            create_source("triggers", {"name": "t", "type": "X", **settings})
    with pytest.raises(SourceError, match="'t', document 'd'.*is missing"):
        Triggers("t", "X", ("a",)).find(from_words("a b"))
