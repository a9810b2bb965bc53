"""The frozen layers of an encoder: computed once for each window, and kept while a training goes on.

Layers that do not learn, and drop nothing out, say the same of a window in every epoch. So a model is cut before its
lowest layer that learns: `lower` gives what goes into that layer, `upper` goes on from there. Both call the model's own
code with some of its layers switched off, so any model with a list of layers can be cut; `Cut.of` tries it.

Windows are computed in batches that depend on nothing but the windows, whatever asks for them first: a training that is
resumed keeps the same numbers, to the last digit.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tagweave.encoder import Encoder, WordPieces, device
from tagweave.encoder.windows import Windows, batches
from tagweave.errors import UsageError
from tagweave.progress import say
from tagweave.storage import cache_folder

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

IN_MEMORY = 2**28
"""Bytes of states that are held in memory; beyond, they lie in a file without a name, in the cache folder."""
_SPARE = 2**30
"""Bytes of free space that are left to others."""
_BATCH_PIECES = 4096
_TOLERANCE = 1e-3


def layers_of(model: Any) -> "nn.ModuleList | None":  # noqa: ANN401
    """The list of an encoder's layers."""
    from torch import nn

    count = model.config.num_hidden_layers
    return next((m for m in model.base_model.modules() if isinstance(m, nn.ModuleList) and len(m) == count), None)


def frozen_layers(model: Any, layers: int | None) -> int:  # noqa: ANN401
    """How many layers of an encoder are frozen; None takes half of them.

    Raises:
        UsageError: the encoder has fewer.
    """
    count: int = model.config.num_hidden_layers
    layers = count // 2 if layers is None else layers
    if layers and (layers > count or layers_of(model) is None):
        raise UsageError(f"frozen_layers is {layers}, but the encoder has {count} layers")
    return layers


@contextmanager
def _acting(layers: "Sequence[nn.Module]", forward: Callable[..., Any]) -> Iterator[None]:
    """Inside the block, layers do something else."""
    for layer in layers:
        layer.forward = forward
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def lower(model: Any, layer: int, inputs: "dict[str, Tensor]") -> "tuple[Tensor, int]":  # noqa: ANN401
    """What goes into a layer, of shape [windows, pieces, width].

    Returns:
        the states, and how many things each layer of this model gives: 0 where it is the states alone, not a tuple.
    """
    layers = list(layers_of(model) or ())
    taken: list[Tensor] = []
    sizes = [0]

    def take(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        taken.append(_states(given, named))
        return _passed(taken[0], sizes[0])

    def measure(module: Any, given: Any, output: Any) -> None:  # noqa: ANN401
        sizes[0] = len(output) if isinstance(output, tuple) else 0

    handle = layers[0].register_forward_hook(measure)
    try:
        with _acting(layers[layer:], take):
            output = model.base_model(**inputs)
    finally:
        handle.remove()
    return taken[0] if taken else output[0], sizes[0]


def upper(model: Any, layer: int, inputs: "dict[str, Tensor]", states: "Tensor", size: int) -> Any:  # noqa: ANN401
    """What the model says if these states go into a layer; the other arguments are as for `lower`, and what it gave."""
    layers = list(layers_of(model) or ())
    start = type(layers[layer]).forward

    def skip(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        return _passed(_states(given, named), size)

    def begin(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        if given:
            return start(layers[layer], states, *given[1:], **named)
        return start(layers[layer], **{**named, "hidden_states": states})

    with _acting(layers[:layer], skip), _acting(layers[layer : layer + 1], begin):
        return model(**inputs)


def _states(given: Any, named: Any) -> Any:  # noqa: ANN401
    return given[0] if given else named["hidden_states"]


def _passed(states: "Tensor", size: int) -> Any:  # noqa: ANN401
    return (states, *[None] * (size - 1)) if size else states


def lower_parameters(model: Any, layer: int) -> "list[nn.Parameter]":  # noqa: ANN401
    """The parameters that what goes into a layer depends on."""
    import torch

    parameters = [p for p in model.base_model.parameters() if p.is_floating_point()]
    with torch.enable_grad(), _learning(parameters):
        states, _ = lower(model, layer, _sample(model))
        used, seen, left = set[int](), set[Any](), [states.grad_fn]
        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                used.add(id(getattr(node, "variable", None)))
                left += [other for other, _ in node.next_functions]
    return [p for p in parameters if id(p) in used]


@contextmanager
def _learning(parameters: "Sequence[nn.Parameter]") -> Iterator[None]:
    before = [p.requires_grad for p in parameters]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter, learns in zip(parameters, before, strict=True):
            parameter.requires_grad_(learns)


def _sample(model: Any) -> "dict[str, Tensor]":  # noqa: ANN401
    """Two windows of any pieces, one of them padded."""
    import torch

    where = model.base_model.device
    ids = torch.arange(16, device=where).reshape(2, 8) % model.config.vocab_size
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    return {"input_ids": ids, "attention_mask": mask}


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a model is cut, and what its layers are like.

    Attributes:
        layer: the lowest layer that is above the cut.
        size: how many things a layer gives, see `lower`.
        identity: a digest of the weights below the cut.
        kept: where states are kept.
    """

    layer: int
    size: int
    identity: bytes
    kept: "Kept"

    @classmethod
    def of(cls, model: Any, layer: int, kept: "Kept") -> Self | None:  # noqa: ANN401
        """The model cut before a layer; None where its two parts, one after the other, do not say what it says."""
        import torch

        if not layer or layer >= model.config.num_hidden_layers or layers_of(model) is None:
            return None
        inputs, training = _sample(model), model.training
        model.eval()
        try:
            with torch.no_grad():
                states, size = lower(model, layer, inputs)
                given = {**inputs, "input_ids": inputs["input_ids"].flip(1)}
                whole, parts = model(**inputs).logits, upper(model, layer, given, states, size).logits
        except Exception as error:  # the code of a model that is none of ours, called in a way that it may not expect
            say(f"the outputs of frozen layers are not kept: {type(error).__name__}: {error}")
            return None
        finally:
            model.train(training)
        there = inputs["attention_mask"].bool()
        if not torch.allclose(whole[there], parts[there], rtol=_TOLERANCE, atol=_TOLERANCE):
            say("the outputs of frozen layers are not kept: this model does more between its layers")
            return None
        digest = hashlib.sha256()
        for parameter in lower_parameters(model, layer):
            digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
        return cls(layer, size, digest.digest(), kept)

    @property
    def open(self) -> bool:
        """Whether anything is kept still."""
        return not self.kept.closed

    def states(
        self, encoder: Encoder, pieces: WordPieces, windows: Windows, number_format: "torch.dtype"
    ) -> "KeptStates | None":
        """The states of windows; None once nothing is kept any more."""
        if not self.open:
            return None
        digest = hashlib.sha256(f"{self.layer} {number_format}".encode() + self.identity)
        for array in (pieces.ids, pieces.offsets, windows.first, windows.last):
            digest.update(np.ascontiguousarray(array).tobytes())
        states = self.kept.states
        return states.setdefault(digest.digest(), KeptStates(self, encoder, pieces, windows))


@dataclass(eq=False)
class KeptStates:
    """What goes into the lowest layer that learns, of all windows of some documents.

    Attributes:
        cut: of the models that may be asked.
        encoder, pieces, windows: what is read.
        rows: the states of each piece, those that the encoder adds too, batch by batch, of shape [pieces, width]; None
            until the first are computed.
    """

    cut: Cut
    encoder: Encoder
    pieces: WordPieces
    windows: Windows
    rows: NDArray[Any] | None = None
    _file: Any = None
    _kind: Any = None

    def __post_init__(self) -> None:
        self._lengths = self.windows.lengths(self.pieces.offsets) + self.encoder.added
        self._plan = batches(self._lengths, _BATCH_PIECES)
        order = np.concatenate([np.empty(0, np.int64), *self._plan])
        self._first = np.empty(len(order), np.int64)
        self._first[order] = np.cumsum(self._lengths[order]) - self._lengths[order]
        self._batch = np.empty(len(order), np.int64)
        self._batch[order] = np.repeat(np.arange(len(self._plan)), [len(batch) for batch in self._plan])
        self._done = np.zeros(len(self._plan), bool)

    def rest(self, model: Any, inputs: "dict[str, Tensor]", chosen: NDArray[np.int64]) -> Callable[[], Any]:  # noqa: ANN401
        """What is left of a classifier's work on windows: the layers that learn, on states that lie ready.

        Args:
            model: the classifier; its frozen layers are those of all that ask.
            inputs: the windows as `Encoder.batch` lays them out, on the device.
            chosen: their numbers.
        """
        states = self._of(model, inputs, chosen)
        return partial(upper, model, self.cut.layer, inputs, states, self.cut.size)

    def _of(self, model: Any, inputs: "dict[str, Tensor]", chosen: NDArray[np.int64]) -> "Tensor":  # noqa: ANN401
        import torch

        for number in np.unique(self._batch[chosen]):
            if not self._done[number] and not self._compute(model, int(number)):
                return self._lower(model, inputs)
        lengths = self._lengths[chosen][:, None]
        places = self._first[chosen][:, None] + np.minimum(np.arange(inputs["input_ids"].shape[1]), lengths - 1)
        rows = torch.from_numpy(np.asarray(self.rows)[places])
        return rows.view(self._kind).to(inputs["input_ids"].device)

    def _lower(self, model: Any, inputs: "dict[str, Tensor]") -> "Tensor":  # noqa: ANN401
        import torch

        training = model.training
        model.eval()
        with torch.no_grad():
            states, _ = lower(model, self.cut.layer, inputs)
        model.train(training)
        return states

    def _compute(self, model: Any, number: int) -> bool:  # noqa: ANN401
        """Whether there was room for the states of a batch."""
        import torch

        chosen = self._plan[number]
        inputs = self.encoder.batch(self.pieces, self.windows, chosen).inputs
        there = inputs["attention_mask"].bool()
        states = self._lower(model, {name: tensor.to(device()) for name, tensor in inputs.items()}).cpu()[there]
        self._kind = states.dtype
        plain = states.view({4: torch.float32, 2: torch.int16}[states.element_size()]).numpy()
        self._done[number] = self._put(int(self._first[chosen[0]]), plain)
        return bool(self._done[number])

    def _put(self, first: int, states: NDArray[Any]) -> bool:
        if self.rows is None and not self._begin(states):
            return False
        if self._file is None:
            np.asarray(self.rows)[first : first + len(states)] = states
            return True
        try:
            _write(self._file, first * states[0].nbytes, states)
        except OSError as error:
            say(f"no more outputs of frozen layers are kept: {error}")
            return False
        return True

    def close(self) -> None:
        """Gives the memory or the file back."""
        self.rows = None
        if self._file is not None:
            self._file.close()

    def _begin(self, states: NDArray[Any]) -> bool:
        """Makes the place for all states, if there is room."""
        shape = (int(self._lengths.sum()), states.shape[1])
        needed = shape[0] * states[0].nbytes
        if self.cut.kept.reserve(needed):
            self.rows = np.empty(shape, states.dtype)
            return True
        folder = cache_folder("frozen-layers")
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < needed + _SPARE:
            return False
        self._file = tempfile.TemporaryFile(dir=folder)
        self._file.truncate(needed)
        self.rows = np.memmap(self._file, states.dtype, "r", shape=shape)
        return True


def _write(file: Any, place: int, states: NDArray[Any]) -> None:  # noqa: ANN401
    file.seek(place)
    file.write(states.tobytes())
    file.flush()


@dataclass(eq=False)
class Kept:
    """The states that are kept; after the block `with Kept() as kept` there are none any more.

    Taggers with the same frozen layers share them, whatever they were trained for; others get states of their own. A
    sub-word piece takes 4 bytes for each number, 1.5 kB with an encoder 384 wide: up to `IN_MEMORY` bytes in memory,
    the rest on disk, and what finds no room there is computed anew each time.

    >>> model = Encoder.load("default").classifier(["O", "B-LOC", "I-LOC"], seed=0)
    >>> with Kept() as kept:
    ...     cut = Cut.of(model, 3, kept)
    >>> cut.layer, kept.closed
    (3, True)
    """

    closed: bool = False
    states: dict[bytes, KeptStates] = field(default_factory=dict)
    _memory: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True
        for states in self.states.values():
            states.close()
        self.states.clear()

    def reserve(self, needed: int) -> bool:
        """Whether so many bytes may be held in memory, which then are."""
        if self._memory + needed > IN_MEMORY:
            return False
        self._memory += needed
        return True
