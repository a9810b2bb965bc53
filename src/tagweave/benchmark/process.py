"""One cell in a process of its own: `python -m tagweave.benchmark.process JOB`, where JOB is JSON."""

import json
import os
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any

from tagweave import progress
from tagweave.benchmark.cells import Cell
from tagweave.benchmark.executing import execute
from tagweave.errors import TagweaveError
from tagweave.stopping import Stopped, stoppable
from tagweave.storage import write_json

ERROR_FILE = "error.json"
"""In the folder of an unfinished run: why it ended."""


def main(job: str) -> int:
    """Run the cell of a job; returns the exit status.

    Args:
        job: `{"cell": {...}, "data": DIR, "out": DIR, "progress": true, "ends_with_input": true}`.
    """
    values: dict[str, Any] = json.loads(job)
    cell, out = Cell.from_json(values["cell"]), Path(values["out"])
    progress.show(values["progress"])
    warnings.showwarning = _show_warning
    if values.get("ends_with_input"):
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        with stoppable():
            execute(cell, Path(values["data"]), out)
    except Stopped as stop:
        return stop.code
    except Exception as error:
        known = isinstance(error, TagweaveError)
        cell.work(out).mkdir(parents=True, exist_ok=True)
        text = str(error) if known else f"{type(error).__name__}: {error}"
        write_json(cell.work(out) / ERROR_FILE, {"error": text})
        if not known:
            traceback.print_exc()
        return 1
    return 0


def _end_with_input() -> None:
    """Ends this process when the one that started it has ended, whose pipe then closes: else two could run one cell."""
    os.read(0, 1)
    os._exit(1)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    progress.say(f"warning: {message}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
