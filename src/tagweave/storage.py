"""Folders that hold a model or a finished step: JSON and safetensors, nothing that can run code.

A folder holds `config.json`, `parameters.safetensors`, and `manifest.json` with the size and SHA-256 of every file. It
is written under a temporary name and renamed, so it is either whole or not there.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagweave.errors import MissingExtraError, StorageError, TagweaveError, UsageError
from tagweave.labels import OUTSIDE
from tagweave.writing import LOCK, new_file, only_run, replacement

CONFIG = "config.json"
PARAMETERS = "parameters.safetensors"
MANIFEST = "manifest.json"
_SEAL = "seal"
_LONGEST_HEADER = 100_000_000
CACHE_VARIABLE = "TAGWEAVE_CACHE"


def plain_file(path: str | Path) -> Path:
    """The path, if it leads to something that has an end: whatever is opened for reading goes through here.

    Pipes and devices are refused: opening a pipe waits for whoever writes to it, perhaps for ever, and what comes out
    of one can be read once only, while many readers go through a file twice.

    Raises:
        UsageError: it is a pipe, a socket or a device.
        OSError: there is nothing.

    >>> plain_file("/dev/zero")
    Traceback (most recent call last):
    tagweave.errors.UsageError: /dev/zero is no file but a pipe or device. To read from it, name `-` and redirect it
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UsageError(f"{path} is no file but a pipe or device. To read from it, name `-` and redirect it")
    return Path(path)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder` that takes its place when the block ends without an error.

    Raises:
        StorageError: `folder` exists and is no folder that was made this way, so replacing it could lose something.
        UsageError: it cannot be written, as on a full disk.
    """
    folder = Path(os.path.realpath(folder))
    check_replaceable(folder)
    try:
        with replacement(folder) as work:
            yield work
            files = {path.relative_to(work).as_posix(): _fingerprint(path) for path in _files(work)}
            write_json(work / MANIFEST, files, sealed=True)
    except Exception as error:
        if reason := _trouble_with_disk(error):
            raise UsageError(f"{folder} cannot be written: {reason}. What was there before is unchanged") from None
        raise


def check_replaceable(folder: Path) -> None:
    """Check that nothing would be lost if a folder took this place.

    Raises:
        StorageError: it exists and is no folder that was made by `new_folder`.
    """
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]) and not (folder / MANIFEST).exists():
        raise StorageError(f"{folder} exists and was not written by tagweave: choose another place or remove it")


def check_no_links(folder: Path) -> None:
    """Check that what will be written into a folder stays in it.

    Raises:
        StorageError: there is a link in the folder, which could lead anywhere.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(place, name)):
                raise StorageError(
                    f"{os.path.join(place, name)} is a link, so it would be written elsewhere: remove it"
                )


@contextmanager
def reserved(folder: Path, *, ours: bool = False) -> Iterator[None]:
    """Have the place of a folder for this run, before the work whose result it will hold.

    Args:
        folder: the place; the folder that it is in is made.
        ours: whether nobody else would put anything there.

    Raises:
        UsageError: another run has it, or nothing can be written there.
        StorageError: what is there must not be replaced.
    """
    folder = Path(os.path.realpath(folder))
    if not ours:
        check_replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None
    with only_run(folder):
        yield


@contextmanager
def run_in(folder: Path) -> Iterator[None]:
    """Have a folder for this run, step by step; it is made if it is not there.

    Raises:
        UsageError: another run has it, or nothing can be written there.
    """
    folder = Path(os.path.realpath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from None
    with only_run(folder, folder / LOCK):
        yield


def _trouble_with_disk(error: Exception) -> str:
    """What an error of the system or of safetensors says; nothing for other errors."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) if type(error).__name__ == "SafetensorError" else ""


def verify(folder: Path) -> None:
    """Check every file of a folder against its manifest.

    Raises:
        StorageError: a file is missing, or has changed since it was written, or the manifest names one elsewhere.
    """
    manifest = read_json(Path(folder) / MANIFEST)
    for name, fingerprint in manifest.items():
        path = Path(folder) / name
        if not is_inside(name):
            raise StorageError(f"{folder}: its {MANIFEST} names {name!r}, which is no file in it. Get the folder anew")
        if not os.path.isfile(path):
            raise StorageError(f"{path} is missing: the folder is incomplete, save it again")
        if _fingerprint(path) != fingerprint:
            raise StorageError(f"{path} has changed since it was written: save the folder again")


def is_inside(name: str) -> bool:
    r"""Whether a name that stands in a file leads to nowhere but into the folder that it counts from.

    Names that only another system takes for a way out do not count as inside either.

    >>> [is_inside(name) for name in ("a.txt", "rounds/1", "../a", "/etc/passwd", "C:\\a", "a/../../b", "a\0b", ".")]
    [True, True, False, False, False, False, False, False]
    """
    parts = name.replace("\\", "/").split("/")
    return not {"", ".", ".."}.intersection(parts) and ":" not in name and "\0" not in name


@contextmanager
def as_saved(folder: Path) -> Iterator[None]:
    """What goes wrong in this block is the fault of a folder: it holds something else than was saved there.

    Raises:
        StorageError: something went wrong.
        MissingExtraError: a package is missing.
    """
    try:
        yield
    except (StorageError, MissingExtraError):
        raise
    except (TagweaveError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        reason = str(error) if isinstance(error, TagweaveError) else f"{type(error).__name__}: {error}"
        raise StorageError(
            f"{folder} does not hold what this version of tagweave saves ({reason}). Get or save the folder anew"
        ) from None


def names_in(config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of distinct names in a configuration.

    Raises:
        ValueError: there is something else.
    """
    names = config.get(key)
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{key} is no list of names")
    if len(set(names)) < len(names):
        raise ValueError(f"{key} has a name twice")
    return tuple(names)


def types_in(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The entity types in a configuration.

    Raises:
        ValueError: there is something else.
    """
    types = names_in(config, "types")
    if OUTSIDE in types:
        raise ValueError(f"{OUTSIDE!r} is among the types")
    return types


def records_in(config: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of JSON objects in a configuration.

    Raises:
        ValueError: there is something else.
    """
    records = config.get(key)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ValueError(f"{key} is no list of records")
    return records


def save_folder(folder: Path, kind: str, config: Mapping[str, Any], parameters: Mapping[str, NDArray[Any]]) -> None:
    """Write a model: settings as JSON, arrays as safetensors.

    Args:
        folder: where; an older folder of the same name is replaced.
        kind: what it holds, checked by `load_folder`.
        config: anything that JSON can hold.
        parameters: arrays by name.
    """
    from safetensors.numpy import save_file

    from tagweave import __version__

    with new_folder(folder) as work:
        write_json(work / CONFIG, {"kind": kind, "tagweave": __version__, **config})
        save_file({name: np.asarray(array, order="C") for name, array in parameters.items()}, work / PARAMETERS)


def load_folder(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `save_folder` wrote.

    Raises:
        StorageError: the folder is missing, incomplete, changed, or holds something else than `kind`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(folder)
    config = read_config(folder / CONFIG, kind)
    with as_saved(folder):
        tensors_in(folder / PARAMETERS)
        try:
            return config, load_file(plain_file(folder / PARAMETERS))
        except (SafetensorError, OSError) as error:
            raise StorageError(f"{folder / PARAMETERS} cannot be read: {error}") from None


def read_config(path: Path, kind: str) -> dict[str, Any]:
    """The settings file of a saved model, whose folder is verified first.

    Raises:
        StorageError: the folder is missing, incomplete, changed, or holds something else than `kind`.
    """
    if not path.is_file():
        raise StorageError(f"{path.parent} is no folder with a saved {kind}: {path.name} is missing")
    verify(path.parent)
    config = read_json(path)
    if config.get("kind") != kind:
        raise StorageError(f"{path.parent} holds a {config.get('kind')!r}, not a {kind}")
    return config


def tensors_in(path: Path) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays in a safetensors file, from its header.

    Raises:
        StorageError: the file is missing or broken, or names an array twice.
    """
    try:
        with plain_file(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(_LONGEST_HEADER, path.stat().st_size):
                raise ValueError("its header is longer than the file")
            header = json.loads(file.read(length), object_pairs_hook=_distinct)
        header.pop("__metadata__", None)
        return {name: tuple(map(int, entry["shape"])) for name, entry in header.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise StorageError(f"{path} cannot be read as safetensors: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a name twice")
    return found


def cache_folder(kind: str) -> Path:
    """Where results of one kind are kept: `$TAGWEAVE_CACHE/kind`, or `~/.cache/tagweave/kind`."""
    base = os.environ.get(CACHE_VARIABLE)
    return (Path(base) if base else Path.home() / ".cache" / "tagweave") / kind


def write_json(path: Path, value: Mapping[str, Any], *, sealed: bool = False) -> None:
    """Write JSON, UTF-8, in a file that takes its name when it is complete.

    Args:
        path: the file.
        value: anything that JSON can hold.
        sealed: add a digest of the rest, so that `read_json` notices what happens to the file.

    Raises:
        UsageError: it cannot be written.
    """
    text = _text(value)
    if sealed:
        text = _text({**value, _SEAL: _digest(text)})
    try:
        with new_file(path) as handle:
            handle.write(text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON makes of a value.

    >>> as_json({"layers": (1, 2), "folder": Path("a")})
    {'layers': [1, 2], 'folder': 'a'}
    """
    return dict(json.loads(_text(value)))


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False, default=_plain) + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        StorageError: the file is missing, is no JSON object, or has changed since it was written and sealed.
    """
    try:
        value = json.loads(plain_file(path).read_text(encoding="utf-8"), parse_constant=_no_number)
    except (OSError, ValueError, RecursionError, UsageError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise StorageError(f"{path} does not hold a JSON object")
    seal = value.pop(_SEAL, None)
    if seal is not None and seal != _digest(_text(value)):
        raise StorageError(f"{path} has changed since it was written: remove it, or get it anew")
    return value


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
