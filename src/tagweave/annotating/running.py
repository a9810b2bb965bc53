"""`Runner`: sources over some documents; what each of them gets to see, and what becomes of what it yields."""

import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, SourceTimeout, UsageError
from tagweave.labels import OUTSIDE
from tagweave.report import Cell, Table
from tagweave.sources.base import Source, checked, groups
from tagweave.sources.pipelines import parse

TIME_LIMIT = 60.0
"""Seconds that a source may take for one document."""

_BUILDS_ON = ("of", "over", "not_over", "links")
"""Settings of a source that name earlier ones."""


@dataclass
class Statistics:
    """What a source has done so far.

    Attributes:
        documents: documents that it was given.
        seconds: time spent in it.
        spans: entities that it marked, or links.
        outside: votes for O.
        abstained: documents on which it did not run, failures among them.
        failures: documents on which it raised an error.
        timeouts: failures of which it took too long.
        first_failure: the message of the first failure.
        counters: what the source itself counted.
    """

    documents: int = 0
    seconds: float = 0.0
    spans: int = 0
    outside: int = 0
    abstained: int = 0
    failures: int = 0
    timeouts: int = 0
    first_failure: str = ""
    counters: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Statistics") -> None:
        """Add what was done elsewhere."""
        self.first_failure = self.first_failure or other.first_failure
        self.counters.update(other.counters)
        for name in (f.name for f in fields(self) if f.type in (int, float)):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, votes: Sequence[Span] | None) -> None:
        """Count the votes on a document."""
        self.documents += 1
        if votes is None:
            self.abstained += 1
            return
        outside = sum(vote.type == OUTSIDE for vote in votes)
        self.outside += outside
        self.spans += len(votes) - outside


class Runner:
    """Lets sources vote on documents.

    Sources run in order; each sees text, tokens and the votes of those before it, but no gold, and can change nothing.

    Args:
        sources: the sources.
        tolerant: what a source that fails on a document does: with `True` it abstains there and is counted, otherwise
            everything stops.
        time_limit: seconds that a source may take for one document; 0 is no limit. It is kept in the main thread of a
            process, for code that Python can interrupt.
        skipped: pairs of a source and a document on which it must not run, because it never came back there.
        watch: called with the source's number and the document's before each piece of work.

    Attributes:
        statistics: what each source has done.

    >>> from tagweave.sources import labeling_function
    >>> @labeling_function("LOC")
    ... def cities(document):
    ...     return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]
    >>> [document] = Runner([cities]).run([Document("d", ["Oslo", "is", "cold"])])
    >>> document.sources
    {'cities': [Span(start=0, end=1, type='LOC', score=None)]}
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        tolerant: bool = False,
        time_limit: float = TIME_LIMIT,
        skipped: set[tuple[str, str]] | None = None,
        watch: Callable[[int, int], None] | None = None,
    ) -> None:
        self.statistics = {source.name: Statistics() for source in sources}
        self._sources = list(sources)
        self._tolerant = tolerant
        self._limit = time_limit if threading.current_thread() is threading.main_thread() else 0.0
        self._skipped = skipped or set()
        self._watch = watch or (lambda source, document: None)
        self._loaded = False

    def run(self, documents: Sequence[Document]) -> list[Document]:
        """The documents with the votes of the sources; a source in the input that has the same name is replaced.

        Args:
            documents: whole groups.

        Raises:
            SourceError: a source fails, or yields what is no vote; the message names source, document and error.
            UsageError: a source builds on another one that is not there.
        """
        self._check_names(documents)
        if not self._loaded:
            for source in self._sources:
                self._load(source)
            self._loaded = True
        batch = [_Shown(document) for document in documents]
        parses: dict[str, list[Any]] = {}
        for number, source in enumerate(self._sources):
            begin = time.perf_counter()
            for shown, votes in zip(batch, self._votes(number, source, batch, parses), strict=True):
                self.statistics[source.name].count(votes)
                (shown.links if source.linking else shown.sources)[source.name] = votes
            self.statistics[source.name].seconds += time.perf_counter() - begin
            self.statistics[source.name].counters = Counter(source.counters)
        hidden = {source.name for source in self._sources if source.hidden}
        return [shown.result(hidden) for shown in batch]

    def _check_names(self, documents: Sequence[Document]) -> None:
        known = {name for document in documents for name in (*document.sources, *document.links)}
        for source in self._sources:
            for name in builds_on(source):
                if documents and name not in known:
                    raise UsageError(
                        f"source {source.name!r} builds on {name!r}, which neither comes before it nor is in the input"
                    )
            known.add(source.name)

    def _load(self, source: Source) -> None:
        try:
            source.load()
        except Exception as error:
            raise _failure(source.name, None, error) from error

    def _votes(
        self, number: int, source: Source, batch: "list[_Shown]", parses: dict[str, list[Any]]
    ) -> "list[list[Span] | None]":
        documents = [shown.document for shown in batch]
        before = []
        if source.pipeline is not None:
            if source.pipeline not in parses:
                parses[source.pipeline] = list(parse(documents, source.pipeline))
            parsed = parses[source.pipeline]
            before = [_marks(doc) for doc in parsed]
            documents = [replace(document, parse=doc) for document, doc in zip(documents, parsed, strict=True)]
        asked = [i for i, document in enumerate(documents) if (source.name, document.id) not in self._skipped]
        found: list[list[Span] | None] = [None] * len(documents)
        work = self._by_document if type(source).annotate is Source.annotate else self._by_batch
        for i, votes in zip(asked, work(number, source, documents, asked), strict=True):
            found[i] = votes
        for document, marks in zip(documents, before, strict=False):
            if _marks(document.parse) != marks:
                raise SourceError(f"source {source.name!r}, document {document.id!r}: it changes document.parse")
        return found

    def _by_document(
        self, number: int, source: Source, documents: Sequence[Document], asked: Sequence[int]
    ) -> "Iterator[list[Span] | None]":
        for place in asked:
            self._watch(number, place)
            try:
                with _at_most(self._limit):
                    votes = checked(source, documents[place], source.find(documents[place]))
            except (Exception, SystemExit, _TimeUp) as error:
                votes = self._failed(source, documents[place], error)
            yield votes

    def _by_batch(
        self, number: int, source: Source, documents: Sequence[Document], asked: Sequence[int]
    ) -> "Iterator[list[Span] | None]":
        """All at once; if that fails, group by group, to find out which one it is."""
        self._watch(number, asked[0] if asked else 0)
        chosen = [documents[place] for place in asked]
        try:
            yield from self._together(source, chosen)
            return
        except (Exception, SystemExit, _TimeUp) as error:
            if len(groups(chosen)) == 1:
                yield from [self._failed(source, document, error) for document in chosen[:1]]
                yield from [None] * (len(chosen) - 1)
                return
        first = 0
        for members in groups(chosen):
            self._watch(number, asked[first])
            first += len(members)
            try:
                yield from self._together(source, members)
            except (Exception, SystemExit, _TimeUp) as error:
                yield self._failed(source, members[0], error)
                yield from [None] * (len(members) - 1)

    def _together(self, source: Source, documents: Sequence[Document]) -> "list[list[Span] | None]":
        with _at_most(self._limit * len(documents)):
            votes = list(source.annotate(documents))
        if len(votes) != len(documents):
            raise SourceError(f"it gives votes for {len(votes)} of {len(documents)} documents")
        return [checked(source, document, found) for document, found in zip(documents, votes, strict=True)]

    def _failed(self, source: Source, document: Document, error: BaseException) -> None:
        """Note a failure, or stop.

        Raises:
            SourceError: failures are not tolerated.
        """
        if isinstance(error, _TimeUp):
            error = SourceTimeout(f"it took longer than {self._limit:g} seconds")
        failure = _failure(source.name, document.id, error)
        if not self._tolerant:
            raise failure from (None if isinstance(error, SourceError) else error)
        statistics = self.statistics[source.name]
        statistics.failures += 1
        statistics.timeouts += isinstance(error, SourceTimeout)
        statistics.first_failure = statistics.first_failure or str(failure)


def builds_on(source: Source) -> tuple[str, ...]:
    """The names of the sources that a source builds on."""
    named: list[str] = []
    for setting in _BUILDS_ON:
        value = getattr(source, setting, ())
        named.extend([value] if isinstance(value, str) and value else value if isinstance(value, tuple | list) else [])
    return tuple(dict.fromkeys(named))


def report(sources: Sequence[Source], statistics: dict[str, Statistics]) -> Table:
    """What the sources did, as a table."""
    columns = ("source", "description", "seconds", "documents", "spans", "O votes", "abstained", "failures")
    rows: list[tuple[Cell, ...]] = [
        (source.name, source.summary, done.seconds, done.documents, done.spans, done.outside, done.abstained)
        + (done.failures,)
        for source in sources
        for done in [statistics[source.name]]
    ]
    return Table("Sources", columns, tuple(rows))


class _Shown:
    """A document as sources see it, and as it goes out."""

    def __init__(self, document: Document) -> None:
        self._original = document
        self.sources = dict(document.sources)
        self.links = dict(document.links)
        text, characters = document.text, document.characters
        if text is None or characters is None:
            text = " ".join(document.tokens)
            ends = list(accumulate((len(token) + 1 for token in document.tokens), initial=0))
            characters = [(begin, begin + len(token)) for begin, token in zip(ends, document.tokens, strict=False)]
        self.document = replace(
            document,
            tokens=tuple(document.tokens),
            text=text,
            characters=tuple(characters),
            entities=None,
            sources=MappingProxyType(self.sources),
            links=MappingProxyType(self.links),
        )

    def result(self, hidden: set[str]) -> Document:
        sources = {name: votes for name, votes in self.sources.items() if name not in hidden}
        links = {name: votes for name, votes in self.links.items() if name not in hidden}
        return replace(self._original, sources=sources, links=links)


class _TimeUp(BaseException):
    """The alarm; no `Exception`, so that a source that catches everything does not catch it."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `_TimeUp` in the main thread after some time; 0 is no limit."""
    if not seconds:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(*_: object) -> None:
    raise _TimeUp


def _failure(source: str, document: str | None, error: BaseException) -> SourceError:
    """The error as a user reads it: source, document, what happened, and where in the code."""
    place = f"source {source!r}" + ("" if document is None else f", document {document!r}")
    message = str(error)
    if isinstance(error, SourceError):
        return type(error)(message if message.startswith("source ") else f"{place}: {message}")
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return SourceError(f"{place}: {type(error).__name__}: {message}{where}")


def _marks(doc: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """What code is tempted to write into an analysis."""
    return tuple((span.start, span.end, span.label) for span in doc.ents), tuple(doc.spans)
