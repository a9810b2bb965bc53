import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from formats.standard_input import standard_input
from tagweave.errors import FormatError, UsageError
from tagweave.formats.streams import Lines, read_lines, read_text, stem, written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.txt"


def test_only_line_feeds_end_lines(path: Path) -> None:
    path.write_bytes("\ufeffa\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b\r\nc\rd\n\nlast".encode())
    assert list(read_lines(path)) == [
        (1, "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b"),
        (2, "c\rd"),
        (3, ""),
        (4, "last"),
    ]


def test_one_byte_order_mark_is_no_text(path: Path) -> None:
    path.write_bytes("\ufeff\ufeffa\n\ufeffb".encode())
    assert [line for _, line in read_lines(path)] == ["\ufeffa", "\ufeffb"]
    assert read_text(path) == "\ufeffa\n\ufeffb"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ok\nb\xffd\n", "line 2: byte 2 is not UTF-8"),
        (b"ok\n\xed\xa0\x80\n", "line 2: byte 1 is not UTF-8"),
        ("héllo\n".encode("latin-1"), "line 1: byte 2 is not UTF-8"),
        ("Ada\n".encode("utf-16"), "line 1: byte 1 is not UTF-8"),
        ("Ada\n".encode("utf-16-le"), "line 1: holds a NUL"),
        (b"ok\n\0\n", "line 2: holds a NUL"),
    ],
)
def test_what_is_not_text_is_an_error_with_its_line(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"in.txt, {message}"):
        list(read_lines(path))


@pytest.mark.parametrize(
    "content", [b"plain", gzip.compress(b"a" * 1000, mtime=0)[:-9], b"\x1f\x8b\x08\x00garbage and more"]
)
def test_broken_gzip_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.txt.gz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="gzip"):
        list(read_lines(path))


def test_a_path_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            list(read_lines(path))


def test_gzip_is_by_name_and_always_the_same(tmp_path: Path) -> None:
    contents = []
    for name in ("a.txt.gz", "b.txt.gz"):
        with written(tmp_path / name) as handle:
            handle.write(b"one\ntwo\n")
        assert [line for _, line in read_lines(tmp_path / name)] == ["one", "two"]
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_a_failure_keeps_the_old_file_and_leaves_nothing(path: Path) -> None:
    path.write_text("old")
    with pytest.raises(KeyError), written(path) as handle:
        handle.write(b"new")
        raise KeyError
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_links_are_followed_and_devices_written_to(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with written(tmp_path / "link.txt") as handle:
        handle.write(b"x")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_bytes() == b"x"
    with written(os.devnull) as handle:
        handle.write(b"x")
    assert not Path(os.devnull).is_file()


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "folder.txt"):
        with pytest.raises(UsageError, match="cannot be written"), written(path) as handle:
            handle.write(b"x")


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\n".encode()), encoding="ascii"))
    assert list(read_lines("-")) == [(1, "é")]
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    with written("-") as handle:
        handle.write("é".encode())
    assert output.getvalue().decode() == "é"


def test_lines_are_looked_at_before_they_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "".join(f"{number}\n" for number in range(1, 1202))
    path.write_text(content, encoding="utf-8")
    standard_input(monkeypatch, content.encode())
    for lines, all_seen in ((Lines(path), True), (Lines("-"), False)):
        assert lines.look(lambda them: "1000" in them)
        assert lines.look(lambda them: "1200" in them) == all_seen
        assert lines.first()[-1] == "1000"
        assert [*lines] == [(number, str(number)) for number in range(1, 1202)]
    standard_input(monkeypatch, content.encode())
    lines = Lines("-", ends=True)
    assert lines.first()[0] == "1\n"
    lines.keep()
    assert len([*lines]) == len([*lines]) == 1201


@pytest.mark.parametrize(("path", "name"), [("a/b.jsonl", "b"), ("b.x.conll.gz", "b.x"), ("-", "stdin")])
def test_names_for_ids(path: str, name: str) -> None:
    assert stem(path) == name
