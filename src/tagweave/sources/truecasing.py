"""The usual case of words: headlines in capitals and titles in title case as they would stand in a sentence."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from tagweave.corpus import Document
from tagweave.errors import FormatError
from tagweave.formats.json_lines import parse_json
from tagweave.formats.streams import read_text, written
from tagweave.pipelines import parse
from tagweave.sources.base import Source, Votes

_RARE = 0.25
"""A form that makes up less than this of a word's occurrences is not how the word is written."""


@dataclass(frozen=True)
class FormTable:
    """How often each form of a word occurs.

    Attributes:
        counts: by the word in lower case, the number of occurrences of each of its forms.

    >>> table = FormTable.of([["Market", "talk"], ["The", "market", "fell"], ["a", "market"]])
    >>> table.counts["market"]["market"]
    2
    """

    counts: dict[str, Counter[str]]

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Self:
        """Counted in texts; the first token of each is left out, since its capital says nothing."""
        counts: dict[str, Counter[str]] = {}
        for tokens in texts:
            for token in tokens[1:]:
                counts.setdefault(token.lower(), Counter())[token] += 1
        return cls(counts)

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a JSON file: an object of objects of counts.

        Raises:
            FormatError: the file is no such thing.
        """
        try:
            value = parse_json(read_text(path))
            return cls({word: Counter({form: int(n) for form, n in forms.items()}) for word, forms in value.items()})
        except (FormatError, AttributeError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"{path}: no table of forms ({error})") from None

    def write(self, path: Path) -> None:
        """To a JSON file."""
        with written(path) as handle:
            handle.write(json.dumps(self.counts, ensure_ascii=False).encode())

    def usual(self, token: str) -> str:
        """The form in which a word occurs most often, or the token itself if it is not rare."""
        forms = self.counts.get(token.lower())
        if not forms or forms[token] >= _RARE * forms.total():
            return token
        return max(sorted(forms), key=lambda form: forms[form])


def truecase(tokens: Sequence[str], table: FormTable) -> list[str]:
    """The tokens in their usual case; there are as many, each of the same letters.

    What changes: tokens in capitals of more than two letters, and tokens in title case that do not begin the text,
    where that form is rare. No token is put into capitals. After Lison et al. (2020).

    >>> table = FormTable.of([["x", "Paris", "market"], ["x", "Paris", "market"], ["x", "PARIS"]] * 2)
    >>> truecase(["MARKET", "Opens", "in", "PARIS"], table)
    ['market', 'Opens', 'in', 'PARIS']
    """
    return [_usual(token, place, table) for place, token in enumerate(tokens)]


def _usual(token: str, place: int, table: FormTable) -> str:
    capitals, title = token.isupper() and len(token) > 2, token.istitle() and place > 0
    if not capitals and not title:
        return token
    form = table.usual(token)
    return token if title and form.isupper() or len(form) != len(token) else form


@dataclass
class Truecased(Source):
    """Another source, which reads the documents in their usual case.

    It is for sources in Python. Tokens keep their places, so the votes are on the documents as they are.

    Attributes:
        source: the other source; it is not run by itself.
        forms: file of a `FormTable`; without it, how often each form occurs is counted in each batch.

    >>> from tagweave.sources import labeling_function
    >>> @labeling_function("CITY")
    ... def cities(document):
    ...     return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]
    >>> headline, story = Document("1", ["SNOW", "IN", "OSLO"]), Document("2", ["Oslo"] * 5)
    >>> list(Truecased("cities_truecase", cities).annotate([headline, story]))[0]
    [(2, 3)]
    """

    source: Source
    forms: Path | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the other source."""
        return self.source.types

    @cached_property
    def _forms(self) -> FormTable | None:
        return None if self.forms is None else FormTable.read(self.forms)

    def load(self) -> None:
        """Make the other source ready."""
        _ = self._forms
        self.source.load()

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """What the other source finds in each document."""
        table = self._forms or FormTable.of(document.tokens for document in documents)
        read = [_truecased(document, table) for document in documents]
        if self.source.pipeline is not None:
            parses = parse(read, self.source.pipeline)
            read = [replace(document, parse=doc) for document, doc in zip(read, parses, strict=True)]
        return self.source.annotate(read)


def _truecased(document: Document, table: FormTable) -> Document:
    """The document in its usual case, its text too."""
    tokens, text = tuple(truecase(document.tokens, table)), document.text
    if text is not None and document.characters is not None:
        letters = list(text)
        for token, (start, end) in zip(tokens, document.characters, strict=True):
            letters[start:end] = token
        text = "".join(letters)
    return replace(document, tokens=tokens, text=text)
