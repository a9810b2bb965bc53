import pytest

from source_documents import from_text, from_words, tagged, texts
from tagweave.sources import Dates, create_source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("On 12 March 2024, on 12 March.", ["12 March 2024", "12 March"]),
        ("Tuesday, 12 March 2024; Tues 3rd of May", ["Tuesday, 12 March 2024", "Tues 3rd of May"]),
        ("Mar. 12, 2024 and MAY 5 and Sept 1st", ["Mar. 12, 2024", "MAY 5", "Sept 1st"]),
        ("March 2024, March of 2023, Dec., 1999", ["March 2024", "March of 2023", "Dec., 1999"]),
        ("12-14 June; June 12-14, 2020", ["12-14 June", "June 12-14, 2020"]),
        ("2024-03-12 and 2024-03-12T10:30:00Z", ["2024-03-12", "2024-03-12T10:30:00Z"]),
        ("3/12/2024, 13/12/24, 1.3.2024", ["3/12/2024", "13/12/24", "1.3.2024"]),
        ("in 1999 and 1990-1995, mid-1990s, the '90s", ["1999", "1990-1995", "mid-1990s", "'90s"]),
        ("on Monday, Mon, mondays", ["Monday"]),
        ("You may march in May or march 5 times on 33 March", []),
        ("13/13/2024 2024-13-01 1.2.3.2024 $2000 2000% v2000 2200 1499 x-2000", []),
    ],
)
def test_dates(text: str, expected: list[str]) -> None:
    assert texts(Dates("d", time=""), from_text(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 10:30, 5 pm, 10:30:15 a.m. GMT", ["10:30", "5 pm", "10:30:15 a.m. GMT"]),
        ("5 o'clock and 7pm", ["5 o'clock", "7pm"]),
        ("10:75 25:00 13 pm 1:2 10:30/2 I am 5", []),
    ],
)
def test_times(text: str, expected: list[str]) -> None:
    assert texts(Dates("d", date=""), from_text(text)) == expected


def test_types_and_years_are_settings() -> None:
    document = from_text("12 March 1999 at 10:30 in 1999")
    assert tagged(Dates("d"), document) == [("12 March 1999", "DATE"), ("10:30", "TIME"), ("1999", "DATE")]
    source = create_source("dates", {"name": "d", "date": "WHEN", "time": "", "years": False})
    assert (source.types, tagged(source, document)) == (("WHEN",), [("12 March 1999", "WHEN")])


def test_an_abbreviation_with_its_full_stop() -> None:
    assert texts(Dates("d"), from_words("on 12 Mar. and 12 Mar. 2024 we")) == ["12 Mar.", "12 Mar. 2024"]
    assert texts(Dates("d"), from_words("on 12 March .")) == ["12 March"]


def test_months_of_another_language() -> None:
    source = Dates("d", months=("mars", "mai"), weekdays=("lundi",), short_weekdays=(), time_words=("h",))
    assert texts(source, from_text("lundi 12 mars 2024, le 5 mai, lundi, 5 h, 12 March")) == [
        "lundi 12 mars 2024",
        "5 mai",
        "lundi",
        "5 h",
    ]
