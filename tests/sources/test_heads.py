import pytest

from source_documents import from_words, parsed, tagged, texts
from tagweave.errors import SourceError, UsageError
from tagweave.sources import HeadNouns

pytest.importorskip("spacy")
DOCUMENT = parsed(
    from_words(
        "Patients had folic acid deficiency and severe deficiency of vitamin B12 . "
        "The Von Hippel - Lindau syndrome was rare . The liver lesions were seen ."
    )
)
HEADS = ("deficiency", "lesion", "syndrome")


def test_compounds_by_dependency() -> None:
    assert tagged(HeadNouns("h", "D", HEADS), DOCUMENT) == [
        ("folic acid deficiency", "D"),
        ("Von Hippel - Lindau syndrome", "D"),
        ("liver lesions", "D"),
    ]


def test_other_dependencies() -> None:
    source = HeadNouns("h", "D", ("deficiency",), dependencies=("compound", "amod"))
    assert texts(source, DOCUMENT) == ["folic acid deficiency", "severe deficiency"]


def test_compounds_by_parts_of_speech() -> None:
    source = HeadNouns("h", "D", HEADS, before="parts-of-speech", parts_of_speech=("NOUN", "PROPN", "ADJ"))
    assert texts(source, DOCUMENT) == [
        "folic acid deficiency",
        "severe deficiency",
        "Von Hippel - Lindau syndrome",
        "liver lesions",
    ]


def test_how_many_words_must_stand_before() -> None:
    assert "deficiency" in texts(HeadNouns("h", "D", HEADS, least=0), DOCUMENT)
    assert texts(HeadNouns("h", "D", HEADS, least=2), DOCUMENT) == [
        "folic acid deficiency",
        "Von Hippel - Lindau syndrome",
    ]


def test_heads_inside_longer_phrases() -> None:
    document = parsed(from_words("A liver disease syndrome was found ."))
    assert texts(HeadNouns("h", "D", ("disease", "syndrome")), document) == ["liver disease syndrome"]


def test_form_of_heads() -> None:
    assert texts(HeadNouns("h", "D", ("lesion",), form="lower"), DOCUMENT) == []
    assert texts(HeadNouns("h", "D", ("Lesions",), form="lower"), DOCUMENT) == ["liver lesions"]


def test_errors() -> None:
    with pytest.raises(UsageError, match="'h' has no heads"):
        HeadNouns("h", "D", ())
    with pytest.raises(SourceError, match="has no DEP"):
        HeadNouns("h", "D", HEADS, pipeline="blank:en").find(parsed(from_words("liver lesion"), "blank:en"))
