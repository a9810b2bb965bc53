"""`SpacyModel`: the entities that a spaCy pipeline finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tagweave.corpus import Document
from tagweave.errors import UsageError
from tagweave.sources.base import Source, Vote, Votes
from tagweave.sources.pipelines import DEFAULT, load_pipeline, parse
from tagweave.sources.truecasing import FormTable, truecase

CONLL = {
    "PERSON": "PER",
    "ORG": "ORG",
    "GPE": "LOC",
    "LOC": "LOC",
    "FAC": "LOC",
    "NORP": "MISC",
    "EVENT": "MISC",
    "WORK_OF_ART": "MISC",
    "LANGUAGE": "MISC",
    "LAW": "MISC",
    "PRODUCT": "MISC",
}
"""The types of OntoNotes as those of CoNLL-2003."""


@dataclass
class SpacyModel(Source):
    """The entities that a spaCy pipeline finds in the tokens as they are.

    Attributes:
        model: name of the pipeline's package, or its folder.
        rename: other names for its types; `{"OntoNotes": "CoNLL-2003"}` names them all, see `CONLL`. Where something is
            renamed, types that are not are left out.
        truecase: whether the pipeline reads the tokens in the case that they have most often (see
            `tagweave.sources.truecasing`), which mends headlines in capitals.
        forms: file of a `FormTable` to go by; without it, how often each form occurs is counted in each batch.

    >>> model = SpacyModel("news", rename={"PERSON": "PER", "GPE": "LOC"})
    >>> list(model.annotate([Document("d", ["Angela", "Merkel", "visited", "Paris", "."])]))
    [[(0, 2, 'PER'), (3, 4, 'LOC')]]
    """

    kind = "spacy-model"

    model: str = DEFAULT
    rename: dict[str, str] = field(default_factory=dict)
    truecase: bool = False
    forms: Path | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the pipeline, renamed."""
        if self.rename:
            return tuple(dict.fromkeys(self._names.values()))
        return tuple(load_pipeline(self.model).get_pipe("ner").labels)

    @cached_property
    def _names(self) -> dict[str, str]:
        if self.rename == {"OntoNotes": "CoNLL-2003"}:
            return CONLL
        return self.rename

    @cached_property
    def _forms(self) -> FormTable | None:
        return None if self.forms is None else FormTable.read(self.forms)

    def load(self) -> None:
        """Load the pipeline.

        Raises:
            UsageError: it has no component that finds entities.
        """
        nlp = load_pipeline(self.model)
        if "ner" not in nlp.pipe_names:
            raise UsageError(f"the spaCy pipeline {self.model!r} finds no entities: it has no component 'ner'")

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities in each document."""
        read = documents
        if self.truecase:
            table = self._forms or FormTable.of(document.tokens for document in documents)
            read = [replace(document, tokens=truecase(document.tokens, table)) for document in documents]
        return (self._votes(doc.ents) for doc in parse(read, self.model, only=("tok2vec", "transformer", "ner")))

    def _votes(self, entities: Iterable[object]) -> list[Vote]:
        spans = ((span.start, span.end, span.label_) for span in entities)  # type: ignore[attr-defined]
        if not self._names:
            return list(spans)
        return [(start, end, self._names[name]) for start, end, name in spans if name in self._names]
