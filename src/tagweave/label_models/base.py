"""`LabelModel`: the contract of everything that turns the votes of sources into labels."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.config import create
from tagweave.corpus import Column, Corpus
from tagweave.errors import DataError, NotFittedError, StorageError, TagweaveWarning
from tagweave.labels import LabelSet, StateSpace
from tagweave.observations import Silence
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels
from tagweave.storage import load_folder, save_folder

_BATCH_TOKENS = 200_000
"""Most tokens that are inferred at once."""


@dataclass(kw_only=True)
class LabelModel(ABC):
    """A denoiser: reads what the sources of a corpus say and gives the probability of every label on every token.

    Settings are the fields of the dataclass; what is learned ends in an underscore. Gold never reaches `fit`.

    Attributes:
        state_space: hidden labels of the model, `io` or `bio`. Soft labels are in BIO either way.
        silence: what the silence of a source means, see `tagweave.observations.Silence`.
        seed: for models with chance in them; the same seed gives the same result on one machine.
        types_: entity types, learned by `fit`.
        sources_: sources, learned by `fit`; other sources of a corpus are left aside later.
        links_: linking rules of the corpus of the fit, for models that read them.
        history_: one record a step of fitting, e.g. `{"iteration": 3, "log_likelihood": -1203.5}`.
    """

    name: ClassVar[str]
    """What the command line calls it."""
    uses_gold: ClassVar[bool] = False
    """Whether inference reads the corpus's gold (the consensus oracles)."""

    state_space: StateSpace = "io"
    silence: Silence = "token"
    seed: int = 0
    types_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    sources_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    links_: tuple[str, ...] = field(default=(), init=False, repr=False)
    history_: list[dict[str, float]] = field(default_factory=list, init=False, repr=False)

    @property
    def labels(self) -> LabelSet:
        """The hidden labels of a fitted model."""
        return LabelSet(self._fitted()[0], self.state_space)

    def fit(self, corpus: Corpus, dev: Corpus | None = None) -> Self:
        """Learn from the votes of a corpus.

        Args:
            corpus: documents with votes; its gold, if it has one, is not looked at.
            dev: documents with votes and gold, for models that stop early; gold-free without it.

        Returns:
            The model itself.
        """
        if not corpus.sources:
            raise DataError("the corpus has no source, so there is nothing to learn from")
        self.types_, self.sources_, self.links_ = corpus.types, tuple(corpus.sources), tuple(corpus.links)
        self.history_ = []
        _warn_of_types_without_votes(corpus)
        self._fit(corpus.with_entities(None), None if dev is None else self._known(dev))
        return self

    @abstractmethod
    def _fit(self, corpus: Corpus, dev: Corpus | None) -> None:
        """Learn; `corpus` has no gold."""

    def predict_proba(self, corpus: Corpus) -> SoftLabels:
        """Label probabilities of a corpus whose sources the model was fitted on."""
        return self._infer_in_batches(corpus)[0]

    def predict(self, corpus: Corpus) -> Corpus:
        """The corpus with the model's entities (in place of any that it has) and soft labels."""
        soft_labels, entities = self._infer_in_batches(corpus)
        return corpus.with_types(soft_labels.types).with_entities(soft_labels.scored(entities), soft_labels)

    def _infer_in_batches(self, corpus: Corpus) -> tuple[SoftLabels, Annotations]:
        known = self._known(corpus)
        features, done = self._features(known), 0
        probabilities = np.empty((int(known.offsets[-1]), 1 + 2 * len(known.types)), np.float32)
        entities = [Annotations.from_lists([], known.vocabulary)]
        for batch in (known if self.uses_gold else known.with_entities(None)).batches(_BATCH_TOKENS):
            rows = slice(done, done + int(batch.offsets[-1]))
            soft_labels, found = self._infer(batch, None if features is None else features[rows])
            probabilities[rows] = soft_labels.probabilities
            entities.append(found)
            done = rows.stop
        return SoftLabels(known.types, known.offsets, probabilities), Annotations.concatenate(entities)

    def _features(self, corpus: Corpus) -> NDArray[Any] | None:
        """One row a token for models that look at the words, else None."""
        return None

    @abstractmethod
    def _infer(self, corpus: Corpus, features: NDArray[Any] | None) -> tuple[SoftLabels, Annotations]:
        """Soft labels and entities of a corpus that holds just the known types and sources."""

    def _fitted(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.types_ is None or self.sources_ is None:
            raise not_fitted(self.name)
        return self.types_, self.sources_

    def _known(self, corpus: Corpus) -> Corpus:
        """The corpus with the types and sources of the fit, in their order."""
        types, sources = self._fitted()
        return corpus.select_sources(sources).with_types(types)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Learned arrays by name; empty for models that only count."""
        return {}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Take up what `parameters` gave."""

    def tables(self) -> list[Table]:
        """What was learned, as tables with names: confusion of each source, transitions."""
        return []

    def settings(self) -> dict[str, Any]:
        """Settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def save(self, folder: Path) -> None:
        """Write settings and learned values to a folder (JSON and safetensors), in one step."""
        types, sources = self._fitted()
        config = {
            "label_model": self.name,
            "settings": self.settings(),
            "types": types,
            "sources": sources,
            "links": self.links_,
            "history": self.history_,
        }
        save_folder(folder, "label-model", config, self.parameters())

    @staticmethod
    def load(folder: Path) -> "LabelModel":
        """A saved label model of any kind.

        Raises:
            StorageError: the folder is incomplete or changed, or holds something else.
        """
        from tagweave.label_models import LABEL_MODELS

        config, parameters = load_folder(folder, "label-model")
        if config["label_model"] not in LABEL_MODELS:
            raise StorageError(f"{folder} holds a {config['label_model']!r} model, which this version does not know")
        model = create(LABEL_MODELS[config["label_model"]], config["settings"])
        model.types_, model.sources_ = tuple(config["types"]), tuple(config["sources"])
        model.links_, model.history_ = tuple(config.get("links", ())), config["history"]
        model._restore(parameters)
        return model


def not_fitted(name: str) -> NotFittedError:
    """The error of a label model that is asked too early."""
    return NotFittedError(f"this {name} model has not been fitted: call fit(corpus) or load(folder) first")


def _warn_of_types_without_votes(corpus: Corpus) -> None:
    """Warn of types that no source ever votes for: no label model can find them."""
    voted = {name for column in corpus.sources.values() for name in _voted_types(column, corpus)}
    voted |= {member for name in voted & set(corpus.coarse) for member in corpus.coarse[name]}
    missing = [name for name in corpus.types if name not in voted]
    if missing or not corpus.types:
        warnings.warn(
            f"no source votes for {', '.join(missing) or 'any entity'}: documents will come out without "
            f"{'any entity' if len(missing) == len(corpus.types) else 'entities of that kind'}",
            TagweaveWarning,
            stacklevel=3,
        )


def _voted_types(column: Column, corpus: Corpus) -> set[str]:
    if isinstance(column, SoftLabels):
        return set(column.types)
    return {corpus.vocabulary[number] for number in np.unique(column.type_ids)}
