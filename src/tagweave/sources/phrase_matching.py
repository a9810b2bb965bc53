"""All occurrences of many phrases in tokens, by an Aho-Corasick automaton over the text that the tokens make.

The tokens of many documents are laid end to end in one string, with a line feed between documents. Blanks stand only
between letters or digits, in this string and in the phrases: `Wal - Mart` and `Wal-Mart` are one spelling, so it does
not matter how text and phrases were cut. The automaton finds every phrase at once, and hits that do not begin and end
with a token are dropped.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations


@dataclass(frozen=True, eq=False)
class Laid:
    """The words of documents in one string.

    Attributes:
        text: the string.
        starts, ends: where each word lies in it, each of shape [words].
    """

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(
        cls, words: Sequence[str], lasts: NDArray[np.int64], joined: NDArray[np.bool_], *, lower: bool = False
    ) -> Self:
        r"""The words of documents in one string.

        Args:
            words: all words, end to end.
            lasts: number of the last word of each document.
            joined: of each word, whether it is written together with the next one, of shape [words].
            lower: whether the string is to be in lower case; a word may grow by it.

        >>> words, joined = ["Oslo", ".", "A", "-", "T", "gene"], np.zeros(6, bool)
        >>> Laid.of(words, np.array([1, 5]), joined).text
        'Oslo.\nA-T gene\n'
        """
        text = _MARK.join([*words, ""])
        if text.count(_MARK) != len(words):
            text = _MARK.join([*(word.replace(_MARK, "\ufffd") for word in words), ""])
        if lower:
            text = text.lower()
        signs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
        marks = np.flatnonzero(signs == ord(_MARK))
        spoken = _speaks()
        blank = spoken[signs[marks - 1]] & spoken[signs[np.minimum(marks + 1, len(signs) - 1)]] & ~joined
        signs[marks] = ord(" ")
        signs[marks[lasts]] = ord("\n")
        blank[lasts] = True
        kept = np.ones(len(signs), bool)
        kept[marks] = blank
        shift = np.cumsum(~blank)
        ends = marks - np.concatenate([[0], shift[:-1]])
        starts = np.concatenate([[0], marks[:-1] + 1 - shift[:-1]])
        return cls(signs[kept].tobytes().decode("utf-32-le", "surrogatepass"), starts, ends)


_MARK = "\0"


@cache
def _speaks() -> NDArray[np.bool_]:
    """Of each sign, by its number, whether it is a letter or digit."""
    return np.fromiter((chr(code).isalnum() for code in range(sys.maxunicode + 1)), bool, sys.maxunicode + 1)


def spelling(phrase: str) -> str:
    """A phrase as it is compared.

    >>> spelling("ataxia - telangiectasia  gene ( ATM )")
    'ataxia-telangiectasia gene(ATM)'
    """
    written = ""
    for word in phrase.split():
        written += f" {word}" if written[-1:].isalnum() and word[:1].isalnum() else word
    return written


@dataclass(frozen=True, eq=False)
class Hits:
    """Occurrences of phrases.

    Attributes:
        phrases: number of the phrase, of shape [hits].
        first, last: its first word and the first word after it, each of shape [hits].
    """

    phrases: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def where(self, kept: NDArray[np.bool_]) -> Self:
        """The hits under a mask of shape [hits]."""
        return type(self)(self.phrases[kept], self.first[kept], self.last[kept])

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
        >>> hits.longest().phrases.tolist()
        [1, 2]
        """
        places = np.unique(np.stack([self.first, self.last], axis=1), axis=0)
        chosen = Annotations(
            ran=np.ones(1, bool),
            offsets=np.array([0, len(places)]),
            starts=places[:, 0].astype(np.int32),
            ends=places[:, 1].astype(np.int32),
            type_ids=np.ones(len(places), np.int16),
        ).without_overlaps()
        row = np.searchsorted(chosen.starts, self.first)
        row[row == len(chosen)] = 0
        if not len(chosen):
            return self
        return self.where((chosen.starts[row] == self.first) & (chosen.ends[row] == self.last))

    def and_apart(self, other: Self) -> Self:
        """These hits, and those of another that share no word with them."""
        words = int(max(self.last.max(initial=0), other.last.max(initial=0)))
        more = other.where(~other.touching(self.covered(words)))
        joined = [np.concatenate([mine, theirs]) for mine, theirs in zip(self._rows(), more._rows(), strict=True)]
        order = np.argsort(joined[1], kind="stable")
        return type(self)(*(row[order] for row in joined))

    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return self.phrases, self.first, self.last


class PhraseMatcher:
    """Finds phrases in words.

    Args:
        phrases: their spellings, no two the same.

    >>> matcher = PhraseMatcher(["New York", "York"])
    >>> hits = matcher.find(Laid.of(["New", "York", "Yorkers"], np.array([2]), np.zeros(3, bool)))
    >>> list(zip(hits.phrases.tolist(), hits.first.tolist(), hits.last.tolist()))
    [(0, 0, 2), (1, 1, 2)]
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        from ahocorasick_rs import AhoCorasick, Implementation

        self._automaton: Any = AhoCorasick(phrases, implementation=Implementation.ContiguousNFA, store_patterns=False)

    def find(self, laid: Laid) -> Hits:
        """Every occurrence of every phrase, in the order of where it ends."""
        found = self._automaton.find_matches_as_indexes(laid.text, overlapping=True)
        rows = np.fromiter(chain.from_iterable(found), np.int64, 3 * len(found)).reshape(-1, 3)
        first = np.searchsorted(laid.starts, rows[:, 1])
        last = np.searchsorted(laid.ends, rows[:, 2])
        whole = (first < len(laid.starts)) & (last < len(laid.ends))
        whole[whole] = (laid.starts[first[whole]] == rows[whole, 1]) & (laid.ends[last[whole]] == rows[whole, 2])
        return Hits(rows[whole, 0], first[whole], last[whole] + 1)
