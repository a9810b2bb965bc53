"""`Runner`: sources over some documents; what each of them gets to see, and what becomes of what it yields."""

import time
import traceback
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tagweave.annotating.clock import Clock, TimeUp
from tagweave.annotating.statistics import Described, Statistics
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, SourceTimeout, TagweaveError, UsageError
from tagweave.pipelines import parse
from tagweave.sources.base import Source, checked, groups
from tagweave.sources.functions import FunctionSource

TIME_LIMIT = 60.0
"""Seconds that a source may take for one document, or for those that it takes together."""

_BUILDS_ON = ("of", "over", "not_over", "links")
"""Settings of a source that name earlier ones."""

_FAILURES = (Exception, SystemExit, GeneratorExit, TimeUp)
"""What a source may do to one document without harm to the run."""

Found = Sequence[Span] | None


class Runner:
    """Lets sources vote on documents.

    Sources run in order; each sees text, tokens and the votes of those before it, but no gold, and can change nothing.

    Args:
        sources: the sources.
        tolerant: what a source that fails on a document does: with `True` it abstains there and is counted, otherwise
            everything stops.
        time_limit: seconds that a source may take for one document, or for those that it takes together; 0 is no
            limit. What it takes together and too slowly, it then gets one by one (or group by group).
        beat: where to note what is being worked on, see `Clock`.

    Attributes:
        statistics: what each source has done, and each analysis that sources share.
        alone: names of the sources that get documents one by one (or group by group), though they could take more.

    >>> from tagweave.sources import labeling_function
    >>> @labeling_function("LOC")
    ... def cities(document):
    ...     return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]
    >>> [document] = Runner([cities]).run([Document("d", ["Oslo", "is", "cold"])])
    >>> document.sources
    {'cities': (Span(start=0, end=1, type='LOC', score=None),)}
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        tolerant: bool = False,
        time_limit: float = TIME_LIMIT,
        beat: MutableSequence[float] | None = None,
    ) -> None:
        self.statistics: dict[str, Statistics] = {}
        self.alone: set[str] = set()
        self._sources = list(sources)
        self._tolerant = tolerant
        self._clock = Clock(time_limit, beat)
        self._loaded = False
        self._own = {source.name for source in sources}
        self._hidden = {source.name for source in sources if source.hidden}
        self._needed = {name for source in sources for name in builds_on(source)} - self._own

    def load(self) -> None:
        """Make the sources ready.

        Raises:
            SourceError, UsageError, MissingExtraError: one of them cannot be made ready.
        """
        if self._loaded:
            return
        for source in self._sources:
            try:
                source.load()
                _check_written(source)
            except TagweaveError as error:
                message = str(error)
                named = message.startswith("source ")
                raise type(error)(message if named else f"source {source.name!r}: {message}") from error
            except Exception as error:
                raise _failure(source, None, error) from error
        self._loaded = True

    def run(self, documents: Sequence[Document], skipped: frozenset[tuple[str, str]] = frozenset()) -> list[Document]:
        """The documents with the votes of the sources; votes of the same names that they had are replaced.

        Args:
            documents: whole groups.
            skipped: pairs of a source and a document on which it must not run, because it never came back there.

        Raises:
            SourceError: a source fails, or yields what is no vote; the message names source, document and error.
        """
        self.load()
        batch = [_Shown(document, self._own, self._needed) for document in documents]
        parses: dict[str, list[Any]] = {}
        with self._clock.running():
            for number, source in enumerate(self._sources):
                self._run_source(number, source, batch, parses, skipped)
        return [shown.result(self._hidden) for shown in batch]

    def take_statistics(self) -> dict[str, Statistics]:
        """What has been done since this was last asked."""
        taken, self.statistics = self.statistics, {}
        return taken

    def _run_source(
        self,
        number: int,
        source: Source,
        batch: "Sequence[_Shown]",
        parses: dict[str, list[Any]],
        skipped: frozenset[tuple[str, str]],
    ) -> None:
        documents = [shown.document for shown in batch]
        parsed = [] if source.pipeline is None else self._parsed(source.pipeline, documents, parses)
        if source.pipeline is not None:
            documents = [replace(document, parse=doc) for document, doc in zip(documents, parsed, strict=True)]
        before = [_marks(doc) for doc in parsed]
        statistics = self.statistics.setdefault(source.name, Statistics())
        begin = time.perf_counter()
        votes = self._votes(number, source, documents, skipped)
        statistics.seconds += time.perf_counter() - begin
        statistics.counters.update(source.counters)
        source.counters.clear()
        for shown, found in zip(batch, votes, strict=True):
            statistics.count(found)
            (shown.links if source.linking else shown.sources)[source.name] = found
        for document, marks in zip(documents, before, strict=False):
            if _marks(document.parse) != marks:
                raise SourceError(f"source {source.name!r}, document {document.id!r}: it changes document.parse")

    def _parsed(self, pipeline: str, documents: Sequence[Document], parses: dict[str, list[Any]]) -> list[Any]:
        """The analyses by a pipeline; sources that need the same one share it."""
        if pipeline not in parses:
            statistics = self.statistics.setdefault(parse_name(pipeline), Statistics())
            begin = time.perf_counter()
            try:
                parses[pipeline] = list(parse(documents, pipeline))
            except TagweaveError:
                raise
            except Exception as error:
                raise SourceError(f"the pipeline {pipeline!r} fails: {type(error).__name__}: {error}") from error
            statistics.seconds += time.perf_counter() - begin
            statistics.documents += len(documents)
        return parses[pipeline]

    def _votes(
        self, number: int, source: Source, documents: Sequence[Document], skipped: frozenset[tuple[str, str]]
    ) -> list[Found]:
        found: list[Found] = [None] * len(documents)
        places = [i for i, document in enumerate(documents) if not skipped or (source.name, document.id) not in skipped]
        if type(source).annotate is Source.annotate:
            for place in places:
                found[place] = self._alone(number, source, documents[place], place)
        elif places:
            together = self._together(number, source, [documents[place] for place in places], places)
            for place, votes in zip(places, together, strict=True):
                found[place] = votes
        return found

    def _alone(self, number: int, source: Source, document: Document, place: int) -> Found:
        """The votes of a source that looks at one document at a time."""
        try:
            self._clock.start(number, place, 1)
            spans = checked(source, document, source.find(document))
            self._clock.stop()
        except _FAILURES as error:
            self._clock.stop()
            self._failed(source, document, error)
            return None
        return spans if spans is None else tuple(spans)

    def _together(
        self, number: int, source: Source, documents: Sequence[Document], places: Sequence[int]
    ) -> Iterator[Found]:
        """The votes of a source that takes several; if it fails, group by group, to find out where."""
        parts = groups(documents)
        if len(parts) > 1 and source.name not in self.alone:
            try:
                yield from self._at_once(number, source, documents, places[0])
                return
            except _FAILURES as error:
                self._clock.stop()
                if isinstance(error, TimeUp):
                    self.alone.add(source.name)
        first = 0
        for members in parts:
            try:
                votes = self._at_once(number, source, members, places[first])
            except _FAILURES as error:
                self._clock.stop()
                self._failed(source, members[0], error)
                votes = [None] * len(members)
            yield from votes
            first += len(members)

    def _at_once(self, number: int, source: Source, documents: Sequence[Document], place: int) -> list[Found]:
        if not source.keeps_time:
            self._clock.start(number, place, len(documents))
        votes = list(source.annotate(documents))
        if len(votes) != len(documents):
            raise SourceError(f"it gives votes for {len(votes)} of {len(documents)} documents")
        found = [checked(source, document, given) for document, given in zip(documents, votes, strict=True)]
        self._clock.stop()
        return [spans if spans is None else tuple(spans) for spans in found]

    def _failed(self, source: Source, document: Document, error: BaseException) -> None:
        """Note a failure, or stop.

        Raises:
            SourceError: failures are not tolerated.
        """
        if isinstance(error, TimeUp):
            error = SourceTimeout(f"it took longer than {self._clock.limit:g} seconds")
        failure = _failure(source, document, error)
        if not self._tolerant:
            raise failure from (None if isinstance(error, SourceError) else error)
        self.statistics[source.name].add(failed(failure))


def failed(failure: SourceError) -> Statistics:
    """What a failure adds to the statistics of a source."""
    return Statistics(failures=1, timeouts=int(isinstance(failure, SourceTimeout)), first_failure=str(failure))


def builds_on(source: Source) -> tuple[str, ...]:
    """The names of the sources that a source builds on."""
    named: list[str] = []
    for setting in _BUILDS_ON:
        value = getattr(source, setting, ())
        named.extend([value] if isinstance(value, str) and value else value if isinstance(value, tuple | list) else [])
    return tuple(dict.fromkeys(named))


def check_order(sources: Sequence[Source], given: Iterable[str]) -> None:
    """Check that every source comes after those that it builds on.

    Args:
        sources: the sources in order.
        given: names of the sources and linking rules that documents have votes of.

    Raises:
        UsageError: one does not.

    >>> from tagweave.sources import Renamed
    >>> check_order([Renamed("fixed", "towns", ("GPE",), {"LOC": "GPE"})], ["cities"])
    Traceback (most recent call last):
    tagweave.errors.UsageError: source 'fixed' builds on 'towns', which neither comes before it nor is in the input
    """
    known = set(given) - {source.name for source in sources}
    for source in sources:
        for name in builds_on(source):
            if name not in known:
                raise UsageError(
                    f"source {source.name!r} builds on {name!r}, which neither comes before it nor is in the input"
                )
        known.add(source.name)


def described(sources: Sequence[Source]) -> tuple[Described, ...]:
    """What a report says of the sources, each analysis before the first source that needs it."""
    found: dict[str, Described] = {}
    for source in sources:
        if source.pipeline is not None:
            name = parse_name(source.pipeline)
            found.setdefault(name, Described(name, f"Analysis by {source.pipeline}, for all that need it.", ()))
        found[source.name] = Described(source.name, source.summary, source.types)
    return tuple(found.values())


def parse_name(pipeline: str) -> str:
    """What an analysis is called among the sources."""
    return f"({pipeline})"


class _Shown:
    """A document as sources see it, and as it goes out.

    Args:
        document: as it came.
        own: names of the sources that run; what they said earlier is left out.
        needed: names of other sources that these build on; where one is missing, it did not run.
    """

    def __init__(self, document: Document, own: set[str], needed: set[str]) -> None:
        self._document = document
        self._missing = needed.difference(document.sources, document.links) if needed else ()
        self.sources: dict[str, Found] = dict.fromkeys(self._missing)
        self.links: dict[str, Found] = dict.fromkeys(self._missing)
        for mine, given in ((self.sources, document.sources), (self.links, document.links)):
            for name, votes in given.items():
                if name not in own:
                    mine[name] = votes if votes is None else tuple(votes)
        text, characters = document.text, document.characters
        if text is None or characters is None:
            text, characters = _joined(document.tokens)
        self.document = Document(
            document.id,
            tuple(document.tokens),
            text,
            tuple(characters),
            document.group,
            None,
            MappingProxyType(self.sources),
            MappingProxyType(self.links),
        )

    def result(self, hidden: set[str]) -> Document:
        """The document with all votes but those of some sources."""
        left_out = hidden.union(self._missing) if self._missing else hidden
        sources = {name: votes for name, votes in self.sources.items() if name not in left_out}
        links = {name: votes for name, votes in self.links.items() if name not in left_out}
        return replace(self._document, sources=sources, links=links)


def _joined(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text for tokens that have none, and their places in it."""
    places, start = [], 0
    for token in tokens:
        end = start + len(token)
        places.append((start, end))
        start = end + 1
    return " ".join(tokens), places


def _check_written(source: Source) -> None:
    """Refuse names that could not be read again from what is written.

    Raises:
        UsageError: the source or a type has no name, or half a character in it.
    """
    for what, name in (("the name of a source", source.name), *(("an entity type", name) for name in source.types)):
        if not name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise UsageError(f"source {source.name!r}: {name!r} cannot be {what}. Give one of whole characters")


def _failure(source: Source, document: Document | None, error: BaseException) -> SourceError:
    """The error as a user reads it: source, document, what happened, and where in the code."""
    place = f"source {source.name!r}" + ("" if document is None else f", document {document.id!r}")
    message = str(error)
    if isinstance(error, SourceError):
        return type(error)(message if message.startswith("source ") else f"{place}: {message}")
    frames = traceback.extract_tb(error.__traceback__)
    function = source.function if isinstance(source, FunctionSource) else type(source).find
    code = getattr(function, "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename] or frames
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return SourceError(f"{place}: {type(error).__name__}: {message}{where}")


def _marks(doc: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """What code is tempted to write into an analysis."""
    return tuple((span.start, span.end, span.label) for span in doc.ents), tuple(doc.spans)
