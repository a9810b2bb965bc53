"""Outputs go where they cannot: full disks, folders of others, read-only folders, closed pipes; and clocks jump."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torturing.killing import Say, unbroken
from torturing.processes import WAIT, End, run
from torturing.score import Score
from torturing.world import Command, fresh, state

_OUTPUTS = ("out", "out.jsonl", "labels.jsonl")
_ROOMY = 1 << 28
_SHARES = (0.02, 0.35, 0.65, 0.95)
_FULL = ("no space left", "space are free", "space free", "file too large", "mb are free")


def fill(command: Command, base: Path, place: Path, say: Say, minutes: float) -> Score:
    """Run a command where the disk fills up: an error says so, what was there stays, with more space it ends well."""
    score = Score(f"disk full: {command.name}", minutes=minutes)
    with _disk(base, place) as disk:
        if disk is None:
            return _limit_files(command, base, place, score, say)
        moved = tuple(f"disk/{part}" if part in _OUTPUTS else part for part in command.arguments)
        where = {"TAGWEAVE_CACHE": str(disk / "cache"), "TMPDIR": str(disk)}
        before = _used(disk)
        whole = run(place, moved, environment=where)
        expected, needed = state(place), _used(disk) - before
        if whole.code:
            score.fault(f"fails with space: {whole.words[-300:]}", say)
        keeps = "--resume" not in command.resume or command.name.startswith(("annotate", "train"))
        for share in _SHARES:
            if score.over:
                break
            _empty(disk)
            if keeps and not command.name.startswith(("annotate, shards", "benchmark")):
                run(place, moved, environment=where)
            old = state(place)
            _resize(disk, _used(disk) + int(share * needed))
            end = run(place, moved, environment=where)
            fault = _fault_when_full(end, old, state(place), keeps, share)
            _resize(disk, _ROOMY)
            again = run(place, (*moved, *command.resume), environment=where)
            if fault is None and (again.code or state(place) != expected):
                difference = sorted(n for n in {*state(place), *expected} if state(place).get(n) != expected.get(n))
                fault = f"another result with space: {again.words[-300:]}, {difference[:5]}"
            if fault is None:
                score.good("enough after all" if end.code == 0 else "refused, then finished")
            else:
                score.fault(f"with {share:.0%} of the space: {fault}", say)
    return score


def _fault_when_full(end: End, old: dict[str, str], new: dict[str, str], keeps: bool, share: float) -> str | None:
    if end.code == 0 and share > 0.5:
        return None
    if end.code not in (1, 2) or "Traceback" in end.err:
        return f"code {end.code}, {end.err[-800:]}"
    if not any(words in end.words.lower() for words in _FULL):
        return f"no word of the disk: {end.words[-300:]}"
    if keeps and any(new.get(name) != digest for name, digest in old.items()):
        return f"what was there has changed: {sorted(set(old.items()) - set(new.items()))[:3]}"
    return None


def _limit_files(command: Command, base: Path, place: Path, score: Score, say: Say) -> Score:
    """Where no small disk can be had, files that cannot grow."""
    expected = unbroken(command, base, place).state
    for most in (500, 5_000, 50_000):
        end = run(fresh(base, place), command.arguments, prepare=lambda most=most: _bound(most))  # type: ignore[misc]
        again = run(place, command.again)
        if end.code in (0, 1, 2) and "Traceback" not in end.err and not again.code and state(place) == expected:
            score.good("enough after all" if end.code == 0 else "refused, then finished")
        else:
            score.fault(f"files of {most} bytes: code {end.code}, {end.words[-500:]}; {again.words[-200:]}", say)
    return score


def _bound(most: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@contextmanager
def _disk(base: Path, place: Path) -> Iterator[Path | None]:
    """A small disk of its own in a folder, or None where we may not have one."""
    disk = fresh(base, place) / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_ROOMY}", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if made.returncode:
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _resize(disk: Path, size: int) -> None:
    size = max(-(-size // 4096), 1) * 4096
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def _used(disk: Path) -> int:
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def _empty(disk: Path) -> None:
    subprocess.run(["find", str(disk), "-mindepth", "1", "-delete"], check=True)


def misplace(command: Command, base: Path, place: Path, say: Say) -> Score:
    """Give a command outputs that cannot be: a folder where a file should be, or the other way; a read-only folder."""
    score = Score(f"places that cannot be: {command.name}")
    target = command.arguments[command.arguments.index("--out") + 1]
    fresh(base, place)
    if target.endswith(".jsonl"):
        (place / target).mkdir()
        (place / target / "thesis.txt").write_text("years of work")
    else:
        (place / target).write_text("years of work")
    _refused("taken", run_and_compare(place, command.arguments), target, score, say)
    with _disk(base, place) as disk:
        moved = tuple(f"disk/{part}" if part in _OUTPUTS else part for part in command.arguments)
        if disk is None:
            (place / "disk").chmod(0o555)
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        _refused("read-only", run_and_compare(place, moved), f"disk/{target}", score, say)
    return score


def run_and_compare(place: Path, arguments: tuple[str, ...]) -> tuple[End, bool]:
    """How a command ends, and whether all is as it was before."""
    old = state(place)
    return run(place, arguments), state(place) == old


def _refused(what: str, found: tuple[End, bool], target: str, score: Score, say: Say) -> None:
    end, same = found
    if end.refused and same and target in end.words:
        score.good("refused")
    else:
        score.fault(f"{what}: code {end.code}, {'' if same else 'changed, '}{end.err[-700:]}", say)


def close_pipe(arguments: tuple[str, ...], base: Path, place: Path, say: Say) -> Score:
    """Let nobody read more than the first line of what a command writes, as `| head -n 1` does: it ends quietly."""
    score = Score(f"closed pipe: {arguments[0]}")
    fresh(base, place)
    with (place / "stderr").open("wb") as err:
        command = [sys.executable, "-m", "tagweave", "--quiet", *arguments]
        with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=err) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            child.stdout.close()
            code = child.wait(WAIT)
    said = (place / "stderr").read_text()
    if first and code in (0, 1) and not any(word in said for word in ("error", "Error", "Traceback")):
        score.good("quiet")
    else:
        score.fault(f"code {code}, {said[-500:]}", say)
    return score


PIPED = (
    ("aggregate", "inputs/train.jsonl", "--model", "hmm", "--out", "-"),
    ("annotate", "inputs/many.jsonl", "--sources", "inputs/sources.py", "--out", "-"),
    ("convert", "inputs/many.jsonl", "-"),
)


def jump(command: Command, base: Path, place: Path, seed: int, say: Say) -> Score:
    """Let the clock jump by days, back and forth."""
    score = Score(f"clock jumps: {command.name}")
    expected = unbroken(command, base, place).state
    end = run(fresh(base, place), command.arguments, prepare=lambda: _jumping(seed))
    if end.code or state(place) != expected:
        score.fault(f"code {end.code}, {end.words[-500:]}", say)
    else:
        score.good("the same result")
    return score


def _jumping(seed: int) -> None:
    chance, true_time = random.Random(seed), time.time
    time.time = lambda: true_time() + chance.uniform(-1e6, 1e6)
