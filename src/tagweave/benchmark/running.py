"""Running many cells: which are there, which can be taken from others, and the rest in processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tagweave import progress
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.datasets import Sources
from tagweave.benchmark.process import ERROR_FILE
from tagweave.benchmark.systems import parse_system
from tagweave.errors import TagweaveError
from tagweave.processes import undisturbed
from tagweave.storage import read_json, write_json


@dataclass(frozen=True)
class Summary:
    """What became of the cells of a plan.

    Attributes:
        finished: their results are there.
        stale: made with other settings than those of today, and left as they are.
        failed: with the reason of each.
    """

    finished: list[Cell] = field(default_factory=list)
    stale: list[Cell] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)


def plan(
    datasets: Sequence[str],
    systems: Sequence[str],
    *,
    encoder: str = "default",
    sources: Sources = "paper",
    gold_free: bool = False,
    seeds: int = 1,
) -> list[Cell]:
    """All cells, data set by data set; systems without chance have one seed.

    What other rows can be taken from comes first.
    """
    parsed = list(dict.fromkeys(parse_system(name) for name in systems))
    parsed.sort(key=lambda system: not system.alternate)
    return [
        Cell(dataset, system.name, encoder, sources, gold_free, seed)
        for dataset in datasets
        for seed in range(seeds)
        for system in parsed
        if seed == 0 or system.has_chance
    ]


def run(cells: Iterable[Cell], data: Path, out: Path, *, rerun: bool = False) -> Summary:
    """Run the cells that are not there yet, one after the other.

    Args:
        cells: see `plan`.
        data: the folder with the data.
        out: where results and unfinished runs are kept.
        rerun: run those again whose settings are not those of today.
    """
    summary, cells = Summary(), list(cells)
    (out / "work").mkdir(parents=True, exist_ok=True)
    (out / "work" / ".gitignore").write_text("*\n", encoding="utf-8")
    for number, cell in enumerate(cells, 1):
        place = f"[{number}/{len(cells)}] {cell.dataset}/{cell.name}"
        try:
            state = cell.state(out)
            if state == "finished":
                summary.finished.append(cell)
            elif state == "stale" and not rerun:
                summary.stale.append(cell)
            else:
                _make(cell, data, out, place)
                summary.finished.append(cell)
        except TagweaveError as error:
            summary.failed[cell] = str(error)
            progress.say(f"{place} failed: {error}")
    return summary


def _make(cell: Cell, data: Path, out: Path, place: str) -> None:
    started, record = time.monotonic(), taken_from_alternate(cell, out)
    if record is None:
        progress.say(place)
        _run_in_process(cell, data, out)
        record = read_json(cell.path(out))
    else:
        cell.path(out).parent.mkdir(parents=True, exist_ok=True)
        write_json(cell.path(out), record, sealed=True)
    shown = ", ".join(f"{split} F1 {scores['f1']:.2f}" for split, scores in record["scores"].items())
    progress.say(f"{place}: {shown} ({time.monotonic() - started:.0f} s)")


def taken_from_alternate(cell: Cell, out: Path) -> dict[str, Any] | None:
    """The result of a cell that is the first round of a finished alternate training, or its label model alone.

    Only results that depend on a seed are taken. Label models cost little and their time is worth knowing, so the
    first seed of one is not taken either.
    """
    system = cell.parsed
    if system.label_model is None or system.alternate or system.special is not None or not system.has_chance:
        return None
    if system.tagger is None and cell.seed == 0:
        return None
    name = f"{system.label_model}-alt" + (f"+{system.tagger}" if system.tagger is not None else "")
    whole = replace(cell, system=parse_system(name).name)
    if whole.state(out) != "finished":
        return None
    record, output = read_json(whole.path(out)), "label-model" if system.tagger is None else "tagger"
    first = record["rounds"][0]
    return {
        **{name: record[name] for name in ("notes", "starts", "encoder", "versions", "machine")},
        "cell": {**cell.to_json(), "system": system.name},
        "settings": cell.settings(),
        "scores": first["scores"][output],
        "rounds": [first],
        "seconds": {"fit": first["fit_seconds"]} if system.tagger is not None else {},
        "peak_gigabytes": None,
        "taken_from": whole.name,
    }


def _run_in_process(cell: Cell, data: Path, out: Path) -> None:
    job = {"cell": cell.to_json(), "data": str(data), "out": str(out), "progress": progress.shown()}
    job["ends_with_input"] = True
    command = [sys.executable, "-m", "tagweave.benchmark.process", json.dumps(job)]
    with undisturbed():
        child = subprocess.Popen(command, stdin=subprocess.PIPE)  # which ends with this process
    try:
        status = child.wait()
    except BaseException:
        _end(child)
        raise
    finally:
        assert child.stdin is not None
        child.stdin.close()
    if status:
        reason = cell.work(out) / ERROR_FILE
        if reason.is_file():
            text = read_json(reason)["error"]
            reason.unlink()
            raise TagweaveError(text)
        raise TagweaveError(f"the process ended with status {status}" + ", perhaps for want of memory" * (status == -9))


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Let a process put its things in order and end."""
    child.terminate()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
