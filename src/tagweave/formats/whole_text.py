"""A text as pieces that have all of it, for formats in which tokens and the blanks after them are all that there is."""

from collections.abc import Sequence
from typing import NamedTuple

from tagweave.errors import AlignmentError


class Piece(NamedTuple):
    """A stretch of a text, with the one blank after it if there is one.

    Attributes:
        start, end: its place in the text.
        blank: whether a blank follows that belongs to it.
        token: number of the token that it is, None for what stands between tokens.
    """

    start: int
    end: int
    blank: bool
    token: int | None


def pieces(text: str, places: Sequence[tuple[int, int]]) -> list[Piece]:
    r"""Tokens and what stands between them, so that all pieces with their blanks are the text.

    Args:
        text: the text.
        places: start and end of each token.

    Raises:
        AlignmentError: tokens overlap, or are not in order.

    >>> for piece in pieces("Ada\n in", [(0, 3), (5, 7)]): print(piece)
    Piece(start=0, end=3, blank=False, token=0)
    Piece(start=3, end=4, blank=True, token=None)
    Piece(start=5, end=7, blank=False, token=1)
    """
    found: list[Piece] = []
    position = 0
    for number, (start, end) in enumerate((*places, (len(text), len(text)))):
        if start < position:
            raise AlignmentError(f"token {number} begins at {start}, before the end of the one before it, {position}")
        if found and start > position and text[position] == " ":
            found[-1] = found[-1]._replace(blank=True)
            position += 1
        if start > position:
            between = text[position:start]
            blank = between[-1] == " " and len(between) > 1
            found.append(Piece(position, start - blank, blank, None))
        if number < len(places):
            found.append(Piece(start, end, False, number))
        position = end
    return found
