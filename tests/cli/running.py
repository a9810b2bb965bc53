"""The command line run inside the test: through `main`, so that errors end as they do for a user."""

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tagweave.cli
from tagweave import progress


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was said on stderr, on one line."""
        return " ".join(self.err.split())


class CommandLine:
    """Runs commands in the current folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        streams = [io.TextIOWrapper(io.BytesIO(data), encoding="ascii") for data in (stdin, b"", b"")]
        shown = progress._shown
        with self._monkeypatch.context() as patch, warnings.catch_warnings():
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["tagweave", *arguments])
            patch.setenv("COLUMNS", "200")
            try:
                tagweave.cli.main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                progress.show(shown)
        for stream in streams[1:]:
            stream.flush()
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
        return Result(code, out, err)

    def fine(self, *arguments: str, stdin: bytes = b"") -> Result:
        """A command that must succeed."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result
        return result


def write_lines(path: Path, records: list[dict[str, Any]]) -> str:
    """A JSON lines file; its name."""
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path.name


def read_lines(text: str) -> list[dict[str, Any]]:
    """The records of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def news(count: int = 12, sources: bool = True) -> list[dict[str, Any]]:
    """Records with gold, and with votes that miss a little of it."""
    made = []
    for number in range(count):
        tokens = [["Ada", "Lovelace", "saw", "Oslo"], ["Oslo", "saw", "Bo"], ["nobody", "came"]][number % 3]
        gold: list[list[Any]] = [[[0, 2, "PER"], [3, 4, "LOC"]], [[0, 1, "LOC"], [2, 3, "PER"]], []][number % 3]
        record: dict[str, Any] = {"id": f"n{number}", "tokens": tokens, "entities": gold}
        if sources:
            record["sources"] = {
                "names": [span for span in gold if span[2] == "PER"],
                "cities, towns": [span for span in gold if span[2] == "LOC"],
                "all": gold if number % 4 else [],
                "odd": [[0, 1, "LOC"]],
            }
        made.append(record)
    return made
