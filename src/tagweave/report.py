"""`Table`: rows of results, shown as plain text, Markdown or records for JSON."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Self
from unicodedata import combining, east_asian_width

from tagweave.errors import printable

Cell = str | int | float | None
"""What stands in a table; None is shown as `-`."""


@dataclass(frozen=True)
class Table:
    """A small table of results.

    Numbers stand at the right of their column, text at the left; None and floats that are not finite are shown as `-`.

    Args:
        title: what the table shows; may be empty.
        columns: names of the columns.
        rows: the cells, row by row, each of the length of `columns`.
        decimals: how many decimals floats are shown with, for all columns or one number a column. Records keep the
            full value.

    Raises:
        ValueError: a row, or `decimals`, has another length than `columns`.

    >>> table = Table("Scores", ("source", "spans", "f1"), (("names", 12, 91.304), ("cities", 7, None)), decimals=1)
    >>> print(table.text())
    Scores
    source  spans    f1
    ------  -----  ----
    names      12  91.3
    cities      7     -
    >>> print(table.markdown())
    **Scores**
    <BLANKLINE>
    | source | spans | f1 |
    | :-- | --: | --: |
    | names | 12 | 91.3 |
    | cities | 7 | - |
    >>> table.records()[1]
    {'source': 'cities', 'spans': 7, 'f1': None}
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    decimals: int | tuple[int, ...] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.title!r}: a row of {len(row)} cells, but {len(self.columns)} columns")
        if not isinstance(self.decimals, int) and len(self.decimals) != len(self.columns):
            raise ValueError(f"table {self.title!r}: decimals for {len(self.decimals)} of {len(self.columns)} columns")

    @classmethod
    def from_records(cls, title: str, records: Iterable[dict[str, Cell]], decimals: int | tuple[int, ...] = 2) -> Self:
        """A table from one dictionary a row; the columns are all keys in order of first appearance.

        >>> Table.from_records("", [{"a": 1}, {"b": 2}]).rows
        ((1, None), (None, 2))
        """
        rows = list(records)
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        return cls(title, columns, tuple(tuple(row.get(name) for name in columns) for row in rows), decimals)

    def text(self) -> str:
        """Aligned plain text for a terminal, without a line end at the end."""
        names = [_show(name, 0) for name in self.columns]
        columns = [[name, *cells] for name, cells in zip(names, self._shown(), strict=True)]
        widths = [max(map(_width, cells)) for cells in columns]
        ruled = [[cells[0], "-" * width, *cells[1:]] for cells, width in zip(columns, widths, strict=True)]
        padded = [
            [_pad(cell, width, right) for cell in cells]
            for cells, width, right in zip(ruled, widths, self._numeric(), strict=True)
        ]
        lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
        return "\n".join([_show(self.title, 0)] * bool(self.title) + lines)

    def markdown(self) -> str:
        r"""A Markdown table under its title in bold, without a line end at the end.

        Whatever could be HTML, a link or a picture is shown as it is written; a cell that is all code stays code.

        >>> Table("", ("source",), (("<b>names",), ("[x](y)",), ("`hmm`",))).markdown().splitlines()[2:]
        ['| &lt;b>names |', '| \\[x](y) |', '| `hmm` |']
        """
        rules = ["--:" if right else ":--" for right in self._numeric()]
        names = [_show(name, 0) for name in self.columns]
        rows = [names, rules, *zip(*self._shown(), strict=True)] if self.columns else []
        lines = [f"| {' | '.join(row)} |" for row in ([_escaped(cell) for cell in row] for row in rows)]
        return "\n".join([f"**{in_markdown(self.title)}**", ""] * bool(self.title) + lines)

    def records(self) -> list[dict[str, Cell]]:
        """One dictionary a row with the full values; what is not finite is None, so that it is valid JSON."""
        return [{name: _finite(cell) for name, cell in zip(self.columns, row, strict=True)} for row in self.rows]

    def _cells(self) -> list[tuple[Cell, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)

    def _shown(self) -> list[list[str]]:
        decimals = (self.decimals,) * len(self.columns) if isinstance(self.decimals, int) else self.decimals
        return [[_show(cell, places) for cell in cells] for cells, places in zip(self._cells(), decimals, strict=True)]

    def _numeric(self) -> Sequence[bool]:
        return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in self._cells()]


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _show(cell: Cell, decimals: int) -> str:
    cell = _finite(cell)
    if cell is None:
        return "-"
    return f"{cell:.{decimals}f}" if isinstance(cell, float) else printable(" ".join(str(cell).split()))


def _width(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters take two, combining marks none."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


_CODE = re.compile("`[^`]+`")
_MARKUP = re.compile(r"[\\`\[|]")


def in_markdown(text: str) -> str:
    r"""A text on one line that Markdown shows as it is: neither HTML nor links nor pictures.

    >>> in_markdown("<b>names [x](y)")
    '&lt;b>names \\[x](y)'
    """
    return _MARKUP.sub(r"\\\g<0>", _show(text, 0)).replace("&", "&amp;").replace("<", "&lt;")


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|") if _CODE.fullmatch(cell) else in_markdown(cell)
