"""DocBin, the file format of spaCy: entities, and a span group for each source, where skweak has them too.

============================  =================================================================================
place                         what stands there
============================  =================================================================================
`doc.ents`                    entities; where none are set, there are none to speak of
`doc.spans[SOURCE]`           spans of a source, those of label `O` votes for no entity; where the group is
                              missing the source did not run, where it is empty it found nothing
`attrs["scores"]` of a group  a score for each span, as the span categorizer of spaCy has them
`doc.user_data["tagweave"]`   id, group, links, scores of entities, `labels` and `probabilities` (soft labels)
============================  =================================================================================

What spaCy takes for tokens but is only blanks is none here, and spans keep their words. Nothing in a file can run
code; of `user_data` only our own part is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.docbin_bytes import PackedDoc, PackedDocs, PackedGroup, PackedSpan, array, pack, packed_docs
from tagweave.formats.losses import without_nested
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.rows import Row, row_documents
from tagweave.formats.streams import read_bytes, shown_name, written
from tagweave.formats.tags import spans_from_parsed
from tagweave.formats.whole_text import Piece, pieces
from tagweave.formats.words import locate
from tagweave.soft_labels import SoftLabels

OURS = "tagweave"
"""Key of our part of `doc.user_data`."""

ENTS = "ents"


@dataclass(frozen=True)
class ReadDocBin(ReadRecords):
    """Options of reading a DocBin."""

    entities: str = ENTS
    """Where the entities are: `ents`, or the name of a span group."""


def docbin_documents(path: AnyPath, options: ReadDocBin, problems: Problems) -> Iterator[Document]:
    """The documents of a DocBin; see the module's text for what is where.

    Raises:
        FormatError, AlignmentError: the file is no DocBin, or a document of it is wrong.
        MissingExtraError: spaCy is not installed.
    """
    return row_documents(path, _rows(path, options, problems), options, problems)


def _rows(path: AnyPath, options: ReadDocBin, problems: Problems) -> Iterator[Row]:
    name = shown_name(path)
    raw = read_bytes(path)
    try:
        docs = packed_docs(raw)
    except FormatError as error:
        raise placed(error, name) from None
    for number in range(len(docs)):
        yield f"{name}, document {number}", partial(_record, docs, number, options, problems)


def _record(docs: PackedDocs, number: int, options: ReadDocBin, problems: Problems) -> Mapping[str, Any]:
    """The record of a document."""
    packed = docs.document(number)
    ours = packed.user_data.get(OURS)
    ours = ours if isinstance(ours, dict) else {}
    document = _Unpacked(packed, _kept(packed.words, ours.get("between")), str(ours.get("id")), problems)
    record = {**_words(packed, document.kept), **{key: ours[key] for key in ("id", "group") if key in ours}}
    groups = dict(packed.groups)
    if options.entities != ENTS:
        group = groups.pop(options.entities, None)
        record["entities"] = None if group is None else document.voted(options.entities, group)
    elif packed.tags or ours.get("annotated") is True:
        record["entities"] = document.entities(ours.get("scores"))
    soft = ours.get("soft_sources")
    soft = soft if isinstance(soft, dict) else {}
    record["sources"] = {name: document.voted(name, group) for name, group in groups.items() if name not in soft}
    record["sources"].update({name: _soft(rows) for name, rows in soft.items()})
    record["links"] = _listed(ours.get("links"))
    return {**record, **_soft(ours)} if "probabilities" in ours else record


def _kept(words: Sequence[str], between: object) -> list[bool]:
    """Which tokens of spaCy are tokens: those that our own files do not call text between them, or what is not blank.

    Raises:
        FormatError: the file tells nonsense about what is between tokens.
    """
    if between is None:
        return [bool(word.strip()) for word in words]
    if not isinstance(between, tuple) or not all(type(number) is int for number in between):
        raise FormatError("user_data: 'between' must be a list of numbers of tokens")
    left_out = {*between}
    return [number not in left_out for number in range(len(words))]


def _words(packed: PackedDoc, kept: Sequence[bool]) -> dict[str, Any]:
    """Tokens, and text with their places if it is known."""
    tokens = [word for word, keep in zip(packed.words, kept, strict=True) if keep]
    if packed.blanks is None:
        return {"tokens": tokens}
    parts = [word + " " * blank for word, blank in zip(packed.words, packed.blanks, strict=True)]
    starts = [0, *accumulate(map(len, parts))]
    offsets = [
        [start, start + len(word)] for start, word, keep in zip(starts, packed.words, kept, strict=False) if keep
    ]
    return {"tokens": tokens, "text": "".join(parts), "offsets": offsets}


@dataclass(frozen=True)
class _Unpacked:
    """Turns spans over all tokens into spans over those that are kept."""

    packed: PackedDoc
    kept: Sequence[bool]
    name: str
    problems: Problems

    def entities(self, scores: object) -> list[list[Any]]:
        """The entities, with the scores that the file knows for them."""
        found = spans_from_parsed(self.packed.tags)
        spans = self._moved("entities", (PackedSpan(span.start, span.end, span.type) for span in found))
        known = _listed(scores)
        scored = {tuple(item[:3]): item[3:] for item in known} if isinstance(known, list) else {}
        return [[*span, *scored.get(tuple(span), ())] for span in spans]

    def voted(self, source: str, group: PackedGroup) -> list[list[Any]]:
        """The spans of a group, with their scores."""
        scores = group.scores or [None] * len(group.spans)
        return [
            [*span, score]
            for packed, score in zip(group.spans, scores, strict=True)
            for span in self._moved(source, [packed])
        ]

    def _moved(self, source: str, spans: Iterable[PackedSpan]) -> Iterator[list[Any]]:
        places = [0, *accumulate(map(int, self.kept))]
        for start, end, label in spans:
            shown = f"{source}: span {[start, end, label]}"
            if not 0 <= start < end <= len(self.kept):
                raise AlignmentError(f"{shown} does not lie within the {len(self.kept)} tokens of spaCy")
            if places[start] == places[end]:
                self.problems.add("whitespace_only", "spans left out that cover only blanks", self.name, shown)
            elif not label:
                self.problems.add("unlabelled_spans", "spans left out that have no label", self.name, shown)
            else:
                yield [places[start], places[end], label]


def _listed(value: object) -> Any:  # noqa: ANN401
    """The value with lists for tuples, as JSON has it."""
    if isinstance(value, tuple):
        return [_listed(item) for item in value]
    return {name: _listed(item) for name, item in value.items()} if isinstance(value, dict) else value


def _soft(rows: object) -> dict[str, Any]:
    """Soft labels as records have them.

    Raises:
        FormatError: there is no array of probabilities.
    """
    rows = rows if isinstance(rows, dict) else {}
    try:
        table = array(rows.get("probabilities")).tolist()
    except ValueError as error:
        raise FormatError(f"user_data: probabilities: {error}") from None
    return {"labels": _listed(rows.get("labels")), "probabilities": table}


def write_docbin(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write a DocBin; everything is kept but entities that overlap a longer one.

    Raises:
        AlignmentError: a token is empty, or tokens overlap in their text, which spaCy cannot hold.
        MissingExtraError: spaCy is not installed.
    """
    problems = Problems(shown_name(path))
    held = without_nested(corpus, problems)
    content = pack(_packed(held, index, path) for index in range(len(held)))
    with written(path) as handle:
        handle.write(content)
    problems.warn()


def _packed(corpus: Corpus, index: int, path: AnyPath) -> PackedDoc:
    """A document as a DocBin has it."""
    document = corpus[index]
    try:
        if not all(document.tokens):
            raise AlignmentError("spaCy knows no empty tokens: leave them out")
        parts = None if document.text is None else _parts(document)
    except AlignmentError as error:
        raise placed(error, f"{shown_name(path)}, document {document.id!r}") from None
    if parts is None:
        words, blanks, numbers = [*document.tokens], None, [*range(len(document.tokens))]
    else:
        words = [(document.text or "")[part.start : part.end] for part in parts]
        blanks = [part.blank for part in parts]
        numbers = [number for number, part in enumerate(parts) if part.token is not None]
    entities = None if document.entities is None else [_spanned(span, numbers) for span in document.entities]
    return PackedDoc(
        words=words,
        blanks=blanks,
        tags=[] if entities is None else _tags(entities, len(words)),
        groups={
            name: PackedGroup([_spanned(vote, numbers) for vote in votes], _scores(votes))
            for name, votes in document.sources.items()
            if votes is not None
        },
        user_data={
            OURS: {
                **_user_data(corpus, index, document),
                "between": sorted({*range(len(words))}.difference(numbers)),
            }
        },
    )


def _spanned(span: Span, numbers: Sequence[int]) -> PackedSpan:
    """The span over all tokens of spaCy; `numbers` are those of ours."""
    return PackedSpan(numbers[span.start], numbers[span.end - 1] + 1, span.type)


def _tags(entities: Iterable[PackedSpan], length: int) -> list[tuple[str, str]]:
    tags = [("", "")] * length
    for start, end, label in entities:
        tags[start:end] = [("B", label), *[("I", label)] * (end - start - 1)]
    return tags


def _scores(votes: Sequence[Span]) -> list[float | None] | None:
    scores = [vote.score for vote in votes]
    return None if all(score is None for score in scores) else scores


def _parts(document: Document) -> list[Piece]:
    text, places = document.text or "", document.characters
    if places is None or any(end < 0 for _, end in places):
        places = locate(document.tokens, text)
    return pieces(text, places)


def _user_data(corpus: Corpus, index: int, document: Document) -> dict[str, Any]:
    """What spaCy has no place for."""
    data: dict[str, Any] = {"id": document.id, "annotated": document.entities is not None}
    if document.group is not None:
        data["group"] = document.group
    if document.links:
        data["links"] = {
            name: None if spans is None else [[*span[:3]] for span in spans] for name, spans in document.links.items()
        }
    scores = [[*span] for span in document.entities or () if span.score is not None]
    if scores:
        data["scores"] = scores
    soft = {name: column for name, column in corpus.sources.items() if isinstance(column, SoftLabels)}
    if soft:
        data["soft_sources"] = {name: _rows_of(column, index) for name, column in soft.items()}
    return {**data, **({} if corpus.soft_labels is None else _rows_of(corpus.soft_labels, index))}


def _rows_of(soft: SoftLabels, index: int) -> dict[str, Any]:
    return {"labels": [*soft.labels.names], "probabilities": soft.document(index)}


DOCBIN = Format(
    name="docbin",
    suffixes=(".spacy",),
    documents=docbin_documents,
    read_options=ReadDocBin,
    write=write_docbin,
)
