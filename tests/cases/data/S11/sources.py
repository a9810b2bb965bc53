"""Sources of which some fail."""

from collections.abc import Iterator

from tagweave.corpus import Document
from tagweave.sources import labeling_function


@labeling_function("PER")
def people(document: Document) -> Iterator[tuple[int, int]]:
    for place, token in enumerate(document.tokens):
        if token == "Mirel":
            yield place, place + 1


@labeling_function("LOC")
def fragile(document: Document) -> Iterator[tuple[int, int]]:
    place = list(document.tokens).index("Dorvan")
    yield place, place + 1


@labeling_function("LOC")
def beyond(document: Document) -> Iterator[tuple[int, int]]:
    yield 1, 40


@labeling_function("LOC")
def absent(document: Document) -> None:
    return None
