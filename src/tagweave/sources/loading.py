"""Sources from settings by name, and from files: Python files, which are run, and TOML files, which are only read."""

import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tagweave.config import create, read_toml, setting_fields
from tagweave.errors import SourceError, TagweaveError, UsageError, unknown_name
from tagweave.sources.base import Source

MODULE_PREFIX = "tagweave_sources_"
"""How the modules are called that files of sources become; the name of the file follows."""

HOW_TO_WRITE_ONE = """A file of sources may look like this:

from tagweave.sources import labeling_function

@labeling_function("LOC")
def cities(document):
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token in {"Oslo", "Rome"}]"""


def create_source(kind: str, settings: Mapping[str, Any], folder: Path | None = None) -> Source:
    r"""A source by the name of its kind.

    Args:
        kind: a key of `tagweave.sources.SOURCES`.
        settings: its settings, among them `name`, as TOML gives them; for a setting that is a list, one text is a list
            of one.
        folder: where relative paths among the settings count from; the working folder by default.

    Raises:
        UsageError: there is no such kind or setting, a setting is missing, or a value is of the wrong kind.

    >>> create_source("regex", {"name": "years", "patterns": r"[12]\d{3}", "type": "DATE"}).types
    ('DATE',)
    >>> create_source("regexp", {"name": "years"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tagweave.errors.UsageError: no kind of source is called 'regexp'. Did you mean 'regex'? ...
    """
    from tagweave.sources import SOURCES

    if kind not in SOURCES:
        raise unknown_name("kind of source", kind, SOURCES)
    cls = SOURCES[kind]
    hints = get_type_hints(cls)
    values = {name: _prepared(value, hints.get(name), folder) for name, value in settings.items()}
    missing = [
        field.name
        for field in setting_fields(cls)
        if field.default is MISSING and field.default_factory is MISSING and field.name not in settings
    ]
    if missing and set(settings) <= {field.name for field in setting_fields(cls)}:
        raise UsageError(f"{kind} needs the setting {' and '.join(missing)}")
    return create(cls, values)


def _prepared(value: Any, hint: Any, folder: Path | None) -> Any:  # noqa: ANN401
    """The value with paths made relative to the folder, and one text for a list as a list of one."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(value, str) and str not in choices and any(get_origin(choice) is tuple for choice in choices):
        value = [value]
    if folder is None or _plain_types(hint) != {Path}:
        return value
    if isinstance(value, Mapping):
        return {key: _placed(item, folder) for key, item in value.items()}
    return [_placed(item, folder) for item in value] if isinstance(value, list | tuple) else _placed(value, folder)


def _plain_types(hint: Any) -> set[Any]:  # noqa: ANN401
    """The types of the single values that a setting holds."""
    inner = get_args(hint)[1:] if get_origin(hint) is dict else get_args(hint)
    return set().union(*map(_plain_types, inner)) if inner else {hint} - {NoneType, Ellipsis}


def _placed(value: Any, folder: Path) -> Any:  # noqa: ANN401
    return folder / value if isinstance(value, str | Path) else value


def load_sources(path: str | Path) -> list[Source]:
    r"""The sources of a file, in order.

    A Python file (`.py`) is run. Its sources are the list `SOURCES`, if it has one, or every `Source` that has a name
    at the top level of the file, in the order in which they are written. While it runs, it can import the files next
    to it. Nothing shields the computer from what the file does: run only files that you trust.

    A TOML file (`.toml`) has a table `[[source]]` for each source, with `kind`, `name` and settings. Relative paths
    count from the folder of the file. Nothing in it is run.

    Raises:
        UsageError: the file is missing, has no sources or two of one name, or a kind or setting does not exist.
        SourceError: the Python file fails; the message has the line and the error.
        FormatError: the file is no TOML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sources.toml")
    ...     _ = file.write_text('[[source]]\nkind="regex"\nname="years"\npatterns="[12][0-9]{3}"\ntype="DATE"')
    ...     [source.name for source in load_sources(file)]
    ['years']
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if path.suffix == ".py":
        sources = _from_python(path)
    elif path.suffix == ".toml":
        sources = _from_toml(path)
    else:
        raise UsageError(f"{path}: sources come from a Python file (.py) or a TOML file (.toml)")
    _check_names(path, sources)
    return sources


def _check_names(path: Path, sources: list[Source]) -> None:
    seen: dict[str, int] = {}
    for number, source in enumerate(sources, start=1):
        first = seen.setdefault(source.name, number)
        if first != number:
            raise UsageError(f"{path}: sources {first} and {number} are both called {source.name!r}")


# TOML


def _from_toml(path: Path) -> list[Source]:
    content = read_toml(path)
    for name in content:
        if name != "source":
            raise UsageError(f"{path}: {unknown_name('table', name, ['source'])}")
    tables = content.get("source")
    if not tables:
        raise UsageError(f"{path} has no sources. Write a table [[source]] with kind, name and settings for each")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: write [[source]] with two brackets before each source")
    return [_from_table(path, number, table) for number, table in enumerate(tables, start=1)]


def _from_table(path: Path, number: int, table: dict[str, Any]) -> Source:
    place = f"{path}, source {table.get('name', number)!r}"
    settings = dict(table)
    kind = settings.pop("kind", None)
    try:
        if not isinstance(kind, str):
            raise UsageError("needs a kind, such as kind = 'regex'")
        return create_source(kind, settings, path.parent)
    except TagweaveError as error:
        raise type(error)(f"{place}: {error}") from None


# Python


class _Loader(SourceFileLoader):
    """Compiles the file each time, so that no old bytecode is used and none is left behind."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _from_python(path: Path) -> list[Source]:
    module = _run(path.resolve(), path)
    if "SOURCES" in vars(module):
        found = _listed(path, module.SOURCES)
    else:
        found = list({id(value): value for value in vars(module).values() if isinstance(value, Source)}.values())
    if not found:
        raise UsageError(f"{path} has no sources. {HOW_TO_WRITE_ONE}")
    return found


def _listed(path: Path, values: object) -> list[Source]:
    if isinstance(values, str | Source) or not isinstance(values, Iterable):
        raise UsageError(f"{path}: SOURCES must be a list of sources, not {values!r}")
    found = []
    for value in values:
        if not isinstance(value, Source):
            hint = ". Put @labeling_function above its definition" if callable(value) else ""
            raise UsageError(f"{path}: SOURCES has {value!r}, which is no source{hint}")
        found.append(value)
    return found


def _run(file: Path, shown: Path) -> ModuleType:
    name = f"{MODULE_PREFIX}{file.stem}"
    loader = _Loader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader)
    if spec is None:
        raise UsageError(f"{shown} cannot be loaded")
    module = sys.modules[name] = module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(error, file, shown) from error
    finally:
        sys.path.remove(str(file.parent))
    return module


def _failed(error: BaseException, file: Path, shown: Path) -> TagweaveError:
    """What the user reads: the file, the last line of it that was reached, and the error."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return SourceError(f"{shown}, line {error.lineno}: {error.msg}: {(error.text or '').strip()}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    place = f"{shown}, line {lines[-1]}" if lines else str(shown)
    if isinstance(error, TagweaveError):
        return type(error)(f"{place}: {error}")
    return SourceError(f"{place}: {''.join(traceback.format_exception_only(error)).strip()}")
