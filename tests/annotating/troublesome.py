"""Sources that make trouble on some documents, in a module that worker processes can import."""

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.sources import Source, labeling_function
from tagweave.sources.base import Votes

WORD = [(0, 1)]


@labeling_function("LOC")
def cities(document: Document) -> list[tuple[int, int]]:
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]


@labeling_function("X")
def deadly(document: Document) -> list[tuple[int, int]]:
    if document.id == "d300":
        os.kill(os.getpid(), signal.SIGKILL)
    return WORD


@labeling_function("X")
def leaves(document: Document) -> list[tuple[int, int]]:
    if document.id == "d300":
        os._exit(7)
    return WORD


@labeling_function("X")
def stubborn(document: Document) -> list[tuple[int, int]]:
    """Cannot be interrupted."""
    while document.id == "d300":
        try:
            time.sleep(10)
        except BaseException:
            continue
    return WORD


@labeling_function("X")
def talkative(document: Document) -> list[tuple[int, int]]:
    sys.stdout.write("something")
    return WORD


@labeling_function("X")
def process(document: Document) -> list[tuple[int, int, str, float]]:
    """The number of the process, as a score; the first document takes long enough for another process to come in."""
    if document.id == "d0":
        time.sleep(0.3)
    return [(0, 1, "X", os.getpid() / 2**32)]


@dataclass
class Once(Source):
    """Kills its process once, at the first document of which there is no mark yet."""

    types = ("X",)
    mark: Path

    def find(self, document: Document) -> Votes:
        if document.id == "d300" and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return WORD


@dataclass
class Together(Source):
    """Takes many documents, and dies with one of them."""

    types = ("X",)

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        if "d300" in [document.id for document in documents]:
            os.kill(os.getpid(), signal.SIGKILL)
        return [WORD for _ in documents]


@dataclass
class Unsendable(Source):
    """Cannot be pickled."""

    types = ("X",)
    function: Any = None

    def find(self, document: Document) -> Votes:
        return WORD


@dataclass
class Stuck(Source):
    """Notes its process, and stays there."""

    types = ("X",)
    note: Path

    def find(self, document: Document) -> Votes:
        self.note.write_text(str(os.getpid()))
        time.sleep(60)
        return WORD
