from collections.abc import Sequence

import pytest

from tagweave.annotating import Runner
from tagweave.corpus import Document
from tagweave.demo.corpus import tokenise
from tagweave.demo.rules import SOURCES, base_forms

NAMED = {source.name: source for source in SOURCES}


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in tokenise(text)]


def votes(source: str, text: str) -> list[tuple[str, str]]:
    tokens = words(text)
    [document] = Runner([NAMED[source]]).run([Document("d", tokens)])
    return [(" ".join(tokens[vote.start : vote.end]), vote.type) for vote in sorted(document.sources[source] or ())]


CASES = [
    ("plants-dictionary", "Runner beans and ROSEMARY", [("Runner beans", "Plant"), ("ROSEMARY", "Plant")]),
    (
        "plants-dictionary",
        "sweet peas, peas and cherries",
        [("sweet peas", "Plant"), ("peas", "Plant"), ("cherries", "Plant")],
    ),
    ("latin-genera", "Try Acer griseum, not acer", [("Acer griseum", "Plant")]),
    ("nursery-catalogue", "The sun rose in May", [("rose", "Plant"), ("May", "Plant")]),
    ("problems-dictionary", "box blight, then blight", [("box blight", "Problem"), ("blight", "Problem")]),
    ("remedies-dictionary", "Neem oil or beer traps", [("Neem oil", "Treatment"), ("beer traps", "Treatment")]),
    ("problem-heads", "a bad case of powdery mildew", [("powdery mildew", "Problem")]),
    ("problem-heads", "the small brown pear midges", [("brown pear midges", "Problem")]),
    ("problem-heads", "a butterfly", []),
    ("treatment-triggers", "sprayed the lot with warm soapy water.", [("warm soapy water", "Treatment")]),
    ("treatment-triggers", "a pinch of the borax in it", [("borax", "Treatment")]),
    ("treatment-triggers", "we went with them", []),
    ("problem-triggers", "infested with thrips", [("thrips", "Problem")]),
    ("problem-triggers", "infested with", []),
    ("latin-binomial", "Plant Fatsia japonica here", [("Fatsia japonica", "Plant")]),
    ("latin-binomial", "Phytophthora ramorum", [("Phytophthora ramorum", "Plant")]),
    ("cultivar-quotes", "My Acer palmatum 'Sango-kaku' glows", [("Acer palmatum ' Sango-kaku '", "Plant")]),
    ("cultivar-quotes", "Three Geranium 'Rozanne'.", [("Geranium ' Rozanne '", "Plant")]),
    ("cultivar-quotes", "It says 'frost hardy' there", []),
    ("capitalised-words", "Seen in New York and I like it", [("New York", "Plant")]),
    ("gardening-verbs", "sow the early carrots", [("early carrots", "Plant")]),
    ("ambiguous-words", "She rose by the rose", [("rose", "O")]),
    ("ambiguous-words", "Sage advice in mint condition", [("Sage", "O"), ("mint", "O")]),
    ("ambiguous-words", "rust on the gate", [("rust", "O")]),
    ("ambiguous-words", "rust on the beans", []),
    ("generic-words", "Pests of trees in July", [("Pests", "O"), ("trees", "O"), ("July", "O")]),
]


@pytest.mark.parametrize(("source", "text", "expected"), CASES)
def test_votes(source: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert votes(source, text) == expected


def test_every_source_is_covered() -> None:
    assert {source for source, _, _ in CASES} == set(NAMED)


@pytest.mark.parametrize("tokens", [[], ["rust"], ["'"], ["with"], ["grow"], ["against", "the"], ["Rosa", "'", "X"]])
def test_short_sentences(tokens: Sequence[str]) -> None:
    [document] = Runner(SOURCES).run([Document("d", tokens)])
    assert all(votes is not None for votes in document.sources.values())


def test_sources_have_descriptions() -> None:
    assert all(source.summary and source.summary.endswith(".") for source in SOURCES)


def test_base_forms_keep_short_words() -> None:
    assert base_forms("is") == ("is",)
    assert "potato" in base_forms("potatoes")
