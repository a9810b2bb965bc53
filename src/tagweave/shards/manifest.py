"""`Manifest`: which outputs of a folder are valid, and what each of them was made from."""

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tagweave import __version__
from tagweave.errors import StorageError, UsageError
from tagweave.storage import plain_file, read_json, write_json

MANIFEST = "shards.json"
"""The file in the folder of outputs."""


@dataclass(frozen=True)
class Entry:
    """One output.

    Attributes:
        bytes: its size.
        sha256: of its content.
        fingerprint: of the function's settings and the shard that it was made from.
        result: what the function returned, or None.
    """

    bytes: int
    sha256: str
    fingerprint: str
    result: Any = None

    def fits(self, path: Path) -> bool:
        """Whether a file is this output, whole and unchanged."""
        if not path.is_file() or path.stat().st_size != self.bytes:
            return False
        return sha256_of(path) == self.sha256


@dataclass
class Manifest:
    """The outputs of a folder.

    Attributes:
        folder: the folder.
        entries: the outputs by their names.
        missing: names of outputs that a run has begun to make, and that are not there yet.
    """

    folder: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    @property
    def paths(self) -> list[Path]:
        """The files, in the order of the entries."""
        return [self.folder / name for name in self.entries]

    @classmethod
    def read(cls, folder: str | Path) -> "Manifest":
        """The manifest of a folder.

        Raises:
            StorageError: it is missing, or is none.
        """
        path = Path(folder) / MANIFEST
        values = read_json(path)
        try:
            entries = {name: Entry(**entry) for name, entry in values["shards"].items()}
            return cls(Path(folder), entries, set(values["missing"]))
        except (KeyError, TypeError, AttributeError):
            raise StorageError(f"{path} is no manifest of shards. Choose another folder, or remove it") from None

    def write(self) -> None:
        """Write it into its folder; it is there as a whole or not at all."""
        shards = {name: asdict(entry) for name, entry in sorted(self.entries.items())}
        about = {"tagweave": __version__, "missing": sorted(self.missing), "shards": shards}
        write_json(self.folder / MANIFEST, about, sealed=True)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, or of all files in a folder with their names.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file())
            lines = (f"{each.relative_to(path).as_posix()} {sha256_of(each)}" for each in files)
            return hashlib.sha256("\n".join(lines).encode()).hexdigest()
        with plain_file(path).open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def fingerprint(function: Mapping[str, Any], shard: Any) -> str:  # noqa: ANN401
    """What a result hangs on, as one short string.

    Args:
        function: the function's settings, from `settings_of`.
        shard: the shard; a path stands for its content.

    Raises:
        UsageError: a file cannot be read, or JSON cannot hold the description.
    """
    text = _json([__version__, function, shard], f"the shard {shard!r}")
    return hashlib.sha256(text.encode()).hexdigest()


def settings_of(function: Any) -> dict[str, Any]:  # noqa: ANN401
    """What tells a function from others: its name, and its fields or bound arguments; paths stand for their content.

    Fields of dataclasses that do not take part in comparisons (`field(compare=False)`) are not looked at.

    Raises:
        UsageError: it has no name that another process could find, or settings that JSON cannot hold.

    >>> settings_of(partial(sorted, reverse=True))
    {'arguments': [], 'function': {'name': 'builtins.sorted'}, 'keywords': {'reverse': True}}
    """
    if isinstance(function, partial):
        found = {"function": settings_of(function.func), "arguments": function.args, "keywords": function.keywords}
        return dict(json.loads(_json(found, f"an argument of {function.func!r}")))
    if inspect.ismethod(function):
        return {"name": function.__name__, "of": settings_of(function.__self__)}
    if inspect.isroutine(function) or inspect.isclass(function):
        return {"name": _name(function)}
    named = [each.name for each in fields(function) if each.compare] if is_dataclass(function) else vars(function)
    values = {name: getattr(function, name) for name in named}
    return {"name": _name(type(function)), "settings": json.loads(_json(values, f"a setting of {type(function)!r}"))}


def of_script(settings: Mapping[str, Any]) -> bool:
    """Whether a function is defined in the script that runs here.

    >>> of_script({"name": "__main__.count"}), of_script({"name": "builtins.sorted"})
    (True, False)
    """
    return '"__main__.' in json.dumps(settings)


def _name(found: Any) -> str:  # noqa: ANN401
    name = f"{found.__module__}.{found.__qualname__}"
    if "<" in name:
        raise UsageError(f"{name} cannot be found by other processes. Define it at the top of a module")
    return name


def _json(value: Any, what: str) -> str:  # noqa: ANN401
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} cannot be told from others: {error}. Use numbers, strings, lists, paths") from None


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return {"sha256": sha256_of(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def duplicates(names: Iterable[str]) -> list[str]:
    """The names that come more than once."""
    seen: set[str] = set()
    return sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
