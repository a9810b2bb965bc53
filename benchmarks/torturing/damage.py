"""Every file that a command will read again is damaged in every way: what comes is the same result, or an error."""

import random
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torturing.killing import Say
from torturing.processes import End, Running, kill_at_write, run
from torturing.score import Score
from torturing.world import COMMANDS, fresh, state

KINDS = ("cut", "flipped", "emptied", "deleted")


@dataclass(frozen=True)
class Holding:
    """A folder in some state, and what reads it.

    Attributes:
        name: what the scoreboard calls it.
        make: brings the folder into its state.
        read: what is done then.
        result: tells whether a path is part of what comes of it.
        damaged: which files are damaged: those below these paths.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], End]
    result: tuple[str, ...]
    damaged: tuple[str, ...]


def damage(holding: Holding, base: Path, place: Path, most: int, seed: int, say: Say, minutes: float) -> Score:
    """Damage the files of a folder one by one.

    Args:
        holding: the folder.
        base: where the inputs are.
        place: a folder that can be overwritten.
        most: how many damages at most, drawn from all.
        seed: of what is drawn.
        say: is told what went wrong.
        minutes: after which it is enough.
    """
    chance, score = random.Random(f"{seed} {holding.name}"), Score(f"damaged: {holding.name}", minutes=minutes)
    kept = fresh(base, place / "kept")
    holding.make(kept)
    files = [path.relative_to(kept) for top in holding.damaged for path in _files(kept / top)]
    cases = [(name, kind) for name in files for kind in KINDS]
    cases = chance.sample(cases, min(most, len(cases)))
    target = _copy(kept, place / "target")
    first = holding.read(target)
    expected = _result(target, holding.result)
    if first.code or not files or not expected:
        score.fault(f"cannot be read undamaged: {first.words[-500:]}, {len(files)} files", say)
    for name, kind in cases:
        if score.over:
            break
        target = _copy(kept, place / "target")
        what = f"{name} {_hurt(target / name, kind, chance)}"
        end = holding.read(target)
        if end.code == 0 and _result(target, holding.result) == expected:
            score.good("the same result")
        elif end.code in (1, 2) and "Traceback" not in end.err and _names(end, name):
            score.good("refused")
        else:
            score.fault(f"{what}: code {end.code}, {end.words[-500:]}", say)
    return score


def _files(top: Path) -> list[Path]:
    return [top] if top.is_file() else sorted(path for path in top.rglob("*") if path.is_file())


def _copy(kept: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(kept, target, symlinks=True)
    return target


def _hurt(path: Path, kind: str, chance: random.Random) -> str:
    """Damage a file; what was done to it, in words."""
    content = bytearray(path.read_bytes())
    if kind == "deleted":
        path.unlink()
        return kind
    if kind == "emptied" or not content:
        path.write_bytes(b"")
        return kind
    if kind == "cut":
        length = chance.randrange(len(content))
        path.write_bytes(content[:length])
        return f"{kind} after {length} of {len(content)} bytes"
    position, bit = chance.randrange(len(content)), chance.randrange(8)
    content[position] ^= 1 << bit
    path.write_bytes(content)
    return f"{kind}, bit {bit} of byte {position} of {len(content)}"


def _result(place: Path, parts: Sequence[str]) -> dict[str, str]:
    return {name: digest for name, digest in state(place).items() if name.startswith(tuple(parts))}


def _names(end: End, name: Path) -> bool:
    """Whether the message names the file, or the folder that it is in."""
    words = end.words.replace(" ", "")
    if f"{name.name}is" in words:
        return True
    return any(str(part).replace(" ", "") in words for part in (name, *name.parents) if str(part) not in (".", "out"))


def _whole(name: str) -> Callable[[Path], object]:
    return lambda place: _fine(run(place, COMMANDS[name].arguments))


def _broken(name: str, share: float) -> Callable[[Path], object]:
    """A run that is killed when so much of its changes of files are done."""

    def make(place: Path) -> None:
        from torturing.processes import count_writes

        run(place, COMMANDS[name].arguments, prepare=count_writes(place / "tmp" / "writes"))
        number = int(int((place / "tmp" / "writes").read_text()) * share)
        for path in place.iterdir():
            if not path.is_symlink():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (place / "tmp").mkdir()
        run(place, COMMANDS[name].arguments, prepare=kill_at_write(number))

    return make


def _broken_in_time(name: str) -> Callable[[Path], object]:
    """A run that is told to end when it has written something."""

    def make(place: Path) -> None:
        import signal
        import time

        running = Running(place, COMMANDS[name].arguments)
        while not running.ended and not list(place.glob("*.journal.json")):
            time.sleep(0.01)
        running.signal(signal.SIGTERM)
        running.wait()

    return make


def _fine(end: End) -> End:
    if end.code:
        raise SystemExit(f"a command fails: {end.err}")
    return end


def _again(name: str) -> Callable[[Path], End]:
    return lambda place: run(place, COMMANDS[name].again)


def _predict(*more: str) -> Callable[[Path], End]:
    return lambda place: run(place, ("predict", "out", "inputs/dev.jsonl", "--out", "labels.jsonl", *more))


def _label(place: Path) -> End:
    """Use a label model from a folder, for which there is no command."""
    return run(place, (), prepare=_use_label_model)


def _use_label_model() -> None:
    from tagweave.errors import TagweaveError
    from tagweave.formats import read, write
    from tagweave.label_models import LabelModel

    try:
        write(LabelModel.load(Path("out")).predict(read("inputs/dev.jsonl")), "labels.jsonl")
    except TagweaveError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.exit(0)


def _remove_outputs(name: str) -> Callable[[Path], object]:
    """A finished run of which only what is kept for others is left."""

    def make(place: Path) -> None:
        _whole(name)(place)
        shutil.rmtree(place / "out")
        (place / "labels.jsonl").unlink()

    return make


_READ = tuple(f"out/{name}" for name in ("result.json", "alternate.json", "label-model", "tagger", "teacher"))
"""What is read of a finished alternate training."""

HOLDINGS = (
    Holding("label model", _whole("aggregate, hmm"), _label, ("labels",), ("out",)),
    Holding("tagger", _whole("train"), _predict(), ("labels",), ("out",)),
    Holding("training, broken off", _broken("train", 0.6), _again("train"), ("out",), ("out.unfinished",)),
    Holding("alternate training", _whole("alternate"), _predict("--output", "label-model"), ("labels",), _READ),
    Holding("alternate training, broken off", _broken("alternate", 0.7), _again("alternate"), ("out",), ("out",)),
    Holding(
        "embeddings",
        _remove_outputs("aggregate, chmm"),
        _again("aggregate, chmm"),
        ("labels", "out"),
        ("cache",),
    ),
    Holding(
        "annotate, broken off",
        _broken_in_time("annotate, 1 process"),
        _again("annotate, 1 process"),
        ("out.jsonl",),
        ("out.jsonl.partial", "out.jsonl.journal.json"),
    ),
    Holding("shards", _whole("annotate, shards"), _again("annotate, shards"), ("out",), ("out",)),
    Holding("benchmark", _whole("benchmark"), _again("benchmark"), ("out/cells",), ("out/cells", "out/data")),
    Holding("benchmark, broken off", _broken("benchmark", 0.5), _again("benchmark"), ("out/cells",), ("out",)),
)
