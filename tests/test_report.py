"""Tables as text, Markdown and records."""

import json

import pytest

from tagweave.report import Table


def test_numbers_stand_right_and_text_left() -> None:
    table = Table("", ("name", "n", "f1"), (("a", 1, 0.5), ("long name", 100, 99.999)))
    assert table.text().splitlines() == [
        "name         n      f1",
        "---------  ---  ------",
        "a            1    0.50",
        "long name  100  100.00",
    ]


def test_decimals_by_column() -> None:
    table = Table("", ("a", "b"), ((1.25, 1.25),), decimals=(0, 3))
    assert table.text().splitlines()[-1].split() == ["1", "1.250"]


def test_missing_and_infinite_values_are_dashes_and_null() -> None:
    table = Table("t", ("a", "b", "c"), ((None, float("nan"), float("inf")),))
    assert table.text().splitlines()[-1] == "-  -  -"
    assert table.records() == [{"a": None, "b": None, "c": None}]
    json.dumps(table.records(), allow_nan=False)


def test_a_table_without_rows_shows_its_head() -> None:
    table = Table("Empty", ("name", "f1"), ())
    assert table.text().splitlines() == ["Empty", "name  f1", "----  --"]
    assert table.markdown().splitlines() == ["**Empty**", "", "| name | f1 |", "| :-- | :-- |"]
    assert table.records() == []


def test_a_table_without_columns() -> None:
    assert Table("Nothing", (), ()).text() == "Nothing"
    assert Table("", (), ()).markdown() == ""


def test_wide_characters_keep_the_columns_aligned() -> None:
    lines = Table("", ("type", "n"), (("地名", 1), ("e\u0301", 2))).text().splitlines()
    assert lines[2:] == ["地名  1", "e\u0301     2"]


def test_markdown_escapes_bars_and_keeps_cells_on_one_line() -> None:
    table = Table("", ("a",), (("x|y\nz",),))
    assert table.markdown().splitlines()[-1] == "| x\\|y z |"


def test_records_keep_the_full_value() -> None:
    assert Table("", ("a",), ((1 / 3,),), decimals=1).records() == [{"a": 1 / 3}]


def test_lists_become_tuples() -> None:
    table = Table("", ["a"], [[1]])  # type: ignore[arg-type]
    assert table.rows == ((1,),)
    assert table == Table("", ("a",), ((1,),))


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells, but 2 columns"):
        Table("t", ("a", "b"), ((1,),))
    with pytest.raises(ValueError, match="decimals for 1 of 2"):
        Table("t", ("a", "b"), (), decimals=(1,))
