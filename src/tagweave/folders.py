"""Folders of shards: what the command line does with a file, done with each file of a folder, on one machine or many.

A shard is a file of documents, JSON lines or Parquet. Each gives an output of the same name, see `tagweave.shards`.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tagweave.alternate import OUTPUTS, Round, is_alternate, load_round
from tagweave.annotating.corpora import check
from tagweave.annotating.files import Annotator, paths_of
from tagweave.annotating.running import TIME_LIMIT, described
from tagweave.annotating.statistics import Report, Statistics, add_up
from tagweave.corpus import Corpus
from tagweave.errors import DataError, TagweaveWarning, UsageError, unknown_name
from tagweave.formats import FORMATS, read, write
from tagweave.formats.streams import STANDARD
from tagweave.label_models import LabelModel
from tagweave.shards import Manifest, map_shards
from tagweave.shards.manifest import MANIFEST, sha256_of
from tagweave.sources.loading import load_sources
from tagweave.stored.frames import Frame
from tagweave.stored.labelling import needs_all, read_parts, store, write_labels
from tagweave.tagger import Tagger

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
"""Endings of shards."""


def is_folder_of_shards(path: str | Path) -> bool:
    """Whether a path is a folder that holds shards, and is of none of the formats that are folders."""
    folder = Path(path)
    if not folder.is_dir() or any(each.recognises is not None and each.recognises(folder) for each in FORMATS.values()):
        return False
    return (folder / MANIFEST).is_file() or any(each.name.endswith(SUFFIXES) for each in folder.iterdir())


def shards_of(folder: str | Path) -> list[Path]:
    """The shards of a folder, by name; files whose names begin with a dot or an underscore are none.

    Raises:
        DataError: there are none, or the run that writes the folder has not come to its end.

    Warns:
        TagweaveWarning: there are other files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for number in (2, 1):
    ...         _ = Path(name, f"part-{number}.jsonl").write_text("")
    ...     [path.name for path in shards_of(name)]
    ['part-1.jsonl', 'part-2.jsonl']
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file() and (missing := Manifest.read(folder).missing):
        raise DataError(
            f"{folder} is not complete: {len(missing)} outputs are missing, such as {min(missing)!r}. Run the command "
            "once more that writes it; it goes on where it stopped"
        )
    files = sorted(path for path in folder.iterdir() if path.name[0] not in "._" and path.name != MANIFEST)
    shards = [path for path in files if path.name.endswith(SUFFIXES) and path.is_file()]
    if not shards:
        raise DataError(f"{folder} holds no shards: files that end in {', '.join(SUFFIXES)}")
    if others := [path.name for path in files if path not in shards]:
        message = f"{folder}: {len(others)} entries are no shards and are left out, such as {others[0]!r}"
        warnings.warn(message, TagweaveWarning, stacklevel=2)
    return shards


def words_of(path: str | Path) -> Corpus:
    """The words of a file, or of all shards of a folder one after the other, in documents without all else.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for number, word in enumerate(("Ada", "Oslo")):
    ...         _ = Path(name, f"{number}.jsonl").write_text(f'{{"id": "a", "tokens": ["{word}"]}}')
    ...     words_of(name).tokens.to_pylist()
    ['Ada', 'Oslo']
    """
    files = shards_of(path) if is_folder_of_shards(path) else [path]
    empty = Corpus.from_documents([])
    ids, tokens, lengths = [empty.ids], [empty.tokens], [np.diff(empty.offsets)]
    for part in chain.from_iterable(map(read_parts, files)):
        ids.append(part.ids)
        tokens.append(part.tokens)
        lengths.append(np.diff(part.offsets))
    offsets = np.concatenate([[0], *lengths]).cumsum(dtype=np.int64)
    return Corpus(pa.concat_arrays(ids), offsets, pa.concat_arrays(tokens), ())


def check_out(folder: str | Path, out: str | Path) -> None:
    """Refuse a place for outputs that is no folder.

    Raises:
        UsageError: it is a file, or is named like one.
    """
    if str(out) == STANDARD or Path(out).is_file() or Path(out).name.endswith(SUFFIXES):
        raise UsageError(f"{folder} is a folder of shards, so their outputs go into a folder too, which {out} is not")


def annotate_folder(
    folder: str | Path,
    sources: str | Path,
    out: str | Path,
    *,
    tolerant: bool = False,
    time_limit: float = TIME_LIMIT,
    processes: int = 1,
    options: Mapping[str, Any] | None = None,
    **engine: Any,  # noqa: ANN401
) -> Report:
    """Let sources vote on the documents of all shards of a folder.

    Args:
        folder: the shards.
        sources: the file of sources, see `tagweave.load_sources`.
        out: a folder for shards with votes. Those that are there already are made anew only if the shard, the sources,
            the files that they use or the options have changed.
        tolerant: whether a source that fails on a document abstains there.
        time_limit: seconds that a source may take for one document; 0 is no limit.
        processes: how many shards are worked on at a time.
        options: options of reading, as for `tagweave.read`.
        engine: settings of `tagweave.map_shards`: `engine`, `address`, `gpus`, `retries`.

    Raises:
        SourceError: a source fails; the message names shard, source, document and error.
        ShardError: a worker dies again and again.
        UsageError: a folder, option or source does not exist, or another run writes `out`.
        DataError: the content of a shard is wrong.
    """
    begin = time.monotonic()
    check_out(folder, out)
    path = Path(sources).absolute()
    found = load_sources(path)
    check(found, processes, time_limit)
    files = tuple(file.absolute() for file in paths_of(found) if file.exists())
    votes = Votes(path, files, dict(options or {}), tolerant, time_limit)
    made = map_shards(votes, shards_of(folder), out, processes=processes, **engine)
    documents, statistics = 0, dict[str, Statistics]()
    for entry in made.entries.values():
        documents += entry.result["documents"]
        done = entry.result["statistics"].items()
        add_up(statistics, {name: Statistics.from_json(values) for name, values in done})
    return Report(documents, time.monotonic() - begin, described(found), statistics)


@dataclass(frozen=True)
class Votes:
    """Sources for shards, which every worker loads once, into a process of their own.

    Attributes:
        sources: the file of sources.
        files: that the sources use.
        options: of reading.
        tolerant: whether a source that fails on a document abstains there.
        time_limit: seconds that a source may take for one document.
    """

    sources: Path
    files: tuple[Path, ...]
    options: Mapping[str, Any]
    tolerant: bool = field(compare=False)
    time_limit: float = field(compare=False)

    def load(self) -> Callable[[Path, Path], dict[str, Any]]:
        """What writes a shard with votes, and tells what each source did."""
        annotator = Annotator(self.sources, tolerant=self.tolerant, time_limit=self.time_limit)
        return partial(_vote, annotator, self.options)


def _vote(annotator: Annotator, options: Mapping[str, Any], shard: Path, target: Path) -> dict[str, Any]:
    lines = target if target.name.endswith(SUFFIXES[:2]) else target.with_name(f"{target.name}.jsonl")
    report = annotator.annotate(shard, lines, **options)
    if lines != target:
        write(read(lines), target)
        lines.unlink()
    statistics = {name: done.to_json() for name, done in report.statistics.items()}
    return {"documents": report.documents, "statistics": statistics}


def predict_folder(
    model: str | Path,
    folder: str | Path,
    out: str | Path,
    output: str = "tagger",
    **engine: Any,  # noqa: ANN401
) -> Manifest:
    """Label the documents of all shards of a folder with a trained tagger, or with the label model that it taught.

    Args:
        model: a folder that a tagger or `AlternateTraining` wrote; every worker loads it once.
        folder: the shards.
        out: a folder for labelled shards. Those that are there already are made anew only if the shard or the model has
            changed.
        output: `tagger`, or `label-model` to ask the label model of an alternate training, which reads the votes too.
        engine: settings of `tagweave.map_shards`: `processes`, `engine`, `address`, `gpus`, `retries`.

    Raises:
        ShardError: a worker fails, or dies again and again.
        UsageError: a folder does not exist, the model has no such output, or another run writes `out`.
        DataError: the content of a shard is wrong.
        StorageError: the folder of the model is incomplete or changed.
    """
    check_out(folder, out)
    labels = Labels(Path(model).absolute(), output)
    labels.check()
    return map_shards(labels, shards_of(folder), out, **engine)


@dataclass(frozen=True)
class Labels:
    """Labels documents with what a folder holds, which is loaded once in each worker.

    Attributes:
        model: a folder that a tagger or `AlternateTraining` wrote.
        output: which of its models.
    """

    model: Path
    output: str = "tagger"

    def check(self) -> None:
        """Look whether the folder can have this output.

        Raises:
            UsageError: it cannot.
        """
        if self.output not in OUTPUTS:
            raise unknown_name("output", self.output, OUTPUTS)
        if self.output != "tagger" and not is_alternate(self.model):
            raise UsageError(
                f"{self.model} holds a tagger only: --output {self.output} needs a folder that `alternate` wrote"
            )

    def load(self) -> Callable[[Path, Path], None]:
        """What labels a file, part by part."""
        self.check()
        if not is_alternate(self.model):
            return partial(_label, Tagger.load(self.model))
        found = load_round(self.model)[0]
        return partial(_label, found.tagger) if self.output == "tagger" else partial(_label_by_votes, found)


def _label(tagger: Tagger, path: Path, out: Path) -> None:
    write_labels(map(tagger.predict, read_parts(path, whole=needs_all(out))), out)


def _label_by_votes(found: Round, path: Path, out: Path) -> None:
    stored = store(path, whole=needs_all(out))
    found.label_model.check_groups(stored)
    write_labels((found.predict(part, "label-model") for part in stored), out, len(stored))


def label_folder(
    model: LabelModel,
    folder: str | Path,
    out: str | Path,
    *,
    frame: Frame,
    coarse: Mapping[str, Sequence[str]] | None = None,
    **engine: Any,  # noqa: ANN401
) -> Manifest:
    """Label the documents of all shards of a folder with a label model.

    Args:
        model: the model, fitted.
        folder: the shards.
        out: a folder for labelled shards. Those that are there already are made anew only if the shard or the model has
            changed.
        frame: types and sources of all shards, from a `SpreadCorpus` of them.
        coarse: types that each stand for one of several.
        engine: settings of `tagweave.map_shards`: `processes`, `engine`, `address`, `gpus`, `retries`.

    Raises:
        ShardError: a worker fails, or dies again and again.
        UsageError: the shards lack a source of the fit, or another run writes `out`.
        DataError: the content of a shard is wrong.
    """
    check_out(folder, out)
    for name in model.sources_ or ():
        if name not in frame.sources:
            raise unknown_name("source", name, frame.sources)
    with tempfile.TemporaryDirectory() as temporary:
        model.save(Path(temporary, "model"))
        identity = sha256_of(Path(temporary, "model"))
    votes = VotedLabels(identity, frame.to_json(), dict(coarse or {}), model, frame)
    return map_shards(votes, shards_of(folder), out, **engine)


@dataclass(frozen=True)
class VotedLabels:
    """Labels the documents of shards with a label model.

    Attributes:
        identity: tells the model from others.
        names: tells the frame from others.
        coarse: types that each stand for one of several.
        model: the model, fitted.
        frame: types and sources of all shards.
    """

    identity: str
    names: Mapping[str, Any]
    coarse: Mapping[str, Sequence[str]]
    model: LabelModel = field(compare=False, repr=False)
    frame: Frame = field(compare=False, repr=False)

    def __call__(self, shard: Path, target: Path) -> None:
        """Label the documents of a shard."""
        stored = store(shard, whole=needs_all(target), coarse=self.coarse)
        corpus = stored.within(self.frame, self.model.sources_ or ())
        write_labels(self.model.predict_parts(corpus), target, len(corpus))
