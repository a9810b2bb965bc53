"""Commands are killed (SIGKILL) at any moment, and given once more."""

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from torturing.processes import End, Running, count_writes, kill_at_write, run
from torturing.score import Score
from torturing.world import Command, fresh, state

Say = Callable[[str], None]

_MEASURE = 8
"""After how many kills the time of an unbroken run is measured again: other work on the machine comes and goes."""

_AIMS = 4
"""How often a command is given again whose end came before the kill."""


@dataclass(frozen=True)
class Unbroken:
    """A run of a command that nothing happens to.

    Attributes:
        state: what it makes.
        seconds: how long it takes.
        writes: how often it changes a file.
    """

    state: dict[str, str]
    seconds: float
    writes: int


@cache
def unbroken(command: Command, base: Path, place: Path) -> Unbroken:
    """Run a command twice, which must come to one result; the first run may compile, the second is measured."""
    first = run(fresh(base, place), command.arguments)
    if first.code != 0:
        raise SystemExit(f"{command.name} fails with code {first.code} after {first.seconds:.1f} s: {first.err}")
    found, count = state(place), place / "tmp" / "writes"
    second = run(fresh(base, place), command.arguments, prepare=count_writes(count))
    if second.code != 0 or state(place) != found:
        raise SystemExit(f"{command.name} comes to another result when it is run again: {second.err}")
    return Unbroken(found, second.seconds, int(count.read_text()))


def kill(
    command: Command, base: Path, place: Path, kills: int, seed: int, say: Say, cold: int, minutes: float
) -> Score:
    """Kill a command at random instants, half of them just before it changes a file, and run it again each time.

    Args:
        command: the command.
        base: where the inputs are.
        place: a folder that can be overwritten.
        kills: how often.
        seed: of the instants.
        say: is told what went wrong.
        cold: in how many of them, the last ones, the command is started as a user does, imports and all.
        minutes: after which it is enough.

    Returns:
        In how many of them the second run ends with the result of an unbroken run, and leaves nothing else; by when the
        kill came.
    """
    chance, score = random.Random(f"{seed} {command.name}"), Score(f"killed: {command.name}", minutes=minutes)
    whole = unbroken(command, base, place)
    say(f"{command.name}: {whole.seconds:.1f} s, {whole.writes} changes of files")
    seconds = {False: whole.seconds}
    for number in range(kills):
        if score.over:
            break
        started_cold = number >= kills - cold
        if started_cold not in seconds or number % _MEASURE == _MEASURE - 1:
            seconds[started_cold] = run(fresh(base, place), command.arguments, cold=started_cold).seconds
        if not started_cold and number % 2:
            at = chance.randint(1, whole.writes)
            moment = f"change {at} of {whole.writes}"
            first = run(fresh(base, place), command.arguments, prepare=kill_at_write(at))
        else:
            share = chance.random()
            begin = partial(start, command, base, place, started_cold)
            first, seconds[started_cold] = hit(begin, share, seconds[started_cold], signal.SIGKILL)
            moment = f"{share:.0%} of {seconds[started_cold]:.2f} s"
        when = _when(first, place)
        second = run(place, command.again, cold=started_cold)
        found = state(place)
        if second.code or found != whole.state:
            difference = sorted(n for n in {*found, *whole.state} if found.get(n) != whole.state.get(n))
            score.fault(f"{moment}: code {second.code}, {difference[:5]}, {second.words[-300:]}", say)
        elif first.orphans:
            score.fault(f"{moment}: {first.orphans} processes were left", say)
        else:
            score.good(when)
    return score


def hit(
    running: Callable[[], Running], share: float, seconds: float, number: int, group: bool = False
) -> tuple[End, float]:
    """Send a signal to a command when a share of its time is over; where it was faster than that, to another run of it.

    Args:
        running: starts the command.
        share: of its time, at which the signal comes.
        seconds: how long it took before.
        number: of the signal.
        group: whether all its processes get the signal.

    Returns:
        How it ended, and how long it takes by what is known now.
    """
    for _ in range(_AIMS):
        command = running()
        command.pause(share * seconds)
        command.signal(number, group)
        end = command.wait()
        if end.code != 0:
            break
        seconds = end.seconds
    return end, seconds


def start(command: Command, base: Path, place: Path, cold: bool = False) -> Running:
    """Begin a command in a fresh folder."""
    return Running(fresh(base, place), command.arguments, cold=cold)


def _when(end: End, place: Path) -> str:
    """When a kill came."""
    if end.code == 0:
        return "after the end"
    return "at work" if state(place) else "before anything was written"
