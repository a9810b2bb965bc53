"""Commands are killed (SIGKILL) at any moment, and given once more."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torturing.processes import End, Running, count_writes, kill_at_write, run
from torturing.score import Score
from torturing.world import Command, fresh, state

Say = Callable[[str], None]

_MEASURE = 8
"""After how many kills the time of an unbroken run is measured again: other work on the machine comes and goes."""


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
        target = fresh(base, place)
        if not started_cold and number % 2:
            at = chance.randint(1, whole.writes)
            running = Running(target, command.arguments, prepare=kill_at_write(at))
            moment = f"change {at} of {whole.writes}"
        else:
            after = chance.random() * seconds[started_cold]
            running = Running(target, command.arguments, cold=started_cold)
            time.sleep(after)
            running.signal(signal.SIGKILL)
            moment = f"{after:.2f} of {seconds[started_cold]:.2f} s"
        first = running.wait()
        when = _when(first, target)
        second = run(target, command.again, cold=started_cold)
        found = state(target)
        if second.code or found != whole.state:
            difference = sorted(n for n in {*found, *whole.state} if found.get(n) != whole.state.get(n))
            score.fault(f"{moment}: code {second.code}, {difference[:5]}, {second.words[-300:]}", say)
        elif first.orphans:
            score.fault(f"{moment}: {first.orphans} processes were left", say)
        else:
            score.good(when)
    return score


def _when(end: End, place: Path) -> str:
    """When a kill came."""
    if end.code == 0:
        return "after the end"
    return "at work" if state(place) else "before anything was written"
