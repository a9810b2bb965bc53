import pytest

from source_documents import from_words, parsed, tagged, texts
from tagweave.errors import SourceError, UsageError
from tagweave.sources import Affixes, create_source

DOCUMENT = from_words("Hypertension , colitis and Diabetes mellitus type with hyper inside -itis ITIS")


def test_endings_and_beginnings() -> None:
    assert texts(Affixes("a", "X", suffixes=("itis",)), DOCUMENT) == ["colitis", "-itis ITIS"]
    assert texts(Affixes("a", "X", prefixes=("hyper",)), DOCUMENT) == ["Hypertension", "hyper"]
    assert tagged(Affixes("a", "X", ("hyper",), ("betes",)), DOCUMENT) == [
        ("Hypertension", "X"),
        ("Diabetes", "X"),
        ("hyper", "X"),
    ]


def test_length_exceptions_and_case() -> None:
    assert texts(Affixes("a", "X", suffixes=("itis",), min_length=6), DOCUMENT) == ["colitis"]
    assert texts(Affixes("a", "X", suffixes=("itis",), exceptions=("Colitis",)), DOCUMENT) == ["-itis ITIS"]
    assert texts(Affixes("a", "X", suffixes=("itis",), form="exact"), DOCUMENT) == ["colitis", "-itis"]
    assert texts(Affixes("a", "X", suffixes=("itis",), exceptions=("Colitis",), form="exact"), DOCUMENT) == [
        "colitis",
        "-itis",
    ]


def test_neighbours_are_joined_or_not() -> None:
    document = from_words("sodium chloride and sodium")
    settings = {"name": "a", "type": "C", "suffixes": ["ium", "ide"]}
    assert texts(create_source("affixes", settings), document) == ["sodium chloride", "sodium"]
    apart = create_source("affixes", {**settings, "join": False})
    assert texts(apart, document) == ["sodium", "chloride", "sodium"]


def test_lemmas_and_parts_of_speech() -> None:
    pytest.importorskip("spacy")
    document = parsed(from_words("Several myopathies and hyperactive mice with hypoxia ."))
    assert texts(Affixes("a", "D", suffixes=("pathy",), form="lemma"), document) == ["myopathies"]
    assert texts(Affixes("a", "D", prefixes=("hyp",)), document) == ["hyperactive", "hypoxia"]
    assert texts(Affixes("a", "D", prefixes=("hyp",), parts_of_speech=("NOUN",)), document) == ["hypoxia"]


def test_the_pipeline_is_asked_for_when_needed() -> None:
    assert Affixes("a", "D", ("x",)).pipeline is None
    assert Affixes("a", "D", ("x",), form="lemma").pipeline == "en_core_web_sm"
    assert Affixes("a", "D", ("x",), parts_of_speech=("NOUN",), pipeline="other").pipeline == "other"
    with pytest.raises(SourceError, match="is missing"):
        Affixes("a", "D", ("x",), form="lemma").find(DOCUMENT)


@pytest.mark.parametrize("settings", [{}, {"suffixes": [""]}, {"prefixes": []}])
def test_nothing_to_look_for(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="'a' has neither prefixes nor suffixes"):
        create_source("affixes", {"name": "a", "type": "D", **settings})
