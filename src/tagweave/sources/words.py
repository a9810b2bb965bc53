"""What sources that look at words share: forms of words, the analysis they ask for, runs and longest matches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, Literal, TypeVar

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError
from tagweave.pipelines import DEFAULT
from tagweave.sources.base import Source

Form = Literal["exact", "lower", "lemma"]
"""How words are compared: as they are, in small letters, or by base forms in small letters, which need a pipeline."""

PartOfSpeech = Literal[
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X", "SPACE",
]  # fmt: skip
"""The parts of speech of Universal Dependencies, and `SPACE` for tokens of blanks."""


def pipeline_for(given: str | None, needed: bool) -> str | None:
    """The pipeline that a source asks for: the one that was given, or the usual one if it needs any."""
    return DEFAULT if given is None and needed else given


def analysis(source: Source, document: Document, *attributes: str) -> Any:  # noqa: ANN401
    """The document's parse, once it is sure that it has the given attributes (`LEMMA`, `POS`, `TAG`, `DEP`, ...).

    Raises:
        SourceError: there is no parse, or its pipeline does not set an attribute: a rule on lemmas that are all empty
            would find nothing and nobody would notice.
    """
    parse = document.parse
    missing = [name for name in attributes if parse is not None and not parse.has_annotation(name)]
    if parse is None or missing:
        what = f"has no {' and no '.join(missing)}" if missing else "is missing"
        raise SourceError(
            f"source {source.name!r}, document {document.id!r}: the analysis by the pipeline {source.pipeline!r} "
            f"{what}. Set a pipeline that gives it, such as pipeline = {DEFAULT!r}"
        )
    return parse


def forms(source: Source, document: Document, form: Form) -> list[str]:
    """The words of a document in the form in which a source compares them.

    >>> from tagweave.sources.functions import labeling_function
    >>> source = labeling_function("X", name="x")(lambda document: None)
    >>> forms(source, Document("d", ["Two", "Mice"]), "lower")
    ['two', 'mice']
    """
    if form == "lemma":
        return [token.lemma_.lower() for token in analysis(source, document, "LEMMA")]
    return [token.lower() for token in document.tokens] if form == "lower" else list(document.tokens)


def compared(words: Iterable[str], form: Form) -> frozenset[str]:
    """Words of a setting as `forms` gives those of a document; base forms must be given as such.

    >>> sorted(compared(["Mouse"], "lemma")), sorted(compared(["Mouse"], "exact"))
    (['mouse'], ['Mouse'])
    """
    return frozenset(words) if form == "exact" else frozenset(word.lower() for word in words)


def runs(marked: Iterable[bool]) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of marked tokens.

    >>> list(runs([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    start = None
    end = 0
    for end, mark in enumerate(marked, start=1):
        if mark and start is None:
            start = end - 1
        elif not mark and start is not None:
            yield start, end - 1
            start = None
    if start is not None:
        yield start, end


def longest(spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans that stay when no two may share a token: the longest first, then the leftmost, then the first named.

    >>> longest([(1, 2, "A"), (0, 3, "B"), (2, 4, "A"), (3, 5, "A")])
    [(0, 3, 'B'), (3, 5, 'A')]
    """
    kept: list[tuple[int, int, str]] = []
    taken: set[int] = set()
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if taken.isdisjoint(range(span[0], span[1])):
            kept.append(span)
            taken.update(range(span[0], span[1]))
    return sorted(kept, key=lambda span: span[0])


Key = TypeVar("Key")


class Phrases(Generic[Key]):
    """Finds phrases at whole tokens, however phrase and text are cut into tokens: "don't" is found in `do n't`.

    Where a phrase has a blank, a token must end. Words and phrases are compared as they are; give both in one form.

    Args:
        phrases: the phrases by any key.

    >>> phrases = Phrases({"n": "does n't", "y": "New York"})
    >>> list(phrases.find(["New", "York", "does", "n't", "sleep"]))
    [(0, 2, 'y'), (2, 4, 'n')]
    >>> list(Phrases({"x": "the rapist"}).find(["therapist"]))
    []
    """

    def __init__(self, phrases: Mapping[Key, str] | None = None) -> None:
        self._by_first: dict[str, list[tuple[str, tuple[int, ...], Key]]] = {}
        for key, phrase in (phrases or {}).items():
            words = phrase.split()
            ends = tuple(accumulate(map(len, words)))
            if words:
                self._by_first.setdefault(words[0][0], []).append(("".join(words), ends, key))

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, int, Key]]:
        """First token, first token after, and key of each place of each phrase, overlapping ones too."""
        text = "".join(words)
        starts = list(accumulate(map(len, words), initial=0))
        number = {start: token for token, start in reversed(list(enumerate(starts)))}
        for token, start in enumerate(starts[:-1]):
            for phrase, ends, key in self._by_first.get(text[start : start + 1], ()):
                if text.startswith(phrase, start) and all(start + end in number for end in ends):
                    yield token, number[start + ends[-1]], key


def votes_of(document: Document, names: str | Sequence[str]) -> list[Span] | None:
    """The votes of earlier sources on a document, end to end; None when none of them ran on it.

    >>> document = Document("d", ["Oslo"], sources={"cities": [Span(0, 1, "LOC")], "names": None})
    >>> votes_of(document, ("cities", "names")), votes_of(document, "names")
    ([Span(start=0, end=1, type='LOC', score=None)], None)
    """
    found = [document.sources.get(name) for name in ((names,) if isinstance(names, str) else names)]
    ran = [spans for spans in found if spans is not None]
    return [span for spans in ran for span in spans] if ran else None
