"""The folder in which a training keeps its best and its last state."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

from tagweave.writing import remove

BEST, LAST = "best", "last"

_OURS = re.compile(rf"({BEST}|{LAST})|\.({BEST}|{LAST})\.[0-9a-f]{{8}}\.new")


def forget(folder: Path) -> bool:
    """Remove the states in a folder, and the folder if it then is empty.

    The last state goes first: without it a training starts afresh, so one that is killed here can still be resumed.

    Returns:
        Whether there were any.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = Path(name, "states")
    ...     (place / "last").mkdir(parents=True)
    ...     forget(place), forget(place), place.exists()
    (True, False, False)
    """
    found = [path for path in folder.iterdir() if _OURS.fullmatch(path.name)] if folder.is_dir() else []
    for path in sorted(found, key=lambda path: path.name != LAST):
        if path.name in (BEST, LAST):
            remove(path)
        else:  # what a killed process left when it wrote or removed one
            shutil.rmtree(path)
    with suppress(OSError):
        folder.rmdir()
    return bool(found)
