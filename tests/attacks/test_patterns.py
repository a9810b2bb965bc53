"""Patterns that never end, or that are endless themselves: a run stops them and names the source."""

import time
import warnings
from pathlib import Path

import pytest

from cli.running import CommandLine, write_lines
from sources.test_patterns import CATASTROPHES
from tagweave.annotating import annotate
from tagweave.annotating.corpora import BATCH
from tagweave.corpus import Corpus, Document
from tagweave.errors import SourceError, TagweaveError, TagweaveWarning, UsageError
from tagweave.sources import Regex, create_source
from tagweave.sources.patterns import _written_out

LIMIT = 0.2


def corpus(text: str) -> Corpus:
    """One token, one document."""
    return Corpus.from_documents([Document("long", [text], text, [(0, len(text))])])


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHES, ids=range(len(CATASTROPHES)))
def test_annotate_stops_each_by_its_own_limit(pattern: str, text: str) -> None:
    """The pattern's own limit is far away: what stops it is the limit of the run."""
    source = Regex("evil", pattern, "X", timeout=1000)
    began = time.monotonic()
    try:
        annotate(corpus(text), [source], time_limit=LIMIT)
    except SourceError as error:
        assert "source 'evil', document 'long'" in str(error)
        assert "longer than" in str(error)
    assert time.monotonic() - began < 30 * LIMIT


TOKENS = [
    ({"TEXT": {"REGEX": r"^(a+)+$"}}, "a" * 40 + "!"),
    ({"TEXT": {"REGEX": r"^(a|aa)+$"}}, "a" * 60 + "!"),
    ({"LOWER": {"REGEX": r"^([a-z0-9]+[-.]?)+@"}}, "a" * 60 + "!@"),
]


@pytest.mark.parametrize(("token", "text"), TOKENS, ids=range(len(TOKENS)))
def test_annotate_stops_patterns_over_tokens(token: dict[str, object], text: str) -> None:
    pytest.importorskip("spacy")
    source = create_source("token-patterns", {"name": "evil", "type": "X", "patterns": [[token]]})
    source.load()
    began = time.monotonic()
    with pytest.raises(SourceError, match="source 'evil', document 'long'"):
        annotate(corpus(text), [source], time_limit=LIMIT)
    assert time.monotonic() - began < 30 * LIMIT


def test_code_that_cannot_be_interrupted_ends_with_its_process() -> None:
    """Operators of spaCy that match in as many ways as there are subsets, in code that never looks at signals."""
    pytest.importorskip("spacy")
    patterns = [[{"LOWER": "a", "OP": "*"}] * 12 + [{"LOWER": "b"}]]
    source = create_source("token-patterns", {"name": "evil", "type": "X", "patterns": patterns})
    short = [Document(f"short{number}", ["b"]) for number in range(BATCH)]
    documents = [Document("long", ["a"] * 60), *short]
    with pytest.raises(SourceError, match="source 'evil', document 'long"):
        annotate(Corpus.from_documents(documents), [source], processes=2, time_limit=1)


def test_a_command_goes_on_without_them(tagweave: CommandLine) -> None:
    tables = [
        f'[[source]]\nkind = "regex"\nname = "evil{number}"\ntype = "X"\ntimeout = 0.05\npatterns = {pattern!r}\n'
        for number, (pattern, _) in enumerate(CATASTROPHES)
        if "'" not in pattern
    ]
    Path("s.toml").write_text("\n".join(tables))
    write_lines(Path("in.jsonl"), [{"id": f"d{n}", "text": text} for n, (_, text) in enumerate(CATASTROPHES)])
    strict = tagweave("annotate", "in.jsonl", "--sources", "s.toml", "--out", "strict.jsonl")
    assert strict.code == 1
    assert "evil" in strict.err and "Traceback" not in strict.err
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TagweaveWarning)
        tagweave.fine("annotate", "in.jsonl", "--sources", "s.toml", "--out", "out.jsonl", "--tolerant")
    assert len(Path("out.jsonl").read_text().splitlines()) == len(CATASTROPHES)


HUGE = [
    "a{99999999999999999999}",
    "(?:a{4294967295}){4294967295}",
    "(?:a{1000}){1000}",
    "(?:" * 8 + "a?" + "){9}" * 8,
    "(?:" * 8 + "a" + "){9,}" * 8 + "b",
    "((a{100}){100}){100}",
    "[a-z]" * 200_000,
    "a|" * 200_000,
    "x" * 200_000,
    "(" * 100_000,
    "(" * 100_000 + ")" * 100_000,
    "[" * 100_000,
    "(?:" * 5000 + "a" + ")*" * 5000,
    "\\",
    "(?P<a>x)(?P<a",
    "(?<=a{1,100000})(" + "b" * 10,
    "(?R",
    "a{2,1}",
]


@pytest.mark.parametrize("pattern", HUGE, ids=range(len(HUGE)))
def test_endless_patterns_are_refused_at_once(pattern: str) -> None:
    began = time.process_time()
    with pytest.raises(UsageError) as caught:
        Regex("evil", pattern, "X")
    assert len(str(caught.value)) < 3000
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "pattern", ["a{1,65535}", "(?:a{0,99}){0,99}", r"\p{L}{1,1000000}", "(?R)?b", "(?:x{e<=9}){2}"]
)
def test_large_counts_that_cost_nothing_are_fine(pattern: str) -> None:
    began = time.monotonic()
    try:
        annotate(corpus("a" * 5000), [Regex("r", pattern, "X", timeout=0.2)], time_limit=2)
    except TagweaveError as error:
        assert "source 'r'" in str(error)
    assert time.monotonic() - began < 10


def test_patterns_as_people_write_them_are_small() -> None:
    iban = r"(?i)\b[A-Z]{2}\d{2}(?: ?\d{4}){4}(?: ?\d{1,2})?\b|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    assert _written_out(iban) < 200
    assert _written_out("|".join(f"name number {number}" for number in range(3000))) < 60_000
