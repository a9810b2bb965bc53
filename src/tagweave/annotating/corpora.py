"""`annotate`: sources over a corpus in memory, in this process or in several."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.reduction import ForkingPickler
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tagweave.annotating.pool import Pool
from tagweave.annotating.running import TIME_LIMIT, Runner, check_order
from tagweave.annotating.statistics import Statistics, add_up
from tagweave.annotating.workers import CannotStart
from tagweave.annotations import AnnotationsBuilder, Span
from tagweave.corpus import LINK_TYPES, Corpus, Document
from tagweave.errors import TagweaveWarning, UsageError
from tagweave.labels import OUTSIDE
from tagweave.progress import track
from tagweave.sources.base import Source

BATCH = 250
"""Documents that are worked on together, more where a group is larger."""


class Votes(NamedTuple):
    """What sources said of a document, and linking rules."""

    sources: dict[str, Sequence[Span] | None]
    links: dict[str, Sequence[Span] | None]


def votes_of(names: Sequence[str], corpus: Corpus, documents: Sequence[Document]) -> list[Votes]:
    """What some sources say of each document."""
    return [
        Votes(*({name: votes[name] for name in names if name in votes} for votes in (document.sources, document.links)))
        for document in documents
    ]


def annotate(
    corpus: Corpus,
    sources: Sequence[Source],
    *,
    processes: int = 1,
    tolerant: bool = False,
    time_limit: float = TIME_LIMIT,
) -> Corpus:
    """Let sources vote on the documents of a corpus.

    Votes that are in the corpus stay, unless a source has the same name. So do its types, in their order; types that
    only the new votes have come after them.

    Args:
        corpus: the documents.
        sources: the sources, in the order in which they run; those that build on others come after them.
        processes: how many processes share the work; 1 is this one. With more, the sources are pickled: functions must
            stand at the top level of a module. Those that cannot be pickled run in this process, with a warning.
        tolerant: whether a source that fails on a document abstains there; otherwise everything stops.
        time_limit: seconds that a source may take for one document; 0 is no limit. In one process it is kept in the
            main thread only, and for code that Python can interrupt.

    Returns:
        The corpus with one more column for each source that is not hidden.

    Raises:
        SourceError: a source fails; the message names source, document and error.
        UsageError: two sources have one name, or one builds on a source that is not there.

    Warns:
        TagweaveWarning: failures were tolerated, votes were replaced, or sources cannot be pickled.

    >>> from tagweave.corpus import Document
    >>> from tagweave.sources import labeling_function
    >>> @labeling_function("LOC")
    ... def cities(document):
    ...     return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]
    >>> annotate(Corpus.from_documents([Document("d", ["Oslo", "is", "cold"])]), [cities])[0].sources
    {'cities': [Span(start=0, end=1, type='LOC', score=None)]}
    """
    check(sources, processes, time_limit)
    check_order(sources, [*corpus.sources, *corpus.links])
    warn_replaced(replaced(corpus, sources))
    done: dict[str, Statistics] = {}
    total = -(-len(corpus) // BATCH)
    processes = min(processes, total)
    parts = _in_several(corpus, sources, processes, tolerant, time_limit, done) if processes > 1 else None
    if parts is None:
        parts = _in_one(corpus, sources, tolerant, time_limit, done)
    found = [votes for part in track(parts, "annotating, batches", total) for votes in part]
    warn_failures(done)
    return _joined(corpus, sources, found)


def check(sources: Sequence[Source], processes: int, time_limit: float) -> None:
    """Refuse what cannot be.

    Raises:
        UsageError: no sources, two of one name, or a number that makes no sense.
    """
    names = [source.name for source in sources]
    twice = [name for name in names if names.count(name) > 1]
    if not names:
        raise UsageError("there are no sources to annotate with")
    if twice:
        raise UsageError(f"two sources are called {twice[0]!r}")
    if processes < 1:
        raise UsageError(f"processes must be at least 1, not {processes}")
    if not time_limit >= 0:
        raise UsageError(f"the time limit must be a number of seconds, or 0 for none, not {time_limit}")


def replaced(corpus: Corpus, sources: Iterable[Source]) -> list[str]:
    """Names of sources of which the corpus has votes already."""
    return [source.name for source in sources if source.name in corpus.sources or source.name in corpus.links]


def warn_replaced(names: Sequence[str]) -> None:
    """Say that votes in the input give way."""
    if names:
        warnings.warn(
            TagweaveWarning(f"the input has votes of {', '.join(map(repr, names))} already; they are replaced"),
            stacklevel=3,
        )


def warn_failures(statistics: Mapping[str, Statistics]) -> None:
    """Say which sources failed, how often, and how it began."""
    for name, done in statistics.items():
        if done.failures:
            slow = f", {done.timeouts} of them by taking too long" if done.timeouts else ""
            message = f"source {name!r} failed {done.failures} times{slow}, and abstains there"
            warnings.warn(TagweaveWarning(f"{message}. First: {done.first_failure}"), stacklevel=3)


def parts_of(corpus: Corpus, documents: int) -> Iterator[Corpus]:
    """Consecutive parts of at least so many documents that cut no group; the last may be smaller.

    >>> from tagweave.corpus import Document
    >>> corpus = Corpus.from_documents(Document(name, ["a"], group=name[0]) for name in ["a1", "a2", "a3", "b1"])
    >>> [part.id_list for part in parts_of(corpus, 2)]
    [['a1', 'a2', 'a3'], ['b1']]
    """
    numbers = corpus.group_numbers
    first = 0
    while first < len(corpus):
        last = min(first + documents, len(corpus))
        while last < len(corpus) and numbers[last] == numbers[last - 1]:
            last += 1
        yield corpus.subset(np.arange(first, last))
        first = last


def _in_one(
    corpus: Corpus, sources: Sequence[Source], tolerant: bool, time_limit: float, done: dict[str, Statistics]
) -> Iterator[list[Votes]]:
    runner = Runner(sources, tolerant=tolerant, time_limit=time_limit)
    names = tuple(source.name for source in sources)
    for part in parts_of(corpus, BATCH):
        yield votes_of(names, part, runner.run(list(part)))
        add_up(done, runner.take_statistics())


def _in_several(
    corpus: Corpus,
    sources: Sequence[Source],
    processes: int,
    tolerant: bool,
    time_limit: float,
    done: dict[str, Statistics],
) -> Iterator[list[Votes]] | None:
    """The votes from several processes, or None, with a warning, if the sources cannot get there."""
    try:
        _try_to_send(sources)
        finish = partial(votes_of, tuple(source.name for source in sources))
        pool = Pool(list(sources), sources, processes, finish, tolerant=tolerant, time_limit=time_limit)
    except CannotStart as error:
        reason = str(error)
    else:
        return _from(pool, corpus, done)
    warnings.warn(
        TagweaveWarning(
            f"the sources cannot be sent to other processes, so one process does all the work ({reason}). Functions "
            "must stand at the top level of a module that can be imported; a file of sources works with annotate_file"
        ),
        stacklevel=3,
    )
    return None


def _try_to_send(sources: Sequence[Source]) -> None:
    try:
        ForkingPickler.dumps(list(sources))
    except Exception as error:
        raise CannotStart(f"{type(error).__name__}: {error}") from error


def _from(pool: Pool, corpus: Corpus, done: dict[str, Statistics]) -> Iterator[list[Votes]]:
    with pool:
        for result in pool.run(parts_of(corpus, BATCH)):
            add_up(done, result.statistics)
            yield result.payload


def _joined(corpus: Corpus, sources: Sequence[Source], found: Sequence[Votes]) -> Corpus:
    """The corpus with the votes as columns."""
    types = {span.type for votes in found for spans in votes[0].values() for span in spans or ()}
    new = sorted(types - {OUTSIDE, *corpus.types, *corpus.coarse})
    corpus = corpus.with_types((*corpus.types, *new))
    named, linked = dict(corpus.sources), dict(corpus.links)
    for source in sources:
        named.pop(source.name, None)
        linked.pop(source.name, None)
        if source.hidden:
            continue
        builder = AnnotationsBuilder()
        for index, votes in enumerate(found):
            builder.add(index, (votes.links if source.linking else votes.sources)[source.name])
        if source.linking:
            linked[source.name] = builder.build(len(corpus), LINK_TYPES)
        else:
            named[source.name] = builder.build(len(corpus), corpus.vocabulary)
    return replace(corpus, sources=MappingProxyType(named), links=MappingProxyType(linked))
