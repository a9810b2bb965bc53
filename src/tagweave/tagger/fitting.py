"""How a tagger is trained: batches of windows, the loss, a record of each epoch, the best epoch, resuming."""

import copy
import hashlib
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tagweave.annotations import Annotations
from tagweave.corpus import Corpus
from tagweave.encoder import Encoder, device, precision
from tagweave.encoder.frozen import Kept, KeptStates, frozen_layers, layers_of, lower_parameters
from tagweave.encoder.windows import batches, shares
from tagweave.errors import DataError, StorageError, TagweaveWarning, UsageError, unknown_name
from tagweave.evaluation import evaluate
from tagweave.progress import say, track
from tagweave.storage import as_saved, check_no_links, records_in, verify
from tagweave.tagger.crf import NAME as CRF_NAME
from tagweave.tagger.crf import RATE_FACTOR as CRF_RATE_FACTOR
from tagweave.tagger.crf import SoftSequences
from tagweave.tagger.model import Epoch, Output, Tagger
from tagweave.tagger.states import BEST, LAST
from tagweave.tagger.targets import Objective, digest
from tagweave.team import Parcel, Team, team
from tagweave.training import LoopSettings, TrainingLoop

Result = TypeVar("Result")

_BYTES_PER_PARAMETER = 32
"""Space for the best and the last state while one replaces another: 2 x (1 + 3) float32 numbers a parameter."""
_BYTES_PER_COMPANION = 8
"""The same of a model that is only kept: in the last state, and in the one that replaces it."""
_NARROW = 384
_RATE_NARROW, _RATE_WIDE = 4e-4, 1.5e-4


def highest_rate(tagger: Tagger) -> float:
    """The highest learning rate of a tagger that has its model."""
    if tagger.learning_rate is not None:
        return tagger.learning_rate
    return _RATE_NARROW if tagger.model_.config.hidden_size <= _NARROW else _RATE_WIDE


class Fitting:
    """One training of a tagger; it ends before its last epoch if that many steps have been taken."""

    def __init__(
        self,
        tagger: Tagger,
        corpus: Corpus,
        dev: Corpus | None,
        start_from: Tagger | Path | None,
        steps: int | None = None,
    ) -> None:
        if dev is not None and dev.entities is None:
            raise DataError("the dev documents have no gold entities, so no epoch can be chosen by them")
        self._tagger, self._dev, self._steps = tagger, dev, steps
        start = Tagger.load(start_from) if isinstance(start_from, str | Path) else start_from
        tagger.types_, tagger.history_ = corpus.types if start is None else start.labels.types, []
        self._team = team()
        self._corpus = _level(corpus, self._team).with_types(tagger.types_)
        self._objective = tagger._objective(self._corpus)
        _check_output(tagger, self._objective)
        if start is None:
            tagger.encoder_ = Encoder.load(tagger.encoder)
            tagger.model_ = tagger.encoder_.classifier(tagger._outputs(), tagger.seed, tagger.dropout)
            tagger._extend_model()
            tagger.model_.to(device())
        else:
            _check_start(tagger, start)
            tagger.encoder_, tagger.model_ = start.encoder_, copy.deepcopy(start.model_).requires_grad_(True)
        self._states: KeptStates | None = None
        _freeze(tagger.model_, tagger.frozen_layers)
        self._pieces = tagger.encoder_.pieces(corpus.tokens)
        self._objective.known &= ~self._pieces.vanished
        self._windows = tagger._windows(self._pieces, corpus.offsets)
        learnable = self._any(self._objective.known)
        self._learnable = learnable if learnable.any() else ~learnable
        self._with_entities = self._any(self._objective.known & self._objective.inside)
        self._loop = TrainingLoop(
            tagger.model_,
            self._loop_settings(),
            self._batches,
            self._loss,
            self._describe,
            tagger._companion(),
            self._share,
        )
        self._best: dict[str, Tensor] | None = None

    def _loop_settings(self) -> LoopSettings:
        tagger = self._tagger
        return LoopSettings(
            epochs=tagger.epochs,
            learning_rate=highest_rate(tagger),
            warmup=tagger.warmup,
            weight_decay=tagger.weight_decay,
            clip=tagger.clip,
            whole_batch=tagger.whole_batch,
            seed=tagger.seed,
            rate_factors={CRF_NAME: CRF_RATE_FACTOR},
        )

    def _batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of an epoch: numbers of windows."""
        tagger = self._tagger
        chance = np.random.default_rng([tagger.seed, epoch])
        drawn = self._with_entities | (chance.random(len(self._windows)) < tagger.empty_share)
        chosen = np.flatnonzero(self._learnable & (drawn if (self._learnable & drawn).any() else True))
        lengths = self._windows.lengths(self._pieces.offsets)[chosen] + tagger.encoder_.added
        return [chosen[batch] for batch in batches(lengths, tagger.batch_pieces, tagger.batch_windows, chance)]

    def _any(self, words: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which windows hold a marked word of their own."""
        before = np.concatenate([[0], np.cumsum(words)])
        found: NDArray[np.bool_] = before[self._windows.keep_last] > before[self._windows.keep_first]
        return found

    def _loss(self, chosen: NDArray[np.int64]) -> tuple[Tensor, float]:
        """Summed loss and weight over the words of some windows; only known words with pieces of their own count."""
        if not len(chosen):  # the share of a process may be empty
            return self._objective.loss(chosen, chosen, torch.zeros(0, len(self._tagger._outputs()), device=device()))
        words, outputs = self._tagger._logits(self._pieces, self._windows, chosen, self._states)
        return self._objective.loss(chosen, words, outputs)

    def _share(self, chosen: NDArray[np.int64], rank: int, size: int) -> NDArray[np.int64]:
        """The windows of a batch that one of several processes reads."""
        first, last = self._windows.first[chosen], self._windows.last[chosen]
        lengths = self._pieces.offsets[last] - self._pieces.offsets[first] + self._tagger.encoder_.added
        documents = np.searchsorted(self._corpus.offsets, first, side="right")
        mine: NDArray[np.int64] = chosen[shares(chosen, documents, lengths, size) == rank]
        return mine

    def _describe(self, chosen: NDArray[np.int64]) -> str:
        """The ids of the documents in a batch."""
        documents = np.searchsorted(self._corpus.offsets, self._windows.first[chosen], side="right") - 1
        return ", ".join(repr(self._corpus.ids[int(index)].as_py()) for index in np.unique(documents))

    def run(self, folder: Path | None, resume: bool) -> Iterator[Epoch]:
        """Train epoch by epoch; at the end the tagger has the best weights."""
        self._team.check_same("documents or settings", self._fingerprint())
        self._team.check_same("number formats (--set precision=float32 makes them one)", self._number_format)
        say(f"training {self._how()}")
        with self._keeping():
            yield from self._run(folder, resume)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Inside the block, what the frozen layers say is kept: where the tagger was told to, or for this training."""
        tagger, given = self._tagger, self._tagger.kept_
        with Kept() as own:
            tagger.keep(given if given is not None or tagger.epochs == 1 else own)
            self._states = tagger._states(self._pieces, self._windows)
            try:
                yield
            finally:
                if given is None:
                    tagger.keep(None)

    def _run(self, folder: Path | None, resume: bool) -> Iterator[Epoch]:
        if folder is not None and self._team.from_first(lambda: self._prepare(folder)).facts["goes_on"] and resume:
            self._restore(folder)
        if not self._stops():
            for epoch in self._epochs():
                self._tagger.history_.append(epoch._asdict())
                self._keep(epoch, folder)
                yield epoch
                if self._stops():
                    break
        self._finish(folder)

    def _how(self) -> str:
        """By what the training is done, in words."""
        threads, size = torch.get_num_threads(), self._team.size
        together = f"in {size} processes, each " if size > 1 else ""
        return f"{together}with {threads} thread{'s' * (threads > 1)} on {device().type}, in {self._number_format}"

    @property
    def _number_format(self) -> str:
        return str(precision(self._tagger.precision, device())).removeprefix("torch.")

    def _epochs(self) -> Iterator[Epoch]:
        loss = weight = 0.0
        steps = 1 if self._tagger.whole_batch else len(self._batches(0))
        for step in track(self._loop, "training", self._tagger.epochs * steps, self._loop.step):
            loss, weight = loss + step.loss * step.weight, weight + step.weight
            self._objective.after(self._loop.step)
            if step.epoch_ends or self._loop.step == self._steps:
                epoch = Epoch(step.epoch + 1, loss / weight if weight else 0.0, step.learning_rate)
                yield epoch if self._dev is None else self._scored(epoch, self._dev)
                loss = weight = 0.0

    def _scored(self, epoch: Epoch, dev: Corpus) -> Epoch:
        scores = evaluate(dev, self._predict(dev.with_entities(None)), bootstrap=0)
        best = all(scores.f1 > earlier["f1"] for earlier in self._tagger.history_)
        entities, share = scores.micro.predicted, scores.coverage.tokens
        say(f"epoch {epoch.epoch}: loss {epoch.loss:.4f}, dev F1 {100 * scores.f1:.2f}, {entities} entities predicted")
        return epoch._replace(f1=scores.f1, entities=entities, entity_share=share, best=best)

    def _predict(self, corpus: Corpus) -> Corpus:
        """The corpus with the tagger's entities; each process looks at a part of the documents."""
        found = self._tagger.predict(corpus.subset(np.arange(*self._team.part(corpus.offsets))))
        columns = {name: array for name, array in vars(found.entities).items() if array is not None}
        parts = [Annotations(**parcel.arrays) for parcel in self._team.gather(Parcel({}, columns))]
        return corpus.with_types(found.types).with_entities(Annotations.concatenate(parts))

    def _keep(self, epoch: Epoch, folder: Path | None) -> None:
        if folder is not None:
            if epoch.best:
                self._team.on_first(lambda: self._tagger.save(folder / BEST))
            self._loop.save(folder / LAST, {"fingerprint": self._fingerprint(), "history": self._tagger.history_})
        elif epoch.best and self._dev is not None:
            self._best = {name: value.detach().clone() for name, value in self._tagger.model_.state_dict().items()}

    def _stops(self) -> bool:
        """Whether all steps have been taken, or the last epochs brought nothing."""
        if self._steps is not None and self._loop.step >= self._steps:
            return True
        patience, history = self._tagger.patience, self._tagger.history_
        if self._dev is None or patience is None or not history:
            return False
        return len(history) - max(index for index, row in enumerate(history) if row["best"]) > patience

    def _finish(self, folder: Path | None) -> None:
        """Takes up the best weights."""
        tagger = self._tagger
        if self._best is not None:
            tagger.model_.load_state_dict(self._best)
        elif folder is not None and self._dev is not None:
            if self._team.first and (folder / BEST).exists():
                tagger.model_.load_state_dict(Tagger.load(folder / BEST).model_.state_dict())
            self._team.level(tagger.model_.state_dict().values())
        tagger.model_.eval()
        best = next((row for row in reversed(tagger.history_) if row["best"]), None)
        if best is None or best["entities"] is None:
            return
        if best["entities"] == 0:
            warnings.warn(
                "the tagger predicts no entities (0 entities) on the dev documents", TagweaveWarning, stacklevel=3
            )
        elif best["entity_share"] > 0.5:
            message = f"the tagger takes {100 * best['entity_share']:.0f} % of the dev tokens for entities"
            warnings.warn(message, TagweaveWarning, stacklevel=3)

    def _prepare(self, folder: Path) -> Parcel:
        """Checks the space in the folder and whether it holds a state."""
        folder.mkdir(parents=True, exist_ok=True)
        check_no_links(folder)
        needed = _BYTES_PER_PARAMETER * sum(p.numel() for p in self._tagger.model_.parameters())
        if (companion := self._tagger._companion()) is not None:
            needed += _BYTES_PER_COMPANION * sum(p.numel() for p in companion.parameters())
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise StorageError(
                f"training keeps up to {needed / 1e6:.0f} MB in {folder}, but only {free / 1e6:.0f} MB of space are "
                "free: make room or choose another folder"
            )
        return Parcel({"goes_on": (folder / LAST).exists()})

    def _fingerprint(self) -> dict[str, Any]:
        """What must be the same for a training to go on."""
        words = digest(self._pieces.ids, self._corpus.offsets)
        data = hashlib.sha256(words + self._objective.fingerprint()).hexdigest()
        own = {"data": data, "tagger": self._tagger.name, "steps": self._steps}
        settings = self._tagger.settings().items()  # with lists for tuples, as what is saved has them
        return {**own, **{name: list(value) if isinstance(value, tuple) else value for name, value in settings}}

    def _restore(self, folder: Path) -> None:
        notes = _whole(folder, lambda: self._loop.restore(folder / LAST))
        now, then = self._fingerprint(), notes.get("fingerprint")
        if not isinstance(then, dict):
            raise StorageError(f"{folder} does not say of which training it is: choose another folder")
        changed = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
        if changed:
            raise StorageError(
                f"{folder} holds the state of a training with other {', '.join(changed)}: give the same again, or "
                "choose another folder"
            )
        with as_saved(folder):
            self._tagger.history_ = [Epoch(**record)._asdict() for record in records_in(notes, "history")]
        if self._dev is not None and any(row["best"] for row in self._tagger.history_):
            self._team.on_first(lambda: _whole(folder, lambda: verify(folder / BEST)))


def _whole(folder: Path, look: Callable[[], Result]) -> Result:
    """What is found in the folder of a training; where it is damaged, the error says what to do.

    Raises:
        StorageError: it is damaged.
    """
    try:
        return look()
    except StorageError as error:
        raise StorageError(f"{error}. Remove {folder}: this training then starts afresh") from None


def _level(corpus: Corpus, processes: Team) -> Corpus:
    """The corpus with the first process's soft labels; unlike machines compute them with other last digits."""
    soft_labels = corpus.soft_labels
    if soft_labels is None or processes.size == 1:
        return corpus
    rows = processes.from_first(lambda: Parcel({}, {"rows": soft_labels.probabilities})).arrays["rows"]
    return corpus.with_entities(corpus.entities, replace(soft_labels, probabilities=rows))


def _check_output(tagger: Tagger, objective: Objective) -> None:
    if tagger.output not in get_args(Output):
        raise unknown_name("output", tagger.output, get_args(Output))
    if tagger.output == "crf" and not isinstance(objective, SoftSequences):
        raise UsageError(f"a {tagger.name} tagger has no output 'crf': leave the setting out")


def _check_start(tagger: Tagger, start: Tagger) -> None:
    start.check_whole("trained")
    if tagger._outputs() != start._outputs():
        raise UsageError(f"a {tagger.name} tagger cannot start from a {start.name} tagger: their outputs differ")
    if tagger.output != start.output:
        raise UsageError(
            f"a tagger with the output {tagger.output!r} cannot start from one with the output {start.output!r}: give "
            f"the setting output={start.output}"
        )


def _freeze(model: Any, layers: int | None) -> None:  # noqa: ANN401
    """Lets no gradient and no dropout into the embeddings and the lowest layers; None takes half of the layers."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = vars(module).setdefault("full_rate", module.p)
    layers = frozen_layers(model, layers)
    stack = layers_of(model)
    if not layers or stack is None:
        return
    for parameter in lower_parameters(model, layers):
        parameter.requires_grad_(False)
    for part in (*stack[:layers], model.base_model.embeddings):
        for module in part.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
