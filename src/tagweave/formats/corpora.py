"""Documents one by one to corpora: all in one, or a stream of small ones for files that do not fit into memory."""

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from tagweave.corpus import Corpus, CorpusBuilder, Document
from tagweave.errors import DataError, FormatError, UsageError
from tagweave.formats.base import AnyPath, Format, Types, placed, report_overlaps
from tagweave.formats.problems import Problems
from tagweave.formats.soft_columns import SoftColumns
from tagweave.formats.streams import shown_name


def corpora_of(
    format: Format,
    path: AnyPath,
    types: Types,
    options: Any,  # noqa: ANN401
    documents: int | None = None,
) -> Iterator[Corpus]:
    """The documents of a file as corpora, with one `FormatWarning` in the end.

    Args:
        format: a format that can be read.
        path: the file or folder.
        types: entity types that are declared.
        options: of the format's `read_options`.
        documents: size of a corpus. One is given out when it has as many, but never within a group. None puts all into
            one.

    Raises:
        UsageError: the format cannot be read.
        DataError: the content is wrong, or an id occurs twice in the file.
    """
    if format.documents is None:
        raise UsageError(f"the format {format.name} can be written, but not read")
    problems = Problems(shown_name(path))
    found = format.documents(path, options, problems)
    batch = _Batch(shown_name(path), None if documents is None else SeenNames())
    document = next(found, None)
    while document is not None:
        if documents is not None and batch.size >= documents and batch.may_end_before(document):
            yield batch.corpus(types, problems)
        try:
            batch.add(document)
        except DataError as error:
            document = _raised_inside(found, error, shown_name(path))
        else:
            document = next(found, None)
    if batch.size or documents is None:
        yield batch.corpus(types, problems)
    problems.warn()


def _raised_inside(found: Iterator[Document], error: DataError, name: str) -> Document | None:
    """What comes next after an error is raised where a reader made a document.

    A reader that knows lines or records adds them to the error, or leaves the record out and goes on.
    """
    if not isinstance(found, Generator):
        raise placed(error, name)
    try:
        document: Document = found.throw(error)
    except StopIteration:
        return None
    except DataError as raised:
        raise (placed(error, name) if raised is error else raised) from None
    return document


class _Batch:
    """A corpus in the making, one after the other.

    Args:
        name: the file, as messages show it.
        ids: the ids of the batches that are done, None if there is only one.
    """

    def __init__(self, name: str, ids: "SeenNames | None") -> None:
        self._name = name
        self._ids = ids
        self._annotators: set[str | None] | None = None
        self._begin()

    def _begin(self) -> None:
        self._builder = CorpusBuilder()
        self._soft = SoftColumns()
        self._first: str | None = None
        self._group: str | None = None

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self._builder)

    def may_end_before(self, document: Document) -> bool:
        """Whether the document begins a new group, or is of none."""
        return document.group is None or document.group != self._group

    def add(self, document: Document) -> None:
        """Append a document.

        Raises:
            DataError: its id has been seen, or something else that `CorpusBuilder` refuses.
        """
        if self._ids is not None and document.id in self._ids:
            raise DataError(f"document id {document.id!r} occurs twice")
        self._builder.add(document)
        if self._ids is not None:
            self._ids.add(document.id)
        self._soft.add(self.size - 1, document)
        self._first = document.id if self._first is None else self._first
        self._group = document.group

    def corpus(self, types: Types, problems: Problems) -> Corpus:
        """The corpus, after which a new one begins."""
        try:
            corpus = self._builder.build(types.types, types.coarse)
            corpus = self._soft.attach(corpus, types.types is not None)
            self._check_annotators()
        except DataError as error:
            raise placed(error, self._name) from None
        report_overlaps(problems, corpus)
        self._begin()
        return corpus

    def _check_annotators(self) -> None:
        """Whoever gives soft labels gives them for every document, of all batches."""
        if self._annotators is not None and self._soft.annotators != self._annotators:
            raise FormatError(
                f"document {self._first!r} has other soft labels, or none, than the documents before it: whoever gives "
                "soft labels gives them for every document"
            )
        self._annotators = self._soft.annotators


class SeenNames:
    """Names that have been seen, ids for instance, eight bytes each: their hashes, most of them in a sorted array.

    Two of ten million different names have the same hash in one file of four hundred thousand.
    """

    _MOST = 1 << 17

    def __init__(self) -> None:
        self._new: set[int] = set()
        self._sorted = np.zeros(0, np.int64)

    def __contains__(self, name: str) -> bool:
        number = hash(name)
        if number in self._new:
            return True
        place = int(np.searchsorted(self._sorted, number))
        return place < len(self._sorted) and int(self._sorted[place]) == number

    def add(self, name: str) -> None:
        """Note that a name was seen."""
        self._new.add(hash(name))
        if len(self._new) >= self._MOST:
            new = np.fromiter(self._new, np.int64, len(self._new))
            self._sorted = np.sort(np.concatenate([self._sorted, new]), kind="stable")
            self._new = set()
