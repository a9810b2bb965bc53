"""`annotate_file`: sources over a file as a stream, in memory that does not grow with it."""

import gzip
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

from tagweave import __version__
from tagweave.annotating.corpora import BATCH, check, replaced, warn_failures, warn_replaced
from tagweave.annotating.output import Output, opened_output
from tagweave.annotating.pool import Pool, Result
from tagweave.annotating.running import TIME_LIMIT, check_order, described
from tagweave.annotating.statistics import Report
from tagweave.annotating.workers import CannotStart
from tagweave.config import create, setting_fields
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, UsageError
from tagweave.formats import format_of, read_batches
from tagweave.formats.json_lines import JSON_LINES, records
from tagweave.formats.streams import STANDARD, is_stream
from tagweave.progress import track
from tagweave.sources.base import Source
from tagweave.sources.loading import load_sources
from tagweave.storage import plain_file

_ENDS = 1 << 20
"""Bytes at the beginning and at the end of a file that tell it from others, with its size."""

_WRITTEN = ("cache", "unaligned")
"""Settings of sources that name files or folders which they write."""


def annotate_file(
    path: str | Path,
    sources: str | Path,
    out: str | Path,
    *,
    processes: int = 1,
    resume: bool = False,
    tolerant: bool = False,
    time_limit: float = TIME_LIMIT,
    format: str | None = None,
    **options: Any,  # noqa: ANN401
) -> Report:
    """Let sources vote on the documents of a file, and write them as JSON lines.

    The documents are read, worked on and written as a stream, in their order, by processes of their own: a source that
    never comes back, or that ends its process, cannot stop the run from naming it. Until all is done the lines are in
    `OUT.partial`, and a run that was ended by whatever means can be gone on with.

    Args:
        path: the file, or folder if the format is one, or `-` for standard input.
        sources: the file of sources, see `tagweave.load_sources`.
        out: the JSON lines to write, packed if the name ends in `.gz`, or `-` for standard output.
        processes: how many processes share the work.
        resume: whether to go on with what an earlier run left; the result is the same, byte by byte, as of a run that
            was not interrupted. Input, sources and options must be the same.
        tolerant: whether a source that fails on a document abstains there; otherwise everything stops.
        time_limit: seconds that a source may take for one document, or for those that it takes together; 0 is no limit.
        format: format of the input; None goes by its name.
        options: what the format lets one set, as for `tagweave.read`.

    Raises:
        SourceError: a source fails; the message names source, document and error.
        UsageError: a file, format, option or source does not exist, or the run cannot be gone on with.
        DataError: the content of the input is wrong.

    Warns:
        TagweaveWarning: failures were tolerated, or votes in the input replaced.

    >>> import tempfile
    >>> rules = "[[source]]" + chr(10) + "kind = 'regex'" + chr(10) + "name = 'years'" + chr(10) + "type = 'DATE'"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file, toml, out = (Path(folder, name) for name in ("in.txt", "rules.toml", "out.jsonl"))
    ...     _ = file.write_text("Born in 1815 in London.")
    ...     _ = toml.write_text(rules + chr(10) + "patterns = '[12][0-9]{3}'")
    ...     report = annotate_file(file, toml, out)
    ...     record = json.loads(out.read_text())
    >>> record["sources"], report.statistics["years"].spans
    ({'years': [[2, 3, 'DATE']]}, 1)
    """
    with Annotator(Path(sources), processes=processes, tolerant=tolerant, time_limit=time_limit) as annotator:
        return annotator.annotate(path, out, resume=resume, format=format, **options)


class Annotator:
    """Sources in processes of their own, for one file after the other; see `annotate_file`.

    Args:
        sources: the file of sources.
        processes: how many processes share the work.
        tolerant: whether a source that fails on a document abstains there.
        time_limit: seconds that a source may take for one document.
    """

    def __init__(
        self, sources: Path, *, processes: int = 1, tolerant: bool = False, time_limit: float = TIME_LIMIT
    ) -> None:
        self._file = sources
        self._processes = processes
        self._settings: dict[str, Any] = {"tolerant": tolerant, "time_limit": time_limit}
        self._sources: list[Source] = []
        self._pools: dict[bool, Pool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        while self._pools:
            self._pools.popitem()[1].close()

    def annotate(
        self,
        path: str | Path,
        out: str | Path,
        *,
        resume: bool = False,
        format: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Report:
        """Let the sources vote on the documents of a file."""
        begin = time.monotonic()
        if not is_stream(out) and format_of(out).name != JSON_LINES.name:
            raise UsageError(f"{out}: sources are written as JSON lines. Give a name that ends in .jsonl or .jsonl.gz")
        if resume and str(path) == STANDARD:
            raise UsageError(
                "standard input cannot be read again, so there is nothing to go on with. Leave out --resume"
            )
        reader = format_of(path, format)
        create(reader.read_options, options)
        found = self._loaded()
        about = _about(path, self._file, found, {"format": reader.name, **options})
        with opened_output(out, about, resume) as output:
            parts = _checked(read_batches(path, format=reader.name, documents=BATCH, **options), found)
            parts = islice(parts, output.journal.batches, None)
            try:
                results = self._pool(str(out).endswith(".gz")).run(parts)
                for _ in track(_written(results, output), "annotating, documents"):
                    pass
            except BaseException:
                self.close()  # what they are at is of no use any more
                raise
            journal = output.journal
        warn_failures(journal.statistics)
        return Report(journal.documents, time.monotonic() - begin, described(found), journal.statistics)

    def _loaded(self) -> list[Source]:
        if not self._sources:
            self._sources = load_sources(self._file)
            check(self._sources, self._processes, self._settings["time_limit"])
        return self._sources

    def _pool(self, packed: bool) -> Pool:
        if packed not in self._pools:
            finish = partial(encoded, packed)
            try:
                self._pools[packed] = Pool(self._file, self._sources, self._processes, finish, **self._settings)
            except CannotStart as error:
                raise SourceError(f"{self._file}: {error}") from None
        return self._pools[packed]


def _written(results: Iterator[Result], output: Output) -> Iterator[int]:
    """Write what comes, and count the documents."""
    for result in results:
        output.write(result.payload, result.documents, result.statistics)
        yield from range(result.documents)


def encoded(packed: bool, corpus: Corpus, documents: list[Document]) -> bytes:
    """The documents as JSON lines.

    Args:
        packed: whether as one member of a gzip file.
        corpus: the corpus that they come from.
        documents: its documents, with votes.
    """
    lines = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records(corpus, documents)).encode()
    return gzip.compress(lines, compresslevel=6, mtime=0) if packed else lines


def _checked(batches: Iterator[Corpus], sources: Sequence[Source]) -> Iterator[Corpus]:
    """The batches without the votes that are replaced."""
    own = {source.name for source in sources}
    first = next(batches, None)
    if first is None:
        return
    check_order(sources, [*first.sources, *first.links])
    warn_replaced(replaced(first, sources))
    for batch in chain([first], batches):
        votes = {name: column for name, column in batch.sources.items() if name not in own}
        yield replace(batch, sources=votes)


def _about(path: str | Path, file: Path, sources: Sequence[Source], options: dict[str, Any]) -> dict[str, str]:
    """What must be the same for a run to be gone on with, by the names that messages use."""
    return {
        "the input": "" if str(path) == STANDARD else _print_of(Path(path)),
        "the sources": _print_of(file),
        "the files that sources use": " ".join(map(_stamp, paths_of(sources))),
        "the options of reading": json.dumps(options, sort_keys=True, default=str),
        "the version of tagweave": f"{__version__}, {BATCH}",
    }


def _print_of(path: Path) -> str:
    """What tells a file from others: its size, its beginning and its end; for a folder, all files in it."""
    if path.is_dir():
        return hashlib.sha256("\n".join(map(_stamp, sorted(path.rglob("*")))).encode()).hexdigest()
    try:
        with plain_file(path).open("rb") as handle:
            size = handle.seek(0, 2)
            handle.seek(0)
            ends = hashlib.sha256(handle.read(_ENDS))
            handle.seek(max(size - _ENDS, 0))
            ends.update(handle.read(_ENDS))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    return f"{size} bytes, {ends.hexdigest()}"


def paths_of(sources: Iterable[Source]) -> list[Path]:
    """The files and folders that sources use, by their settings; not those that they write."""
    named = [(source, field.name) for source in sources for field in setting_fields(type(source))]
    return list(_paths(getattr(source, name) for source, name in named if name not in _WRITTEN))


def _paths(values: Iterable[Any]) -> Iterator[Path]:
    """The paths among some settings."""
    for value in values:
        if isinstance(value, Path):
            yield value
        elif isinstance(value, list | tuple):
            yield from _paths(value)
        elif isinstance(value, dict):
            yield from _paths(value.values())


def _stamp(path: Path) -> str:
    """Name, size and time of a file, or of those in a folder."""
    if not path.exists():
        return str(path)
    return f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}"
