"""`SpacyModel`: the entities that a spaCy pipeline finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.pipelines import DEFAULT, load_pipeline, parse
from tagweave.sources.base import Source, Vote, Votes
from tagweave.sources.renaming import new_names
from tagweave.sources.truecasing import FormTable, truecase

_FINDERS = ("ner", "entity_ruler", "span_ruler")
_NEEDED = ("tok2vec", "transformer", "curated_transformer", "ner")
"""The component that finds entities, and those that it listens to."""


@dataclass
class SpacyModel(Source):
    """The entities that a spaCy pipeline finds in the tokens as they are.

    Of the pipeline only what the component `ner` needs is run, or all of it where rules find entities too.

    Attributes:
        model: name of the pipeline's package, or its folder.
        rename: other names for its types, or `CoNLL-2003` for a mapping of the types of OntoNotes, see
            `tagweave.sources.renaming.CONLL`.
        keep: whether entities stay whose type has no new name, where some have.
        truecase: whether the pipeline reads the tokens in the case that they have most often (see
            `tagweave.sources.truecasing`), which mends headlines in capitals.
        forms: file of a `FormTable` to go by; without it, how often each form occurs is counted in each batch.

    >>> model = SpacyModel("news", rename={"PERSON": "PER", "GPE": "LOC"})
    >>> list(model.annotate([Document("d", ["Angela", "Merkel", "visited", "Paris", "."])]))
    [[(0, 2, 'PER'), (3, 4, 'LOC')]]
    """

    kind = "spacy-model"

    model: str = DEFAULT
    rename: dict[str, str] | str = field(default_factory=dict)
    keep: bool = False
    truecase: bool = False
    forms: Path | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the pipeline, renamed; loads it.

        Raises:
            UsageError: it has no component that finds entities, or no such type.
        """
        return tuple(dict.fromkeys(self._names.values()))

    @cached_property
    def _names(self) -> dict[str, str]:
        nlp = load_pipeline(self.model)
        found = {label: None for name in self._finders for label in nlp.get_pipe(name).labels}
        if not found:
            raise UsageError(f"the spaCy pipeline {self.model!r} finds no entities: it has no component 'ner'")
        return new_names(found, self.rename, self.keep)

    @property
    def _finders(self) -> list[str]:
        return [name for name in load_pipeline(self.model).pipe_names if name in _FINDERS]

    @cached_property
    def _forms(self) -> FormTable | None:
        return None if self.forms is None else FormTable.read(self.forms)

    def load(self) -> None:
        """Load the pipeline; see `types` for what may be wrong with it."""
        if not self._names:
            raise UsageError(f"no type of the spaCy pipeline {self.model!r} is left: rename some, or set keep")
        _ = self._forms

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities in each document."""
        read = documents
        if self.truecase:
            table = self._forms or FormTable.of(document.tokens for document in documents)
            read = [replace(document, tokens=truecase(document.tokens, table)) for document in documents]
        only = _NEEDED if self._finders == ["ner"] else None
        return (self._votes(doc.ents) for doc in parse(read, self.model, only))

    def _votes(self, entities: Iterable[Any]) -> list[Vote]:
        names = self._names
        return [(span.start, span.end, names[span.label_]) for span in entities if span.label_ in names]
