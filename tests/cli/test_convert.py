from pathlib import Path

from cli.running import CommandLine, news, read_lines, write_lines


def test_there_and_back(tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), news(3, sources=False))
    tagweave.fine("convert", "in.jsonl", "out.conll")
    assert Path("out.conll").read_text(encoding="utf-8").startswith("Ada\tB-PER\nLovelace\tI-PER\nsaw\tO\n")
    tagweave.fine("convert", "out.conll", "back.jsonl.gz")
    back = read_lines(tagweave.fine("convert", "back.jsonl.gz", "-").out)
    assert [record["entities"] for record in back] == [record["entities"] for record in news(3)]


def test_what_is_lost_is_said(tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), news(3))
    result = tagweave.fine("convert", "in.jsonl", "out.conll")
    assert result.err.startswith("warning: ")
    assert "sources" in result.words


def test_formats_by_name_and_standard_streams(tagweave: CommandLine) -> None:
    result = tagweave.fine("convert", "--from", "conll", "--to", "jsonl", "-", "-", stdin=b"\xc3\x85se B-PER\n")
    (record,) = read_lines(result.out)
    assert (record["tokens"], record["entities"]) == (["Åse"], [[0, 1, "PER"]])


def test_unknown_formats(tagweave: CommandLine) -> None:
    Path("in.xyz").write_text("", encoding="utf-8")
    ending = tagweave("convert", "in.xyz", "-")
    assert ending.code == 2
    assert "the ending '.xyz' means no format" in ending.words
    name = tagweave("convert", "in.xyz", "-", "--from", "connl")
    assert name.code == 2
    assert "Did you mean 'conll'?" in name.words
