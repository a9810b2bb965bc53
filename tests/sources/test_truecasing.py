from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from source_documents import from_text, from_words
from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import FormatError
from tagweave.sources import Regex, Truecased, labeling_function
from tagweave.sources.truecasing import FormTable, truecase

TABLE = FormTable.of([text.split() for text in ["x the market in Oslo and NATO USA"] * 9 + ["x The Market"]])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("OSLO MARKET", "Oslo market"),
        ("The Market In Oslo", "The market in Oslo"),  # what begins a text keeps its capital
        ("THE market", "the market"),
        ("IN OSLO", "IN Oslo"),  # two letters may be short for something
        ("the Nato", "the Nato"),  # nothing is put into capitals
        ("NATO and nato", "NATO and nato"),
        ("the Unknown UNKNOWN", "the Unknown UNKNOWN"),
        ("", ""),
    ],
)
def test_usual_case(words: str, expected: str) -> None:
    assert truecase(words.split(), TABLE) == expected.split()


def test_a_form_that_is_not_rare_stays() -> None:
    table = FormTable.of([["x", "may", "may", "may", "May"]])
    assert truecase(["in", "May"], table) == ["in", "May"]
    assert truecase(["in", "May"], FormTable.of([["x", *["may"] * 4, "May"]])) == ["in", "may"]


def test_table_from_and_to_a_file(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "forms.json")
    assert FormTable.read(tmp_path / "forms.json") == TABLE
    for wrong in ("[1]", '{"a": {"A": "x"}}', "{", '{"a": 1}'):
        (tmp_path / "wrong.json").write_text(wrong, encoding="utf-8")
        with pytest.raises(FormatError, match=r"wrong\.json"):
            FormTable.read(tmp_path / "wrong.json")


@given(st.lists(st.sampled_from(["OSLO", "Oslo", "the", "THE", "The", "NATO", "Straße", "STRASSE", "İN", "ǅ"])))
def test_tokens_keep_their_number_length_and_letters(tokens: list[str]) -> None:
    table = FormTable.of([["x", *["straße", "the", "oslo", "i̇n"] * 5, "STRASSE"], tokens])
    changed = truecase(tokens, table)
    assert [token.lower() for token in changed] == [token.lower() for token in tokens]
    assert list(map(len, changed)) == list(map(len, tokens))


# Any source in its usual case


def test_a_source_reads_text_and_tokens_in_their_usual_case(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "forms.json")
    source = Truecased("t", Regex("r", r"Oslo\W+market", "X"), forms=tmp_path / "forms.json")
    document = from_text("NEW (OSLO  MARKET)!")
    (result,) = Runner([source]).run([document])
    assert list(result.sources["t"] or ()) == [Span(2, 4, "X")]
    assert result.tokens == document.tokens
    assert result.text == document.text
    assert source.types == ("X",)


def test_a_source_reads_an_analysis_of_the_usual_case() -> None:
    pytest.importorskip("spacy")
    seen: list[str] = []

    @labeling_function("X", pipeline="en_core_web_sm")
    def words(document: Document) -> list[tuple[int, int]]:
        seen.extend(token.text for token in document.parse)
        return []

    list(Truecased("t", words).annotate([from_words("OSLO"), from_words(" ".join(["Oslo"] * 9))]))
    assert seen[0] == "Oslo"


def test_documents_without_text() -> None:
    @labeling_function("X")
    def oslo(document: Document) -> list[tuple[int, int]]:
        return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]

    documents = [Document("1", ["OSLO"]), Document("2", ["Oslo"] * 9)]
    assert list(Truecased("t", oslo).annotate(documents))[0] == [(0, 1)]
