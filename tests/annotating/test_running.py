"""What sources get to see, and what becomes of sources that fail, write, dawdle, or yield nonsense."""

import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tagweave.annotating.running import Runner, check_order, described
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import MissingExtraError, SourceError, SourceTimeout, UsageError
from tagweave.sources import Renamed, Source, labeling_function
from tagweave.sources.base import Votes, groups
from tagweave.sources.functions import Function, FunctionSource


def source(function: Function, *types: str, **settings: Any) -> FunctionSource:  # noqa: ANN401
    return FunctionSource(function.__name__, function, types or ("LOC",), **settings)


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{number}", text.split()) for number, text in enumerate(texts)]


def found(run: Sequence[Document], name: str) -> list[list[tuple[Any, ...]] | None]:
    votes = [document.sources[name] for document in run]
    return [None if spans is None else [tuple(span) for span in spans] for spans in votes]


@labeling_function("LOC")
def cities(document: Document) -> Votes:
    return [(i, i + 1) for i, token in enumerate(document.tokens) if token == "Oslo"]


@labeling_function("LOC")
def brittle(document: Document) -> Votes:
    place = document.tokens.index("Oslo")
    return [(place, place + 1)]


@dataclass
class Batches(Source):
    """Takes all documents together, but not those with a certain word."""

    word: str = "bad"
    types: tuple[str, ...] = ("LOC",)
    sizes: list[int] = field(default_factory=list)

    def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
        self.sizes.append(len(documents))
        if any(self.word in document.tokens for document in documents):
            raise RuntimeError("no such word")
        return [[(0, 1)] for _ in documents]


# What a source sees


def test_sources_see_votes_of_earlier_ones_but_no_gold() -> None:
    seen: list[Document] = []

    def looks(document: Document) -> Votes:
        seen.append(document)
        return []

    gold = Document("d", ["Oslo"], entities=[Span(0, 1, "GPE")], sources={"old": [Span(0, 1, "PER")]})
    [out] = Runner([cities, source(looks)]).run([gold])
    assert seen[0].entities is None
    assert seen[0].sources["cities"] == (Span(0, 1, "LOC"),)
    assert seen[0].sources["old"] == (Span(0, 1, "PER"),)
    assert out.entities == [Span(0, 1, "GPE")]
    assert list(out.sources) == ["old", "cities", "looks"]


def test_tokens_without_text_are_joined_for_sources_only() -> None:
    seen: list[Document] = []
    [out] = Runner([source(lambda document: seen.append(document) or [])]).run(documents("In Oslo ."))
    assert seen[0].text == "In Oslo ."
    assert seen[0].characters == ((0, 2), (3, 7), (8, 9))
    assert out.text is None
    assert out.characters is None


def test_text_stays_as_it_is() -> None:
    given = Document("d", ["Oslo", "."], "Oslo.", [(0, 4), (4, 5)])
    [out] = Runner([cities]).run([given])
    assert (out.text, out.characters) == ("Oslo.", [(0, 4), (4, 5)])


def write_type(document: Document) -> Votes:
    document.sources["cities"] = []  # type: ignore[index]
    return []


def write_votes(document: Document) -> Votes:
    document.sources["cities"].append((0, 1, "LOC"))  # type: ignore[union-attr]
    return []


def write_tokens(document: Document) -> Votes:
    document.tokens[0] = "x"  # type: ignore[index]
    return []


def write_text(document: Document) -> Votes:
    document.text = "x"  # type: ignore[misc]
    return []


@pytest.mark.parametrize("function", [write_type, write_votes, write_tokens, write_text])
def test_a_document_cannot_be_changed(function: Function) -> None:
    with pytest.raises(SourceError, match=rf"source '{function.__name__}', document 'd0': \w+Error: .*test_running.py"):
        Runner([cities, source(function)]).run(documents("Oslo"))


def test_what_a_source_said_before_gives_way() -> None:
    early: list[Any] = []
    given = Document("d", ["Oslo"], sources={"cities": [Span(0, 1, "OLD")]}, links={"cities": []})
    first = source(lambda document: early.append(dict(document.sources)) or [])
    [out] = Runner([first, cities]).run([given])
    assert early == [{}]
    assert out.sources["cities"] == (Span(0, 1, "LOC"),)
    assert not out.links


def test_hidden_sources_serve_later_ones_only() -> None:
    secret = source(lambda document: [(0, 1)], "GPE", hidden=True)
    secret.name = "secret"
    [out] = Runner([secret, Renamed("open", "secret", ("LOC",), {"GPE": "LOC"})]).run(documents("Oslo"))
    assert dict(out.sources) == {"open": (Span(0, 1, "LOC"),)}


def test_a_needed_source_that_a_document_lacks_did_not_run_there() -> None:
    given = [Document("a", ["Oslo"], sources={"old": [Span(0, 1, "GPE")]}), Document("b", ["Oslo"])]
    out = Runner([Renamed("new", "old", ("LOC",), {"GPE": "LOC"})]).run(given)
    assert found(out, "new") == [[(0, 1, "LOC", None)], None]
    assert "old" not in out[1].sources


def test_groups_come_together() -> None:
    sizes: list[list[int]] = []

    @dataclass
    class Whole(Source):
        types = ("LOC",)

        def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
            sizes.append([len(members) for members in groups(documents)])
            return [[] for _ in documents]

    Runner([Whole("whole")]).run([Document("a", [], group="g"), Document("b", [], group="g"), Document("c", [])])
    assert sizes == [[2, 1]]


# Failures


def test_a_failure_names_source_document_error_and_line() -> None:
    with pytest.raises(SourceError, match=r"source 'brittle', document 'd1': ValueError: .*test_running.py, line \d+"):
        Runner([brittle]).run(documents("Oslo", "Rome"))


def test_the_line_is_that_of_the_source_and_not_of_a_library() -> None:
    def deep(document: Document) -> Votes:
        re.compile("(")
        return []

    line = deep.__code__.co_firstlineno + 1
    with pytest.raises(SourceError, match=rf"test_running.py, line {line}\)"):
        Runner([source(deep)]).run(documents("a"))


def test_a_tolerated_failure_abstains_and_is_counted() -> None:
    runner = Runner([brittle, cities], tolerant=True)
    out = runner.run(documents("Oslo", "Rome", "to Oslo"))
    assert found(out, "brittle") == [[(0, 1, "LOC", None)], None, [(1, 2, "LOC", None)]]
    assert found(out, "cities") == [[(0, 1, "LOC", None)], [], [(1, 2, "LOC", None)]]
    done = runner.take_statistics()
    assert (done["brittle"].failures, done["brittle"].abstained, done["brittle"].spans) == (1, 1, 2)
    assert "'d1': ValueError" in done["brittle"].first_failure
    assert done["cities"].failures == 0
    assert runner.take_statistics() == {}


def test_the_end_of_a_process_is_a_failure_of_one_document() -> None:
    def leaves(document: Document) -> Votes:
        raise SystemExit(3)

    assert found(Runner([source(leaves)], tolerant=True).run(documents("a")), "leaves") == [None]


def test_an_interrupt_is_not_tolerated() -> None:
    def stops(document: Document) -> Votes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner([source(stops)], tolerant=True).run(documents("a"))


def test_an_error_in_a_generator_is_told_as_it_is() -> None:
    def lazy(document: Document) -> Votes:
        yield 0, 1
        yield 0, len(None)  # type: ignore[arg-type]

    with pytest.raises(SourceError, match=r"'lazy', document 'd0': TypeError: object of type 'NoneType' has no len"):
        Runner([source(lazy)]).run(documents("a"))


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([(0, 9)], r"'nonsense', document 'd0': vote \(0, 9\) does not lie within the 2 tokens"),
        ([(0, 1, "LOCK")], r"'nonsense', document 'd0': .*'LOCK'.*Did you mean 'LOC'"),
        ([(0, 1, "LOC", 7)], "probability"),
        ([3], "is not"),
        (7, "not a list"),
    ],
)
def test_nonsense_is_refused(votes: Any, message: str) -> None:  # noqa: ANN401
    def nonsense(document: Document) -> Votes:
        return votes  # type: ignore[no-any-return]

    with pytest.raises(SourceError, match=message):
        Runner([source(nonsense)]).run(documents("a b"))


@pytest.mark.parametrize("error", [ImportError("no module"), MissingExtraError("pip install it")])
def test_a_source_that_cannot_be_made_ready(error: Exception) -> None:
    class Broken(Batches):
        def load(self) -> None:
            raise error

    expected = MissingExtraError if isinstance(error, MissingExtraError) else SourceError
    with pytest.raises(expected, match=f"source 'model': .*{error}"):
        Runner([Broken("model")], tolerant=True).run(documents("a"))


def test_a_batch_that_fails_is_parted_to_find_the_document() -> None:
    batches = Batches("batches")
    with pytest.raises(SourceError, match="source 'batches', document 'd2': RuntimeError: no such word"):
        Runner([batches]).run(documents("a", "b", "bad", "c"))
    out = Runner([batches], tolerant=True).run(documents("a", "b", "bad", "c"))
    assert [votes is None for votes in found(out, "batches")] == [False, False, True, False]


def test_a_group_that_fails_abstains_as_a_whole() -> None:
    given = [Document("a", ["x"], group="g"), Document("b", ["bad"], group="g"), Document("c", ["y"])]
    runner = Runner([Batches("batches")], tolerant=True)
    assert [votes is None for votes in found(runner.run(given), "batches")] == [True, True, False]
    done = runner.statistics["batches"]
    assert (done.failures, done.abstained) == (1, 2)


def test_each_document_needs_votes() -> None:
    class Short(Batches):
        def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
            return [[]]

    with pytest.raises(SourceError, match="source 'short', document 'd0': it gives votes for 1 of 2 documents"):
        Runner([Short("short")]).run([Document("d0", ["a"], group="g"), Document("d1", ["a"], group="g")])


def test_a_source_is_skipped_where_it_must_not_run() -> None:
    skipped = frozenset({("cities", "d0"), ("batches", "d1")})
    out = Runner([cities, Batches("batches")]).run(documents("Oslo", "bad", "Oslo"), skipped)
    assert found(out, "cities") == [None, [], [(0, 1, "LOC", None)]]
    assert found(out, "batches") == [[(0, 1, "LOC", None)], None, [(0, 1, "LOC", None)]]


# Time


def waits(document: Document) -> Votes:
    time.sleep(30 if "slow" in document.tokens else 0)
    return []


def loops(document: Document) -> Votes:
    while "slow" in document.tokens:
        pass
    return []


def loops_and_catches(document: Document) -> Votes:
    while "slow" in document.tokens:
        try:
            time.sleep(0.01)
        except Exception:
            continue
    return []


def backtracks(document: Document) -> Votes:
    return [] if re.match("(a+)+$", "a" * (40 if "slow" in document.tokens else 2) + "!") else None


@pytest.mark.parametrize("function", [waits, loops, loops_and_catches, backtracks])
def test_a_source_that_takes_too_long_is_stopped_and_named(function: Function) -> None:
    begin = time.monotonic()
    with pytest.raises(SourceTimeout, match=rf"'{function.__name__}', document 'd1': it took longer than 0.2 seconds"):
        Runner([source(function)], time_limit=0.2).run(documents("fine", "slow"))
    assert time.monotonic() - begin < 2


def test_a_tolerated_timeout_is_counted_as_such() -> None:
    runner = Runner([source(waits), cities], tolerant=True, time_limit=0.2)
    out = runner.run(documents("slow Oslo", "Oslo"))
    assert found(out, "waits") == [None, []]
    assert found(out, "cities") == [[(1, 2, "LOC", None)], [(0, 1, "LOC", None)]]
    assert (runner.statistics["waits"].failures, runner.statistics["waits"].timeouts) == (1, 1)


def test_documents_that_are_too_slow_together_come_one_by_one_from_then_on() -> None:
    class Slow(Batches):
        def annotate(self, documents: Sequence[Document]) -> Iterable[Votes]:
            for document in documents:
                time.sleep(0.12)
                yield [(0, len(document.tokens))]

    slow = Slow("slow")
    runner = Runner([slow], time_limit=0.3)
    given = documents("a", "b b", "c", "d")
    expected = [[(0, len(document.tokens), "LOC", None)] for document in given]
    assert found(runner.run(given), "slow") == expected
    assert runner.alone == {"slow"}
    assert runner.statistics["slow"].failures == 0
    begin = time.monotonic()
    assert found(runner.run(given), "slow") == expected
    assert time.monotonic() - begin < 0.75


def test_no_limit_and_other_threads() -> None:
    out: list[Document] = []
    run = Runner([cities], time_limit=0.1).run
    thread = threading.Thread(target=lambda: out.extend(run(documents("Oslo"))))
    thread.start()
    thread.join()
    assert found(out, "cities") == [[(0, 1, "LOC", None)]]
    assert found(Runner([cities], time_limit=0).run(documents("Oslo")), "cities") == [[(0, 1, "LOC", None)]]


# Order and description


def test_order_is_checked_before_a_run() -> None:
    renamed = Renamed("new", "cities", ("GPE",), {"LOC": "GPE"})
    check_order([cities, renamed], [])
    check_order([renamed], ["cities"])
    with pytest.raises(UsageError, match="'new' builds on 'cities', which neither comes before it nor is in the input"):
        check_order([renamed, cities], ["cities"])


def test_sources_are_described() -> None:
    assert [(each.name, each.types) for each in described([cities])] == [("cities", ("LOC",))]


# Analyses


def test_sources_share_one_analysis() -> None:
    pytest.importorskip("spacy")
    seen = []

    def looks(document: Document) -> Votes:
        seen.append(document.parse)
        return [(0, len(document.parse))]

    first, second, third = (source(looks, pipeline=name) for name in ("blank:en", "blank:en", None))
    first.name, second.name = "first", "second"
    third.function = lambda document: [] if document.parse is None else None
    out = Runner([first, second, third]).run([Document("d", ["Oslo", "."], "Oslo.", [(0, 4), (4, 5)])])
    assert seen[0] is seen[1]
    assert seen[0].text == "Oslo."
    assert found(out, "looks") == [[]]
    assert [each.name for each in described([first, second, third])] == ["(blank:en)", "first", "second", "looks"]


@pytest.mark.parametrize("what", ["ents", "spans"])
def test_an_analysis_cannot_be_changed(what: str) -> None:
    spacy = pytest.importorskip("spacy")

    def writes(document: Document) -> Votes:
        span = spacy.tokens.Span(document.parse, 0, 1, "LOC")
        if what == "ents":
            document.parse.ents = [span]
        else:
            document.parse.spans["mine"] = [span]
        return []

    with pytest.raises(SourceError, match="source 'writes', document 'd0': it changes document.parse"):
        Runner([source(writes, pipeline="blank:en")]).run(documents("Oslo"))


@pytest.mark.parametrize(("name", "type"), [("", "X"), ("a\ud800", "X"), ("a", ""), ("a", "X\udfff")])
def test_names_that_cannot_be_read_again(name: str, type: str) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        Runner([Batches(name, types=(type,))]).load()


def test_numbers_of_numpy_are_numbers() -> None:
    @labeling_function("LOC")
    def places(document: Document) -> Votes:
        return [(np.int64(0), np.int32(1), "LOC", np.float32(0.5))]  # type: ignore[list-item]

    (document,) = Runner([places]).run([Document("d", ["Oslo"])])
    (span,) = document.sources["places"] or ()
    assert span == Span(0, 1, "LOC", 0.5)
    assert [type(value) for value in span] == [int, int, str, float]


def test_an_end_of_generators_is_a_failure() -> None:
    @labeling_function("LOC")
    def ended(document: Document) -> Votes:
        raise GeneratorExit

    with pytest.raises(SourceError, match="source 'ended', document 'd': GeneratorExit"):
        Runner([ended]).run([Document("d", ["Oslo"])])
