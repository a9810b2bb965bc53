"""Sources that vote O: words that are no part of any entity. Without them a label model hears of entities only."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.labels import OUTSIDE
from tagweave.pipelines import DEFAULT, load_pipeline
from tagweave.sources.base import Source, Votes
from tagweave.sources.phrase_files import read_phrases
from tagweave.sources.words import Form, PartOfSpeech, analysis, compared, forms, pipeline_for, runs

ENGLISH_STOP_WORDS = frozenset(
    """
    a an the this that these those such same other another each every either neither both all any some no none few many
    much more most less least several enough
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we us our ours ourselves they them their theirs themselves one oneself who whom whose which what whoever whatever
    whichever someone somebody something anyone anybody anything everyone everybody everything nobody nothing
    am is are was were be been being have has had having do does did doing done can could may might must shall should
    will would ought cannot
    'm 's 're 've 'd 'll n't not nor
    and or but so yet if then else than as because since unless until while whereas although though whether
    of in on at by for with without within into onto from to toward towards about above across after against along among
    amongst around before behind below beneath beside besides between beyond despite down during except inside like near
    off out outside over per through throughout under up upon via
    when whenever where wherever why how here there now again always never often ever already also almost just only
    quite rather really still too very once twice perhaps maybe however therefore thus hence moreover furthermore
    otherwise instead indeed anyway
    """.split()
)
"""English words that carry grammar rather than meaning; those with an apostrophe are what tokenisers cut off."""


@dataclass
class _Outside(Source):
    """Votes O on stretches of tokens."""

    @property
    def types(self) -> tuple[str, ...]:
        """None: it votes O only."""
        return ()

    def find(self, document: Document) -> Votes:
        """A vote for O on each run of tokens that are no entity."""
        return [(start, end, OUTSIDE) for start, end in runs(self._marked(document))]

    def _marked(self, document: Document) -> Iterator[bool]:
        """Whether each token is no entity."""
        raise NotImplementedError


@dataclass
class OutsideWords(_Outside):
    """Words of a list are no entities.

    Attributes:
        words: the words; base forms, if `form` is `lemma`.
        files: files with more of them, see `tagweave.sources.phrase_files.read_phrases`.
        form: how words are compared: `exact`, `lower` (small letters) or `lemma`.
        pipeline: pipeline that gives lemmas; by default the usual English one, if `form` is `lemma`.

    >>> source = OutsideWords("devices", ("laptop", "pc"))
    >>> list(source.find(Document("d", ["My", "PC", "laptop", "fan"])))
    [(1, 3, 'O')]
    """

    kind = "outside-words"

    words: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    form: Form = "lower"
    pipeline: str | None = None
    _compared: frozenset[str] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.pipeline = pipeline_for(self.pipeline, self.form == "lemma")
        if not self.words and not self.files:
            raise UsageError(f"source {self.name!r} has neither words nor files of words")

    def load(self) -> None:
        """Read the words."""
        if self._compared is None:
            listed = [phrase.text for file in self.files for phrase in read_phrases(file)]
            for word in (*self.words, *listed):
                if len(word.split()) > 1:
                    raise UsageError(
                        f"source {self.name!r}: {word!r} is more than one word. Use a source of kind 'dictionary' with "
                        "type 'O' for phrases"
                    )
            self._compared = compared((*self.words, *listed), self.form)

    def _marked(self, document: Document) -> Iterator[bool]:
        self.load()
        known = self._compared or frozenset()
        return (word in known for word in forms(self, document, self.form))


@dataclass
class StopWords(OutsideWords):
    """Words such as "the" and "of" are no entities.

    Attributes:
        words: the words; by default an English list, or that of the language.
        files: files with more of them, see `tagweave.sources.phrase_files.read_phrases`.
        form: how words are compared: `exact`, `lower` (small letters) or `lemma`.
        pipeline: pipeline that gives lemmas; by default the usual English one, if `form` is `lemma`.
        language: code of a language whose list in spaCy is used instead of the built-in one: `fr`.

    >>> list(StopWords("stop").find(Document("d", ["The", "University", "of", "Oslo"])))
    [(0, 1, 'O'), (2, 3, 'O')]
    """

    kind = "stop-words"

    language: str | None = None

    def __post_init__(self) -> None:
        self.pipeline = pipeline_for(self.pipeline, self.form == "lemma")
        if not self.words and not self.files and self.language is None:
            self.words = tuple(sorted(ENGLISH_STOP_WORDS))

    def load(self) -> None:
        """Read the words, and fetch those of the language."""
        if self._compared is None:
            super().load()
            if self.language is not None:
                listed = load_pipeline(f"blank:{self.language}").Defaults.stop_words
                if not listed:
                    raise UsageError(f"spaCy has no stop words for {self.language!r}. Give a file")
                self._compared = (self._compared or frozenset()) | compared(listed, self.form)


@dataclass
class Punctuation(_Outside):
    """Tokens of nothing but punctuation or symbols are no entities.

    Attributes:
        symbols: whether `+`, `$` and other symbols count, or only punctuation.
        besides: tokens about which it says nothing, such as hyphens that stand inside entities.

    >>> list(Punctuation("marks", besides=("-",)).find(Document("d", ["G6PD", "-", "deficiency", ")", "."])))
    [(3, 5, 'O')]
    """

    kind = "punctuation"

    symbols: bool = True
    besides: tuple[str, ...] = ()

    def _marked(self, document: Document) -> Iterator[bool]:
        kinds = "PS" if self.symbols else "P"
        return (
            bool(token) and token not in self.besides and all(unicodedata.category(mark)[0] in kinds for mark in token)
            for token in document.tokens
        )


@dataclass
class PartsOfSpeech(_Outside):
    """Words of some parts of speech are no entities.

    Attributes:
        parts_of_speech: names of Universal Dependencies.
        besides: words about which it says nothing, in small letters.
        pipeline: pipeline that gives parts of speech.

    >>> PartsOfSpeech("small words", ("ADP", "DET")).pipeline
    'en_core_web_sm'
    """

    kind = "parts-of-speech"

    parts_of_speech: tuple[PartOfSpeech, ...] = ("ADP", "ADV", "DET", "VERB")
    besides: tuple[str, ...] = ()
    pipeline: str | None = DEFAULT

    def _marked(self, document: Document) -> Iterator[bool]:
        parse: Any = analysis(self, document, "POS")
        return (token.pos_ in self.parts_of_speech and token.lower_ not in self.besides for token in parse)
