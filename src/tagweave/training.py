"""One training loop for all models with gradients: a generator of steps.

It decides nothing about stopping, saving or printing; whoever consumes the steps does. All chance comes from the seed
and the number of the step, never from a state that other code could disturb, so a loop that is saved and restored goes
on exactly as if it had not stopped.

Several processes can train one model (see `tagweave.team`): each takes a share of every batch, and the step is on the
sum of their losses over the sum of their weights. So a step is that of one process, whatever the shares hold; they may
be unequal, or empty. Dropout draws other numbers in each process.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tagweave.errors import StorageError, TrainingError
from tagweave.storage import as_saved, load_folder, save_folder
from tagweave.team import ALONE, Parcel, team

Item = TypeVar("Item")

KIND = "training-state"


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How a model is trained."""

    epochs: int = 1
    """Passes over the data."""
    learning_rate: float = 1e-3
    """Highest learning rate."""
    warmup: float = 0.1
    """Share of the training in which the rate rises from zero."""
    decay: Literal["linear", "constant"] = "linear"
    """Whether the rate then falls to zero or stays."""
    weight_decay: float = 0.01
    """Decay of weight matrices (AdamW); biases and norms are left alone."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    whole_batch: bool = False
    """Sum the gradients of all batches of an epoch and take one step an epoch."""
    seed: int = 0
    """For dropout and everything else that is drawn."""
    rate_factors: Mapping[str, float] = field(default_factory=dict)
    """By which factor the parameters whose names start so learn faster."""


class Step(NamedTuple):
    """One step of training: a batch, or a whole epoch where gradients are summed."""

    epoch: int
    step: int
    loss: float
    """Mean over what the batch weighs; 0 where there is nothing to learn from."""
    weight: float
    """What the batch weighs: the number of words, say."""
    learning_rate: float
    gradient_norm: float
    epoch_ends: bool
    """Whether it is the last of its epoch."""


class TrainingLoop(Generic[Item]):
    """Trains a model batch by batch with AdamW.

    Args:
        model: what is trained; parameters that need no gradient are left alone.
        settings: how.
        batches: gives the batches of an epoch, the same ones each time it is asked for that epoch.
        loss: gives the summed loss of a batch and what it weighs; the step is on their quotient. A batch of weight 0
            changes nothing.
        describe: names what is in a batch, for errors.
        companion: a model that is not trained here, but saved and restored with the state.
        share: cuts the share of a process out of a batch, given its number and how many there are. With it the
            processes of `tagweave.team.team()` train together; without it the loop is that of one process.

    >>> model = nn.Linear(1, 1)
    >>> data = torch.tensor([[1.0], [2.0]])
    >>> def squares(row):
    ...     return (model(data[row]) - 3 * data[row]).square().sum(), 1.0
    >>> loop = TrainingLoop(model, LoopSettings(epochs=50, learning_rate=0.1), lambda epoch: [0, 1], squares)
    >>> losses = [step.loss for step in loop]
    >>> len(losses), losses[-1] < losses[0]
    (100, True)
    """

    def __init__(
        self,
        model: nn.Module,
        settings: LoopSettings,
        batches: Callable[[int], Sequence[Item]],
        loss: Callable[[Item], tuple[Tensor, float]],
        describe: Callable[[Item], str] = repr,
        companion: nn.Module | None = None,
        share: Callable[[Item, int, int], Item] | None = None,
    ) -> None:
        self.model, self._companion = model, companion
        self.settings = settings
        self.epoch = 0
        """The epoch of the next step."""
        self.batch = 0
        """The batch of the next step within its epoch."""
        self.step = 0
        """Steps so far."""
        self._batches, self._loss, self._describe, self._share = batches, loss, describe, share
        self._team = ALONE if share is None else team()
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._optimizer = torch.optim.AdamW(self._groups(), lr=settings.learning_rate, fused=bool(self._parameters))

    def _groups(self) -> list[dict[str, Any]]:
        """Parameters by how fast they learn and decay."""
        groups: dict[tuple[float, float], list[nn.Parameter]] = {(1.0, self.settings.weight_decay): []}
        for name, parameter in self._parameters.items():
            factors = (factor for prefix, factor in self.settings.rate_factors.items() if name.startswith(prefix))
            decay = self.settings.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((next(factors, 1.0), decay), []).append(parameter)
        return [
            {"params": parameters, "factor": factor, "weight_decay": decay}
            for (factor, decay), parameters in groups.items()
        ]

    def __iter__(self) -> Iterator[Step]:
        """The steps that are left; the model has taken a step when it is yielded, and `save` then keeps it."""
        while self.epoch < self.settings.epochs:
            batches = self._batches(self.epoch)
            self._team.level(self._weights().values())
            if self.settings.whole_batch:
                yield self._advance(self._whole_step(batches), ends=True)
                continue
            if not batches:
                self.epoch += 1
            for index in range(self.batch, len(batches)):
                step = self._single_step(batches[index], (index + 0.5) / len(batches))
                yield self._advance(step, ends=index + 1 == len(batches))

    def _advance(self, step: Step, *, ends: bool) -> Step:
        self.step += 1
        self.batch = 0 if ends else self.batch + 1
        self.epoch += ends
        return step._replace(epoch_ends=ends)

    def _single_step(self, batch: Item, part: float) -> Step:
        loss, weight = self._backward(batch, mean=True)
        return self._update(loss, weight, part, lambda: self._describe(batch))

    def _whole_step(self, batches: Sequence[Item]) -> Step:
        total, weight = 0.0, 0.0
        for index, batch in enumerate(batches):
            loss, batch_weight = self._backward(batch, mean=False, draw=index)
            total, weight = total + loss, weight + batch_weight
        for parameter in self._parameters.values():
            if parameter.grad is not None:
                parameter.grad /= weight
        return self._update(total / weight if weight > 0 else 0.0, weight, 0.5, lambda: "the whole corpus")

    def _backward(self, batch: Item, *, mean: bool, draw: int = 0) -> tuple[float, float]:
        """Adds the gradient of this process's share of a batch; returns loss (mean or sum) and weight of the batch."""
        self.model.train()
        share = batch if self._share is None else self._share(batch, self._team.rank, self._team.size)
        own = (self._team.rank,) if self._team.rank else ()
        with seeded(self.settings.seed, self.step, draw, *own):
            loss, own_weight = self._loss(share)
            total, weight = self._team.add([float(loss.detach()) if own_weight > 0 else 0.0, own_weight])
            if weight <= 0:
                return 0.0, 0.0
            divisor = weight if mean else 1.0
            if not np.isfinite(total):
                raise TrainingError(self._not_finite("loss", total / divisor, self._describe(batch)))
            if own_weight > 0:
                (loss / divisor).backward()  # type: ignore[no-untyped-call, unused-ignore]
        return total / divisor, weight

    def _update(self, loss: float, weight: float, part: float, describe: Callable[[], str]) -> Step:
        rate = self.settings.learning_rate * self._rate_factor((self.epoch + part) / self.settings.epochs)
        norm = 0.0
        if weight > 0:
            self._team.add_gradients(list(self._parameters.values()))
            norm = float(nn.utils.clip_grad_norm_(self._parameters.values(), self.settings.clip))
            if not np.isfinite(norm):
                raise TrainingError(self._not_finite("gradient", norm, describe()))
            for group in self._optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            self._optimizer.step()
        self._optimizer.zero_grad()
        return Step(self.epoch, self.step, loss, weight, rate, norm, epoch_ends=False)

    def _rate_factor(self, progress: float) -> float:
        warmup = self.settings.warmup
        if progress < warmup:
            return progress / warmup
        return 1.0 if self.settings.decay == "constant" else (1 - progress) / (1 - warmup)

    def _not_finite(self, what: str, value: float, batch: str) -> str:
        return (
            f"the {what} is {value} in epoch {self.epoch + 1}, step {self.step + 1}, in the batch of {batch}. "
            "Look at these documents, or take a smaller learning rate"
        )

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> None:
        """Write weights (also of the companion), the optimiser's state and the position to a folder, in one step.

        Of several processes the first one writes, and the others wait for it.

        Args:
            folder: where; an older state in it is replaced.
            notes: anything that JSON can hold, given back by `restore`.
        """
        position = {"epoch": self.epoch, "batch": self.batch, "step": self.step, "notes": dict(notes or {})}

        def write() -> None:
            arrays = {name: _array(value) for name, value in self._weights().items()}
            for name, parameter in self._parameters.items():
                for key, value in self._optimizer.state.get(parameter, {}).items():
                    arrays[f"optimizer.{key}.{name}"] = _array(value)
            save_folder(folder, KIND, position, arrays)

        self._team.on_first(write)

    def restore(self, folder: Path) -> dict[str, Any]:
        """Take up what `save` wrote; the next step is the one that would have come.

        Of several processes the first one reads, and gives the others what it found.

        Returns:
            The notes that were saved.

        Raises:
            StorageError: the folder is incomplete, changed, or of another model.
        """
        config, arrays = self._team.from_first(lambda: Parcel(*load_folder(folder, KIND)))
        weights = {name: value for name, value in arrays.items() if not name.startswith("optimizer.")}
        expected = self._weights()
        if {name: tuple(w.shape) for name, w in expected.items()} != {name: w.shape for name, w in weights.items()}:
            raise StorageError(f"{folder} holds the state of another model: choose another folder or start afresh")
        with torch.no_grad():
            for name, value in weights.items():
                expected[name].copy_(torch.from_numpy(value))
        for name, parameter in self._parameters.items():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if f"optimizer.{key}.{name}" in arrays:
                    state = torch.from_numpy(arrays[f"optimizer.{key}.{name}"])
                    self._optimizer.state[parameter][key] = state.to(parameter.device)
        with as_saved(folder):
            self.epoch, self.batch, self.step = (_count(config[name]) for name in ("epoch", "batch", "step"))
            return dict(config["notes"].items())

    def _weights(self) -> dict[str, Tensor]:
        """All that is saved of the models."""
        weights = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if self._companion is not None:
            weights |= {f"companion.{name}": value for name, value in self._companion.state_dict().items()}
        return weights


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no number of steps")
    return value


def _array(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array


@contextmanager
def seeded(*numbers: int) -> Iterator[None]:
    """Inside the block, torch draws from a stream of its own that depends on the numbers only.

    >>> with seeded(0, 7):
    ...     first = torch.rand(1)
    >>> with seeded(0, 7):
    ...     bool(first == torch.rand(1))
    True
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    number = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
    with torch.random.fork_rng(devices):
        # torch.manual_seed also notes the seed for devices that are not there, with a look at the stack for each.
        torch.default_generator.manual_seed(number)
        if devices:
            torch.cuda.manual_seed(number)
        yield
