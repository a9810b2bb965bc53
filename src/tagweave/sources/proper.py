"""Tokens that look like names."""

from tagweave.corpus import Document

_ENDINGS = frozenset(".!?:")
_OPENINGS = frozenset({"'", '"', "`", "``", "\u201c", "\u2018", "(", "[", "-"})


def is_proper(document: Document, index: int) -> bool:
    """Whether a token looks like (a part of) a name.

    It does if it is all in capitals, has a capital inside (`iPad`, `McCoy`), begins with a capital where no sentence
    begins, or if the document was parsed and the token is a proper noun. Single letters are no names. In a text without
    small letters, capitals say nothing.

    >>> document = Document("d", ["The", "iPad", "of", "Ada", "."])
    >>> [is_proper(document, index) for index in range(5)]
    [False, True, False, True, False]
    """
    token = document.tokens[index]
    if len(token) < 2 or not token[0].isalnum():
        return False
    if document.parse is not None and document.parse[index].pos_ == "PROPN":
        return True
    if token.islower() or is_shouted(document):
        return False
    return any(letter.isupper() for letter in token[1:]) or (
        token[0].isupper() and not _begins_sentence(document, index)
    )


def is_shouted(document: Document) -> bool:
    """Whether the document has no small letter, as headlines in capitals have none.

    >>> is_shouted(Document("d", ["OSLO", "1996-08-30"])), is_shouted(Document("d", ["Oslo", "sleeps"]))
    (True, False)
    """
    return all(token == token.upper() for token in document.tokens)


def _begins_sentence(document: Document, index: int) -> bool:
    """Whether no word stands before the token, or only signs that open or end a sentence."""
    before = index - 1
    while before >= 0 and document.tokens[before] in _OPENINGS:
        before -= 1
    return before < 0 or document.tokens[before] in _ENDINGS
