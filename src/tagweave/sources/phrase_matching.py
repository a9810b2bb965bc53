"""All occurrences of many phrases in tokens, by an Aho-Corasick automaton over the text that the tokens make.

Texts are cut into words in many ways: `Wal-Mart` is one token here and three there. So phrases and texts are laid out
alike before they are compared: runs of letters and digits stand between blanks, all other signs stand together,
however they were cut. Every phrase of letters begins and ends with a blank then, and is found in whole words only. The
automaton finds all phrases at once; what is left to do for a hit is to look whether it begins and ends where tokens do.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations

_MARK = "\0"
_CUT_OFF = re.compile(f"{_MARK}(?=n['\u2019]t{_MARK})", re.IGNORECASE)
_SIGN, _SPOKEN, _BLANK = 0, 1, 2
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]+"
)
"""Scripts that put no blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, kana, Chinese characters."""


@cache
def _kinds() -> NDArray[np.uint8]:
    """Of each sign, by its number: part of a word that blanks divide from others, blank, or any other sign."""
    signs = "".join(map(chr, range(sys.maxunicode + 1)))
    kinds = np.full(len(signs), _SIGN, np.uint8)
    for pattern, kind in ((re.compile(r"[^\W_]+"), _SPOKEN), (re.compile(r"\s+"), _BLANK), (_UNSPACED, _SIGN)):
        for found in pattern.finditer(signs):
            kinds[found.start() : found.end()] = kind
    for code in chain(range(0x300, 0x20000), range(0xE0100, 0xE01F0)):
        if unicodedata.category(signs[code])[0] == "M" and not _UNSPACED.match(signs[code]):
            kinds[code] = _SPOKEN
    kinds[ord(_MARK)] = _BLANK
    return kinds


@dataclass(frozen=True, eq=False)
class Laid:
    """Words laid out for the search.

    Attributes:
        text: all words in one string, with a line feed after each document.
        starts, ends: where each word lies in it, with the blanks around it, each of shape [words].
        inner: of each word, whether it goes on with letters where the word before ended with letters and nothing
            divides them, as in `10` and `mg`; of shape [words].
    """

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    inner: NDArray[np.bool_]

    @classmethod
    def of(
        cls, words: Sequence[str], lasts: NDArray[np.int64], joined: NDArray[np.bool_] | None, *, folded: bool = False
    ) -> Self:
        r"""Lay out the words of documents.

        Args:
            words: all words, end to end.
            lasts: number of the last word of each document.
            joined: of each word, whether it is written together with the next one, of shape [words]; `n't` is always
                taken to be written together with the word before. Without it, all words are apart.
            folded: whether case is to make no difference.

        >>> words, joined = ["Oslo", ".", "A", "-", "T", "gene"], np.zeros(6, bool)
        >>> Laid.of(words, np.array([1, 5]), joined).text
        ' Oslo .\n A - T gene \n'
        """
        text = _marked(words)
        if folded:
            text = text.casefold()
        signs = _signs(text)
        kinds = _kinds()[signs]
        divides = kinds == _BLANK
        marks = np.flatnonzero(signs == ord(_MARK))
        kept = ~divides
        kept[marks[lasts]] = True
        if joined is not None:
            divides[marks[_together(text, marks, joined)]] = False
        places = np.flatnonzero(kept)
        before = np.concatenate([[0], np.cumsum(kept)])
        first, after = before[np.concatenate([[0], marks[:-1] + 1])], before[marks]
        signs = signs[places]
        signs[after[lasts]] = ord("\n")
        gaps = np.diff(np.cumsum(divides)[places], prepend=0) > 0
        spoken = kinds[places] == _SPOKEN
        follows = np.concatenate([[False], spoken[:-1]])
        blanks = (spoken != follows) | (spoken & gaps)
        places = np.arange(len(signs)) + np.cumsum(blanks)
        shown = np.full(len(signs) + int(blanks.sum()), ord(" "), np.uint32)
        shown[places] = signs
        starts = places[first] - (blanks & spoken)[first]
        ends = np.where(after > 0, places[after - 1] + 1 + (blanks & follows)[after], 0)
        inner = spoken[first] & ~blanks[first] & (after > first)
        return cls(shown.tobytes().decode("utf-32-le"), starts, ends, inner)


def _marked(words: Sequence[str]) -> str:
    """The words, with a mark after each."""
    text = _MARK.join([*words, ""])
    if text.count(_MARK) != len(words):
        text = _MARK.join([*(word.replace(_MARK, "\ufffd") for word in words), ""])
    return text


def _signs(text: str) -> NDArray[np.uint32]:
    """The numbers of the signs of a text; halves of signs, which no automaton takes, are replaced."""
    try:
        encoded = text.encode("utf-32-le")
    except UnicodeEncodeError:
        encoded = re.sub("[\ud800-\udfff]", "\ufffd", text).encode("utf-32-le")
    return np.frombuffer(encoded, np.uint32)


def _together(text: str, marks: NDArray[np.int64], joined: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of each word, whether no blank belongs between it and the next one."""
    cut_off = [found.start() for found in _CUT_OFF.finditer(text)]
    if not cut_off:
        return joined
    together = joined.copy()
    together[np.searchsorted(marks, cut_off)] = True
    return together


def spellings(phrases: Sequence[str], *, folded: bool = False) -> list[str]:
    """Phrases as they are laid out for the search; without any sign, one is empty.

    >>> spellings(["ataxia - telangiectasia  gene ( ATM )", "ataxia-telangiectasia gene (ATM)", " "])
    [' ataxia - telangiectasia gene ( ATM )', ' ataxia - telangiectasia gene ( ATM )', '']
    """
    found: list[str] = []
    for begin in range(0, len(phrases), _AT_ONCE):
        part = phrases[begin : begin + _AT_ONCE]
        found += Laid.of(part, np.arange(len(part)), None, folded=folded).text.split("\n")[:-1]
    return found


_AT_ONCE = 50_000
"""How many phrases are laid out at once: enough for numpy, few enough for the memory."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Occurrences of phrases.

    Attributes:
        kinds: number that says what the phrase means, of shape [hits].
        first, last: its first word and the first word after it, each of shape [hits].
    """

    kinds: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def together(cls, parts: Sequence[Self]) -> Self:
        """The hits of all parts, each once, from left to right.

        >>> hits = Hits(np.array([0]), np.array([1]), np.array([2]))
        >>> len(Hits.together([hits, hits]).first)
        1
        """
        if len(parts) == 1:
            return parts[0]
        rows = np.concatenate([np.stack([part.first, part.last, part.kinds]) for part in parts], axis=1)
        first, last, kinds = np.unique(rows, axis=1)
        return cls(kinds, first, last)

    def where(self, kept: NDArray[np.bool_]) -> Self:
        """The hits under a mask of shape [hits]."""
        return type(self)(self.kinds[kept], self.first[kept], self.last[kept])

    def touching(self, words: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which hits have a marked word, of shape [hits]; `words` is of shape [words]."""
        before = np.concatenate([[0], np.cumsum(words)])
        return np.asarray(before[self.last] > before[self.first])

    def covered(self, words: int) -> NDArray[np.bool_]:
        """Which words lie in a hit, of shape [words]."""
        changes = np.bincount(self.first, minlength=words + 1) - np.bincount(self.last, minlength=words + 1)
        return np.asarray(np.cumsum(changes)[:-1] > 0)

    def longest(self) -> Self:
        """The hits that stay when no two may share a word unless they are the same words: the longest, then leftmost.

        >>> hits = Hits(np.array([0, 1, 2]), np.array([0, 1, 1]), np.array([2, 4, 4]))
        >>> hits.longest().kinds.tolist()
        [1, 2]
        """
        column = Annotations(
            ran=np.ones(1, bool),
            offsets=np.array([0, len(self.first)]),
            starts=self.first.astype(np.int32),
            ends=self.last.astype(np.int32),
            type_ids=np.ones(len(self.first), np.int16),
        )
        chosen = column.without_overlaps()
        if not len(chosen):
            return self
        row = np.minimum(np.searchsorted(chosen.starts, self.first), len(chosen) - 1)
        return self.where((chosen.starts[row] == self.first) & (chosen.ends[row] == self.last))

    def and_apart(self, other: Self) -> Self:
        """These hits, and those of another that share no word with them."""
        words = int(max(self.last.max(initial=0), other.last.max(initial=0)))
        return self.together([self, other.where(~other.touching(self.covered(words)))])


class PhraseMatcher:
    """Finds phrases in words.

    Args:
        phrases: their spellings (see `spellings`), none empty and no two the same, and a number that says what each
            means.
        folded: whether they are folded, so that case makes no difference.

    >>> matcher = PhraseMatcher({" New York ": 5, " York ": 7})
    >>> hits = matcher.find(["New", "York", "Yorkers"], np.array([2]), np.zeros(3, bool))
    >>> list(zip(hits.kinds.tolist(), hits.first.tolist(), hits.last.tolist()))
    [(5, 0, 2), (7, 1, 2)]
    """

    def __init__(self, phrases: dict[str, int], *, folded: bool = False) -> None:
        from ahocorasick_rs import AhoCorasick, Implementation

        self._folded = folded
        texts = sorted(phrases)  # so that what is looked up together lies together in memory
        self._kinds = np.fromiter(map(phrases.__getitem__, texts), np.int64, len(texts))
        self._automaton: Any = AhoCorasick(texts, implementation=Implementation.ContiguousNFA, store_patterns=False)

    def find(self, words: Sequence[str], lasts: NDArray[np.int64], joined: NDArray[np.bool_]) -> Hits:
        """Every occurrence of every phrase; arguments as those of `Laid.of`.

        A phrase occurs if it is the same as the words as they are written, or as the words with blanks between them.
        """
        laid = Laid.of(words, lasts, joined, folded=self._folded)
        hits = self._search(laid)
        if not laid.inner.any():
            return hits
        numbers, lasts = _documents_with(laid.inner, lasts)
        apart = self._search(Laid.of([words[number] for number in numbers], lasts, None, folded=self._folded))
        return Hits.together([hits, Hits(apart.kinds, numbers[apart.first], numbers[apart.last - 1] + 1)])

    def _search(self, laid: Laid) -> Hits:
        found = self._automaton.find_matches_as_indexes(laid.text, overlapping=True)
        rows = np.fromiter(chain.from_iterable(found), np.int64, 3 * len(found)).reshape(-1, 3)
        # Words of blanks lie at the end of the word before and at the start of the word after.
        first = np.maximum(np.searchsorted(laid.starts, rows[:, 1], side="right") - 1, 0)
        last = np.minimum(np.searchsorted(laid.ends, rows[:, 2]), len(laid.ends) - 1)
        whole = (laid.starts[first] == rows[:, 1]) & (laid.ends[last] == rows[:, 2])
        return Hits(self._kinds[rows[whole, 0]], first[whole], last[whole] + 1)


def _documents_with(marked: NDArray[np.bool_], lasts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The words of the documents that have a marked one, and which of these words are the last of their documents."""
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    chosen = np.logical_or.reduceat(marked, firsts)
    lengths = lasts - firsts + 1
    return np.flatnonzero(np.repeat(chosen, lengths)), np.cumsum(lengths[chosen]) - 1
