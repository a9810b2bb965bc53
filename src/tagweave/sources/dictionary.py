"""`Dictionary`: votes for every occurrence of phrases from lists, a million of them if need be."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Document
from tagweave.errors import DataError, UsageError, unknown_name
from tagweave.sources.base import Source, Votes
from tagweave.sources.phrase_files import Phrase, read_phrases
from tagweave.sources.phrase_matching import Hits, Laid, PhraseMatcher, spelling
from tagweave.sources.proper import is_shouted, proper_tokens

Case = Literal["exact", "ignore", "capitals"]
"""Which spellings of a phrase count: as it is listed, with any case, or as it is listed and all in capitals."""


@dataclass
class Dictionary(Source):
    """Phrases from lists.

    An occurrence begins and ends with a token. What the settings exclude is taken out first; of the occurrences that
    are left, the longest counts where some overlap, then the leftmost. A phrase with several types votes for each.

    Attributes:
        phrases: files of phrases, see `tagweave.sources.phrase_files.read_phrases`.
        words: phrases given here.
        type: the type of phrases whose file names none; for files with types, only phrases of this type are used.
        rename: other names for the types that the files name.
        case: `exact`, `ignore`, or `capitals` (as listed, and all in capitals).
        lemma: whether phrases are looked for among the base forms of the tokens too, where no phrase was found; needs a
            pipeline.
        min_length, max_length: characters of a phrase; max_length 0 is no limit.
        min_tokens, max_tokens: tokens of an occurrence; max_tokens 0 is no limit.
        exclude: phrases that do not count, in any case.
        join: whether occurrences of one type that follow each other without a gap are one entity.
        proper: whether an occurrence must look like a whole name: some token of it does (see
            `tagweave.sources.proper.proper_tokens`), and the tokens next to it do not. A text all in capitals may pass.
        not_over: earlier sources whose spans an occurrence may not touch.
        pipeline: spaCy pipeline for base forms.

    >>> cities = Dictionary("cities", words=("New York", "York"), type="LOC")
    >>> [list(votes) for votes in cities.annotate([Document("d", ["New", "York", "or", "York"])])]
    [[(0, 2, 'LOC'), (3, 4, 'LOC')]]
    """

    kind = "dictionary"

    phrases: tuple[Path, ...] = ()
    _: KW_ONLY
    words: tuple[str, ...] = ()
    type: str = ""
    rename: dict[str, str] = field(default_factory=dict)
    case: Case = "exact"
    lemma: bool = False
    min_length: int = 1
    max_length: int = 0
    min_tokens: int = 1
    max_tokens: int = 0
    exclude: tuple[str, ...] = ()
    join: bool = False
    proper: bool = False
    not_over: tuple[str, ...] = ()
    pipeline: str | None = None

    def __post_init__(self) -> None:
        if not self.phrases and not self.words:
            raise UsageError(f"dictionary {self.name!r} needs phrases (files) or words")
        if self.words and not self.type:
            raise UsageError(f"dictionary {self.name!r} has words without a type")
        if self.case not in ("exact", "ignore", "capitals"):
            raise unknown_name("case", self.case, ("exact", "ignore", "capitals"))
        if self.lemma and self.pipeline is None:
            raise UsageError(f"dictionary {self.name!r} compares base forms: name the pipeline that finds them")

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its phrases."""
        return self._types

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(sorted({name for names in self._entries.values() for name in names}))

    def load(self) -> None:
        """Read the files and build the automaton."""
        _ = self._matcher

    @cached_property
    def _entries(self) -> dict[str, tuple[str, ...]]:
        """The types of each spelling that counts."""
        entries: dict[str, tuple[str, ...]] = {}
        banned = {spelling(phrase).lower() for phrase in self.exclude}
        for phrase in self._listed():
            text, name = spelling(phrase.text), self._type_of(phrase)
            if name is None or not self._long_enough(text) or text.lower() in banned:
                continue
            for written in self._spellings(text):
                known = entries.get(written, ())
                if name not in known:
                    entries[written] = (*known, name)
        if not entries:
            raise DataError(f"dictionary {self.name!r}: its settings leave no phrase")
        return entries

    def _spellings(self, text: str) -> tuple[str, ...]:
        if self.case == "ignore":
            return (text.lower(),)
        return (text, text.upper()) if self.case == "capitals" else (text,)

    def _listed(self) -> Iterator[Phrase]:
        yield from (Phrase(word, self.type) for word in self.words)
        for path in self.phrases:
            yield from read_phrases(Path(path))

    def _type_of(self, phrase: Phrase) -> str | None:
        """The type that a phrase votes for, None if it is not wanted."""
        if phrase.type is None:
            if not self.type:
                raise DataError(f"dictionary {self.name!r}: the phrase {phrase.text!r} has no type; give one as `type`")
            return self.type
        name = self.rename.get(phrase.type, phrase.type)
        return name if self.type in ("", name) else None

    def _long_enough(self, text: str) -> bool:
        return len(text) >= max(self.min_length, 1) and (not self.max_length or len(text) <= self.max_length)

    @cached_property
    def _matcher(self) -> PhraseMatcher:
        return PhraseMatcher(self._entries)

    @cached_property
    def _lemmas(self) -> tuple[PhraseMatcher, NDArray[np.int64]]:
        """The automaton of phrases in lower case, and the number of the phrase that each of them stands for."""
        numbers: dict[str, int] = {}
        for number, text in enumerate(self._entries):
            numbers.setdefault(text.lower(), number)
        return PhraseMatcher(numbers), np.array(list(numbers.values()), np.int64)

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """The types of each phrase number of the automata."""
        return list(self._entries.values())

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The occurrences in each document."""
        filled = [document for document in documents if document.tokens]
        offsets = np.cumsum([0, *(len(document.tokens) for document in filled)])
        joined = np.concatenate([np.zeros(0, bool), *map(_joined, filled)])
        words = list(chain.from_iterable(document.tokens for document in filled))
        laid = Laid.of(words, offsets[1:] - 1, joined, lower=self.case == "ignore")
        found = self._allowed(self._matcher.find(laid), filled, offsets).longest()
        if self.lemma:
            matcher, numbers = self._lemmas
            lemmas = [token.lemma_ for document in filled for token in document.parse]
            hits = matcher.find(Laid.of(lemmas, offsets[1:] - 1, joined, lower=True))
            hits = Hits(numbers[hits.phrases], hits.first, hits.last)
            found = found.and_apart(self._allowed(hits, filled, offsets).longest())
        votes = iter(self._votes(found, offsets))
        return [next(votes) if document.tokens else [] for document in documents]

    def _allowed(self, hits: Hits, documents: Sequence[Document], offsets: NDArray[np.int64]) -> Hits:
        """The hits that the settings leave."""
        hits = hits.where(hits.last - hits.first >= self.min_tokens)
        if self.max_tokens:
            hits = hits.where(hits.last - hits.first <= self.max_tokens)
        if self.not_over:
            hits = hits.where(~hits.touching(_taken(documents, self.not_over, offsets)))
        if self.proper:
            hits = _names(hits, documents, offsets)
        return hits

    def _votes(self, hits: Hits, offsets: NDArray[np.int64]) -> list[list[tuple[int, int, str]]]:
        votes: list[list[tuple[int, int, str]]] = [[] for _ in range(len(offsets) - 1)]
        documents = np.searchsorted(offsets, hits.first, side="right") - 1
        begins = offsets[documents]
        rows = (hits.phrases, documents, hits.first - begins, hits.last - begins)
        for phrase, document, first, last in zip(*(row.tolist() for row in rows), strict=True):
            votes[document].extend((first, last, name) for name in self._names[phrase])
        return [_merged(found) for found in votes] if self.join else votes


def _merged(votes: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Votes of one type that follow each other as one."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(votes, key=lambda vote: (vote[2], vote[0])):
        if merged and merged[-1][1:] == (start, name):
            merged[-1] = (merged[-1][0], end, name)
        else:
            merged.append((start, end, name))
    return merged


def _joined(document: Document) -> NDArray[np.bool_]:
    """Of each token, whether it is written together with the next one."""
    joined = np.zeros(len(document.tokens), bool)
    if document.characters is not None:
        places = np.array(document.characters, np.int64)
        joined[:-1] = places[:-1, 1] == places[1:, 0]
    return joined


def _taken(documents: Sequence[Document], names: Sequence[str], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tokens in a span of any of the named sources, of shape [tokens]."""
    taken = np.zeros(int(offsets[-1]), bool)
    for document, offset in zip(documents, offsets, strict=False):
        for name in names:
            for start, end, *_ in document.sources.get(name) or ():
                taken[offset + start : offset + end] = True
    return taken


def _names(hits: Hits, documents: Sequence[Document], offsets: NDArray[np.int64]) -> Hits:
    """The hits that are whole names, and those in texts all in capitals."""
    proper = np.zeros(int(offsets[-1]), bool)
    shouted = np.zeros(int(offsets[-1]), bool)
    for place in np.unique(np.searchsorted(offsets, hits.first, side="right") - 1):
        document, words = documents[place], slice(offsets[place], offsets[place + 1])
        proper[words] = proper_tokens(document)
        shouted[words] = is_shouted(document)
    begins = np.isin(hits.first, offsets)
    ends = np.isin(hits.last, offsets)
    before = ~begins & proper[hits.first - 1]
    after = ~ends & proper[np.minimum(hits.last, len(proper) - 1)]
    return hits.where((hits.touching(proper) & ~before & ~after) | shouted[hits.first])
