"""Runs a command on a case inside the test, with limits on time and memory, and says what is wrong with how it ends."""

import re
import resource
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from cli.running import CommandLine, Result
from hostile.cases import Ends

SECONDS = 20
"""How much processor time a command may take: four times what the slowest takes on a machine with little else to do."""
_WAITS = 12
"""How often that much it may take by the clock."""

MEMORY = 1_200_000_000
"""How many bytes a command may need beside what the process has."""

_CODES = {"refused": (1, 2), "repaired": (0,), "fine": (0,), "cleanly": (0, 1, 2)}


class TooSlow(BaseException):
    """A command has not ended in time."""


@contextmanager
def limited(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Whatever runs in the block ends with `TooSlow` or `MemoryError` when it goes beyond the limits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_held() + memory, hard))
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, _WAITS * seconds)}
    before = {number: signal.signal(number, _stop) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit, 1)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def _held() -> int:
    """Bytes of data that the process has."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmData:\s*(\d+) kB", status)
    return 1024 * int(found[1]) if found else 1 << 31


def complaint(
    tagweave: CommandLine, arguments: Sequence[str], ends: Ends, says: str, named: str, seconds: float = SECONDS
) -> str:
    """What is wrong with how a command ends, nothing if it ends as it must.

    Args:
        tagweave: runs commands.
        arguments: the command.
        ends: how it must end.
        says: pattern of what an error or warning must hold.
        named: name of a file that an error must hold, or nothing.
        seconds: how long it may take.
    """
    try:
        with limited(seconds):
            result = tagweave(*arguments)
    except TooSlow as error:
        return f"still runs after {seconds} s{_place(error)}"
    except BaseException as error:  # whatever escapes is a fault
        return f"{type(error).__name__}: {str(error)[:200]}{_place(error)}"
    return next((fault for check in _CHECKS if (fault := check(result, ends, says, named))), "")


def _place(error: BaseException) -> str:
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "src/tagweave" in frame.filename]
    return f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""


def _code(result: Result, ends: Ends, says: str, named: str) -> str:
    return "" if result.code in _CODES[ends] else f"ends with {result.code}, not {_CODES[ends]}: {result.words[-300:]}"


def _warned(result: Result, ends: Ends, says: str, named: str) -> str:
    warned = "warning: " in result.err
    if (ends == "repaired" and not warned) or (ends == "fine" and warned):
        return f"{'no ' * (ends == 'repaired')}warning: {result.words[-300:]}"
    return ""


def _named(result: Result, ends: Ends, says: str, named: str) -> str:
    if result.code == 0:
        return ""
    words = "".join(result.err.split())
    if "error" not in words.lower():
        return f"an error without a message: {result.words[-300:]}"
    if "".join(named.split()) not in words:
        return f"the message does not name {named}: {result.words[-300:]}"
    return ""


def _said(result: Result, ends: Ends, says: str, named: str) -> str:
    return "" if re.search(says, result.words) else f"the message has no {says!r}: {result.words[-300:]}"


def _short(result: Result, ends: Ends, says: str, named: str) -> str:
    return "" if len(result.err) < 5000 else f"a message of {len(result.err)} characters: {result.words[:200]}"


_CHECKS: tuple[Callable[[Result, Ends, str, str], str], ...] = (_code, _warned, _named, _said, _short)
