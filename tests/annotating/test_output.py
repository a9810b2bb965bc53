"""Outputs that can be gone on with: locks, journals, and what is kept after a break."""

import json
import os
from pathlib import Path

import pytest

from tagweave.annotating.output import Journal, opened_output
from tagweave.annotating.statistics import Statistics
from tagweave.errors import StorageError, UsageError

ABOUT = {"the input": "1", "the sources": "2"}


def break_off(path: Path, *lines: bytes) -> None:
    """A run that writes some batches and then fails."""
    with pytest.raises(RuntimeError), opened_output(path, ABOUT, False) as output:
        for line in lines:
            output.write(line, 1, {"s": Statistics(spans=2)})
        raise RuntimeError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_name_in_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_bytes(b"old\n")
    with opened_output(target, ABOUT, False) as output:
        output.write(b"a\n", 1, {})
        assert target.read_bytes() == b"old\n"
        assert names(tmp_path) == [".out.jsonl.lock", "out.jsonl", "out.jsonl.journal.json", "out.jsonl.partial"]
        output.write(b"b\n", 1, {})
    assert target.read_bytes() == b"a\nb\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_what_was_finished_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n", b"b\n")
    assert names(tmp_path) == ["out.jsonl.journal.json", "out.jsonl.partial"]
    with opened_output(target, ABOUT, True) as output:
        assert (output.journal.batches, output.journal.documents) == (2, 2)
        output.write(b"c\n", 1, {"s": Statistics(spans=1)})
        assert output.journal.statistics["s"].spans == 5
    assert target.read_bytes() == b"a\nb\nc\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_nothing_is_kept_of_nothing(tmp_path: Path) -> None:
    break_off(tmp_path / "out.jsonl")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["out.jsonl.partial", "out.jsonl.journal.json"])
def test_one_bit_that_changed_is_noticed(name: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n", b"b\n")
    content = (tmp_path / name).read_bytes()
    place = content.index(b"b\n" if name.endswith("partial") else b"4")
    changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    (tmp_path / name).write_bytes(changed)
    with pytest.raises(StorageError, match="has changed.*Start afresh"), opened_output(target, ABOUT, True):
        pass
    assert (tmp_path / name).read_bytes() == changed


def test_a_run_that_ends_between_the_name_of_its_file_and_its_journal(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n", b"b\n")
    os.replace(tmp_path / "out.jsonl.partial", target)
    with pytest.raises(UsageError, match="changes in"), opened_output(target, {"input": "other"}, True):
        pass
    assert target.read_bytes() == b"a\nb\n"
    with opened_output(target, ABOUT, True) as output:
        assert (output.journal.batches, output.journal.statistics["s"].spans) == (2, 4)
    assert target.read_bytes() == b"a\nb\n"
    assert names(tmp_path) == ["out.jsonl"]


def test_what_the_journal_does_not_know_is_cut_off(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n")
    with (tmp_path / "out.jsonl.partial").open("ab") as handle:
        handle.write(b"half a li")
    with opened_output(target, ABOUT, True) as output:
        output.write(b"b\n", 1, {})
    assert target.read_bytes() == b"a\nb\n"


def test_without_resume_a_run_starts_afresh(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n")
    with opened_output(target, ABOUT, False) as output:
        output.write(b"b\n", 1, {})
    assert target.read_bytes() == b"b\n"


def test_nothing_to_go_on_with_is_no_error(tmp_path: Path) -> None:
    with opened_output(tmp_path / "out.jsonl", ABOUT, True) as output:
        assert output.journal == Journal(ABOUT)


def test_changes_are_named_and_nothing_is_lost(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n")
    with pytest.raises(UsageError, match=r"because of changes in the sources\. Start afresh, without --resume"):
        with opened_output(target, {**ABOUT, "the sources": "3"}, True):
            pass
    assert (tmp_path / "out.jsonl.partial").read_bytes() == b"a\n"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"about": 1', json.dumps({"statistics": {"s": {"x": 1}}})])
def test_a_damaged_journal_is_refused(content: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n")
    (tmp_path / "out.jsonl.journal.json").write_text(content, encoding="utf-8")
    with pytest.raises(StorageError, match=r"out\.jsonl\.journal\.json .*Start afresh"):
        with opened_output(target, ABOUT, True):
            pass


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    break_off(target, b"a\n")
    (tmp_path / "out.jsonl.partial").write_bytes(b"")
    with pytest.raises(StorageError, match="is shorter than"):
        with opened_output(target, ABOUT, True):
            pass


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    with opened_output(target, ABOUT, False) as output:
        output.write(b"a\n", 1, {})
        for resume in (False, True):
            with pytest.raises(UsageError, match="another run is writing it"), opened_output(target, ABOUT, resume):
                pass
        output.write(b"b\n", 1, {})
    assert target.read_bytes() == b"a\nb\n"


def test_a_link_keeps_pointing_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "out.jsonl"
    link.symlink_to(tmp_path / "there" / "real.jsonl")
    with opened_output(link, ABOUT, False) as output:
        output.write(b"a\n", 1, {})
    assert link.is_symlink()
    assert (tmp_path / "there" / "real.jsonl").read_bytes() == b"a\n"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "out.jsonl", tmp_path):
        with pytest.raises(UsageError, match=str(path)), opened_output(path, ABOUT, False):
            pass


def test_a_full_disk_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.jsonl"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=r"out\.jsonl cannot be written: No space left"):
        with opened_output(target, ABOUT, False) as output:
            output.write(b"a\n", 1, {})
            monkeypatch.setattr(os, "fsync", full)
            output.write(b"b\n", 1, {})
            output.note()  # type: ignore[attr-defined]
    assert not target.exists()


def test_errors_of_the_body_stay_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), opened_output(tmp_path / "out.jsonl", ABOUT, False):
        (tmp_path / "other").read_bytes()


def test_streams_have_no_journal(tmp_path: Path) -> None:
    with opened_output("/dev/null", ABOUT, False) as output:
        output.write(b"a\n", 1, {})
    with pytest.raises(UsageError, match="is no file, so there is nothing to go on with"):
        with opened_output("-", ABOUT, True):
            pass
