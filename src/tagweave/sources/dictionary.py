"""`Dictionary`: votes for every occurrence of phrases from lists, a million of them if need be."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagweave.corpus import Document
from tagweave.errors import DataError, UsageError, unknown_name
from tagweave.labels import OUTSIDE
from tagweave.sources.base import Source, Votes
from tagweave.sources.phrase_files import Phrase, read_phrases
from tagweave.sources.phrase_matching import Hits, PhraseMatcher, spellings
from tagweave.sources.proper import is_shouted, proper_tokens
from tagweave.sources.words import analysis

Case = Literal["exact", "ignore", "capitals"]
"""Which spellings of a phrase count: as it is listed, with any case, or as it is listed and with more capitals."""

Entries = dict[str, tuple[str, ...]]
"""The types of each phrase, by its spelling (see `tagweave.sources.phrase_matching.spellings`)."""


@dataclass
class Dictionary(Source):
    """Phrases from lists.

    An occurrence begins and ends with a token; how phrases and text are cut into tokens makes no difference. What the
    settings exclude is taken out first; of the occurrences that are left, the longest counts where some overlap, then
    the leftmost. A phrase with several types votes for each.

    Attributes:
        phrases: files of phrases, see `tagweave.sources.phrase_files.read_phrases`.
        words: phrases given here, or lists of phrases by their types.
        type: the type of phrases that come without one; of those that have one, only phrases of this type are used.
        rename: other names for the types that come with the phrases.
        case: `exact`, `ignore`, or `capitals`: as listed, with a capital at the beginning, with one at the beginning of
            each word, and all in capitals.
        lemma: whether phrases are looked for among the base forms of the tokens too, in any case, where no phrase was
            found; needs a pipeline.
        min_length, max_length: characters of a phrase; max_length 0 is no limit.
        min_tokens, max_tokens: tokens of an occurrence; max_tokens 0 is no limit.
        exclude: phrases that do not count, in any case; `tagweave.sources.outside.ENGLISH_STOP_WORDS`, for example.
        join: whether occurrences of one type that follow each other without a gap are one entity.
        proper: whether an occurrence must look like a whole name: some token of it does (see
            `tagweave.sources.proper.proper_tokens`), and the tokens next to it do not. A text all in capitals may pass.
        not_over: earlier sources whose spans an occurrence may not touch.
        pipeline: spaCy pipeline for base forms.

    Raises:
        UsageError: settings do not fit together, or a file cannot be opened.
        DataError: a phrase has no type, or the settings leave no phrase.
        FormatError: a file cannot be read.

    >>> cities = Dictionary("cities", words=("New York", "York"), type="LOC")
    >>> [list(votes) for votes in cities.annotate([Document("d", ["New", "York", "or", "York"])])]
    [[(0, 2, 'LOC'), (3, 4, 'LOC')]]
    """

    kind = "dictionary"

    phrases: tuple[Path, ...] = ()
    _: KW_ONLY
    words: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
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
        if isinstance(self.phrases, str | Path):
            self.phrases = (Path(self.phrases),)
        if not self.phrases and not self.words:
            raise UsageError(f"dictionary {self.name!r} needs phrases (files) or words")
        if isinstance(self.words, str):
            raise UsageError(f"dictionary {self.name!r}: words must be a list of phrases, not the text {self.words!r}")
        if self.words and not self.type and not isinstance(self.words, dict):
            raise UsageError(f"dictionary {self.name!r} has words without a type")
        if self.case not in ("exact", "ignore", "capitals"):
            raise unknown_name("case", self.case, ("exact", "ignore", "capitals"))
        if self.lemma and self.pipeline is None:
            raise UsageError(f"dictionary {self.name!r} compares base forms: name the pipeline that finds them")

    def __getstate__(self) -> dict[str, Any]:
        """The settings; what is made of them is made again in each process."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its phrases."""
        return self._types

    @cached_property
    def _types(self) -> tuple[str, ...]:
        return tuple(sorted({name for types in self._meanings for name in types} - {OUTSIDE}))

    def load(self) -> None:
        """Read the files and build the automata."""
        _ = self._matchers
        if self.lemma:
            _ = self._lemmas

    @cached_property
    def _entries(self) -> tuple[Entries, Entries]:
        """The phrases whose case matters, and those, folded, whose case does not."""
        exact: Entries = {}
        folded: Entries = {}
        lenient = self.case == "ignore"
        cased: list[tuple[str, str]] = []
        caseless: list[tuple[str, str]] = []
        for phrase in self._listed():
            name = self._type_of(phrase)
            if name is not None and self._long_enough(phrase.text):
                (caseless if phrase.lower or lenient else cased).append((phrase.text, name))
        banned = frozenset(spellings(self.exclude, folded=True))
        _fill(folded, caseless, banned, folded=True)
        _fill(exact, cased, banned, folded=False, capitals=self.case == "capitals")
        if not exact and not folded:
            raise DataError(f"dictionary {self.name!r}: its settings leave no phrase")
        return exact, folded

    def _listed(self) -> Iterator[Phrase]:
        if isinstance(self.words, dict):
            yield from (Phrase(word, name) for name, words in self.words.items() for word in words)
        else:
            yield from (Phrase(word, None) for word in self.words)
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
        length = len(text)
        return length >= self.min_length and (not self.max_length or length <= self.max_length)

    @cached_property
    def _meanings(self) -> tuple[tuple[str, ...], ...]:
        """Every combination of types that a phrase has; hits have their numbers."""
        return tuple(dict.fromkeys(types for entries in self._entries for types in entries.values()))

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many types each of them has."""
        return np.array([len(types) for types in self._meanings])

    @cached_property
    def _matchers(self) -> tuple[PhraseMatcher, ...]:
        return tuple(
            self._matcher(entries, folded=folded)
            for entries, folded in zip(self._entries, (False, True), strict=True)
            if entries
        )

    def _matcher(self, entries: Entries, *, folded: bool) -> PhraseMatcher:
        numbers = {types: number for number, types in enumerate(self._meanings)}
        return PhraseMatcher({text: numbers[types] for text, types in entries.items()}, folded=folded)

    @cached_property
    def _lemmas(self) -> PhraseMatcher:
        """What finds base forms: all phrases in any case."""
        exact, folded = self._entries
        if not exact:
            return self._matchers[0]
        return self._matcher({text.casefold(): types for text, types in exact.items()} | folded, folded=True)

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The occurrences in each document."""
        filled = [document for document in documents if document.tokens]
        if not filled:
            return [[] for _ in documents]
        offsets = np.cumsum([0, *(len(document.tokens) for document in filled)])
        joined = _joined(filled, int(offsets[-1]))
        words = list(chain.from_iterable(document.tokens for document in filled))
        hits = Hits.together([matcher.find(words, offsets[1:] - 1, joined) for matcher in self._matchers])
        found = self._allowed(hits, filled, offsets).longest()
        if self.lemma:
            lemmas = [token.lemma_ for document in filled for token in analysis(self, document, "LEMMA")]
            hits = self._lemmas.find(lemmas, offsets[1:] - 1, joined)
            found = found.and_apart(self._allowed(hits, filled, offsets).longest())
        votes = iter(self._votes(found, offsets))
        return [next(votes) if document.tokens else [] for document in documents]

    def _allowed(self, hits: Hits, documents: Sequence[Document], offsets: NDArray[np.int64]) -> Hits:
        """The hits that the settings leave."""
        if self.min_tokens > 1:
            hits = hits.where(hits.last - hits.first >= self.min_tokens)
        if self.max_tokens:
            hits = hits.where(hits.last - hits.first <= self.max_tokens)
        if self.not_over:
            hits = hits.where(~hits.touching(_taken(documents, self.not_over, offsets)))
        if self.proper:
            hits = _names(hits, documents, offsets)
        return hits

    def _votes(self, hits: Hits, offsets: NDArray[np.int64]) -> list[list[tuple[int, int, str]]]:
        """The hits by document."""
        documents = np.searchsorted(offsets, hits.first, side="right") - 1
        counts = self._counts[hits.kinds]
        begins = offsets[documents]
        first, last = (np.repeat(row - begins, counts).tolist() for row in (hits.first, hits.last))
        names = chain.from_iterable(map(self._meanings.__getitem__, hits.kinds.tolist()))
        votes = list(zip(first, last, names, strict=True))
        bounds = np.cumsum([0, *np.bincount(documents, counts, len(offsets) - 1)]).astype(int).tolist()
        found = [votes[start:end] for start, end in pairwise(bounds)]
        return [_merged(votes) for votes in found] if self.join else found


def _fill(
    entries: Entries,
    phrases: Sequence[tuple[str, str]],
    banned: frozenset[str],
    *,
    folded: bool,
    capitals: bool = False,
) -> None:
    """Add phrases with their types to entries, in all their spellings."""
    if capitals:
        phrases = [(text, name) for phrase, name in phrases for text in _capitals(phrase)]
    single = {name: (name,) for _, name in phrases}
    for text, (_, name) in zip(spellings([text for text, _ in phrases], folded=folded), phrases, strict=True):
        if text and not (banned and text.casefold() in banned):
            known = entries.setdefault(text, single[name])
            if name not in known:
                entries[text] = (*known, name)


def _capitals(phrase: str) -> tuple[str, ...]:
    """A phrase with more and more capitals."""
    words = [word[:1].upper() + word[1:] for word in phrase.split()]
    return phrase, phrase[:1].upper() + phrase[1:], " ".join(words), phrase.upper()


def _merged(votes: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Votes of one type that follow each other as one."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(votes, key=lambda vote: (vote[2], vote[0])):
        if merged and merged[-1][1:] == (start, name):
            merged[-1] = (merged[-1][0], end, name)
        else:
            merged.append((start, end, name))
    return merged


def _joined(documents: Sequence[Document], words: int) -> NDArray[np.bool_]:
    """Of each token, whether it is written together with the next one."""
    places = chain.from_iterable(
        chain.from_iterable(
            repeat(_NOWHERE, len(document.tokens)) if document.characters is None else document.characters
        )
        for document in documents
    )
    starts, ends = np.fromiter(places, np.int64, 2 * words).reshape(-1, 2).T
    joined = np.zeros(words, bool)
    joined[:-1] = ends[:-1] == starts[1:]
    return joined


_NOWHERE = (-1, -2)
"""The place of a token in a text that is not known."""


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
