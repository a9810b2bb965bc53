"""Settings of a component from text: `key=value` pairs and TOML tables onto dataclass fields.

Unknown keys are errors with a suggestion, and so are values of the wrong kind. Nothing is dropped.
"""

import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from tagweave.errors import FormatError, UsageError, unknown_name
from tagweave.storage import plain_file

Component = TypeVar("Component")


def create(component: type[Component], settings: Mapping[str, Any]) -> Component:
    """An instance of a dataclass from settings by name.

    Args:
        component: a dataclass; its fields that `__init__` takes are the settings.
        settings: values as JSON or TOML gives them, or as text.

    Raises:
        UsageError: a name is unknown, or a value is of the wrong kind.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     steps: int = 3
    >>> create(Walk, {"steps": "5"})
    Walk(steps=5)
    >>> create(Walk, {"step": 5})
    Traceback (most recent call last):
    tagweave.errors.UsageError: no setting of Walk is called 'step'. Did you mean 'steps'? Known: steps
    """
    known = {field.name: field for field in setting_fields(component)}
    hints = get_type_hints(component)
    for name in settings:
        if name not in known:
            raise unknown_name(f"setting of {component.__name__}", name, known)
    return component(
        **{name: convert(f"{component.__name__}.{name}", value, hints[name]) for name, value in settings.items()}
    )


def setting_fields(component: type[Any]) -> tuple[Field[Any], ...]:
    """The fields of a dataclass that are settings."""
    return tuple(field for field in fields(component) if field.init)


def parse_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """`key=value` texts as a mapping; a dot in the key makes a table: `tagger.epochs=3`.

    >>> parse_pairs(["seed=1", "tagger.epochs=3"])
    {'seed': '1', 'tagger': {'epochs': '3'}}
    """
    tree: dict[str, Any] = {}
    for pair in pairs:
        path, equals, value = pair.partition("=")
        if not equals or not path:
            raise UsageError(f"{pair!r} is no setting: write key=value")
        *tables, key = path.strip().split(".")
        table = tree
        for name in tables:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise UsageError(f"{pair!r}: {name} is a value already, not a table")
        if key in table:
            raise UsageError(f"{pair!r}: {path.strip()} is set already: give it once")
        table[key] = value
    return tree


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        FormatError: the file is no TOML; the message says where.
    """
    try:
        return tomllib.loads(plain_file(path).read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError, OSError) as error:
        raise FormatError(f"{path} cannot be read: {error}") from None


def convert(name: str, value: object, hint: Any) -> Any:  # noqa: ANN401
    """A value as the type hint of its setting wants it; text is read as that type.

    Raises:
        UsageError: the value cannot be read so; the message says what is allowed.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _convert_optional(name, value, hint)
    if origin is Literal:
        if value not in get_args(hint):
            raise unknown_name(f"value of {name}", str(value), map(str, get_args(hint)))
        return value
    if origin in (tuple, list):
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise UsageError(f"{name} must be a list, not {value!r}")
        return origin(convert(name, item, get_args(hint)[0]) for item in items)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise UsageError(f"{name} must be a table of names and values, not {value!r}")
        return {str(key): convert(f"{name}.{key}", item, get_args(hint)[1]) for key, item in value.items()}
    return _convert_plain(name, value, hint)


def _convert_optional(name: str, value: object, hint: Any) -> Any:  # noqa: ANN401
    choices = [choice for choice in get_args(hint) if choice is not types.NoneType]
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        return None
    for choice in choices[:-1]:
        try:
            return convert(name, value, choice)
        except UsageError:
            continue
    return convert(name, value, choices[-1])


_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert_plain(name: str, value: object, hint: Any) -> Any:  # noqa: ANN401
    if hint is bool:
        known = value if isinstance(value, bool) else _TRUTH.get(str(value).lower())
        if known is None:
            raise UsageError(f"{name} must be true or false, not {value!r}")
        return known
    if hint in (int, float) and not isinstance(value, bool):
        try:
            number = hint(value)
            whole = hint is float or float(str(value)) == number
        except (TypeError, ValueError, OverflowError):
            number, whole = float("nan"), False
        if whole and number == number:
            return number
        raise UsageError(f"{name} must be {'a whole number' if hint is int else 'a number'}, not {value!r}")
    if hint in (str, Path) and isinstance(value, str | Path):
        return hint(value)
    if hint is Any or (isinstance(hint, type) and isinstance(value, hint) and not isinstance(value, bool)):
        return value
    raise UsageError(f"{name} must be of type {getattr(hint, '__name__', hint)}, not {value!r}")
