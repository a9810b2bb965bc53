"""`map_shards`: one function over many shards, with what is done kept through breaks of every kind."""

import os
import shutil
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tagweave.errors import StorageError, TagweaveWarning, UsageError
from tagweave.progress import say, track
from tagweave.shards.engines import Team, check_engine, engine_of, lost
from tagweave.shards.manifest import MANIFEST, Entry, Manifest, duplicates, fingerprint, of_script, settings_of
from tagweave.shards.working import Died, Hand, Loading, Making, Outcome, Shard, Work, Written
from tagweave.storage import check_no_links, is_inside, run_in

_ASIDE = ".unfinished"

_INTERVAL = 1.0
"""Seconds between two writings of the manifest."""


def map_shards(
    function: Work | Loading,
    shards: Sequence[Shard],
    out: str | Path,
    *,
    engine: str = "local",
    processes: int = 1,
    names: Sequence[str] | None = None,
    settings: Any = None,  # noqa: ANN401
    retries: int = 2,
    address: str = "auto",
    gpus: float | None = None,
) -> Manifest:
    """Make one output file of each shard, in processes of this machine or on a Ray cluster.

    `function(shard, target)` writes the file `target`; if it does so to the same bytes each time, then the outputs are
    the same, byte by byte, whatever the engine, the number of processes, and the breaks in between. Outputs are written
    aside, brought to disk and renamed, so that a file in the folder is whole. `shards.json` says what each was made
    from: run again, only what is missing, cut off, changed, or made from other inputs or settings is made anew.

    Args:
        function: a function that can be imported, `functools.partial` of one, or an object that can be pickled; or an
            object with a method `load()` that makes the function, once in each worker: see `Loading`. Its fields or
            bound arguments are its settings; paths among them stand for the content of the files. Its code is not
            looked at. What it returns is kept in the manifest as `result`, if JSON can hold it.
        shards: strings and `Path` are files, which `function` gets as `Path`; anything else that JSON can hold is a
            description of a piece of work, which it gets as it is.
        out: the folder; it is made, or was made by this function.
        engine: `local` for processes of this machine, `ray` for actors in a Ray cluster, whose machines must all see
            `out` and the shards under the same paths.
        processes: how many workers there are, each with the function.
        names: names of the outputs; None takes those of the files, and `shard-00000.jsonl` and so on for descriptions.
        settings: what else the outputs hang on, anything that JSON can hold: change it to have all made anew.
        retries: how often a shard is tried again whose worker has died.
        address: the Ray cluster: `auto` is the one that runs here, `local` starts one for this call.
        gpus: graphics cards for each Ray worker; None shares what the cluster has, at most one each.

    Returns:
        The manifest with the outputs of these shards, in their order. Other outputs of the folder stay as they are.

    Raises:
        ShardError: the function fails on a shard, or its worker dies again and again; the message names the shard. What
            was under way is finished first.
        UsageError: another run has the folder; a file, name or setting is not usable; no cluster runs.
        StorageError: the folder holds something else.
        MissingExtraError: the engine is `ray`, which is not installed.

    Warns:
        TagweaveWarning: the function warned so; the message names the shard.

    Use it when: a corpus is cut into files and one pass takes longer than you want to wait, or to lose. Cost: inputs
    and finished outputs are read once more for each run, to tell whether they have changed.

    >>> import tempfile, shutil
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "part-0.txt")
    ...     _ = file.write_text("Ada")
    ...     made = map_shards(shutil.copyfile, [file], Path(folder, "copies"))
    ...     made.paths[0].name, made.paths[0].read_text(), made.entries["part-0.txt"].bytes
    ('part-0.txt', 'Ada', 3)
    """
    check_engine(engine, processes)
    if retries < 0:
        raise UsageError(f"retries = {retries}: give 0 or more")
    folder = Path(os.path.realpath(out))
    about = {"function": settings_of(function), "settings": settings}
    tasks = _tasks(about, shards, names, folder)
    with _only_run(folder) as manifest:
        waiting = deque(task for task in tasks if not _done(task, manifest))
        for task in waiting:
            manifest.entries.pop(task.name, None)
            manifest.missing.add(task.name)
        manifest.write()
        if len(waiting) < len(tasks):
            say(f"{folder}: {len(tasks) - len(waiting)} of {len(tasks)} shards are done already")
        if waiting:
            total = len(waiting)
            size = min(processes, total)
            hidden = not of_script(about)
            with engine_of(engine, Hand(function), size, address=address, gpus=gpus, hidden=hidden) as workers:
                outcomes = Team(workers, size).work(lambda _: waiting.popleft() if waiting else None)
                for _ in track(_kept(outcomes, waiting, manifest, retries), "shards", total):
                    pass
        return replace(manifest, entries={task.name: manifest.entries[task.name] for task in tasks})


def _tasks(about: dict[str, Any], shards: Sequence[Shard], names: Sequence[str] | None, folder: Path) -> list[Making]:
    """The shards with names and fingerprints.

    Raises:
        UsageError: names do not fit, or an input is missing or would be overwritten.
    """
    found = [Path(os.path.abspath(shard)) if isinstance(shard, str | Path) else shard for shard in shards]
    if names is None:
        names = [each.name if isinstance(each, Path) else f"shard-{i:05d}.jsonl" for i, each in enumerate(found)]
    if len(names) != len(found):
        raise UsageError(f"there are {len(names)} names for {len(found)} shards")
    for name in names:
        if not is_inside(name) or "/" in name or name.startswith(".") or name == MANIFEST:
            raise UsageError(f"{name!r} cannot be the name of an output. Give a plain file name")
    if twice := duplicates(names):
        raise UsageError(f"several outputs would be called {twice[0]!r}. Give `names`, a different one for each shard")
    for name, shard in zip(names, found, strict=True):
        if isinstance(shard, Path) and not shard.is_file():
            raise UsageError(f"shard {name!r}: {shard} is no file")
        if isinstance(shard, Path) and shard.resolve() == (folder / name).resolve():
            raise UsageError(f"shard {name!r} would be overwritten by its output. Choose another folder")
    return [
        Making(name, _arguments(name, shard, folder), fingerprint=fingerprint(about, shard))
        for name, shard in zip(names, found, strict=True)
    ]


def _arguments(name: str, shard: Any, folder: Path) -> tuple[str, Any, Path]:  # noqa: ANN401
    """What a worker gets for one attempt, with a place that no other attempt has."""
    return name, shard, folder / _ASIDE / uuid.uuid4().hex / name


def _done(task: Making, manifest: Manifest) -> bool:
    entry = manifest.entries.get(task.name)
    return entry is not None and entry.fingerprint == task.fingerprint and entry.fits(manifest.folder / task.name)


def _kept(
    outcomes: Iterator[tuple[Any, Outcome]], waiting: deque[Making], manifest: Manifest, retries: int
) -> Iterator[Making]:
    """Put outputs in their places, and try shards again whose workers died; after a failure nothing new begins."""
    failure: Exception | None = None
    noted = float("-inf")
    try:
        for task, found in outcomes:
            outcome: Written | Exception | None
            if isinstance(found, Died):
                outcome = lost(task, found, retries)
                if outcome is None and failure is None:
                    task.arguments = _arguments(task.name, task.arguments[1], manifest.folder)
                    waiting.appendleft(task)
            else:
                outcome = found
            if isinstance(outcome, Exception):
                failure = failure or outcome
                waiting.clear()
            elif outcome is not None:
                for message in outcome.warnings:
                    warnings.warn(f"shard {task.name!r}: {message}", TagweaveWarning, stacklevel=2)
                _place(outcome, manifest.folder / task.name)
                manifest.entries[task.name] = Entry(outcome.bytes, outcome.sha256, task.fingerprint, outcome.result)
                manifest.missing.discard(task.name)
                if time.monotonic() - noted > _INTERVAL:
                    manifest.write()
                    noted = time.monotonic()
                yield task
    finally:
        outcomes.close()  # type: ignore[attr-defined]
        manifest.write()
    if failure is not None:
        raise failure


def _place(written: Written, path: Path) -> None:
    """Give an output its name, so that it keeps it when the machine stops."""
    os.replace(written.path, path)
    written.path.parent.rmdir()
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _only_run(folder: Path) -> Iterator[Manifest]:
    """Have a folder for this run only, with its manifest.

    Raises:
        UsageError: another run has it, or it cannot be written.
        StorageError: it holds something else.
    """
    with run_in(folder):
        if not (folder / MANIFEST).exists() and any(path.name[0] != "." for path in folder.iterdir()):
            raise StorageError(
                f"{folder} exists and was not written by map_shards, as its {MANIFEST} is missing: choose another "
                "place or empty it"
            )
        check_no_links(folder)
        shutil.rmtree(folder / _ASIDE, ignore_errors=True)
        manifest = Manifest.read(folder) if (folder / MANIFEST).exists() else Manifest(folder)
        try:
            yield manifest
        finally:
            shutil.rmtree(folder / _ASIDE, ignore_errors=True)
