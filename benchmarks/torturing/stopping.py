"""Commands are told to end, lose their workers, or meet a rival."""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

from torturing.killing import Say, hit, start, unbroken
from torturing.processes import End, Running, run
from torturing.score import Score
from torturing.world import Command, fresh, state

_LEFT = (".new", ".lock", ".old")
"""Ends of names that no command leaves behind when it has time to end."""

WAYS = {
    "Ctrl-C": (signal.SIGINT, True, 130),
    "SIGTERM": (signal.SIGTERM, False, 143),
    "SIGTERM to all": (signal.SIGTERM, True, 143),
}


def stop(command: Command, base: Path, place: Path, times: int, seed: int, say: Say, minutes: float) -> Score:
    """Send signals to a command at random instants; it must end at once and in order, and can be given again.

    Args:
        command: the command.
        base: where the inputs are.
        place: a folder that can be overwritten.
        times: how often each signal is sent.
        seed: of the instants.
        say: is told what went wrong.
        minutes: after which it is enough.
    """
    chance, score = random.Random(f"{seed} {command.name}"), Score(f"told to end: {command.name}", minutes=minutes)
    whole = unbroken(command, base, place)
    seconds = whole.seconds
    for way in [*WAYS] * times:
        if score.over:
            break
        number, group, code = WAYS[way]
        share = chance.uniform(0.1, 0.95)
        end, seconds = hit(partial(start, command, base, place), share, seconds, number, group)
        fault = _fault(end, code, place)
        if fault is None:
            again = run(place, command.again)
            if again.code or state(place) != whole.state:
                fault = f"another result: code {again.code}, {again.words[-300:]}"
        if fault is None:
            score.good("finished before" if end.code == 0 else "ended")
        else:
            score.fault(f"{way} after {share:.0%} of {seconds:.2f} s: {fault}", say)
    return score


def _fault(end: End, code: int, place: Path) -> str | None:
    """What is wrong with how a command ended."""
    left = [path.name for path in place.rglob("*") if path.name.endswith(_LEFT)] if place.exists() else []
    left += os.listdir(place / "tmp")
    if end.code not in (0, code):
        return f"code {end.code} in place of {code}: {end.words[-300:]}"
    if end.orphans:
        return f"{end.orphans} processes were left"
    if left:
        return f"files were left: {left[:5]}"
    if "Traceback" in end.err or "Error" in end.err:
        return f"a traceback: {end.err[-800:]}"
    if end.code and ("stopped: " not in end.words or "same command" not in end.words):
        return f"no word of how to go on: {end.words[-300:]}"
    return None


def kill_workers(command: Command, base: Path, place: Path, times: int, seed: int, say: Say, minutes: float) -> Score:
    """Kill one worker of a command at a random instant: another one takes its place, and the result is the same."""
    chance, score = random.Random(f"{seed} {command.name}"), Score(f"a worker killed: {command.name}", minutes=minutes)
    whole = unbroken(command, base, place)
    for _ in range(times):
        if score.over:
            break
        target, after = fresh(base, place), chance.random() * whole.seconds
        running = Running(target, command.arguments)
        running.pause(after)
        workers = running.workers()
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        end = running.wait()
        if end.code == 0 and state(target) == whole.state and not end.orphans:
            score.good("the same result" if workers else "no worker at that moment")
        else:
            score.fault(f"after {after:.2f} s: code {end.code}, {end.words[-500:]}", say)
    return score


def rival(command: Command, base: Path, place: Path, say: Say) -> Score:
    """Give a command again while it runs: the second run is refused, the first comes to its end."""
    score = Score(f"two at once: {command.name}")
    expected = unbroken(command, base, place).state
    for arguments in dict.fromkeys((command.arguments, command.again)):
        running = Running(fresh(base, place), command.arguments)
        while not running.ended and not _locked(place / command.lock):
            time.sleep(0.002)
        running.signal(signal.SIGSTOP, group=True)
        elsewhere = place.with_name("rival")  # where what it says goes
        fresh(base, elsewhere)
        second = run(elsewhere, arguments, prepare=lambda: os.chdir(place))
        running.signal(signal.SIGCONT, group=True)
        first = running.wait()
        if second.code not in (1, 2) or "another run is writing" not in second.words or "Traceback" in second.err:
            score.fault(f"not refused: code {second.code}, {second.words[-500:]}", say)
        elif first.code or state(place) != expected:
            score.fault(f"the first was harmed: code {first.code}, {first.words[-500:]}", say)
        else:
            score.good("the second refused")
    return score


def _locked(lock: Path) -> bool:
    """Whether a run has a place; its process is written into the file once it has."""
    try:
        return lock.stat().st_size > 0
    except OSError:
        return False
