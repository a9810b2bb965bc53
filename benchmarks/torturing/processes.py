"""Commands as processes that can be hurt: started by Python as a user does, or forked where everything is imported.

Imports take longer than the tiny work itself. A forked command is a process of its own, in a session of its own, that
runs the same `main` from its beginning; only the imports are there already.
"""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WAIT = 600.0
"""Seconds after which a command counts as hanging; busy machines take their time."""

_LEAVE = 30.0
"""Seconds that processes have to notice that the one that started them is gone; a worker may be in its imports."""

_WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree")


@dataclass
class End:
    """How a command ended.

    Attributes:
        code: its exit code, that of a shell: 128 and the signal where it was killed; None if it never ended.
        out: what it wrote.
        err: what it said.
        seconds: how long it took.
        orphans: processes of its session that did not end after it.
    """

    code: int | None
    out: str
    err: str
    seconds: float
    orphans: int = 0

    @property
    def words(self) -> str:
        """What it said, on one line."""
        return " ".join(self.err.split())

    @property
    def refused(self) -> bool:
        """Whether it ended with an error in words."""
        return self.code in (1, 2) and "Traceback" not in self.err and "error: " in self.err


class Running:
    """A command under way.

    Args:
        place: the folder that it runs in.
        arguments: the command line after `tagweave`.
        cold: whether it is started as a user does.
        prepare: what the forked process does before; it may do everything, and end the process.
        environment: variables that it gets.
    """

    def __init__(
        self,
        place: Path,
        arguments: tuple[str, ...],
        *,
        cold: bool = False,
        prepare: Callable[[], object] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._place = place
        self._environment = _environment(place) | (environment or {})
        self._begin = time.monotonic()
        if cold:
            self.pid = self._start_cold(arguments)
        else:
            self.pid = os.fork()
            if not self.pid:
                self._live(arguments, prepare)

    def _start_cold(self, arguments: tuple[str, ...]) -> int:
        environment = os.environ | self._environment
        with (self._place / "stdout").open("wb") as out, (self._place / "stderr").open("wb") as err:
            command = [sys.executable, "-m", "tagweave", *arguments]
            child = subprocess.Popen(
                command, cwd=self._place, env=environment, stdout=out, stderr=err, start_new_session=True
            )
        child.returncode = 0  # it is waited for here
        return child.pid

    def _live(self, arguments: tuple[str, ...], prepare: Callable[[], object] | None) -> None:
        """The life of a forked command."""
        code = 70
        try:
            os.setsid()
            os.chdir(self._place)
            os.environ.update(self._environment)
            redirect("stdout", 1)
            redirect("stderr", 2)
            sys.argv = ["tagweave", *arguments]
            import tempfile

            tempfile.tempdir = None
            _as_main()
            if prepare is not None:
                prepare()
            from tagweave.__main__ import main

            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            try:
                _leave()
                for stream in (sys.stdout, sys.stderr):
                    if not stream.closed:
                        stream.flush()
            finally:
                os._exit(code)

    def signal(self, number: int, group: bool = False) -> None:
        """Send a signal to it, or to it and all processes that it has started."""
        try:
            (os.killpg if group else os.kill)(self.pid, number)
        except ProcessLookupError:
            pass

    @property
    def ended(self) -> bool:
        """Whether it has ended; `wait` still must be called."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def pause(self, seconds: float) -> None:
        """Let it work for so long, or to its end."""
        limit = time.monotonic() + seconds
        while not self.ended and (left := limit - time.monotonic()) > 0:
            time.sleep(min(left, 0.01))

    def workers(self) -> list[int]:
        """The processes that it has started to do its work."""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            if pid != self.pid and _session(pid) == self.pid:
                try:
                    if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        found.append(pid)
                except OSError:
                    pass
        return found

    def wait(self, seconds: float = WAIT) -> End:
        """Its end; one that hangs is killed."""
        limit = time.monotonic() + seconds
        status = None
        while time.monotonic() < limit:
            pid, found = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status = found
                break
            time.sleep(0.005)
        taken = time.monotonic() - self._begin
        orphans = _orphans(self.pid) if status is not None else 0
        self.signal(signal.SIGKILL, group=True)
        if status is None:
            os.waitpid(self.pid, 0)
        code = None if status is None else os.waitstatus_to_exitcode(status)
        out, err = ((self._place / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr"))
        return End(code if code is None or code >= 0 else 128 - code, out, err, taken, orphans)


def run(place: Path, arguments: tuple[str, ...], **how: Any) -> End:  # noqa: ANN401
    """Run a command to its end; see `Running`."""
    return Running(place, arguments, **how).wait()


def kill_at_write(number: int) -> Callable[[], None]:
    """What makes a forked command kill itself just before it changes a file for the so many-th time."""
    return lambda: sys.addaudithook(_Counter(number))


def count_writes(into: Path) -> Callable[[], None]:
    """What makes a forked command note how often it changes files."""
    return lambda: sys.addaudithook(_Counter(-1, into))


class _Counter:
    """Counts changes of files, by the events that Python raises before them."""

    def __init__(self, last: int, into: Path | None = None) -> None:
        self._last, self._count, self._pid = last, 0, os.getpid()
        if into is not None:
            atexit.register(lambda: into.write_text(str(self._count), encoding="utf-8"))

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            flags = arguments[2]
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event not in _WRITES:
            return
        self._count += os.getpid() == self._pid
        if self._count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def _environment(place: Path) -> dict[str, str]:
    return {
        "TAGWEAVE_CACHE": str(place / "cache"),
        "TMPDIR": str(place / "tmp"),
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "200",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "random"),
    }


def redirect(name: str, descriptor: int) -> None:
    """Let a descriptor of this process lead to a file."""
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(handle, descriptor)
    os.close(handle)


def _as_main() -> None:
    """Make `__main__` what `python -m tagweave` has there, so that processes that are spawned find it."""
    import importlib.util
    from types import ModuleType

    module = ModuleType("__main__")
    module.__spec__ = importlib.util.find_spec("tagweave.__main__")
    sys.modules["__main__"] = module


def _leave() -> None:
    """What Python does when it ends: wait for threads, and call what was asked for."""
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def _orphans(session: int) -> int:
    """How many processes of a session are left, once they have had time to end."""
    limit = time.monotonic() + _LEAVE
    while True:
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == session]
        if not left or time.monotonic() > limit:
            return len(left)
        time.sleep(0.05)


def _session(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[3])
