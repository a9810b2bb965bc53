"""Footers of Parquet files: what Arrow says of them, and files whose facts contradict each other."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile.damage import write
from tagweave.errors import FormatError
from tagweave.formats.parquet_footer import values_and_bytes

READ_EACH = """
import sys, warnings
from pathlib import Path
from tagweave.errors import DataError, UsageError
from tagweave.formats import read
warnings.simplefilter("ignore")
path = Path(sys.argv[1])
good = path.read_bytes()
for place in range(len(good) // 5, len(good)):
    raw = bytearray(good)
    raw[place] ^= 0x40
    path.write_bytes(raw)
    try:
        read(path)
    except (DataError, UsageError):
        pass
print("all are read or refused")
"""


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize("group", [3, 5000])
def test_as_many_values_as_arrow_says(rows: int, group: int, tmp_path: Path) -> None:
    lists = pa.array([["a", "b"][: n % 3] for n in range(rows)], pa.list_(pa.string()))
    table = pa.table({"id": [str(n) for n in range(rows)], "tokens": lists, "x": [n / 2 for n in range(rows)]})
    pq.write_table(table.replace_schema_metadata({"k": "v" * 300}), tmp_path / "a.parquet", row_group_size=group)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    expected = [sum(each.column(n).num_values for n in range(each.num_columns)) for each in groups]
    found = values_and_bytes(tmp_path / "a.parquet")
    assert [values for values, _ in found] == expected
    for each, (_, pages) in zip(groups, found, strict=True):
        heads = sum(each.column(n).total_uncompressed_size for n in range(each.num_columns)) - pages
        assert 0 < heads < 100 * 2 * each.num_columns


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x00",
        b"\x49\x1c",
        b"\x4c" * 5000,
        b"\x49\xf0" + b"\xff" * 20,
        b"\x15" + b"\xff" * 200,
        b"\x4b\xff",
        b"\x49" + b"\x19" * 5000,
    ],
)
def test_broken_footers(footer: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(FormatError):
        values_and_bytes(path)


def test_facts_that_contradict_each_other_do_not_end_the_process(tmp_path: Path) -> None:
    """In a process of its own, since what is tested ends processes: each byte of the footer is another one."""
    write(tmp_path / "a.parquet", "parquet")
    command = [sys.executable, "-c", READ_EACH, str(tmp_path / "a.parquet")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-500:]
    assert "all are read or refused" in result.stdout
