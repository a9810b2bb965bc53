"""What tagweave withstands: kills, damaged files, full disks, interrupts and rivals.

Every command that writes a folder, or can be gone on with, is hurt in every way below, on tiny data, and given once
more. It must come to the result of an unbroken run, byte by byte (times in results of the benchmark apart), or refuse
with an error in words that names what is wrong; never a traceback, never another result.
"""

import argparse
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from recording import RESULTS, Claim, record  # noqa: E402
from torturing.damage import HOLDINGS, damage  # noqa: E402
from torturing.killing import kill  # noqa: E402
from torturing.places import PIPED, close_pipe, fill, jump, misplace  # noqa: E402
from torturing.score import Score  # noqa: E402
from torturing.stopping import kill_workers, rival, stop  # noqa: E402
from torturing.world import COMMANDS, build  # noqa: E402

from tagweave.report import Cell, Table  # noqa: E402

Row = tuple[Cell, ...]
COLUMNS = ("what is done", "tried", "ends well", "how")

MADE_ANEW = "Some lines were made anew by themselves after the run of the whole, with `--only`."

PARTS = ("kill", "damage", "stop", "rival", "disk", "workers", "places", "clock", "pipe")
"""What can be asked for by `--only`, in the order in which it is done."""

Torture = Callable[[float], Score]

_MODULES = (
    *("tagweave.alternate", "tagweave.annotating", "tagweave.benchmark.page", "tagweave.benchmark.running"),
    *(
        "tagweave.cli",
        "tagweave.encoder.embeddings",
        "tagweave.folders",
        "tagweave.label_models",
        "tagweave.tagger.fitting",
    ),
    *("transformers.models.bert.modeling_bert", "transformers.models.auto.modeling_auto", "scipy.optimize"),
)


def main() -> None:
    """Run what is asked for, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few of each, to see that this script works")
    parser.add_argument("--kills", type=int, default=50, help="kills of each command; a fifth of it for slow ones")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="at most, of the whole; lines that are left then are named"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the instants and places of everything")
    parser.add_argument("--only", default="", help="only these parts, with commas between them; others stay recorded")
    parser.add_argument("--command", action="append", help="only what is called so; may be repeated")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torture."))  # no TemporaryDirectory: forked commands would clear it too
    try:
        scores, missing = _scores(arguments, folder)
    finally:
        shutil.rmtree(folder)
    rows: dict[str, Row] = {score.what: (score.what, score.tried, score.well, _how(score)) for score in scores}
    notes = [f"Fault: {score.what}: {fault}" for score in scores for fault in score.faults]
    failed = bool(notes)
    if missing:
        notes.append(f"Not done for want of time: {'; '.join(missing)}.")
    part = bool(arguments.only or arguments.command) and not arguments.small
    if part:
        earlier, found = _recorded(set(rows))
        rows, notes = {**earlier, **rows}, [*found, *notes]
    tried, well = (sum(int(row[place] or 0) for row in rows.values()) for place in (1, 2))
    record(
        "torture",
        claims=[
            Claim("cases that end well, of all", 100 * well / max(tried, 1), "%", 100.0),
            Claim("cases", tried, "cases"),
            Claim("kills before the end", sum(map(_kills, rows.values())), "kills"),
        ],
        tables=[Table("Scoreboard", COLUMNS, tuple(rows.values()))],
        notes=[*notes, MADE_ANEW] if part and MADE_ANEW not in notes else notes,
        keep=not arguments.small,
        arguments=() if part else None,
    )
    sys.exit(failed)


def _how(score: Score) -> str | None:
    return ", ".join(f"{number} {how}" for how, number in score.notes.items()) or None


def _kills(row: Row) -> int:
    """Kills in a line of the scoreboard, but for those that came after the end."""
    if not str(row[0]).startswith("killed"):
        return 0
    late = re.search(r"(\d+) after the end", str(row[3]))
    return int(row[1] or 0) - (int(late[1]) if late else 0)


def _recorded(renewed: set[str]) -> tuple[dict[str, Row], list[str]]:
    """Lines and notes of the record, but for those that are made anew."""
    path = RESULTS / "torture.json"
    if not path.exists():
        return {}, []
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = {row[0]: (*row,) for row in found["tables"][0]["rows"] if row[0] not in renewed}
    stale = tuple(f"Fault: {what}: " for what in renewed)
    return rows, [note for note in found["notes"] if not note.startswith(stale)]


def _scores(arguments: argparse.Namespace, folder: Path) -> tuple[list[Score], list[str]]:
    """The lines of the scoreboard, and what there was no time for."""
    begin = time.monotonic()
    _import_all()
    base, place = folder / "base", folder / "place"
    _in_child(lambda: build(base))
    parts = arguments.only.split(",") if arguments.only else PARTS
    found = [line for line in _tortures(arguments, base, place) if line[0] in parts]
    lines = sorted((line for line in found if line[1] in (arguments.command or [line[1]])), key=_part)
    scores: list[Score] = []
    for _, _, torture in lines:
        left = arguments.minutes - (time.monotonic() - begin) / 60
        if left <= 0:
            break
        scores.append(torture(left / (len(lines) - len(scores))))
        _say(f"{scores[-1].what}: {scores[-1].well} of {scores[-1].tried}, {scores[-1].notes}")
    return scores, [f"{part}: {name}" for part, name, _ in lines[len(scores) :]]


def _part(line: tuple[str, str, Torture]) -> int:
    return PARTS.index(line[0])


def _tortures(arguments: argparse.Namespace, base: Path, place: Path) -> Iterator[tuple[str, str, Torture]]:
    """Part, name of what is tortured, and the torture, which is told how many minutes it has."""
    small, seed = arguments.small, arguments.seed
    often, few, cold = (2, 1, 0) if small else (arguments.kills, 2, 2)
    for name, command in COMMANDS.items():
        kills = -(-often // 5) if command.slow else often
        yield "kill", name, partial(kill, command, base, place, kills, seed, _say, cold)
        yield "stop", name, partial(stop, command, base, place, few, seed, _say)
        if "--processes" in command.arguments:
            yield "workers", name, partial(kill_workers, command, base, place, 3 * few, seed, _say)
        yield "rival", name, _brief(rival, command, base, place, _say)
        yield "disk", name, partial(fill, command, base, place, _say)
        yield "places", name, _brief(misplace, command, base, place, _say)
        yield "clock", name, _brief(jump, command, base, place, seed, _say)
    for holding in HOLDINGS:
        yield "damage", holding.name, partial(damage, holding, base, place, 4 if small else 20, seed, _say)
    for piped in PIPED:
        yield "pipe", piped[0], _brief(close_pipe, piped, base, place, _say)


def _brief(torture: Callable[..., Score], *arguments: object) -> Torture:
    """A torture that is too short to be cut off."""
    return lambda minutes: torture(*arguments)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _import_all() -> None:
    """Whatever commands import, so that those that are forked begin with their work."""
    for name in _MODULES:
        import_module(name)


def _in_child(work: Callable[[], None]) -> None:
    """Do work in a forked process, so that this one has no threads that later forks would lack."""
    pid = os.fork()
    if not pid:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit("the data cannot be made")


if __name__ == "__main__":
    main()
