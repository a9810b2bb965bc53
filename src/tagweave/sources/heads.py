"""`HeadNouns`: a head word together with what stands before it, such as "folic acid deficiency"."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.pipelines import DEFAULT
from tagweave.sources.base import Source, Votes
from tagweave.sources.words import Form, PartOfSpeech, analysis, compared, forms, longest

HYPHENS = frozenset("-\u2010\u2011\u2013")


@dataclass
class HeadNouns(Source):
    """Head words with the words before them that say which one is meant.

    Attributes:
        type: entity type; `O` votes against entities.
        heads: the head words; base forms, if `form` is `lemma`.
        before: what belongs to a head: `dependency`, the words to its left that depend on it, or on another word of
            the phrase, by one of `dependencies`; or `parts-of-speech`, the run of words to its left with one of
            `parts_of_speech`.
        dependencies: labels of the pipeline's parser.
        parts_of_speech: parts of speech, for `before = "parts-of-speech"`.
        least: words that must stand before the head; with 0 a bare head is an entity too.
        form: how heads are compared: `exact`, `lower` (small letters) or `lemma`.
        pipeline: pipeline that gives lemmas, parts of speech and dependencies.

    A hyphen between two of the words belongs to them. Of phrases that share words, the longest stays.

    >>> source = HeadNouns("lacks", "DISEASE", ("deficiency", "lack"), dependencies=("compound", "amod"))
    >>> source.types, source.pipeline
    (('DISEASE',), 'en_core_web_sm')
    """

    kind = "head-nouns"

    type: str
    heads: tuple[str, ...]
    before: Literal["dependency", "parts-of-speech"] = "dependency"
    dependencies: tuple[str, ...] = ("compound",)
    parts_of_speech: tuple[PartOfSpeech, ...] = ("NOUN", "PROPN")
    least: int = 1
    form: Form = "lemma"
    pipeline: str | None = DEFAULT

    def __post_init__(self) -> None:
        if not any(self.heads):
            raise UsageError(f"source {self.name!r} has no heads")

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def find(self, document: Document) -> Votes:
        """The phrases."""
        return longest(self._find(document))

    def _find(self, document: Document) -> Iterator[tuple[int, int, str]]:
        parse = analysis(self, document, "DEP" if self.before == "dependency" else "POS")
        heads = compared(self.heads, self.form)
        for head, word in enumerate(forms(self, document, self.form)):
            if word in heads:
                start = self._start(parse, head)
                if head - start >= self.least:
                    yield start, head + 1, self.type

    def _start(self, parse: Any, head: int) -> int:  # noqa: ANN401
        start = place = head
        while place > 0:
            place -= 1
            if self._belongs(parse[place], start, head):
                start = place
            elif parse[place].text not in HYPHENS or place + 1 != start:
                break
        return start

    def _belongs(self, token: Any, start: int, head: int) -> bool:  # noqa: ANN401
        if self.before == "parts-of-speech":
            return token.pos_ in self.parts_of_speech
        return token.dep_ in self.dependencies and start <= token.head.i <= head
