"""`TransformersModel`: the entities that a token classifier of Hugging Face finds."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.encoder import Precision, locate, require_bert
from tagweave.errors import LabelError, UsageError
from tagweave.formats.tags import Parsed, parse_tag, spans_from_parsed
from tagweave.sources.base import Source, Votes
from tagweave.sources.renaming import new_names
from tagweave.storage import read_json

_NUMBERED = re.compile(r"LABEL_\d+")


class _Loaded(NamedTuple):
    encoder: Any
    model: Any


@dataclass
class TransformersModel(Source):
    """The entities that a token classifier of Hugging Face finds in the tokens as they are.

    Each token is read at its first sub-word piece; long documents are read in windows that overlap. Tags may be of any
    scheme: a new entity begins at a tag for the beginning of one, and wherever the type changes. The score of an entity
    is the mean probability of its type over its tokens.

    Only safetensors are read, and no code of the model's author runs. A model from the hub is downloaded first, unless
    that is switched off (`HF_HUB_OFFLINE=1`).

    Attributes:
        model: a folder, or the name of a model on the hub; a tagger saved by tagweave is such a folder.
        rename: other names for its types, or `CoNLL-2003` for a mapping of the types of OntoNotes, see
            `tagweave.sources.renaming.CONLL`.
        keep: whether entities stay whose type has no new name, where some have.
        scores: whether votes carry their probability; without it all count alike.
        window: most sub-word pieces that are read at once; the model's own limit where that is lower.
        overlap: pieces that neighbouring windows share.
        precision: number format of the arithmetic, see `tagweave.encoder.Precision`.
    """

    kind = "transformers-model"

    model: str
    rename: dict[str, str] | str = field(default_factory=dict)
    keep: bool = False
    scores: bool = True
    window: int = 512
    overlap: int = 64
    precision: Precision = "auto"

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the model, renamed; reads its configuration."""
        return tuple(dict.fromkeys(self._names.values()))

    @cached_property
    def _names(self) -> dict[str, str]:
        return new_names(dict.fromkeys(name for _, name in self._tags if name), self.rename, self.keep)

    @cached_property
    def _tags(self) -> list[Parsed]:
        """What the outputs of the model stand for."""
        try:
            tags = [parse_tag(label) for label in self._labels]
        except LabelError as error:
            raise UsageError(f"the labels of the model {self.model!r} are no tags: {error}") from None
        if ("", "") not in tags:
            raise UsageError(f"none of the labels of the model {self.model!r} is O: {', '.join(self._labels)}")
        return tags

    @cached_property
    def _labels(self) -> list[str]:
        """The names of its outputs."""
        path = locate(self.model) / "config.json"
        config = read_json(path)
        if not any("ForTokenClassification" in str(name) for name in config.get("architectures") or ()):
            raise UsageError(f"{path.parent} holds no token classifier: its configuration names none")
        labels = config.get("id2label") or {}
        ordered = [str(labels[number]) for number in sorted(labels, key=int)]
        if not ordered or all(map(_NUMBERED.fullmatch, ordered)):
            raise UsageError(f"{path} does not say what the labels mean: give them names in id2label")
        return ordered

    @cached_property
    def _loaded(self) -> _Loaded:
        from tagweave.encoder import Encoder, device

        encoder = Encoder.load(self.model)
        return _Loaded(encoder, encoder.classifier(self._labels, seed=None).to(device()))

    def __getstate__(self) -> dict[str, Any]:
        """Other processes load the model themselves."""
        return {name: value for name, value in vars(self).items() if name != "_loaded"}

    def load(self) -> None:
        """Load the model.

        Raises:
            UsageError, StorageError: there is no such model, or it is no token classifier with names for its labels.
            MissingExtraError: torch or transformers is not installed.
        """
        require_bert()
        if not self._names:
            raise UsageError(f"no type of the model {self.model!r} is left: rename some, or set keep")
        _ = self._loaded

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        """The entities in each document."""
        offsets = np.concatenate([[0], np.cumsum([len(document.tokens) for document in documents])]).astype(np.int64)
        rows = self._probabilities([token for document in documents for token in document.tokens], offsets)
        return [self._votes(rows[first:last]) for first, last in zip(offsets[:-1], offsets[1:], strict=True)]

    def _probabilities(self, words: list[str], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of shape [words, labels]."""
        from tagweave.encoder.classifier import all_word_logits, softmax

        encoder, model = self._loaded
        logits = all_word_logits(
            encoder,
            model,
            words,
            offsets,
            window=self.window,
            overlap=self.overlap,
            number_format=self.precision,
        )
        return softmax(logits)

    def _votes(self, rows: NDArray[np.float32]) -> list[Span]:
        spans = spans_from_parsed([self._tags[number] for number in rows.argmax(axis=1)])
        return [
            Span(start, end, self._names[name], self._score(rows[start:end], name) if self.scores else None)
            for start, end, name, _ in spans
            if name in self._names
        ]

    def _score(self, rows: NDArray[np.float32], name: str) -> float:
        columns = [column for column, tag in enumerate(self._tags) if tag[1] == name]
        return float(np.clip(rows[:, columns].sum(axis=1).mean(), 0, 1))
