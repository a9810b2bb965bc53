"""`Affixes`: words that begin or end in a certain way, such as names of diseases in "-itis"."""

from collections.abc import Sequence
from dataclasses import dataclass

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources.base import Source, Votes
from tagweave.sources.words import Form, PartOfSpeech, analysis, compared, forms, pipeline_for, runs


@dataclass
class Affixes(Source):
    """Words with a certain beginning or ending.

    Attributes:
        type: entity type of the words; `O` votes against entities.
        prefixes: beginnings, one of which is enough.
        suffixes: endings, one of which is enough.
        min_length: letters that a word must have at least, in the form that is compared.
        exceptions: words that do not count, in the same form.
        form: how words are compared: `exact`, `lower` (small letters) or `lemma`.
        parts_of_speech: parts of speech that a word must have; any by default.
        join: whether marked words next to each other are one entity.
        pipeline: pipeline for lemmas and parts of speech; by default the usual English one, if they are asked for.

    >>> source = Affixes("salts", "CHEMICAL", suffixes=("ium", "ide"), min_length=5, exceptions=("inside",))
    >>> list(source.find(Document("d", ["Sodium", "chloride", "inside", "a", "helium", "balloon"])))
    [(0, 2, 'CHEMICAL'), (4, 5, 'CHEMICAL')]
    """

    kind = "affixes"

    type: str
    prefixes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    min_length: int = 1
    exceptions: tuple[str, ...] = ()
    form: Form = "lower"
    parts_of_speech: tuple[PartOfSpeech, ...] = ()
    join: bool = True
    pipeline: str | None = None

    def __post_init__(self) -> None:
        if not any(self.prefixes) and not any(self.suffixes):
            raise UsageError(f"source {self.name!r} has neither prefixes nor suffixes")
        self.pipeline = pipeline_for(self.pipeline, self.form == "lemma" or bool(self.parts_of_speech))

    @property
    def types(self) -> tuple[str, ...]:
        """The one type."""
        return (self.type,)

    def find(self, document: Document) -> Votes:
        """The marked words, or runs of them."""
        marked = self._marked(document)
        places = runs(marked) if self.join else ((i, i + 1) for i, mark in enumerate(marked) if mark)
        return [(start, end, self.type) for start, end in places]

    def _marked(self, document: Document) -> Sequence[bool]:
        prefixes, suffixes, exceptions = (
            tuple(compared(filter(None, affixes), self.form))
            for affixes in (self.prefixes, self.suffixes, self.exceptions)
        )
        marked = [
            len(word) >= self.min_length
            and (word.startswith(prefixes) or word.endswith(suffixes))
            and word not in exceptions
            for word in forms(self, document, self.form)
        ]
        if self.parts_of_speech:
            parse = analysis(self, document, "POS")
            return [mark and token.pos_ in self.parts_of_speech for mark, token in zip(marked, parse, strict=True)]
        return marked
