"""`LabelModel`: the contract of everything that turns the votes of sources into labels."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.annotations import Annotations
from tagweave.config import create
from tagweave.corpus import Column, Corpus
from tagweave.errors import DataError, NotFittedError, StorageError, TagweaveWarning, UsageError
from tagweave.evaluation import evaluate
from tagweave.label_models.choosing import Group, Values, choose
from tagweave.label_models.restoring import Axis, check_arrays, check_config, rates_in, shares_in, silence_in
from tagweave.labels import LabelSet, StateSpace
from tagweave.observations import Probabilities, Silence
from tagweave.parts import each, first, mapped
from tagweave.progress import say
from tagweave.report import Table
from tagweave.soft_labels import SoftLabels
from tagweave.storage import as_saved, load_folder, names_in, records_in, save_folder, types_in
from tagweave.stored import StoredCorpus, parts_of
from tagweave.stored.spread import SpreadCorpus

_SILENCES: tuple[Silence, ...] = ("token", "never")
"""Meanings of silence among which dev chooses; the first one without dev."""

_TRUST = (0.25, 0.5, 0.75, 1.0)
"""Values of `trust` among which dev chooses."""

_BATCH_TOKENS = 200_000
"""Most tokens that are inferred at once."""


@dataclass(kw_only=True)
class LabelModel(ABC):
    """A denoiser: reads what the sources of a corpus say and gives the probability of every label on every token.

    Settings are the fields of the dataclass; what is learned ends in an underscore. Gold never reaches `fit`.

    Attributes:
        state_space: hidden labels of the model, `io` or `bio`. Soft labels are in BIO either way.
        silence: what the silence of a source means, see `tagweave.observations.Silence`. None is `token`, or
            what a model has as `default_silence`; with dev, a model that learns what silence is worth chooses between
            `token` and `never` there.
        probabilities: how a source is read that gives a probability for every label, as a tagger does, see
            `tagweave.observations.Probabilities`.
        trust: from 0 to 1, how far such a source is taken at its word: its share in what the model expects before any
            vote (`ConfusionModel`), or the weight of what it says in comparison with the frequency of each label
            (`SoftLabels.tempered`). A tagger that learned from the other sources repeats them, so it is no independent
            witness; and most are surer than they should be. With dev it is chosen there, and this wins ties.
        seed: for models with chance in them; the same seed gives the same result on one machine.
        rates_: how often each label occurs in what each such source says, learned by `fit`.
        silence_: the meaning of silence that was given or chosen.
        chosen_: settings that inference applies to what was learned, by name, as they were given or chosen on dev.
        types_: entity types, learned by `fit`.
        sources_: sources, learned by `fit`; other sources of a corpus are left aside later.
        links_: linking rules of the corpus of the fit, for models that read them.
        history_: one record a step of fitting, e.g. `{"iteration": 3, "log_likelihood": -1203.5}`.
    """

    name: ClassVar[str]
    """What the command line calls it."""
    uses_gold: ClassVar[bool] = False
    """Whether inference reads the corpus's gold (the consensus oracles)."""
    adds_up: ClassVar[bool] = False
    """Whether what is learned adds up over parts of a corpus, so that it can be larger than memory."""
    tempers: ClassVar[bool] = True
    """Whether sources of probabilities come to the model tempered by `trust`; else it applies `trust` itself."""
    applied: ClassVar[tuple[str, ...]] = ("trust",)
    """Names of settings that inference applies to what was learned, so that dev can choose them without a new fit."""
    default_silence: ClassVar[Silence] = "token"
    """What silence means where it is not set and there is no dev to choose by."""
    weighs_silence: ClassVar[bool] = False
    """Whether it learns what the silence of each source is worth, so that dev can say if silence is a vote at all."""
    _whole: ClassVar[tuple[str, ...]] = ()
    """Names of those `parameters` that are whole numbers."""

    state_space: StateSpace = "io"
    silence: Silence | None = None
    probabilities: Probabilities = "posteriors"
    trust: float = 0.5
    seed: int = 0
    types_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    sources_: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    links_: tuple[str, ...] = field(default=(), init=False, repr=False)
    silence_: Silence = field(default="token", init=False, repr=False)
    rates_: dict[str, list[float]] = field(default_factory=dict, init=False, repr=False)
    chosen_: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    history_: list[dict[str, float]] = field(default_factory=list, init=False, repr=False)

    @property
    def labels(self) -> LabelSet:
        """The hidden labels of a fitted model."""
        return LabelSet(self._fitted()[0], self.state_space)

    def fit(self, corpus: Corpus | StoredCorpus | SpreadCorpus, dev: Corpus | None = None) -> Self:
        """Learn from the votes of a corpus.

        Args:
            corpus: documents with votes; its gold, if it has one, is not looked at. One that lies in parts on disk,
                or in other processes, teaches the same as it would in memory.
            dev: documents with votes and gold, for models that stop early; gold-free without it.

        Returns:
            The model itself.

        Raises:
            DataError: the corpus has no source, or a group that counts as a whole is cut into parts.
            UsageError: a setting of `applied` is no share, or the corpus has several parts and what this model learns
                does not add up over parts.
        """
        for name, value in self._given().items():
            if not 0 <= value <= 1:
                raise UsageError(f"{name} is {value:g}: it must be from 0 to 1")
        if not corpus.sources:
            raise DataError("the corpus has no source, so there is nothing to learn from")
        if not isinstance(corpus, Corpus):
            self._check_parts(corpus)
        parts = parts_of(corpus)
        _warn_of_types_without_votes(corpus.types, parts)
        return self.fit_parts(mapped(_without_gold, parts), dev)

    def fit_parts(self, parts: Iterable[Corpus], dev: Corpus | None = None) -> Self:
        """What `fit` does, without its checks.

        Args:
            parts: of a corpus, that can be gone through again; with the same types and sources, and without gold.
            dev: see `fit`.
        """
        self.types_, self.sources_, self.links_ = first(_names, parts)
        rates = _rates(parts) if self.probabilities == "posteriors" else {}
        self.rates_ = rates if self.tempers else {}
        choices = list(self._choices(bool(rates)))
        silences = [self.silence or self.default_silence]
        if dev is not None and self.silence is None and self.weighs_silence:
            silences = list(_SILENCES)
        best, learned = -1.0, dict[str, Any]()
        for silence in silences:
            self.silence_, self.history_ = silence, []
            self.chosen_ = self._given()
            tempered = mapped(partial(_tempered, self.trust, self.rates_), parts) if self.rates_ else parts
            self._fit(tempered, None if dev is None else self._known(dev))
            if dev is None or (len(silences) == 1 and not choices):
                return self
            chosen, f1 = choose(self.chosen_, choices, self._scorer(dev))
            self.chosen_ = dict(chosen)
            if f1 > best:
                best, learned = f1, vars(self).copy()
        vars(self).update(learned)
        found = [
            ("silence", self.silence_),
            *((name, f"{self.chosen_[name]:g}") for group in choices for name in group),
        ]
        say(f"{self.name}: f1 {best:.4g} on dev with {', '.join(f'{name} {value}' for name, value in found)}")
        return self

    def _given(self) -> dict[str, float]:
        """The settings of `applied`; one that is None has nothing to apply."""
        return {name: float(value) for name in self.applied if (value := getattr(self, name)) is not None}

    def _choices(self, judged: bool) -> Iterator[Group]:
        """Values of `applied` among which dev chooses, see `tagweave.label_models.choosing.choose`.

        Args:
            judged: whether some source is taken at its word.
        """
        if judged:
            yield {"trust": _TRUST}

    def _scorer(self, dev: Corpus) -> Callable[[Values], float]:
        """What takes values of `applied` and gives F1 on dev with them; what does not change is held ready."""
        known = self._known(dev)
        features = self._features(known)

        def f1(values: Values) -> float:
            self.chosen_ = dict(values)
            entities = self._infer(_tempered(self.chosen_["trust"], self.rates_, known), features)[1]
            return evaluate(dev, known.with_entities(entities), bootstrap=0).f1

        return f1

    @abstractmethod
    def _fit(self, parts: Iterable[Corpus], dev: Corpus | None) -> None:
        """Learn from the parts of a corpus, which have no gold; there is one only, unless the model `adds_up`."""

    def _check_parts(self, corpus: StoredCorpus | SpreadCorpus) -> None:
        if not self.adds_up and (len(corpus) > 1 or isinstance(corpus, SpreadCorpus)):
            from tagweave.label_models import LABEL_MODELS

            able = ", ".join(name for name, model in LABEL_MODELS.items() if model.adds_up)
            raise UsageError(
                f"the {self.name} model learns from all documents at once, but the corpus has {len(corpus)} parts. "
                f"Read it whole, or take one of {able}"
            )
        self.check_groups(corpus)

    def check_groups(self, corpus: StoredCorpus | SpreadCorpus) -> None:
        """Look whether the parts of a corpus can be labelled one by one.

        Raises:
            DataError: a group that counts as a whole for this model is cut into parts.
        """
        if (self.silence or "").startswith("document") and corpus.split_group is not None:
            raise DataError(
                f"silence={self.silence!r} looks at whole groups, but the documents of group {corpus.split_group!r} "
                "are not all in one part of the corpus: put documents of a group one after the other"
            )

    def predict_proba(self, corpus: Corpus) -> SoftLabels:
        """Label probabilities of a corpus whose sources the model was fitted on."""
        return self._infer_in_batches(corpus)[0]

    def predict(self, corpus: Corpus) -> Corpus:
        """The corpus with the model's entities (in place of any that it has) and soft labels."""
        soft_labels, entities = self._infer_in_batches(corpus)
        return corpus.with_types(soft_labels.types).with_entities(soft_labels.scored(entities), soft_labels)

    def predict_parts(self, corpus: StoredCorpus) -> Iterator[Corpus]:
        """What `predict` gives, part by part, for a corpus that lies on disk.

        Raises:
            DataError: a group that counts as a whole is cut into parts.
            UsageError: the corpus lacks a source of the fit.
        """
        self.check_groups(corpus)
        return map(self.predict, corpus)

    def _infer_in_batches(self, corpus: Corpus) -> tuple[SoftLabels, Annotations]:
        known = self._known(corpus)
        known = _tempered(self.chosen_["trust"], self.rates_, known)
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

    def as_chosen(self) -> Self:
        """The same settings, with what dev chose of votes and silence in their place; not fitted."""
        weight: dict[str, Any] = {name: value for name, value in self.chosen_.items() if name == "weight"}
        return replace(self, silence=self.silence_, **weight)

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Learned arrays by name; empty for models that only count."""
        return {}

    def _restore(self, parameters: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Take up what `parameters` gave; the arrays have the names and shapes that `_shapes` says."""

    def _shapes(self) -> dict[str, tuple[Axis, ...]]:
        """The axes of all arrays that `parameters` of a fitted model gives."""
        return {}

    def _lengths(self) -> dict[str, int]:
        types = len(self._fitted()[0])
        return {
            "sources": len(self._fitted()[1]),
            "links": len(self.links_),
            "types": types,
            "classes": types + 1,
            "votes": types + 2,
            "labels": len(self.labels),
        }

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
            "silence": self.silence_,
            "rates": self.rates_,
            "chosen": self.chosen_,
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
        with as_saved(folder):
            name = config["label_model"]
            if name not in LABEL_MODELS:
                raise StorageError(f"{folder} holds a {name!r} model, which this version does not know")
            check_config(config)
            model = create(LABEL_MODELS[name], config["settings"])
            model.types_, model.sources_ = types_in(config), names_in(config, "sources")
            model.links_, model.history_ = names_in(config, "links"), records_in(config, "history")
            model.silence_ = silence_in(config)
            model.rates_ = rates_in(config, model.types_)
            model.chosen_ = {**model._given(), **shares_in(config, model.applied)}
            check_arrays(parameters, model._shapes(), model._lengths(), model._whole)
            model._restore(parameters)
        return model


def not_fitted(name: str) -> NotFittedError:
    """The error of a label model that is asked too early."""
    return NotFittedError(f"this {name} model has not been fitted: call fit(corpus) or load(folder) first")


def _without_gold(part: Corpus) -> Corpus:
    return part.with_entities(None)


def _rates(parts: Iterable[Corpus]) -> dict[str, list[float]]:
    """How often each label occurs in what each source says that gives probabilities; none of them are 0."""
    total: dict[str, NDArray[np.float64]] = {}
    for found in each(_sums, parts):
        for name, sums in found.items():
            total[name] = total.get(name, 0.0) + sums
    return {name: ((sums + 1) / (sums + 1).sum()).tolist() for name, sums in total.items()}


def _sums(part: Corpus) -> dict[str, NDArray[np.float64]]:
    return {
        name: column.probabilities.sum(axis=0, dtype=np.float64)
        for name, column in part.sources.items()
        if isinstance(column, SoftLabels)
    }


def _tempered(trust: float, rates: Mapping[str, Sequence[float]], part: Corpus) -> Corpus:
    """A corpus whose sources of probabilities are taken at their word only so far."""
    for name, shares in rates.items():
        column = part.sources[name]
        if isinstance(column, SoftLabels):
            part = part.with_source(name, column.tempered(trust, shares))
    return part


def _warn_of_types_without_votes(types: tuple[str, ...], parts: Iterable[Corpus]) -> None:
    """Warn of types that no source ever votes for: no label model can find them."""
    voted: set[str] = set()
    for found in each(_voted_in, parts):
        voted |= found
        if voted.issuperset(types):
            break
    missing = [name for name in types if name not in voted]
    if missing or not types:
        warnings.warn(
            f"no source votes for {', '.join(missing) or 'any entity'}: documents will come out without "
            f"{'any entity' if len(missing) == len(types) else 'entities of that kind'}",
            TagweaveWarning,
            stacklevel=3,
        )


def _voted_in(part: Corpus) -> set[str]:
    """Types that some source votes for, or that belong to a coarse type which it votes for."""
    voted = {name for column in part.sources.values() for name in _voted_types(column, part)}
    return voted | {member for name in voted & set(part.coarse) for member in part.coarse[name]}


def _names(part: Corpus) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names of types, sources and linking rules."""
    return part.types, tuple(part.sources), tuple(part.links)


def _voted_types(column: Column, corpus: Corpus) -> set[str]:
    if isinstance(column, SoftLabels):
        return set(column.types)
    return {corpus.vocabulary[number] for number in np.unique(column.type_ids)}
