"""`Numbers` and `Money`: figures and words for amounts, in the text, so that it does not matter how it is cut."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tagweave.corpus import Document
from tagweave.sources.base import Source, Votes, tokens_at

NUMBER_WORDS = tuple(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    """.split()
)
SCALES = ("hundred", "thousand", "million", "billion", "trillion", "dozen")
ORDINAL_WORDS = tuple(
    """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth
    ninetieth hundredth thousandth millionth billionth
    """.split()
)
ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
PERCENT_WORDS = ("%", "percent", "per cent", "pct", "percentage point", "percentage points")
CURRENCY_SIGNS = tuple("$ € £ ¥ ₹ ₩ ₽ ₺ ₪ ₫ ₦ ฿ US$ C$ A$ HK$ NZ$ S$ R$".split())
CURRENCY_CODES = tuple(
    """
    USD EUR GBP JPY CHF CAD AUD NZD CNY HKD SGD INR KRW SEK NOK DKK PLN CZK HUF RUB TRY BRL MXN ZAR ILS THB
    """.split()
)
CURRENCY_WORDS = tuple(
    """
    dollar dollars cent cents euro euros pound pounds pence penny yen yuan renminbi rupee rupees franc francs krona
    kronor krone kroner ruble rubles rouble roubles peso pesos shekel shekels baht lira zloty forint
    """.split()
)
SUFFIXES = ("k", "m", "mn", "b", "bn", "tn")

BEGINS = r"(?<![\w.,:/\-])"
ENDS = r"(?!\w|[.,:/–-]\d)"
DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
FIGURE = rf"[+−-]?{DIGITS}(?:\s?[–-]\s?{DIGITS})?"
"""A number in figures, or two with a dash between."""


def any_of(words: Iterable[str], *, ignore_case: bool = True) -> str:
    r"""A pattern for any of the words, the longest first; their blanks stand for any blanks.

    >>> print(any_of(["per cent", "%"]))
    (?i:per\s+cent|%)
    """
    import regex

    parts = (
        r"\s+".join(map(regex.escape, word.split())) for word in sorted(set(words), key=lambda word: (-len(word), word))
    )
    return f"(?{'i' if ignore_case else ''}:{'|'.join(parts) or '(?!)'})"


def spelled(words: Iterable[str], scales: Iterable[str]) -> str:
    """A pattern for numbers in words: "twenty-one", "a dozen", "two hundred and five thousand"."""
    word, scale, dash = any_of(words), any_of(scales), r"(?:\s*-\s*|\s+)"
    small = rf"\b{word}\b(?:{dash}{word}\b)?"
    large = rf"(?:{small}|\b(?i:an?))(?:{dash}{scale}\b){{1,3}}"
    return rf"(?:{large}(?:(?:\s+(?i:and))?\s+{small}(?:{dash}{scale}\b){{0,3}}){{0,6}}|{small})"


@dataclass
class TextSource(Source):
    """A source of patterns of its own, each with a type, of which the first that matches takes the stretch."""

    _compiled: list[tuple[str, Any]] | None = field(default=None, init=False, repr=False, compare=False)

    @abstractmethod
    def _rules(self) -> Iterator[tuple[str, str]]:
        """Type and pattern of each rule, by rank; those of no type are left out."""

    def load(self) -> None:
        """Compile the patterns."""
        import regex

        if self._compiled is None:
            self._compiled = [(label, regex.compile(pattern)) for label, pattern in self._rules() if label]

    def find(self, document: Document) -> Votes:
        """The matches that are whole tokens."""
        self.load()
        text = document.text or ""
        taken = bytearray(len(text))
        found = []
        for label, pattern in self._compiled or ():
            for match in pattern.finditer(text):
                start, end = match.span()
                if taken.find(1, start, end) < 0:
                    taken[start:end] = b"\1" * (end - start)
                    tokens = _whole_tokens(document, text, start, end)
                    if tokens is not None:
                        found.append((*tokens, label))
        return sorted(found)


def _whole_tokens(document: Document, text: str, start: int, end: int) -> tuple[int, int] | None:
    """The tokens of a match; a full stop that a tokeniser left at an abbreviation belongs to it."""
    tokens = tokens_at(document, start, end, "strict")
    return tokens_at(document, start, end + 1, "strict") if tokens is None and text[end : end + 1] == "." else tokens


@dataclass
class Numbers(TextSource):
    """Numbers, ordinals and percentages, in figures and in words.

    Attributes:
        cardinal: type of numbers: "12", "1,200.5", "10-20", "3 million", "twenty-one"; with "" they are left out.
        ordinal: type of ordinals: "3rd", "twenty-first".
        percent: type of percentages: "5%", "five per cent".
        words: numbers below a hundred.
        scales: what is counted in: hundred, million, dozen.
        ordinal_words: ordinals.
        ordinal_endings: what makes an ordinal of a figure.
        percent_words: signs and words for percent.

    >>> source = Numbers("numbers")
    >>> words = "Of 1,200 mice , twenty - one ( 1.75 % ) came third".split()
    >>> from tagweave.formats.words import tokenize
    >>> list(source.find(Document("d", words, " ".join(words), tokenize(" ".join(words), "whitespace"))))
    [(1, 2, 'CARDINAL'), (4, 7, 'CARDINAL'), (8, 10, 'PERCENT'), (12, 13, 'ORDINAL')]
    """

    kind = "numbers"

    cardinal: str = "CARDINAL"
    ordinal: str = "ORDINAL"
    percent: str = "PERCENT"
    words: tuple[str, ...] = NUMBER_WORDS
    scales: tuple[str, ...] = SCALES
    ordinal_words: tuple[str, ...] = ORDINAL_WORDS
    ordinal_endings: tuple[str, ...] = ORDINAL_ENDINGS
    percent_words: tuple[str, ...] = PERCENT_WORDS

    @property
    def types(self) -> tuple[str, ...]:
        """The types that are not left out."""
        return tuple(dict.fromkeys(filter(None, (self.cardinal, self.ordinal, self.percent))))

    def _rules(self) -> Iterator[tuple[str, str]]:
        in_words = spelled(self.words, self.scales)
        figure = rf"{BEGINS}(?<!\p{{Sc}}\s?){FIGURE}(?:[\s-]?{any_of(self.scales)}\b)?"
        number = rf"(?:{figure}|(?<![\w-]){in_words})"
        yield self.percent, rf"{number}\s?{any_of(self.percent_words)}(?!\w)"
        before = rf"(?:{any_of(self.words)}\s*-\s*)?"
        yield self.ordinal, rf"(?<![\w-]){before}\b{any_of(self.ordinal_words)}(?![\w-])"
        yield self.ordinal, rf"{BEGINS}\d+(?:,\d{{3}})*{any_of(self.ordinal_endings)}(?![\w-])"
        yield self.cardinal, rf"(?:{figure}{ENDS}|(?<![\w-]){in_words}(?![\w-]))"


@dataclass
class Money(TextSource):
    """Sums of money: "$5", "US$ 3.2 million", "EUR 5bn", "five dollars".

    Attributes:
        type: entity type.
        signs: currency signs, before or after the number.
        codes: currency codes, before or after the number, in capitals.
        currencies: words for currencies, after the number.
        suffixes: letters right after a figure that multiply it: "5bn".
        words: numbers below a hundred.
        scales: what is counted in.

    >>> document = Document("d", ["Cost", ":", "$", "5"], "Cost: $5", [(0, 4), (4, 5), (6, 7), (7, 8)])
    >>> list(Money("sums").find(document))
    [(2, 4, 'MONEY')]
    """

    kind = "money"

    type: str = "MONEY"
    signs: tuple[str, ...] = CURRENCY_SIGNS
    codes: tuple[str, ...] = CURRENCY_CODES
    currencies: tuple[str, ...] = CURRENCY_WORDS
    suffixes: tuple[str, ...] = SUFFIXES
    words: tuple[str, ...] = NUMBER_WORDS
    scales: tuple[str, ...] = SCALES

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def _rules(self) -> Iterator[tuple[str, str]]:
        sign, code = any_of(self.signs, ignore_case=False), any_of(self.codes, ignore_case=False)
        amount = rf"{FIGURE}(?:\s?{any_of(self.suffixes)}\b|[\s-]?{any_of(self.scales)}\b)?"
        spelled_out = rf"(?<![\w-]){spelled(self.words, self.scales)}"
        yield self.type, rf"(?<!\w){sign}\s?{amount}(?:\s?{code}\b)?{ENDS}"
        yield self.type, rf"(?<!\w){code}\s?{amount}{ENDS}"
        yield self.type, rf"{BEGINS}{amount}\s?(?:{sign}|{code}\b|{any_of(self.currencies)}\b)(?![\w-])"
        yield self.type, rf"{spelled_out}\s+(?:{code}|{any_of(self.currencies)})(?![\w-])"
