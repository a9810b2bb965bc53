"""Tokens that look like names."""

from tagweave.corpus import Document

_ENDINGS = frozenset(".!?:")
_OPENINGS = frozenset({"'", '"', "`", "``", "\u201c", "\u2018", "(", "[", "-"})


def proper_tokens(document: Document) -> list[bool]:
    """Which tokens look like (a part of) a name.

    Those all in capitals do, those with a capital inside (`iPad`, `McCoy`), those that begin with a capital where no
    sentence begins, and if the document was parsed, proper nouns. Single letters are no names. In a text without small
    letters, capitals say nothing.

    >>> proper_tokens(Document("d", ["The", "iPad", "of", "Ada", "."]))
    [False, True, False, True, False]
    """
    shouted = is_shouted(document)
    return [
        len(token) > 1
        and token[0].isalnum()
        and (_tagged(document, place) or (not shouted and _cased(document, place)))
        for place, token in enumerate(document.tokens)
    ]


def is_shouted(document: Document) -> bool:
    """Whether the document has no small letter, as headlines in capitals have none.

    >>> is_shouted(Document("d", ["OSLO", "1996-08-30"])), is_shouted(Document("d", ["Oslo", "sleeps"]))
    (True, False)
    """
    return all(token == token.upper() for token in document.tokens)


def _tagged(document: Document, place: int) -> bool:
    """Whether the parse has the token as a proper noun."""
    return document.parse is not None and document.parse[place].pos_ == "PROPN"


def _cased(document: Document, place: int) -> bool:
    """Whether the capitals of the token are those of a name."""
    token = document.tokens[place]
    return any(letter.isupper() for letter in token[1:]) or (
        token[0].isupper() and not _begins_sentence(document, place)
    )


def _begins_sentence(document: Document, index: int) -> bool:
    """Whether no word stands before the token, or only signs that open or end a sentence."""
    before = index - 1
    while before >= 0 and document.tokens[before] in _OPENINGS:
        before -= 1
    return before < 0 or document.tokens[before] in _ENDINGS
