"""How long a run takes and how much memory, also where it was broken off and went on; and on what machine."""

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tagweave.storage import read_json, write_json

_FILE = "meter.json"
_PACKAGES = ("tagweave", "numpy", "numba", "torch", "transformers", "tokenizers")


class Meter:
    """Seconds and memory of a run, kept in its folder so that a run that goes on goes on counting.

    Args:
        folder: of the unfinished run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        found = read_json(self._path) if self._path.exists() else {}
        self.starts: int = found.get("starts", 0) + 1
        self.seconds: dict[str, float] = found.get("seconds", {})
        self._peak: float = found.get("peak_gigabytes", 0.0)
        self._write()

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Counts the time of the block to a part, also when the block is broken off."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] = round(self.seconds.get(part, 0.0) + time.monotonic() - started, 3)
            self._write()

    @property
    def peak_gigabytes(self) -> float:
        """Most memory that the process and those before it held, in 10^9 bytes."""
        return max(self._peak, round(_peak_gigabytes(), 3))

    def _write(self) -> None:
        now = {"starts": self.starts, "seconds": self.seconds, "peak_gigabytes": self.peak_gigabytes}
        write_json(self._path, now, sealed=True)


def _peak_gigabytes() -> float:
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1e9 if sys.platform == "darwin" else 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about results."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine(with_torch: bool) -> dict[str, Any]:
    """Processor, how much of it the process may use, and with torch the device and its number format."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"processor": _processor(), "cores": os.cpu_count(), "usable_cores": usable}
    if with_torch:
        import torch

        from tagweave.encoder import device, precision

        where = device()
        found["device"] = torch.cuda.get_device_name(where) if where.type == "cuda" else where.type
        found["bfloat16"] = precision("auto", where) == torch.bfloat16
        found["threads"] = torch.get_num_threads()
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
