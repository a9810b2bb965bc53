"""Tags of single tokens (`B-PER`, `I-PER`, `O`) and the spans that they stand for.

========  =======================================  =====================================================
scheme    prefixes                                 an entity
========  =======================================  =====================================================
BIO       B begin, I inside                        begins with B (also called IOB2)
IOB1      I, and B between neighbours of one type  begins with I, or with B right after one of its type
BIOES     B, I, E end, S single                    ends with E, or is one S (also called IOBES)
BILOU     B, I, L last, U unit                     ends with L, or is one U (also called BILUO)
BMES      B, M middle, E, S                        ends with E, or is one S
IO        I, or the bare type                      a run of one type; neighbours of one type are merged
bare      none: the tag is the type                a run of one type; neighbours of one type are merged
========  =======================================  =====================================================

A prefix is split off once, at the first hyphen: `B-Multi-part` is of type `Multi-part`.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from tagweave.annotations import Span
from tagweave.errors import LabelError, unknown_name
from tagweave.labels import OUTSIDE, Decoding

Scheme = Literal["BIO", "IOB1", "BIOES", "BILOU", "BMES", "IO", "bare"]

PREFIXES: dict[Scheme, str] = {
    "BIO": "BI",
    "IOB1": "BI",
    "BIOES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
    "IO": "I",
    "bare": "",
}
_SAME: dict[str, Scheme] = {"IOB2": "BIO", "IOBES": "BIOES", "BILUO": "BILOU", "BARE": "bare"}
_OPENING = "BSU"
_CLOSING = "ELSU"
_LIKE_OUTSIDE = {"0", "o", "Ο", "О", "-", "_", "O-", "OUT", "NONE", "NULL"}  # noqa: RUF001 (Greek and Cyrillic letters)

Parsed = tuple[str, str]
"""Prefix and type of a tag; O has two empty strings, a bare type has the prefix I."""


def scheme_named(name: str) -> Scheme:
    """The scheme of a name, in any case, or one of the other names in use.

    Raises:
        UsageError: there is no such scheme.

    >>> scheme_named("iob2")
    'BIO'
    """
    upper = name.upper()
    if upper in _SAME:
        return _SAME[upper]
    for scheme in PREFIXES:
        if scheme == upper:
            return scheme
    raise unknown_name("tag scheme", name, [*PREFIXES, *_SAME])


def parse_tag(tag: str, scheme: Scheme | None = None) -> Parsed:
    """Prefix and type of a tag.

    Without a scheme every known prefix is taken for one, and a tag with none for a bare type if it begins with a
    letter.

    Raises:
        LabelError: it is neither `O` nor a tag of the scheme; the message guesses what was meant.

    >>> parse_tag("B-Multi-part"), parse_tag("O"), parse_tag("LOC")
    (('B', 'Multi-part'), ('', ''), ('I', 'LOC'))
    """
    if tag == OUTSIDE:
        return "", ""
    if tag.upper() in _LIKE_OUTSIDE or tag in _LIKE_OUTSIDE:
        raise LabelError(f"{tag!r} is no tag. Did you mean 'O' (the letter)?")
    prefix, hyphen, name = tag.partition("-")
    known = "BIMESLU" if scheme is None else PREFIXES[scheme]
    if hyphen and len(prefix) == 1 and prefix in known:
        if not name:
            raise LabelError(f"tag {tag!r} names no entity type")
        return prefix, name
    if not tag or scheme not in (None, "IO", "bare"):
        raise LabelError(f"{tag!r} is no tag of the scheme {scheme}{_guess(tag, known)}")
    if scheme == "IO" and hyphen and prefix in {*"BMESLU"}:
        raise LabelError(f"{tag!r} is no tag of the scheme IO, which has the prefix I only")
    if not any(character.isalpha() for character in tag):
        raise LabelError(f"{tag!r} is no tag: neither 'O' nor a prefix with an entity type")
    if scheme is None and not tag[0].isalpha():
        raise LabelError(f"{tag!r} is no tag: neither 'O' nor prefix and type. If it is a type, name the scheme bare")
    return "I", tag


def _guess(tag: str, known: str) -> str:
    for separator in "-_/:.":
        prefix, found, name = tag.partition(separator)
        if found and name and prefix.upper() in {*known}:
            return f". Did you mean {prefix.upper() + '-' + name!r}?"
        name, found, prefix = tag.rpartition(separator)
        if found and name and prefix.upper() in {*known}:
            return f". Did you mean {prefix.upper() + '-' + name!r}?"
    return f": neither 'O' nor one of {', '.join(f'{letter}-TYPE' for letter in known)}"


class Evidence:
    """What the tags of a file tell about its scheme, sentence by sentence.

    - A tag without prefix: bare, and then no tag may have one.
    - A prefix M: BMES. E or S: BIOES. L or U: BILOU.
    - I only: IO.
    - B and I: IOB1 if some entity begins with I and every B stands right after a token of its own type; else BIO.
    """

    def __init__(self) -> None:
        self.prefixes: set[str] = set()
        self.loose_starts = 0
        """Entities that begin with a tag for the inside or end of one."""
        self._needless = False

    def add(self, tags: Sequence[Parsed]) -> None:
        """Take in the parsed tags of one sentence."""
        self.prefixes.update(prefix for prefix, _ in tags)
        before: Parsed = ("", "")
        for prefix, name in tags:
            open_before = before[1] if before[0] not in _CLOSING else ""
            if prefix == "B" and before[1] != name:
                self._needless = True
            if prefix and prefix not in _OPENING and open_before != name:
                self.loose_starts += 1
            before = (prefix or " ", name)

    def scheme(self) -> Scheme:
        """The scheme that fits."""
        found = self.prefixes
        if "M" in found:
            return "BMES"
        if found & {"L", "U"}:
            return "BILOU"
        if found & {"E", "S"}:
            return "BIOES"
        if "I" in found and "B" not in found:
            return "IO"
        return "IOB1" if self.loose_starts and not self._needless else "BIO"


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme of tagged sentences, by the rules of `Evidence`.

    Raises:
        LabelError: a tag is none, or some have prefixes and others not.

    >>> detect_scheme([["I-ORG", "B-ORG", "O"]]), detect_scheme([["B-ORG", "E-ORG"]]), detect_scheme([["LOC", "O"]])
    ('IOB1', 'BIOES', 'bare')
    """
    evidence, bare, prefixed = Evidence(), "", ""
    for tags in sentences:
        parsed = [parse_tag(tag) for tag in tags]
        evidence.add(parsed)
        for tag, (prefix, name) in zip(tags, parsed, strict=True):
            if prefix and tag == name:
                bare = bare or tag
            elif prefix:
                prefixed = prefixed or tag
        if bare and prefixed:
            raise LabelError(f"the tags {bare!r} and {prefixed!r} cannot be of one scheme: one has a prefix")
    return "bare" if bare else evidence.scheme()


def spans_from_tags(tags: Sequence[str], scheme: Scheme | None = None, mode: Decoding = "lenient") -> list[Span]:
    """The spans of one tagged sentence.

    Args:
        tags: one tag a token.
        scheme: their scheme; None detects it from these tags alone.
        mode: `lenient` lets an entity begin and end wherever its type does (the rules of conlleval); `strict` drops
            what does not begin, and in schemes that mark the end does not end, as the scheme demands.

    Raises:
        LabelError: a tag does not belong to the scheme.

    >>> spans_from_tags(["I-ORG", "B-ORG", "I-ORG", "O"], "IOB1")
    [Span(start=0, end=1, type='ORG', score=None), Span(start=1, end=3, type='ORG', score=None)]
    >>> spans_from_tags(["O", "I-PER"], "BIO", mode="strict")
    []
    """
    if scheme is None:
        scheme = detect_scheme([tags])
    return spans_from_parsed([parse_tag(tag, scheme) for tag in tags], scheme, mode)


def spans_from_parsed(tags: Sequence[Parsed], scheme: Scheme = "BIO", mode: Decoding = "lenient") -> list[Span]:
    """The spans of parsed tags; read leniently they are the same in all schemes."""
    spans: list[Span] = []
    first, current = 0, ""
    for position, (prefix, name) in enumerate(tags):
        if current and (name != current or prefix in _OPENING):
            spans.append(Span(first, position, current))
            current = ""
        if not name:
            continue
        if not current:
            first, current = position, name
        if prefix in _CLOSING:
            spans.append(Span(first, position + 1, current))
            current = ""
    if current:
        spans.append(Span(first, len(tags), current))
    return [span for span in spans if _is_whole(tags, span, scheme)] if mode == "strict" else spans


def _is_whole(tags: Sequence[Parsed], span: Span, scheme: Scheme) -> bool:
    if scheme in ("IO", "IOB1", "bare"):
        return True
    begins = tags[span.start][0] in _OPENING
    return begins and (scheme == "BIO" or tags[span.end - 1][0] in _CLOSING)


def tags_from_spans(spans: Iterable[Span], length: int) -> list[str]:
    """BIO tags of spans that do not overlap.

    >>> tags_from_spans([Span(1, 3, "LOC")], 4)
    ['O', 'B-LOC', 'I-LOC', 'O']
    """
    tags = [OUTSIDE] * length
    for span in spans:
        tags[span.start] = f"B-{span.type}"
        for position in range(span.start + 1, span.end):
            tags[position] = f"I-{span.type}"
    return tags
