"""Functions over shards, in a module that worker processes can import."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any


def upper(shard: Path, target: Path) -> None:
    target.write_bytes(shard.read_bytes().upper())


def silent(shard: Path, target: Path) -> None:
    pass


def squares(shard: dict[str, int], target: Path) -> None:
    sys.stdout.write("what functions print goes nowhere near the results\n")
    target.write_text(str(shard["number"] ** 2))


def slowly_fatal(shard: Path, target: Path) -> None:
    """Its connections end well before it does, as on a busy machine, but for the one whose end would end it."""
    parent = parent_process()
    assert parent is not None
    os.closerange(3, parent.sentinel)
    os.closerange(parent.sentinel + 1, 256)
    time.sleep(2)
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Logged:
    """Notes each start; a file die-NAME kills the worker in the middle of a shard once, always-NAME each time."""

    log: str
    suffix: str = ""
    seconds: float = 0.0

    def load(self) -> Any:  # noqa: ANN401
        self._note("load")
        return self._work

    def _work(self, shard: Path, target: Path) -> None:
        self._note(shard.name)
        target.write_bytes(b"half of")
        for death, again in ((self._at("die", shard.name), False), (self._at("always", shard.name), True)):
            if death.exists():
                if not again:
                    death.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        if self._at("fail", shard.name).exists():
            raise ValueError("not this one")
        time.sleep(self.seconds)
        target.write_bytes(shard.read_bytes() + self.suffix.encode())

    def _at(self, what: str, name: str) -> Path:
        return Path(self.log).with_name(f"{what}-{name}")

    def _note(self, what: str) -> None:
        with Path(self.log).open("a") as handle:
            handle.write(f"{what}\n")


@dataclass
class DyingRows:
    """Embeds parts as `embed` has it done; a file kills the worker that is at the third part, once."""

    flag: Path
    words: Path
    recipe: Any

    def load(self) -> Any:  # noqa: ANN401
        from tagweave.encoder.embeddings import _PartRows

        return partial(self._write, _PartRows(self.words, self.recipe).load())

    def _write(self, write: Any, number: int, target: Path) -> None:  # noqa: ANN401
        target.write_bytes(b"half of")
        if number == 2 and self.flag.exists():
            self.flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        write(number, target)
