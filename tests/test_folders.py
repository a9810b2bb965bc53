"""Folders of shards: what counts as one, and what sources and models make of it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tagweave.errors import DataError, SourceError, TagweaveWarning, UsageError
from tagweave.folders import annotate_folder, is_folder_of_shards, shards_of
from tagweave.formats import read, write
from tagweave.shards import Manifest

TABLES = """
[[source]]
kind = "affixes"
name = "suffixes"
type = "LOC"
suffixes = ["lo"]

[[source]]
kind = "dictionary"
name = "names"
type = "PER"
phrases = "names.txt"
"""

RULES = """
from tagweave import labeling_function

@labeling_function("LOC")
def brittle(document):
    print("looking")
    return [(document.tokens.index("Oslo"), document.tokens.index("Oslo") + 1)]
"""

RECORDS = [
    {"id": "a", "tokens": ["Ada", "saw", "Oslo"]},
    {"id": "b", "tokens": ["Rome", "sleeps"]},
    {"id": "c", "tokens": ["In", "Oslo", "."]},
]


def lines(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three shards, one of each kind, of one document each, and an empty one; sources beside them."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(lines(RECORDS[0]))
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(gzip.compress(lines(RECORDS[1])))
    (tmp_path / "c.jsonl").write_bytes(lines(RECORDS[2]))
    write(read(tmp_path / "c.jsonl"), tmp_path / "in" / "c.parquet")
    (tmp_path / "in" / "d.jsonl").write_bytes(b"")
    (tmp_path / "sources.toml").write_text(TABLES)
    (tmp_path / "sources.py").write_text(RULES)
    (tmp_path / "names.txt").write_text("Ada\n")
    return tmp_path


def made(path: Path) -> dict[str, tuple[int, int]]:
    """When the files of a folder were made, and which they are."""
    files = (file for file in path.iterdir() if file.name[0] != "." and file.name != "shards.json")
    return {file.name: (file.stat().st_mtime_ns, file.stat().st_ino) for file in files}


def test_what_a_folder_of_shards_is(folder: Path) -> None:
    assert is_folder_of_shards(folder / "in")
    assert not is_folder_of_shards(folder / "in" / "a.jsonl")
    (folder / "in" / "_SUCCESS").touch()
    (folder / "in" / "notes.md").touch()
    with pytest.warns(TagweaveWarning, match=r"1 entries are no shards and are left out, such as 'notes\.md'"):
        assert [path.name for path in shards_of(folder / "in")] == ["a.jsonl", "b.jsonl.gz", "c.parquet", "d.jsonl"]
    (folder / "empty").mkdir()
    assert not is_folder_of_shards(folder / "empty")
    with pytest.raises(DataError, match="holds no shards"):
        shards_of(folder / "empty")


def test_sources_vote_on_every_shard_and_are_counted_together(folder: Path) -> None:
    report = annotate_folder(folder / "in", folder / "sources.toml", folder / "out", processes=2)
    assert report.documents == 3
    assert report.statistics["suffixes"].spans == 2
    assert report.statistics["names"].documents == 3
    found = [read(path)[0] for path in shards_of(folder / "out")[:3]]
    assert [document.id for document in found] == ["a", "b", "c"]
    votes = [{name: [span[:3] for span in spans or ()] for name, spans in each.sources.items()} for each in found]
    assert votes == [
        {"suffixes": [(2, 3, "LOC")], "names": [(0, 1, "PER")]},
        {"suffixes": [], "names": []},
        {"suffixes": [(1, 2, "LOC")], "names": []},
    ]
    assert (folder / "out" / "b.jsonl.gz").read_bytes()[4:8] == bytes(4)  # no time in a packed file


def test_what_sources_use_is_looked_at_and_what_is_valid_stays(folder: Path) -> None:
    for name in ("b.jsonl.gz", "c.parquet"):
        (folder / "in" / name).unlink()
    first = annotate_folder(folder / "in", folder / "sources.toml", folder / "out")
    before = made(folder / "out")
    again = annotate_folder(folder / "in", folder / "sources.toml", folder / "out", time_limit=5, tolerant=True)
    assert made(folder / "out") == before
    assert again.statistics == first.statistics
    (folder / "in" / "d.jsonl").write_bytes(lines({"id": "d", "tokens": ["Bo"]}))
    annotate_folder(folder / "in", folder / "sources.toml", folder / "out")
    now = made(folder / "out")
    assert [name for name in now if now[name] != before[name]] == ["d.jsonl"]
    (folder / "names.txt").write_text("Bo\n")
    annotate_folder(folder / "in", folder / "sources.toml", folder / "out")
    assert not set(made(folder / "out").values()) & set(now.values())


def test_an_error_names_shard_source_and_document_and_the_folder_is_not_taken_for_whole(folder: Path) -> None:
    with pytest.raises(SourceError, match=r"shard 'b\.jsonl\.gz': source 'brittle', document 'b': ValueError"):
        annotate_folder(folder / "in", folder / "sources.py", folder / "out")
    assert list(Manifest.read(folder / "out").entries) == ["a.jsonl"]
    with pytest.raises(DataError, match=r"out is not complete: 3 outputs are missing, such as 'b\.jsonl\.gz'"):
        shards_of(folder / "out")
    with pytest.warns(TagweaveWarning, match=r"shard 'b\.jsonl\.gz': source 'brittle' failed 1 times"):
        report = annotate_folder(folder / "in", folder / "sources.py", folder / "out", tolerant=True)
    assert report.statistics["brittle"].failures == 1
    assert len(shards_of(folder / "out")) == 4


def test_a_broken_shard_is_named_with_its_line(folder: Path) -> None:
    (folder / "in" / "a.jsonl").write_bytes(lines(RECORDS[0]) + b"{")
    with pytest.raises(DataError, match=r"shard 'a\.jsonl': .*a\.jsonl, line 2"):
        annotate_folder(folder / "in", folder / "sources.toml", folder / "out")


def test_a_setting_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="no option is called 'colour'|colour"):
        annotate_folder(folder / "in", folder / "sources.toml", folder / "out", options={"colour": 1})
