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


def test_text_to_sentences(tagweave: CommandLine) -> None:
    Path("in.txt").write_text("Ada wrote. She left.\n\nOslo.\n", encoding="utf-8")
    options = ("--set", "tokenizer=spacy", "--set", "sentences=true")
    records = read_lines(tagweave.fine("convert", "in.txt", "-", *options).out)
    assert [record["id"] for record in records] == ["in-0-0", "in-0-1", "in-1-0"]
    assert [record["group"] for record in records] == ["in-paragraph-0", "in-paragraph-0", "in-paragraph-1"]
    paragraphs = tagweave.fine("convert", "in.txt", "out.text", "--set", "unit=file")
    assert "line breaks in texts, written as blanks" in paragraphs.words
    assert Path("out.text").read_text(encoding="utf-8") == "Ada wrote. She left.  Oslo. \n"


def test_options_of_writing(tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), news(1, sources=False))
    tagweave.fine("convert", "in.jsonl", "out.conllu", "--write-set", "column=true", "--write-set", "tag=Entity")
    assert Path("out.conllu").read_text(encoding="utf-8").startswith("# global.columns = ID FORM")
    tagweave.fine("convert", "out.conllu", "back.jsonl", "--set", "tag=Entity")
    assert read_lines(Path("back.jsonl").read_text(encoding="utf-8"))[0]["entities"] == news(1)[0]["entities"]


def test_unknown_options(tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), news(1, sources=False))
    for arguments, message in (
        (("--set", "tokeniser=spacy"), "no setting of ReadRecords is called 'tokeniser'. Did you mean 'tokenizer'?"),
        (("--set", "format=conll"), "no setting of ReadRecords is called 'format'"),
        (("--write-set", "tag=X"), "no setting of NoOptions is called 'tag'"),
    ):
        result = tagweave("convert", "in.jsonl", "out.jsonl", *arguments)
        assert result.code == 2
        assert message in result.words
    assert not Path("out.jsonl").exists()


def test_columns_under_another_name(tagweave: CommandLine) -> None:
    Path("in.txt").write_text("Ada B-PER\nwrote O\n", encoding="utf-8")
    result = tagweave("convert", "in.txt", "-")
    assert result.code == 1
    assert "Name the format: --from conll" in result.words
    assert read_lines(tagweave.fine("convert", "in.txt", "-", "--from", "conll").out)[0]["entities"] == [[0, 1, "PER"]]
