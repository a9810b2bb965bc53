"""`Hand`: what a worker does with a shard, whichever engine it belongs to."""

import hashlib
import json
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from tagweave.errors import ShardError, TagweaveError, TagweaveWarning

Answer = TypeVar("Answer")

Shard = str | Path | int | float | Mapping[str, Any] | Sequence[Any]
"""A file (a string is a path too), or a description of a piece of work that JSON can hold."""

Work = Callable[[Any, Path], object]
"""Works one shard, and writes the file that it is told; what it returns, if JSON can hold it, is kept."""


@runtime_checkable
class Loading(Protocol):
    """Settings from which each worker makes its function once, a model on its graphics card for instance."""

    def load(self) -> Work:
        """The function."""


@dataclass
class Task:
    """A piece of work on its way.

    Attributes:
        name: of the shard, for messages; where an output is made it is its name.
        arguments: what `work` gets.
        deaths: how many workers have died at it.
    """

    name: str
    arguments: tuple[Any, ...]
    deaths: int = 0


@dataclass
class Making(Task):
    """An output in the making.

    Attributes:
        fingerprint: of function and input.
    """

    fingerprint: str = ""


@dataclass(frozen=True)
class Written:
    """A file that a worker has written, whole and on disk.

    Attributes:
        path: where, under a passing name.
        bytes: its size.
        sha256: of its content.
        result: what the function returned.
        warnings: what its making warned of, each once.
    """

    path: Path
    bytes: int
    sha256: str
    result: Any = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Died:
    """A worker has died.

    Attributes:
        how: for people.
    """

    how: str


Outcome = Any
"""What comes back: an answer, an error, or `Died`."""


class Hand:
    """The function of one worker, made ready at its first shard.

    Args:
        function: the function, or what it is made from.
    """

    def __init__(self, function: Work | Loading) -> None:
        self._function = function
        self._work: Work | None = None

    def work(self, name: str, shard: Any, target: Path) -> Written | Exception:  # noqa: ANN401
        """Work one shard.

        Args:
            name: what the shard is called in messages.
            shard: it.
            target: where to write; its folder is made, and is for this attempt only.

        Returns:
            What is written, or an error that names the shard; any process can read both.
        """
        return caught(name, lambda: self._made(shard, target), lambda made, told: replace(made, warnings=told))

    def _made(self, shard: Any, target: Path) -> Written:  # noqa: ANN401
        if self._work is None:
            self._work = self._function.load() if isinstance(self._function, Loading) else self._function
        target.parent.mkdir(parents=True, exist_ok=True)
        result = self._work(shard, target)
        return replace(_written(target), result=_plain(result))


def caught(name: str, work: Callable[[], Any], answer: Callable[[Any, tuple[str, ...]], Answer]) -> Answer | Exception:
    """What is said of a shard.

    Args:
        name: of the shard.
        work: does it.
        answer: makes the answer of what comes out, and of what it warned of, each once.

    Returns:
        The answer, or an error that names the shard; any process can read it.
    """
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TagweaveWarning)
            found = work()
        return answer(found, _messages(told))
    except TagweaveError as error:
        return type(error)(f"shard {name!r}: {error}")
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
        return ShardError(f"shard {name!r}: {type(error).__name__}: {error} ({place})")


def _plain(value: Any) -> Any:  # noqa: ANN401
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return None


def _messages(told: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(each.message) for each in told if issubclass(each.category, TagweaveWarning)))


def _written(path: Path) -> Written:
    """Bring a file to disk.

    Raises:
        ShardError: it is not there.
    """
    if not path.is_file():
        raise ShardError(f"the function wrote no file {path.name}; it must write the path that it gets")
    with path.open("rb+") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        os.fsync(handle.fileno())
        return Written(path, os.fstat(handle.fileno()).st_size, digest)
