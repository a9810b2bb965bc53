"""Commands are killed (SIGKILL) at any moment, and given once more."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from torturing.processes import End, Running, count_writes, kill_at_write, run
from torturing.score import Score
from torturing.world import Command, fresh, state

Say = Callable[[str], None]

_MEASURE = 8
"""After how many kills the time of an unbroken run is measured again: other work on the machine comes and goes."""


def kill(command: Command, base: Path, place: Path, kills: int, seed: int, say: Say, cold: int = 2) -> Score:
    """Kill a command at random instants, half of them just before it changes a file, and run it again each time.

    Args:
        command: the command.
        base: where the inputs are.
        place: a folder that can be overwritten.
        kills: how often.
        seed: of the instants.
        say: is told what went wrong.
        cold: in how many of them the command is started as a user does, imports and all.

    Returns:
        In how many of them the second run ends with the result of an unbroken run, and leaves nothing else; by when the
        kill came.
    """
    chance = random.Random(f"{seed} {command.name}")
    expected, warm, writes = _unbroken(command, base, place, say)
    slow = run(fresh(base, place), command.arguments, cold=True)
    score = Score(f"killed: {command.name}")
    if slow.code or state(place) != expected:
        score.fault("not started twice to the same result", say)
    for number in range(kills):
        started_cold = number < cold
        if number and number % _MEASURE == 0:
            warm = run(fresh(base, place), command.arguments).seconds
        target = fresh(base, place)
        if not started_cold and number % 2:
            at = chance.randint(1, writes)
            running = Running(target, command.arguments, prepare=kill_at_write(at))
            moment = f"change {at} of {writes}"
        else:
            whole = slow.seconds if started_cold else warm
            after = chance.random() * whole
            running = Running(target, command.arguments, cold=started_cold)
            time.sleep(after)
            running.signal(signal.SIGKILL)
            moment = f"{after:.2f} of {whole:.2f} s"
        first = running.wait()
        when = _when(first, target)
        second = run(target, command.again, cold=started_cold)
        found = state(target)
        if second.code or found != expected:
            difference = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
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


def _unbroken(command: Command, base: Path, place: Path, say: Say) -> tuple[dict[str, str], float, int]:
    """The result of an unbroken run, how long it takes, and how often it changes a file."""
    first = run(fresh(base, place), command.arguments, prepare=count_writes(place / "tmp" / "writes"))
    if first.code != 0:
        raise SystemExit(f"{command.name} fails with code {first.code} after {first.seconds:.1f} s: {first.err}")
    expected, writes = state(place), int((place / "tmp" / "writes").read_text())
    warm = min(run(fresh(base, place), command.arguments).seconds for _ in range(2))
    say(f"{command.name}: {warm:.1f} s, {writes} changes of files, {len(expected)} files and folders")
    return expected, warm, writes
