"""`SpreadCorpus`: a corpus whose shards are read, kept and counted in other processes, on one machine or many.

Each worker has some of the shards for as long as the corpus is in use. A label model asks for the counts of each part,
and adds them up in the order of the shards. A worker that dies is replaced, and what it had is made anew.
"""

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from tagweave.errors import TagweaveWarning, unknown_name
from tagweave.parts import Elsewhere
from tagweave.shards.engines import Team, engine_of, lost
from tagweave.shards.working import Died, Task, caught
from tagweave.stored import StoredCorpus, StoredObservations
from tagweave.stored.frames import Frame
from tagweave.stored.labelling import read_parts

Result = TypeVar("Result")

_RETRIES = 2

Shelf = dict[tuple[int, Path], Any]
"""What a worker keeps, by number of the step and shard."""


# In the workers: recipes say how the parts of a shard are made, so that any worker can make them


@dataclass(frozen=True)
class _Read:
    """Reads the documents."""

    number: int
    coarse: Mapping[str, Sequence[str]]

    def parts(self, shard: Path, shelf: Shelf) -> StoredCorpus:
        """The parts of a shard."""
        if (self.number, shard) not in shelf:
            shelf[self.number, shard] = StoredCorpus(read_parts(shard, coarse=self.coarse))
        found: StoredCorpus = shelf[self.number, shard]
        return found


@dataclass(frozen=True)
class _Within:
    """Gives them the types of all shards, and chosen sources."""

    read: _Read
    frame: Frame
    sources: tuple[str, ...]

    def parts(self, shard: Path, shelf: Shelf) -> StoredCorpus:
        """The parts of a shard."""
        return self.read.parts(shard, shelf).within(self.frame, self.sources)


@dataclass(frozen=True)
class _Made:
    """Makes something of each part."""

    number: int
    of: "_Recipe"
    function: Callable[[Any], Any]
    kept: bool

    def parts(self, shard: Path, shelf: Shelf) -> Iterable[Any]:
        """The parts of a shard."""
        if not self.kept:
            return map(self.function, self.of.parts(shard, shelf))
        if (self.number, shard) not in shelf:
            shelf[self.number, shard] = StoredObservations(map(self.function, self.of.parts(shard, shelf)))
        found: StoredObservations = shelf[self.number, shard]
        return found


_Recipe = _Read | _Within | _Made


class _Answer(NamedTuple):
    """What a worker says of a shard."""

    value: Any
    warnings: tuple[str, ...]


@dataclass
class _Keeper:
    """The work of one worker."""

    shelf: Shelf = field(default_factory=dict)

    def work(self, name: str, shard: Path, recipe: _Recipe, function: Callable[[Any], Any]) -> _Answer | Exception:
        """What a function says of the parts of a shard, or an error that names the shard."""
        return caught(name, lambda: function(recipe.parts(shard, self.shelf)), _Answer)


def _frame_of(stored: StoredCorpus) -> Frame:
    return stored.frame


def _split_group(stored: StoredCorpus) -> tuple[str | None, set[str]]:
    """A group that is cut into parts, and the groups that there are."""
    groups = [part.groups.unique().to_pylist() for part in stored if part.groups is not None]
    return stored.split_group, {name for names in groups for name in names if name is not None}


def _of_each(function: Callable[[Any], Result], parts: Iterable[Any]) -> list[Result]:
    return list(map(function, parts))


def _of_first(function: Callable[[Any], Result], parts: Iterable[Any]) -> Result:
    return function(next(iter(parts)))


# Here


class Crew:
    """Workers that keep their shards.

    Args:
        team: the workers.
        shards: files of documents.
    """

    def __init__(self, team: Team, shards: Sequence[Path]) -> None:
        self.shards = list(shards)
        self.numbers = count()
        self._team = team
        self._told: set[str] = set()
        self._places = _shared_out([shard.stat().st_size for shard in shards], len(team))

    def ask(
        self, recipe: _Recipe, function: Callable[[Any], Result], only: Sequence[int] | None = None
    ) -> list[Result]:
        """What a function says of the parts of each shard, in the order of the shards.

        Args:
            recipe: how the parts are made.
            function: is called with the parts of a shard.
            only: numbers of shards; None asks for all.

        Raises:
            TagweaveError: of the first shard that has one; the message names it.
        """
        asked = range(len(self.shards)) if only is None else only
        queues: list[deque[Task]] = [deque() for _ in range(len(self._team))]
        tasks = {}
        for number in asked:
            shard = self.shards[number]
            tasks[number] = Task(shard.name, (shard.name, shard, recipe, function))
            queues[self._places[number]].append(tasks[number])
        numbers = {id(task): number for number, task in tasks.items()}
        found: dict[int, Any] = {}
        for task, outcome in self._team.work(lambda place: queues[place].popleft() if queues[place] else None):
            number = numbers[id(task)]
            answer = lost(task, outcome, _RETRIES) if isinstance(outcome, Died) else outcome
            if answer is None:
                queues[self._places[number]].appendleft(task)
                continue
            found[number] = answer
            if isinstance(answer, Exception):
                for queue in queues:
                    queue.clear()
        if errors := [found[number] for number in asked if isinstance(found.get(number), Exception)]:
            raise errors[0]
        for number in asked:
            self._tell(self.shards[number].name, found[number].warnings)
        return [found[number].value for number in asked]

    def _tell(self, name: str, messages: Iterable[str]) -> None:
        for message in messages:
            text = f"shard {name!r}: {message}"
            if text not in self._told:
                self._told.add(text)
                warnings.warn(text, TagweaveWarning, stacklevel=4)


def _shared_out(sizes: Sequence[int], workers: int) -> list[int]:
    """Which worker has which shard: each next one, by size, goes where there is least.

    >>> _shared_out([5, 9, 4, 1], 2)
    [1, 0, 1, 0]
    """
    load, places = [0] * workers, [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda each: -sizes[each]):
        places[number] = min(range(workers), key=lambda worker: load[worker])
        load[places[number]] += sizes[number] + 1
    return places


class _Spread(Elsewhere):
    """Parts in workers.

    Args:
        crew: the workers.
        recipe: how the parts are made.
        filled: number of a shard that has parts.
    """

    def __init__(self, crew: Crew, recipe: _Recipe, filled: int) -> None:
        self._crew, self._recipe, self._filled = crew, recipe, filled

    def each(self, function: Callable[[Any], Result]) -> Iterator[Result]:
        """What a function says of each part, in order."""
        return chain.from_iterable(self._crew.ask(self._recipe, partial(_of_each, function)))

    def first(self, function: Callable[[Any], Result]) -> Result:
        """What a function says of the first part."""
        return self._crew.ask(self._recipe, partial(_of_first, function), [self._filled])[0]

    def mapped(self, function: Callable[[Any], Any], *, kept: bool) -> "_Spread":
        """What a function makes of the parts, where they are."""
        recipe = _Made(next(self._crew.numbers), self._recipe, function, kept)
        return _Spread(self._crew, recipe, self._filled)


class SpreadCorpus(_Spread):
    """A corpus in shards, which workers read and keep; label models learn the same from it as from `StoredCorpus`.

    Args:
        crew: the workers, from `spread_crew`.
        coarse: types that each stand for one of several.

    Attributes:
        frame: what all parts have in common.
        sources: names of the sources.

    Raises:
        DataError: the content of a shard is wrong, or shards do not fit each other; the message names the shard.
        ShardError: a worker fails.
    """

    def __init__(self, crew: Crew, coarse: Mapping[str, Sequence[str]] | None = None) -> None:
        self._read = _Read(next(crew.numbers), dict(coarse or {}))
        self.frame = Frame()
        frames = crew.ask(self._read, _frame_of)
        for frame in frames:
            self.frame.add(frame)
        filled = next((number for number, frame in enumerate(frames) if frame.parts), 0)
        super().__init__(crew, self._read, filled)
        self._choose(self.frame.sources)

    def _choose(self, sources: tuple[str, ...]) -> None:
        self.sources = sources
        self._recipe = _Within(self._read, self.frame, sources)

    @property
    def types(self) -> tuple[str, ...]:
        """Entity types of all parts."""
        return self.frame.types

    @property
    def split_group(self) -> str | None:
        """A group of which not all documents are in one part, or None."""
        seen: set[str] = set()
        for split, names in self._crew.ask(self._read, _split_group):
            if split is not None or seen & names:
                return split or min(seen & names)
            seen |= names
        return None

    def __len__(self) -> int:
        """Number of parts."""
        return self.frame.parts

    def select_sources(self, names: Sequence[str]) -> Self:
        """Only the named sources, in the given order.

        Raises:
            UsageError: there is no such source.
        """
        for name in names:
            if name not in self.frame.sources:
                raise unknown_name("source", name, self.frame.sources)
        chosen = copy.copy(self)
        chosen._choose(tuple(names))
        return chosen


@contextmanager
def spread_crew(
    shards: Sequence[Path], processes: int = 1, *, engine: str = "local", address: str = "auto"
) -> Iterator[Crew]:
    """Workers for some shards; they end with the block. Label models must be defined in a module, not in the script.

    Args:
        shards: files of documents that all workers see.
        processes: how many workers at most.
        engine: `local` for processes of this machine, `ray` for actors in a Ray cluster.
        address: of the Ray cluster.
    """
    size = max(1, min(processes, len(shards)))
    with engine_of(engine, _Keeper(), size, address=address, gpus=0, hidden=True) as workers:
        yield Crew(Team(workers, size), [Path(shard).absolute() for shard in shards])
