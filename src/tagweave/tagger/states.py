"""The folder in which a training keeps its best and its last state."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

BEST, LAST = "best", "last"

_OURS = re.compile(rf"({BEST}|{LAST})|\.({BEST}|{LAST})\.[0-9a-f]{{8}}\.new")


def forget(folder: Path) -> bool:
    """Remove the states in a folder, and the folder if it then is empty.

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
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
    return bool(found)
