"""Hugging Face datasets: folders that `save_to_disk` makes, and Parquet files; see `tagweave.formats.tables`.

The package `datasets` is not needed for either: both are Arrow tables with the features of their columns beside them.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tagweave.corpus import Corpus, Document
from tagweave.errors import FormatError, UsageError
from tagweave.formats import features
from tagweave.formats.arrow_sizes import LEAST_VALUE, unpacked
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.json_lines import json_object
from tagweave.formats.parquet_footer import values_and_bytes
from tagweave.formats.problems import Problems
from tagweave.formats.streams import STANDARD, packed_too_well, read_text, shown_name, too_well_packed, written
from tagweave.formats.tables import ROWS, ReadTable, Table, TableWriter, held_by_tables, table_documents
from tagweave.storage import is_inside, new_folder, plain_file, write_json

_INFO, _STATE, _SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"


@dataclass(frozen=True)
class ReadDataset(ReadTable):
    """Options of reading a folder of `save_to_disk`."""

    split: str | None = None
    """Name of the split, for a folder with several."""


def parquet_documents(path: AnyPath, options: ReadTable, problems: Problems) -> Iterator[Document]:
    """The documents of a Parquet file, a part at a time.

    Raises:
        UsageError: the file cannot be opened, or has not the columns.
        FormatError, AlignmentError, LabelError: the file is broken, or a row is wrong; the message names it.
    """
    from pyarrow.parquet import ParquetFile

    _check_name(path)
    with _reading(path):
        file = ParquetFile(plain_file(path))
    with file:
        _check_size(file.metadata, Path(path))
        with _reading(path):
            schema = file.schema_arrow
            _ = schema.names, str(schema)  # decodes what it is called
            strings = [column.path for column in map(file.schema.column, range(len(file.schema))) if _is_string(column)]
    with _reading(path):
        file = ParquetFile(plain_file(path), read_dictionary=strings)  # so a string that comes often is there once
    with file:
        table = Table(
            shown_name(path),
            schema,
            _features(schema, path),
            lambda: _batches(path, partial(file.iter_batches, batch_size=ROWS)),
            Path(path).stat().st_size,
        )
        yield from table_documents(path, table, options, problems)


def _is_string(column: Any) -> bool:  # noqa: ANN401
    """Whether a column of Parquet holds strings."""
    return bool(column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL")


def _check_name(path: AnyPath) -> None:
    """Refuse what cannot be read from its end.

    Raises:
        UsageError: the path is standard input or output, or ends in `.gz`.
    """
    if str(path) == STANDARD or str(path).endswith(".gz"):
        raise UsageError(
            f"{shown_name(path)}: a Parquet file is read from its end, and packed inside: name a plain file"
        )


def _check_size(metadata: Any, path: Path) -> None:  # noqa: ANN401
    """Refuse a file that holds far more than its size: a value that is repeated takes no room in it.

    Raises:
        FormatError: it is one.
    """
    for number, (values, pages) in enumerate(values_and_bytes(path)):
        size = max(metadata.row_group(number).total_byte_size, pages, LEAST_VALUE * values)
        if packed_too_well(path.stat().st_size, size):
            raise FormatError(f"{path}: {too_well_packed('write it as JSON lines')}")


def dataset_documents(path: AnyPath, options: ReadDataset, problems: Problems) -> Iterator[Document]:
    """The documents of a folder that `save_to_disk` made, or of one split of it.

    Raises:
        UsageError: there is no such folder or split, or it has not the columns.
        FormatError, AlignmentError, LabelError: the folder is broken, or a row is wrong; the message names it.
    """
    folder = _split(Path(path), options.split)
    files = _data_files(folder)
    schema = _schema(files[0])
    info = _object(folder / _INFO) if (folder / _INFO).exists() else {}
    known = info.get("features")
    table = Table(
        str(folder),
        schema,
        known if isinstance(known, dict) else _features(schema, folder),
        lambda: (batch for file in files for batch in _batches(file, partial(_streamed, file))),
        sum(file.stat().st_size for file in files if file.exists()),
    )
    return table_documents(folder, table, options, problems)


def _features(schema: Any, path: AnyPath) -> Any:  # noqa: ANN401
    try:
        return features.of_schema(schema)
    except FormatError as error:
        raise placed(error, f"{shown_name(path)}, metadata") from None


def _object(path: Path) -> dict[str, Any]:
    try:
        return json_object(read_text(path))
    except FormatError as error:
        raise placed(error, str(path)) from None


def _split(folder: Path, split: str | None) -> Path:
    """The folder of a split."""
    if not (folder / _SPLITS).exists():
        if not (folder / _STATE).exists():
            raise UsageError(f"{folder} is no folder that save_to_disk made: it has neither {_STATE} nor {_SPLITS}")
        if split is not None:
            raise UsageError(f"{folder} has no splits: leave 'split' out")
        return folder
    names = _object(folder / _SPLITS).get("splits")
    if not isinstance(names, list) or not all(isinstance(name, str) and _is_plain(name) for name in names):
        raise FormatError(f"{folder / _SPLITS}: 'splits' must be a list of names of folders")
    if split is None or split not in names:
        what = "has several splits" if split is None else f"has no split {split!r}"
        raise UsageError(f"{folder} {what}: name one of {', '.join(names)} by 'split'")
    return folder / split


def _is_plain(name: str) -> bool:
    """Whether a name leads to nowhere else."""
    return is_inside(name) and "/" not in name


def _data_files(folder: Path) -> list[Path]:
    """The Arrow files of a folder, in order."""
    state = _object(folder / _STATE)
    files = state.get("_data_files")
    found = [file.get("filename") for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    names = [name for name in found if isinstance(name, str) and _is_plain(name)]
    if not names or len(names) < len(found):
        raise FormatError(f"{folder / _STATE}: '_data_files' must be a list of names of files in this folder")
    if state.get("_indices_data_files"):
        raise FormatError(f"{folder} is a selection of rows of an old version of datasets: load it and save it again")
    return [folder / name for name in names]


def _schema(file: Path) -> Any:  # noqa: ANN401
    with _reading(file), pa.memory_map(str(plain_file(file))) as source, pa.ipc.open_stream(source) as stream:
        _ = stream.schema.names, str(stream.schema)  # decodes what it is called
        return stream.schema


def _streamed(file: Path) -> Iterator[Any]:
    """The batches of a file.

    Raises:
        FormatError: one of them is far larger than the file.
    """
    with pa.memory_map(str(plain_file(file))) as source:
        for message in pa.ipc.MessageReader.open_stream(source):
            if packed_too_well(file.stat().st_size, unpacked(message)):
                raise FormatError(f"{file}: {too_well_packed('save it without compression')}")
    with pa.memory_map(str(plain_file(file))) as source, pa.ipc.open_stream(source) as stream:
        yield from stream


@contextmanager
def _reading(path: AnyPath) -> Iterator[None]:
    """Errors of Arrow as ours.

    Raises:
        UsageError: the file is not there.
        FormatError: the file is broken.
    """
    try:
        yield
    except FileNotFoundError:
        raise UsageError(f"{path} cannot be read: there is no such file") from None
    except (pa.ArrowException, OSError, RuntimeError, ValueError) as error:
        raise FormatError(f"{path} cannot be read: {str(error)[:200]}") from None


def _batches(path: AnyPath, make: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """The batches of a file; errors that come out of Arrow are ours, those of whoever uses a batch are not touched."""
    with _reading(path):
        batches = iter(make())
    while True:
        with _reading(path):
            batch = next(batches, None)
            if batch is not None:
                batch.validate(full=True)  # Arrow believes offsets that lead out of a file, unless it is told to look
        if batch is None:
            return
        yield batch


def write_parquet(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write a Parquet file, which `datasets` reads with `Dataset.from_parquet` and the names of its labels.

    Raises:
        UsageError: the file cannot be written, or ends in `.gz`.
    """
    from pyarrow.parquet import ParquetWriter

    _check_name(path)
    problems = Problems(shown_name(path))
    table = TableWriter(held_by_tables(corpus, problems))
    with written(path) as handle, ParquetWriter(handle, table.schema) as writer:
        for batch in table.batches():
            writer.write_batch(batch)
    problems.warn()


def write_dataset(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write a folder for `datasets.load_from_disk`; one that was written so before is replaced.

    Raises:
        UsageError: the folder cannot be written.
        StorageError: there is a folder that was not written so.
    """
    if str(path) == STANDARD:
        raise UsageError("datasets are written as folders: name one")
    problems = Problems(shown_name(path))
    table = TableWriter(held_by_tables(corpus, problems))
    data = "data-00000-of-00001.arrow"
    with new_folder(Path(path)) as work:
        with pa.OSFile(str(work / data), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            for batch in table.batches():
                stream.write_batch(batch)
        with (work / data).open("rb") as handle:
            fingerprint = hashlib.file_digest(handle, "sha256").hexdigest()[:16]
        write_json(work / _STATE, {**_NO_VIEW, "_data_files": [{"filename": data}], "_fingerprint": fingerprint})
        write_json(work / _INFO, {**_NO_INFO, "features": table.features})
    problems.warn()


_NO_VIEW: dict[str, Any] = {
    "_format_columns": None,
    "_format_kwargs": {},
    "_format_type": None,
    "_output_all_columns": False,
    "_split": None,
}
"""The state of a dataset that is seen as it is."""

_NO_INFO = {"citation": "", "description": "", "homepage": "", "license": ""}


PARQUET = Format(
    name="parquet",
    suffixes=(".parquet",),
    documents=parquet_documents,
    read_options=ReadTable,
    write=write_parquet,
)

DATASETS = Format(
    name="datasets",
    suffixes=(),
    documents=dataset_documents,
    read_options=ReadDataset,
    recognises=lambda path: any((path / name).is_file() for name in (_STATE, _SPLITS)),
    write=write_dataset,
)
