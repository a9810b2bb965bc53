"""Processes that train one model together, started by `torchrun` on one machine or several.

Every process runs the same program on the same documents. `join` brings them together, `team` tells anywhere in the
library who is there; a process alone is a team of one, on which nothing below costs anything. Process 0 is the first:
it alone writes files and speaks to the user.

Sums of gradients go by NCCL between GPUs and by gloo between CPUs; what the first process gives the others is JSON and
safetensors, nothing that can run code. A process that ends pulls the others down with it, each with an error that
says so.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagweave import errors, progress
from tagweave.errors import TagweaveError, TrainingError, UsageError

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PATIENCE = timedelta(days=7)
"""How long the others wait while the first process works alone; that one has ended is noticed at once all the same."""


class Parcel(NamedTuple):
    """What one process gives the others."""

    facts: Mapping[str, Any]
    """Anything that JSON can hold."""
    arrays: Mapping[str, NDArray[Any]] = {}


@dataclass(frozen=True)
class Team:
    """The processes that train together, seen from one of them.

    Attributes:
        rank: number of this process, from 0.
        size: how many there are.
        timeout: seconds after which a process that does not answer in a step of training is given up.
    """

    rank: int = 0
    size: int = 1
    timeout: float = 0.0
    _patient: "ProcessGroup | None" = None
    _store: Any = None

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and speaks to the user."""
        return self.rank == 0

    @property
    def joined(self) -> bool:
        """Whether a launcher brought the processes together, be it only one."""
        return self._patient is not None

    def add(self, numbers: Sequence[float]) -> list[float]:
        """The sum of each number over all processes, in double precision.

        >>> Team().add([1.0, 2.0])
        [1.0, 2.0]
        """
        if not self.joined:
            return [float(number) for number in numbers]
        import torch
        from torch.distributed import all_reduce

        total = torch.tensor(numbers, dtype=torch.float64)
        with self._alert():
            all_reduce(total)
        return [float(number) for number in total]

    def add_tensor(self, tensor: "torch.Tensor") -> "torch.Tensor":
        """The sum of a tensor over all processes, which takes its place."""
        if self.joined:
            from torch.distributed import all_reduce

            with self._alert():
                all_reduce(tensor)
        return tensor

    def add_gradients(self, parameters: Sequence["torch.nn.Parameter"]) -> None:
        """Give every parameter the sum of its gradients over all processes; None stays where none has one."""
        if not (self.joined and parameters):
            return
        import torch

        present = torch.tensor([float(p.grad is not None) for p in parameters], device=parameters[0].device)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        total = self.add_tensor(torch.cat([present, *(gradient.flatten() for gradient in gradients)]))
        done = len(parameters)
        for parameter, processes in zip(parameters, total[:done].tolist(), strict=True):
            gradient = total[done : done + parameter.numel()].view_as(parameter)
            parameter.grad = gradient if processes else None
            done += parameter.numel()

    def level(self, tensors: Iterable["torch.Tensor"]) -> None:
        """Give every process the first one's values of some tensors."""
        if self.joined:
            from torch.distributed import broadcast

            with self._alert():
                for tensor in tensors:
                    broadcast(tensor.detach(), 0)

    def from_first(self, make: Callable[[], Parcel]) -> Parcel:
        """What `make` gives in the first process, in all; the others wait as long as it takes.

        Raises:
            TagweaveError: `make` raised it in the first process; every process raises the same.
        """
        if not self.joined:
            return make()
        parcel, error = Parcel({}), None
        if self.first:
            try:
                parcel = make()
            except TagweaveError as raised:
                error = raised
        failure = None if error is None else [type(error).__name__, str(error)]
        data = self._send([_packed(Parcel({"facts": parcel.facts, "failure": failure}, parcel.arrays))])[0]
        if error is not None:
            raise error
        return parcel if self.first else _opened(data)

    def on_first(self, action: Callable[[], object]) -> None:
        """Do something in the first process alone, as `from_first`."""

        def act() -> Parcel:
            action()
            return Parcel({})

        self.from_first(act)

    def gather(self, parcel: Parcel) -> list[Parcel]:
        """What each process has, in the order of the processes."""
        if not self.joined:
            return [parcel]
        own = _packed(Parcel({"facts": parcel.facts, "failure": None}, parcel.arrays))
        return [_opened(self._send([own], source)[0]) for source in range(self.size)]

    def part(self, offsets: NDArray[np.int64]) -> tuple[int, int]:
        """The documents of this process, first and last + 1, if all are dealt out by their tokens.

        Args:
            offsets: where documents start, of shape [documents + 1].

        >>> Team(rank=1, size=2).part(np.array([0, 10, 15, 20]))
        (1, 3)
        """
        marks = np.searchsorted(offsets, offsets[-1] * np.arange(1, self.size) / self.size)
        places = [0, *marks.tolist(), len(offsets) - 1]
        return places[self.rank], places[self.rank + 1]

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.joined:
            from torch.distributed import barrier

            with self._alert():
                barrier(self._patient)

    def check_same(self, what: str, value: object) -> None:
        """Check that a value is the same in all processes.

        Raises:
            UsageError: it is not; the message names the first process that differs.
        """
        digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
        found = [parcel.facts["digest"] for parcel in self.gather(Parcel({"digest": digest}))]
        for rank, other in enumerate(found):
            if other != found[0]:
                raise UsageError(
                    f"process {rank} of {self.size} has other {what} than process 0: give all processes the same "
                    "files, settings and version of tagweave"
                )

    def says(self, message: str) -> bool:
        """Whether this process is the one to show a message: of processes that have the same to say, one does."""
        if self._store is None:
            return True
        try:
            return int(self._store.add(f"said/{hashlib.sha256(message.encode()).hexdigest()}", 1)) == 1
        except RuntimeError:  # the store went with the process that held it
            return True

    def _send(self, data: list[bytes], source: int = 0) -> list[bytes]:
        """Bytes of one process, in all."""
        import torch
        from torch.distributed import broadcast

        sizes = torch.tensor([len(part) for part in data])
        with self._alert():
            broadcast(sizes, source, group=self._patient)
            received = []
            for part, size in zip(data, sizes.tolist(), strict=True):
                mine = np.frombuffer(part, np.uint8) if self.rank == source else np.zeros(size, np.uint8)
                buffer = torch.from_numpy(mine.copy())
                broadcast(buffer, source, group=self._patient)
                received.append(buffer.numpy().tobytes())
        return received

    @contextmanager
    def _alert(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            raise TrainingError(
                f"process {self.rank} of {self.size} has lost the others: one has ended, and its own message says why, "
                f"or it has not answered for {self.timeout:g} seconds ({reason}). Start all again; a training with a "
                "folder goes on from its last epoch"
            ) from error


ALONE = Team()
_team = ALONE


def team() -> Team:
    """The processes that train together with this one."""
    return _team


def launched() -> bool:
    """Whether `torchrun`, or a launcher that sets the same variables, has started several processes."""
    return all(os.environ.get(name) for name in _VARIABLES) and os.environ["WORLD_SIZE"] != "1"


@contextmanager
def join(timeout: float = 600.0) -> Iterator[Team]:
    """Inside the block, the processes that a launcher has started train together; without a launcher, one alone.

    The launcher says who is there by the variables RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.
    Every process on a machine takes a GPU of its own where there are some. Only the first shows progress. After an
    error in the block the process should end; the others then end too.

    Args:
        timeout: seconds after which a process that does not answer in a step of training is given up.

    Raises:
        UsageError: there are fewer GPUs than processes on this machine.

    >>> with join() as processes:
    ...     processes.rank, processes.size
    (0, 1)
    """
    global _team
    outer, shown = _team, progress.shown()
    if not outer.joined and all(os.environ.get(name) for name in _VARIABLES):
        _team = _connected(timeout)
    progress.show(shown and _team.first)
    yield _team
    if _team is not outer:
        _leave()  # after an error there is nobody to wait for, and `says` is still needed
    progress.show(shown)
    _team = outer


def _connected(timeout: float) -> Team:
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    backend, options = "gloo", dict[str, Any]()
    if torch.cuda.is_available():
        place = int(os.environ.get("LOCAL_RANK", "0"))
        if place >= torch.cuda.device_count():
            raise UsageError(
                f"process {place} on this machine has no GPU of its own, there are {torch.cuda.device_count()}: start "
                "as many processes as GPUs (torchrun --nproc-per-node gpu), or hide the GPUs to train on processors "
                "(CUDA_VISIBLE_DEVICES=)"
            )
        torch.cuda.set_device(place)
        backend, options = "cpu:gloo,cuda:nccl", {"device_id": torch.device("cuda", place)}
    try:
        wait = timedelta(seconds=timeout)
        store, rank, size = next(rendezvous("env://", timeout=wait))
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=wait, **options)
        patient = distributed.new_group(backend="gloo", timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise TrainingError(
            f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} cannot reach the others at "
            f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} ({reason})"
        ) from error
    return Team(rank, size, timeout, patient, store)


def _leave() -> None:
    """End in good order: the store is with the first process, which goes last."""
    from torch import distributed

    _team.wait()
    distributed.destroy_process_group()


def _packed(parcel: Parcel) -> bytes:
    from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in parcel.arrays.items()}
    header = np.frombuffer(json.dumps(dict(parcel.facts)).encode(), np.uint8)
    return bytes(save({"facts": header, **{f"array.{name}": array for name, array in arrays.items()}}))


def _opened(data: bytes) -> Parcel:
    from safetensors.numpy import load

    arrays = load(data)
    envelope = json.loads(arrays.pop("facts").tobytes())
    if envelope["failure"] is not None:
        kind, message = envelope["failure"]
        raise getattr(errors, kind, TrainingError)(message)
    return Parcel(envelope["facts"], {name.removeprefix("array."): array for name, array in arrays.items()})


def send_folder(processes: Team, folder: Path) -> None:
    """Give every process the first one's files of a folder, at the same place; nothing if it is not there."""

    def read() -> Parcel:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        content = {path.relative_to(folder).as_posix(): np.fromfile(path, np.uint8) for path in files}
        return Parcel({"there": folder.is_dir()}, content)

    if processes.size > 1:
        parcel = processes.from_first(read)
        if not processes.first and parcel.facts["there"]:
            for name, array in parcel.arrays.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                array.tofile(folder / name)
