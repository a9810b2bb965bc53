"""`Triggers`: what stands next to a phrase that announces it, such as "diagnosed with"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources.base import Source, Votes
from tagweave.sources.words import Form, PartOfSpeech, Phrases, analysis, compared, forms, longest, pipeline_for

ENDS_OF_SENTENCES = frozenset(".!?;")


@dataclass
class Triggers(Source):
    """The words after or before a phrase.

    Attributes:
        type: entity type; `O` votes against entities.
        triggers: the phrases; of base forms, if `form` is `lemma`.
        side: whether the entity stands `after` the phrase or `before` it.
        parts_of_speech: the entity is the nearest run of tokens with these parts of speech; if there are none, it is
            the next `longest` tokens, whatever they are.
        last: parts of speech with which the entity must end; it is cut back to the last such token.
        window: tokens that may stand between phrase and entity. The end of a sentence never does.
        longest: tokens that the entity may have.
        include_trigger: whether the phrase, and what stands between, belongs to the entity: "deficiency of iron".
        form: how words are compared: `exact`, `lower` (small letters) or `lemma`.
        pipeline: pipeline for lemmas and parts of speech; by default the usual English one, if they are asked for.

    >>> source = Triggers("plugs", "PART", ("external",), parts_of_speech=(), longest=1, include_trigger=True)
    >>> list(source.find(Document("d", ["Two", "external", "monitors", "."])))
    [(1, 3, 'PART')]
    """

    kind = "triggers"

    type: str
    triggers: tuple[str, ...]
    side: Literal["after", "before"] = "after"
    parts_of_speech: tuple[PartOfSpeech, ...] = ("NOUN", "PROPN")
    last: tuple[PartOfSpeech, ...] = ()
    window: int = 2
    longest: int = 5
    include_trigger: bool = False
    form: Form = "lower"
    pipeline: str | None = None
    _phrases: Phrases[str] = field(default_factory=Phrases, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not any(phrase.strip() for phrase in self.triggers):
            raise UsageError(f"source {self.name!r} has no triggers")
        if self.longest < 1 or self.window < 0:
            raise UsageError(f"source {self.name!r}: longest must be at least 1, and window at least 0")
        if self.last and not self.parts_of_speech:
            raise UsageError(f"source {self.name!r}: last needs parts_of_speech")
        self._phrases = Phrases({phrase: phrase for phrase in compared(self.triggers, self.form)})
        self.pipeline = pipeline_for(self.pipeline, self.form == "lemma" or bool(self.parts_of_speech))

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def find(self, document: Document) -> Votes:
        """The entities next to the phrases."""
        return longest(self._find(document))

    def _find(self, document: Document) -> Iterator[tuple[int, int, str]]:
        parts = [token.pos_ for token in analysis(self, document, "POS")] if self.parts_of_speech else None
        wanted = [
            token not in ENDS_OF_SENTENCES if parts is None else parts[place] in self.parts_of_speech
            for place, token in enumerate(document.tokens)
        ]
        for first, after, _ in self._phrases.find(forms(self, document, self.form)):
            start, end = self._nearest(document.tokens, wanted, after if self.side == "after" else first - 1)
            while start < end and self.last and parts is not None and parts[end - 1] not in self.last:
                end -= 1
            if start < end:
                yield (*((min(start, first), max(end, after)) if self.include_trigger else (start, end)), self.type)

    def _nearest(self, tokens: Sequence[str], wanted: Sequence[bool], place: int) -> tuple[int, int]:
        """The run of wanted tokens nearest to a place, which is empty if none is near enough."""
        step = 1 if self.side == "after" else -1
        left = self.window if self.parts_of_speech else 0
        while 0 <= place < len(tokens) and not wanted[place] and left and tokens[place] not in ENDS_OF_SENTENCES:
            place += step
            left -= 1
        begin = place
        while 0 <= place < len(tokens) and wanted[place] and abs(place - begin) < self.longest:
            place += step
        return (begin, place) if step > 0 else (place + 1, begin + 1)
