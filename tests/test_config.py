from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from tagweave.config import create, parse_pairs, read_toml
from tagweave.errors import FormatError, UsageError


@dataclass
class Oven:
    heat: Literal["low", "high"] = "low"
    minutes: int = 10
    weight: float = 1.5
    fan: bool = False
    name: str = "oven"
    limit: float | None = None
    trays: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    used_: int = field(default=0, init=False)


def test_text_becomes_the_type_of_the_field() -> None:
    texts = {"heat": "high", "minutes": "20", "weight": "2", "fan": "true", "limit": "3e-1", "trays": "a,b"}
    assert create(Oven, texts) == Oven("high", 20, 2.0, True, "oven", 0.3, ("a", "b"))


def test_values_of_toml_are_taken(tmp_path: Path) -> None:
    (tmp_path / "oven.toml").write_text('heat = "high"\nminutes = 20\ntrays = ["a"]\nfan = false\nlimit = 1\n')
    assert create(Oven, read_toml(tmp_path / "oven.toml")) == Oven("high", 20, limit=1.0, trays=("a",))


def test_a_table_is_a_setting_too() -> None:
    assert create(Oven, {"names": {"upper": "grill"}}).names == {"upper": "grill"}


def test_none_is_a_value_of_optional_settings_only() -> None:
    assert create(Oven, {"limit": "none"}).limit is None
    with pytest.raises(UsageError, match=r"Oven\.minutes must be a whole number, not 'none'"):
        create(Oven, {"minutes": "none"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minuts": 1}, "Did you mean 'minutes'"),
        ({"used_": 1}, "no setting of Oven is called 'used_'"),
        ({"heat": "hot"}, "no value of Oven.heat is called 'hot'"),
        ({"minutes": 1.5}, "must be a whole number, not 1.5"),
        ({"minutes": "ten"}, "must be a whole number"),
        ({"minutes": True}, "must be of type int, not True"),
        ({"weight": "heavy"}, "must be a number"),
        ({"fan": "maybe"}, "must be true or false"),
        ({"name": 5}, "must be of type str"),
        ({"trays": 5}, "must be a list"),
        ({"names": "upper"}, "must be a table of names and values"),
        ({"names": {"upper": 5}}, r"Oven\.names\.upper must be of type str"),
    ],
)
def test_wrong_settings_are_errors(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        create(Oven, settings)


@pytest.mark.parametrize("pair", ["epochs", "=3", ""])
def test_a_pair_needs_key_and_value(pair: str) -> None:
    with pytest.raises(UsageError, match="write key=value"):
        parse_pairs([pair])


def test_a_key_is_a_value_or_a_table() -> None:
    with pytest.raises(UsageError, match="a is a value already"):
        parse_pairs(["a=1", "a.b=2"])
    with pytest.raises(UsageError, match="a is set already"):
        parse_pairs(["a.b=2", "a=1"])


def test_a_key_has_one_value() -> None:
    with pytest.raises(UsageError, match=r"'a\.b=2': a\.b is set already: give it once"):
        parse_pairs(["a.b=1", "c=3", "a.b=2"])


def test_values_may_hold_equal_signs_and_dots() -> None:
    assert parse_pairs(["a.b=c=d.e"]) == {"a": {"b": "c=d.e"}}


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_bad_toml_is_an_error_with_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.toml").write_bytes(content)
    with pytest.raises(FormatError, match=r"run\.toml cannot be read"):
        read_toml(tmp_path / "run.toml")
