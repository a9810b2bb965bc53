"""Texts with mentions for the tests of formats that hold both, and what was read of them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.formats.words import tokenize

EMOJI = "\U0001f680 Ada \U0001f468\u200d\U0001f469\u200d\U0001f467 met Zo\u00eb"
HEBREW = "\u05d4\u05d9\u05d0 \u05d2\u05e8\u05d4 \u05d1\u05d0\u05d5\u05e1\u05dc\u05d5 today"
ASTRAL = "\U0001d4d0\U0001d4ed\U0001d4ea saw \U00020000\U00020001 there"

PIECES = [
    "Ada",
    "\U0001f680",
    "Oslo",
    "\u05d0\u05d5\u05e1\u05dc\u05d5",
    "e\u0301",
    "\U0001d4d0",
    '"<&>"',
    "|t|",
    ";",
    "T1",
]
BLANKS = [" ", "  ", "\t", "\u00a0", "\u2028", "\n", "\r\n", "\r", " \n "]


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Corpora of one type, whose texts have all kinds of blanks and whose entities do not overlap."""
    documents = []
    for name in draw(st.lists(st.sampled_from(["a", "B-2", "3.c", "\u00e9_"]), min_size=1, max_size=3, unique=True)):
        parts = draw(st.lists(st.sampled_from(PIECES + BLANKS), max_size=8))
        documents.append(document(name, "".join(parts), draw))
    return Corpus.from_documents(documents, types=["X"])


def document(name: str, text: str, draw: st.DrawFn) -> Document:
    characters = tokenize(text)
    length = len(characters)
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=4)))
    spans = [Span(start, end, "X") for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    return Document(name, [text[a:b] for a, b in characters], text=text, characters=characters, entities=spans)


def mentions(corpus: Corpus) -> dict[str, list[tuple[str, str]]]:
    """Type and text of the entities of each document."""
    found = {}
    for item in corpus:
        assert item.text is not None and item.characters is not None
        places = item.characters
        found[item.id] = [
            (span.type, item.text[places[span.start][0] : places[span.end - 1][1]]) for span in item.entities or ()
        ]
    return found


def contents(corpus: Corpus) -> dict[str, tuple[str | None, Sequence[str], Sequence[Span] | None]]:
    """Text, tokens and entities by id."""
    return {item.id: (item.text, item.tokens, item.entities) for item in corpus}
