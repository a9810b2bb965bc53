"""Adapters for dictionaries as sources."""

import time
from typing import Any

from cases.harness import Check, check
from tagweave.annotating import Runner
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.formats.words import tokenize
from tagweave.sources import Dictionary


def votes_of(source: Dictionary, document: Document) -> list[Span]:
    """What a dictionary says of a document, from left to right."""
    [annotated] = Runner([source]).run([document])
    return sorted(annotated.sources[source.name] or ())


@check("dictionary_in_text")
def dictionary_in_text(item: Check) -> None:
    """Start and end of the votes in the text, and the text that they cover."""
    text = item.expected["text"]
    places = tokenize(text)
    document = Document("d", [text[start:end] for start, end in places], text, places)
    source = Dictionary("names", (item.path,), type="NAME", **item.arguments)
    found = [(places[vote.start][0], places[vote.end - 1][1]) for vote in votes_of(source, document)]
    assert [[start, end, text[start:end]] for start, end in found] == item.expected["value"]


@check("dictionary_in_tokens")
def dictionary_in_tokens(item: Check) -> None:
    """First token and token after of the votes, where another source has spoken before."""
    blocked = [Span(start, end, "OTHER") for start, end in item.expected["blocked"]]
    document = Document("d", item.expected["tokens"], sources={"first": blocked})
    source = Dictionary("names", (item.path,), type="NAME", not_over=("first",))
    assert [[vote.start, vote.end] for vote in votes_of(source, document)] == item.expected["value"]


@check("dictionary_of_any_size")
def dictionary_of_any_size(item: Check) -> None:
    """The time to look through a text does not follow the number of phrases."""
    few, many = item.expected["sizes"]
    tokens = [f"w{number % 977}" for number in range(20_000)]
    documents = [Document("d", tokens)]
    seconds = {size: _seconds(size, documents) for size in (few, many)}
    assert seconds[many] < item.expected["ratio"] * seconds[few]


def _seconds(size: int, documents: list[Document]) -> float:
    source = Dictionary("names", words=tuple(f"w{n % 977} w{n // 977} w{n % 31}" for n in range(size)), type="NAME")
    source.load()
    times: list[Any] = []
    for _ in range(5):
        begin = time.process_time()
        list(source.annotate(documents))
        times.append(time.process_time() - begin)
    return float(min(times))
