"""Words in text: cutting text into tokens, finding given tokens in it, and laying character spans over tokens."""

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from tagweave.errors import AlignmentError

Tokenizer = Literal["words", "whitespace", "characters"]
"""`words`: runs of letters, digits and underscores are tokens, and so is every other character that is no blank;
`whitespace`: runs of anything but blanks; `characters`: every character that is no blank, for text without blanks
between words."""

Alignment = Literal["expand", "contract", "strict"]
"""What a span of characters that begins or ends inside a token becomes: `expand` takes the whole token in, `contract`
leaves it out, `strict` drops the span."""

Offsets = list[tuple[int, int]]


@cache
def _pattern(tokenizer: Tokenizer) -> re.Pattern[str]:
    if tokenizer == "whitespace":
        return re.compile(r"\S+")
    marks = "".join(_ranges([code for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M"]))
    if tokenizer == "characters":
        return re.compile(rf"\S[{marks}]*")
    return re.compile(rf"\w[\w{marks}]*|[^\w\s][{marks}]*")


def _ranges(codes: list[int]) -> list[str]:
    parts = []
    first = before = codes[0]
    for code in [*codes[1:], sys.maxunicode + 1]:
        if code != before + 1:
            parts.append(f"\\U{first:08x}-\\U{before:08x}")
            first = code
        before = code
    return parts


def tokenize(text: str, tokenizer: Tokenizer = "words") -> Offsets:
    """Start and end of each token, so that `text[start:end]` is the token.

    Accents and other marks stay with the character before them.

    >>> text = "Ada (1815) didn't"
    >>> [text[start:end] for start, end in tokenize(text)]
    ['Ada', '(', '1815', ')', 'didn', "'", 't']
    >>> tokenize("在奥斯陆", "characters")
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    return [match.span() for match in _pattern(tokenizer).finditer(text)]


def locate(tokens: Sequence[str], text: str) -> Offsets:
    """Start and end of given tokens in a text: each right after the blanks that follow the one before, else further on.

    Raises:
        AlignmentError: a token cannot be found in order.

    >>> locate(["Oslo", "."], "  Oslo.")
    [(2, 6), (6, 7)]
    """
    found = []
    position = 0
    for number, token in enumerate(tokens):
        start = text.find(token, position)
        if start < 0:
            raise AlignmentError(
                f"token {number}, {token!r}, is not in the text from character {position} on "
                f"({text[position : position + 20]!r}...). Text and tokens must come from one tokenisation"
            )
        position = start + len(token)
        found.append((start, position))
    return found


class Aligned(NamedTuple):
    """Where a span of characters lies in tokens: half-open, None when no token is left; `exact` when it fits."""

    tokens: tuple[int, int] | None
    exact: bool


def align(start: int, end: int, offsets: Offsets, alignment: Alignment = "expand") -> Aligned:
    """The tokens of a span of characters.

    >>> align(4, 10, [(0, 3), (4, 11), (12, 17)])
    Aligned(tokens=(1, 2), exact=False)
    """
    first = bisect_right(offsets, start, key=lambda token: token[1])
    last = bisect_left(offsets, end, key=lambda token: token[0])
    if first >= last:
        return Aligned(None, False)
    whole_first, whole_last = offsets[first][0] >= start, offsets[last - 1][1] <= end
    if whole_first and whole_last:
        return Aligned((first, last), True)
    if alignment == "expand":
        return Aligned((first, last), False)
    if alignment == "contract":
        first, last = first + (not whole_first), last - (not whole_last)
        return Aligned((first, last) if first < last else None, False)
    return Aligned(None, False)


def code_points_of_utf16(text: str) -> list[int]:
    r"""For each offset in UTF-16 units the offset in code points; -1 inside a pair.

    >>> code_points_of_utf16("a\U0001f680b")
    [0, 1, -1, 2, 3]
    """
    places: list[int] = []
    for index, character in enumerate(text):
        places.append(index)
        if ord(character) > 0xFFFF:
            places.append(-1)
    return [*places, len(text)]
