from pathlib import Path

from benchmark.tiny_data import write_cell, write_data
from cli.running import CommandLine
from tagweave.benchmark.cells import Cell


def test_cells_are_run_and_the_page_is_made(tagweave: CommandLine) -> None:
    write_data(Path("data"))
    options = ["--datasets", "bc5cdr,laptop-review", "--systems", "hmm", "--out", "out", "--data", "data"]
    result = tagweave.fine("benchmark", "paper", *options)
    assert "laptop-review/hmm.paper.0: dev F1" in result.err
    assert Path("out/cells/bc5cdr/hmm.paper.0.json").is_file()
    assert "HMM" in Path("out/results.md").read_text(encoding="utf-8")
    assert "laptop-review/hmm.paper.0: dev F1" not in tagweave.fine("benchmark", "paper", *options).err


def test_what_fails_ends_in_exit_code_1(tagweave: CommandLine) -> None:
    write_data(Path("data"))
    write_cell(Path("out"), Cell("conll-2003", "hmm"), 50.0, "dev")
    options = ["--datasets", "conll-2003", "--systems", "hmm,autoner", "--out", "out", "--data", "data"]
    result = tagweave("benchmark", "paper", *options)
    assert result.code == 1
    assert "conll-2003/autoner.default.paper.0: the corpus has no sources" in result.words
    assert "50.00 (68.84)" in Path("out/results.md").read_text(encoding="utf-8")


def test_tables_alone_need_no_data(tagweave: CommandLine) -> None:
    write_cell(Path("out"), Cell("laptop-review", "hmm"), 50.0)
    tagweave.fine("benchmark", "paper", "--only-tables", "--out", "out", "--page", "page.md")
    assert "50.00 (66.96)" in Path("page.md").read_text(encoding="utf-8")


def test_unknown_names_give_the_nearest(tagweave: CommandLine) -> None:
    result = tagweave("benchmark", "paper", "--datasets", "bc5cd", "--out", "out")
    assert (result.code, "Did you mean 'bc5cdr'" in result.words) == (2, True)
    result = tagweave("benchmark", "paper", "--systems", "chm", "--out", "out")
    assert (result.code, "Did you mean 'chmm'" in result.words) == (2, True)
    assert not Path("out").exists()
