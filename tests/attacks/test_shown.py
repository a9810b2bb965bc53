"""What stands in files of others is shown as it is: no terminal, browser or reader of Markdown obeys it."""

import html.parser
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from cli.running import CommandLine, write_lines
from tagweave import progress
from tagweave.benchmark.page import render
from tagweave.errors import FormatError, TagweaveWarning, printable
from tagweave.report import Table
from tagweave.tagger.card import model_card

ESCAPES = {
    "colour": "\x1b[31m",
    "erase": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\",
    "one character": "\x9b2J",
    "long command": "\x90q\x9c",
    "carriage return": "safe\rsecret",
    "backspace": "safe\b\b\b\bevil",
    "turned round": "\u202egpj.exe",
    "delete": "a\x7f",
    "isolate": "\u2066x\u2069",
}
MARKUP = {
    "script": "<script>alert(1)</script>",
    "picture": "<img src=x onerror=alert(1)>",
    "link": "[x](javascript:alert(1))",
    "markdown picture": "![x](http://evil.example/pixel)",
    "table": "a | b | c",
    "code": "`a` <b>x</b> `b`",
    "escaped": "\\<script\\>",
    "entity": "&lt;script&gt;",
    "reference": "[x][y]",
    "heading": "a\n# b",
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(params=ESCAPES.values(), ids=ESCAPES)
def escape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MARKUP.values(), ids=MARKUP)
def markup(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_printable_shows_what_a_terminal_would_obey(escape: str) -> None:
    shown = printable(f"a{escape}b")
    assert not OBEYED.search(shown)
    assert shown[0] == "a" and shown[-1] == "b"
    assert printable(shown) == shown


def test_json_remains_the_same(escape: str) -> None:
    text = json.dumps({"source": escape}, ensure_ascii=False)
    assert json.loads(printable(text)) == {"source": escape}


def test_plain_text_is_left_alone() -> None:
    text = "naïve Zürich 東京 🚀 مرحبا\t1\n2\u200d"
    assert printable(text) == text


def test_errors_and_warnings(escape: str) -> None:
    assert not OBEYED.search(str(FormatError(f"line 1: the type {escape}")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(f"source {escape}", TagweaveWarning, stacklevel=1)
    assert not OBEYED.search(str(caught[0].message))


def test_tables_and_progress(escape: str, capsys: pytest.CaptureFixture[str]) -> None:
    progress.show()
    progress.say(f"shard {escape}")
    table = Table(escape, (escape, "n"), ((escape, 1),))
    assert not OBEYED.search(capsys.readouterr().err)
    assert not OBEYED.search(table.text() + table.markdown())


def attacked(word: str) -> list[dict[str, Any]]:
    """Records in which every name that people give holds a word."""
    sources = {f"s{word}": [[0, 1, f"T{word}"]], "other": [[0, 1, "PER"]]}
    record = {"tokens": [f"Ada{word}", "saw"], "entities": [[0, 1, f"T{word}"]], "sources": sources}
    return [{"id": f"d{word}{number}", **record} for number in range(3)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "in.jsonl", "--model", "none"),
        ("analyze", "in.jsonl", "--model", "none", "--json"),
        ("compare", "in.jsonl", "--models", "majority-vote,hmm"),
        ("compare", "in.jsonl", "--models", "hmm", "--json"),
        ("evaluate", "in.jsonl", "in.jsonl"),
        ("evaluate", "in.jsonl", "in.jsonl", "--json"),
        ("convert", "in.jsonl", "out.parquet"),
        ("aggregate", "in.jsonl", "--model", "hmm", "--out", "out.jsonl"),
    ],
    ids=" ".join,
)
def test_commands_print_no_control_characters(arguments: tuple[str, ...], tagweave: CommandLine) -> None:
    write_lines(Path("in.jsonl"), attacked("".join(ESCAPES.values())))
    result = tagweave.fine(*arguments)
    assert not OBEYED.search(result.err)
    assert not OBEYED.search(result.out)
    if "--json" in arguments:
        assert "\\u001b[2J" in result.out
        json.loads(result.out)


def test_messages_of_commands(tagweave: CommandLine, escape: str) -> None:
    write_lines(Path("in.jsonl"), [{"id": escape, "tokens": ["a"], "entities": [[0, 9, escape]]}])
    result = tagweave("evaluate", "in.jsonl", "in.jsonl")
    assert result.code == 1
    assert not OBEYED.search(result.err)
    missing = tagweave("evaluate", f"no{escape}.jsonl", "in.jsonl")
    assert missing.code in (1, 2)
    assert not OBEYED.search(missing.err)


class Tags(html.parser.HTMLParser):
    """The tags and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def rendered(text: str) -> str:
    """Markdown as the site of the documentation would show it."""
    markdown = pytest.importorskip("markdown")
    return str(markdown.markdown(text, extensions=["tables"]))


def test_markdown_of_tables_holds_no_markup(markup: str) -> None:
    page = rendered(Table(markup, (markup, "n"), ((markup, 1), (f"x {markup}", 2))).markdown())
    allowed = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert {tag for tag, _ in Tags(page).found} <= allowed
    assert page.count("<td") == 4


def test_markdown_shows_the_words_as_they_are(markup: str) -> None:
    page = rendered(Table("", ("name", "n"), ((markup, 1),)).markdown())
    words = html.unescape(re.sub(r"<[^>]*>", "", page.partition("<tbody>")[2])).split("\n")
    assert " ".join(markup.split()) in (" ".join(line.split()) for line in words)


def test_the_card_of_a_model(markup: str) -> None:
    page = rendered(model_card((markup,), crf=False).partition("# Named-entity recogniser")[2])
    assert not {tag for tag, _ in Tags(page).found} - {"p", "code", "strong", "a", "pre"}
    assert not [attributes for tag, attributes in Tags(page).found if tag == "a"]


def test_the_page_of_the_benchmark_refuses_names_that_are_none(tmp_path: Path) -> None:
    from tagweave.errors import TagweaveError

    place = tmp_path / "cells" / "laptop" / "x.json"
    place.parent.mkdir(parents=True)
    cell = {"dataset": "<script>", "system": "<script>", "encoder": "", "sources": "", "gold_free": False, "seed": 0}
    place.write_text(json.dumps({"cell": cell, "notes": [], "settings": {}}))
    with pytest.raises(TagweaveError):
        render(tmp_path)
