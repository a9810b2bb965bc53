"""Text that comes without tokens: the options that all such formats share, and the documents that it becomes.

A format finds texts and the character spans that annotators gave, and hands both to `text_documents`, which cuts the
text into tokens, and sentences if that is wanted, and lays the spans over the tokens.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import AlignmentError, FormatError, LabelError, UsageError
from tagweave.formats.blank_pipelines import blank_pipeline
from tagweave.formats.problems import Problems
from tagweave.formats.spans import BadSpans, CharacterSpans, OffsetUnit
from tagweave.formats.words import Alignment, Offsets, Tokenizer, tokenize
from tagweave.labels import OUTSIDE

Items = Iterable[Any] | None
"""Character spans of one annotator as `tagweave.formats.spans` reads them: `[start, end, type]`, `[start, end, type,
score]`, or mappings with these names. None is an annotator that did not run."""


@dataclass(frozen=True)
class TextOptions:
    """Options of reading text that has no tokens.

    Raises:
        UsageError: sentences are wanted of a tokeniser that finds none.
    """

    tokenizer: Literal[Tokenizer, "spacy"] = "words"
    """How text is cut into tokens; `spacy` goes by the rules that spaCy has for the language."""
    language: str = "en"
    """Code of the language for the tokeniser `spacy`; `xx` is any."""
    sentences: bool = False
    """Whether each sentence becomes a document of its own; needs the tokeniser `spacy`."""
    alignment: Alignment = "expand"
    """What becomes of spans that begin or end inside a token."""
    offset_unit: OffsetUnit = "codepoint"
    """What the offsets of spans in text count."""
    bad_spans: BadSpans = "report"
    """What a span does that is not in the text."""

    def __post_init__(self) -> None:
        if self.sentences and self.tokenizer != "spacy":
            raise UsageError(
                f"the tokeniser {self.tokenizer!r} finds no sentences: sentences=true needs tokenizer='spacy'"
            )


def cut(text: str, options: TextOptions) -> tuple[Offsets, list[int]]:
    """Start and end of each token, and the number of the first token of each sentence.

    >>> cut("Ada wrote.", TextOptions())
    ([(0, 3), (4, 9), (9, 10)], [0])
    """
    if options.tokenizer == "spacy":
        return blank_pipeline(options.language).cut(text, options.sentences)
    return tokenize(text, options.tokenizer), [0]


def text_documents(
    name: str,
    text: str,
    options: TextOptions,
    problems: Problems,
    *,
    entities: Items = None,
    sources: Mapping[str, Items] = MappingProxyType({}),
    links: Mapping[str, Items] = MappingProxyType({}),
    group: str | None = None,
) -> Iterator[Document]:
    """The documents that a text becomes: one, or one for each sentence.

    Sentences are called `NAME-0`, `NAME-1` and so on, are of the group `NAME` if the text is of none, and their texts
    end to end are the text. Where a span of any annotator goes over the border of two sentences they stay one, which is
    reported; no span is cut or moved.

    Args:
        name: id of the text.
        text: the text; in every document `text[start:end]` of the places in `characters` is the token.
        options: how it is cut, and how spans are laid over tokens.
        problems: where is noted what was repaired.
        entities: the character spans that are the entities, None if there are none to speak of.
        sources: character spans by source; the type `O` votes for no entity.
        links: character spans by linking rule, of the types `same` and `different`.
        group: name of the larger document.

    Raises:
        FormatError, AlignmentError, LabelError: a span is none, is not in the text (and `bad_spans` is `raise`), or
            covers other text than it says; the message names the annotator, and the caller adds file and record.

    >>> [document] = text_documents("d", "Ada, in Oslo", TextOptions(), Problems("f"), entities=[[8, 12, "LOC"]])
    >>> document.tokens, document.entities
    (['Ada', ',', 'in', 'Oslo'], [Span(start=3, end=4, type='LOC', score=None)])
    """
    offsets, starts = cut(text, options)
    laid = _Laid(
        name, text, offsets, CharacterSpans(problems, options.alignment, options.offset_unit, options.bad_spans)
    )
    found = laid.spans("entities", entities)
    if any(span.type == OUTSIDE for span in found or ()):
        raise LabelError(f"entities: {OUTSIDE!r} is no entity type")
    votes = {source: laid.spans(f"source {source!r}", items) for source, items in sources.items()}
    linked = {rule: laid.spans(f"link {rule!r}", items) for rule, items in links.items()}
    whole = Document(
        id=name,
        tokens=[text[start:end] for start, end in offsets],
        text=text,
        characters=offsets,
        group=group,
        entities=found,
        sources=votes,
        links=linked,
    )
    if options.sentences:
        yield from _sentences(whole, starts, problems)
    else:
        yield whole


@dataclass(frozen=True)
class _Laid:
    """A text with its tokens, on which spans are laid."""

    name: str
    text: str
    offsets: Offsets
    characters: CharacterSpans

    def spans(self, annotator: str, items: Items) -> list[Span] | None:
        if items is None:
            return None
        try:
            return self.characters.read(items, self.name, self.text, self.offsets)
        except (FormatError, AlignmentError) as error:
            raise type(error)(f"{annotator}: {error}") from None


def _sentences(whole: Document, starts: list[int], problems: Problems) -> Iterator[Document]:
    """The sentences of a document, of which those stay one that a span goes over."""
    firsts = _kept(whole, starts, problems)
    text, characters = whole.text or "", whole.characters or ()
    cuts = [0, *(characters[first][0] for first in firsts[1:]), len(text)]
    entities = _parts(whole.entities, firsts)
    sources = {name: _parts(spans, firsts) for name, spans in whole.sources.items()}
    links = {name: _parts(spans, firsts) for name, spans in whole.links.items()}
    for number, (first, last) in enumerate(zip(firsts, [*firsts[1:], len(whole.tokens)], strict=True)):
        shift = cuts[number]
        yield Document(
            id=f"{whole.id}-{number}",
            tokens=whole.tokens[first:last],
            text=text[shift : cuts[number + 1]],
            characters=[(start - shift, end - shift) for start, end in characters[first:last]],
            group=whole.id if whole.group is None else whole.group,
            entities=entities[number],
            sources={name: parts[number] for name, parts in sources.items()},
            links={name: parts[number] for name, parts in links.items()},
        )


def _kept(whole: Document, starts: list[int], problems: Problems) -> list[int]:
    """The beginnings of sentences that no span goes over."""
    crossed: dict[int, tuple[str, Span]] = {}
    for annotator, spans in (("entities", whole.entities), *whole.sources.items(), *whole.links.items()):
        for span in spans or ():
            for number in range(bisect_right(starts, span.start), bisect_left(starts, span.end)):
                crossed.setdefault(starts[number], (annotator, span))
    for start, (annotator, span) in sorted(crossed.items()):
        problems.add(
            "joined",
            "sentences not parted from the one before because a span goes over the border",
            whole.id,
            f"span {list(span[:3])} of {annotator} goes over the border before token {start}, {whole.tokens[start]!r}",
        )
    return [start for start in starts if start not in crossed]


def _parts(spans: Sequence[Span] | None, firsts: list[int]) -> list[list[Span] | None]:
    """The spans of each sentence, counted from its first token."""
    if spans is None:
        return [None] * len(firsts)
    parts: list[list[Span]] = [[] for _ in firsts]
    for span in spans:
        number = bisect_right(firsts, span.start) - 1
        parts[number].append(span._replace(start=span.start - firsts[number], end=span.end - firsts[number]))
    return [*parts]
