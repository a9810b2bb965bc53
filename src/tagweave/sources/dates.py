"""`Dates`: days, months with their years, years, decades, weekdays and times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tagweave.sources.numbers import TextSource, any_of

MONTHS = tuple(
    """
    January February March April May June July August September October November December
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
    """.split()
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SHORT_WEEKDAYS = ("Mon", "Tue", "Tues", "Wed", "Thu", "Thur", "Thurs", "Fri", "Sat", "Sun")
TIME_WORDS = ("am", "pm", "a.m.", "p.m.", "o'clock", "o’clock", "UTC", "GMT", "CET", "EST", "EDT", "PST", "PDT")

DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
MONTH_NUMBER = r"(?:0?[1-9]|1[0-2])"
DAY_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])"
YEAR = r"(?:1[0-9]|20)\d\d"
DECADE = r"(?:(?:1[0-9]|20)\d0s|['’]\d0s)"
CLOCK = r"(?:[01]?\d|2[0-4])(?::[0-5]\d){1,2}(?:[.,]\d+)?"
BEGINS = r"(?<![\w./:-])"
ENDS = r"(?![\w:/]|[.,-]\d)"


@dataclass
class Dates(TextSource):
    """Dates and times: "12 March 2024", "Mar. 12", "2024-03-12", "3/12/2024", "1990s", "Monday", "10:30 am".

    A month counts only with a day or a year: "may" and "march" are words too.

    Attributes:
        date: type of dates; with "" they are left out.
        time: type of times; with "" they are left out.
        years: whether a number from 1500 to 2099 is a date by itself.
        months: names of months, as they are written; in capitals they count too.
        weekdays: names of days of the week.
        short_weekdays: names of days of the week that count only before a date.
        time_words: what may follow a time, and makes one of "5 pm".

    >>> source = Dates("dates")
    >>> words = "On Tues , 12 March 2024 at 10:30 am".split()
    >>> from tagweave.corpus import Document
    >>> from tagweave.formats.words import tokenize
    >>> list(source.find(Document("d", words, " ".join(words), tokenize(" ".join(words), "whitespace"))))
    [(1, 6, 'DATE'), (7, 9, 'TIME')]
    """

    kind = "dates"

    date: str = "DATE"
    time: str = "TIME"
    years: bool = True
    months: tuple[str, ...] = MONTHS
    weekdays: tuple[str, ...] = WEEKDAYS
    short_weekdays: tuple[str, ...] = SHORT_WEEKDAYS
    time_words: tuple[str, ...] = TIME_WORDS

    @property
    def types(self) -> tuple[str, ...]:
        """The types that are not left out."""
        return tuple(dict.fromkeys(filter(None, (self.date, self.time))))

    def _rules(self) -> Iterator[tuple[str, str]]:
        month = rf"\b{_names(self.months)}"
        weekday = rf"\b{_names((*self.weekdays, *self.short_weekdays))}"
        before = rf"(?:{weekday}\.?\s*,?\s+)?"
        days = rf"{DAY}(?:\s?[–-]\s?{DAY})?"
        after = rf"(?:\.?\s*,?\s+{YEAR})?"
        zone = r"(?:Z|[+-]\d\d:?\d\d)?"
        yield self.date, rf"{BEGINS}{YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T{CLOCK}{zone})?{ENDS}"
        yield self.date, rf"{before}{BEGINS}{days}\s+(?:of\s+)?{month}{after}\b{ENDS}"
        yield self.date, rf"{before}{month}\.?\s+{days}{after}{ENDS}"
        yield self.date, rf"{month}(?:\.?\s*,?\s+|\s+of\s+){YEAR}{ENDS}"
        yield self.date, rf"{BEGINS}(?:{MONTH_NUMBER}/{DAY_NUMBER}|{DAY_NUMBER}/{MONTH_NUMBER})/(?:{YEAR}|\d\d){ENDS}"
        yield self.date, rf"{BEGINS}{DAY_NUMBER}([.-]){MONTH_NUMBER}\1{YEAR}{ENDS}"
        yield self.date, rf"{BEGINS}(?:(?:early|mid|late)[\s-]+)?{DECADE}(?!\w)"
        words = any_of(self.time_words)
        yield self.time, rf"{BEGINS}{CLOCK}(?:\s?{words}(?!\w))*{ENDS}"
        yield self.time, rf"{BEGINS}(?:1[0-2]|0?[1-9])\s?{words}(?!\w)"
        if self.years:
            year = r"(?:1[5-9]|20)\d\d"
            yield self.date, rf"{BEGINS}(?<!\p{{Sc}}\s?){year}(?:\s?[–-]\s?{year})?(?!\s?%){ENDS}"
        yield self.date, rf"\b{_names(self.weekdays)}\b"


def _names(names: Sequence[str]) -> str:
    """A pattern for names as they are written, and in capitals."""
    return any_of([*names, *(name.upper() for name in names)], ignore_case=False) + r"\b"
