"""Acceptance cases from folders, and the registry of the adapters that check them. See README.md in this folder."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data"


@dataclass(frozen=True)
class Check:
    """One check of one case."""

    case: str
    kind: str
    expected: dict[str, Any]
    """All fields of the check in `case.json`."""
    arguments: dict[str, Any]
    """Arguments of the case, overridden by those of the check."""
    paths: list[Path]
    """The input files that it is about."""
    scratch: Path = Path()
    """An empty folder."""

    @property
    def path(self) -> Path:
        """The one input file that it is about."""
        (path,) = self.paths
        return path


Adapter = Callable[[Check], None]
CHECKS: dict[str, tuple[Adapter, bool]] = {}


def check(kind: str, all_files: bool = False) -> Callable[[Adapter], Adapter]:
    """Register the adapter of a kind; it is called for each input file, or once with all of them."""

    def register(adapter: Adapter) -> Adapter:
        # pytest looks for examples in every module and so may load one a second time, under another name.
        if kind in CHECKS and file_of(CHECKS[kind][0]) != file_of(adapter):
            raise ValueError(f"two adapters for {kind}")
        CHECKS[kind] = (adapter, all_files)
        return adapter

    return register


def file_of(adapter: Adapter) -> str:
    """The file that an adapter stands in."""
    return inspect.getfile(adapter)


def all_checks() -> list[Check]:
    """Every check of every case."""
    return [found for folder in sorted(DATA.iterdir()) for found in checks_of(folder)]


def checks_of(folder: Path) -> list[Check]:
    """The checks of the case in a folder."""
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    arguments = case.get("arguments", {})
    return [made_check(folder, expected, arguments) for expected in case["checks"]]


def made_check(folder: Path, expected: dict[str, Any], arguments: dict[str, Any]) -> Check:
    """A check from its fields."""
    inputs = sorted(path for path in folder.iterdir() if path.name != "case.json")
    paths = [path for path in inputs if path.name in expected.get("files", [expected.get("file", path.name)])]
    return Check(folder.name, expected["kind"], expected, {**arguments, **expected.get("arguments", {})}, paths)


def run(item: Check) -> None:
    """Run a check with its adapter."""
    for module in sorted((HERE / "checks").glob("[a-z]*.py")):
        if item.kind not in CHECKS:  # so that only what needs torch loads it
            import_module(f"cases.checks.{module.stem}")
    if item.kind not in CHECKS:
        raise LookupError(f"case {item.case}: no adapter for {item.kind!r} in {HERE / 'checks'}")
    adapter, all_files = CHECKS[item.kind]
    if all_files or not item.paths:
        adapter(item)
        return
    for path in item.paths:
        adapter(replace(item, paths=[path]))


def parts(item: Check, expected: list[dict[str, Any]]) -> list[Check]:
    """Checks inside a check, about the same files and with the same arguments."""
    return [
        replace(item, kind=inner["kind"], expected=inner, arguments={**item.arguments, **inner.get("arguments", {})})
        for inner in expected
    ]
