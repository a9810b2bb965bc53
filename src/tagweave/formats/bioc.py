"""BioC XML: documents of passages (and perhaps sentences), with annotations at places in them.

::

    <collection><source>PubMed</source><date>20250101</date><key>k</key>
     <document><id>10021369</id>
      <passage><offset>0</offset><text>Identification of APC2</text>
       <annotation id="T1"><infon key="type">Gene</infon>
        <location offset="18" length="4"/><text>APC2</text></annotation>
      </passage>
     </document>
    </collection>

Offsets count from the start of the document, whatever its passages leave out. The text of a document is its passages
(or where those have none, their sentences), by their offsets, with one line end between them; where passages follow
each other at a distance of one character, as they mostly do, offsets in the file and in the text are the same.

An annotation with several locations is one mention in several pieces. Relations, annotations without location, and
other infons than the one with the type are left out; the former two are reported.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tagweave.corpus import Corpus, Document
from tagweave.errors import AlignmentError, DataError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions
from tagweave.formats.spans import OffsetUnit
from tagweave.formats.standoff import (
    Discontinuous,
    Mention,
    mention_documents,
    refuse_or_report,
    text_and_spans,
    units_hint,
)
from tagweave.formats.streams import shown_name, stem
from tagweave.formats.xml_files import checked_text, elements, has_root, text_element, whole_number, write_elements

_ROOT = "collection"


@dataclass(frozen=True)
class ReadBioC(TextOptions):
    """Options of reading BioC."""

    discontinuous: Discontinuous = "envelope"
    """What an annotation in several pieces becomes."""
    type_key: str = "type"
    """Key of the infon that names the entity type."""


class _Part(NamedTuple):
    """A passage or sentence: its offset in the file, its text, and where that begins in the text of the document."""

    offset: int
    text: str
    start: int


def bioc_documents(path: AnyPath, options: ReadBioC, problems: Problems) -> Iterator[Document]:
    """The documents of a BioC file; see the module's text for the rules.

    Raises:
        FormatError: the file is not well-formed or no BioC; the message names file and document.
        AlignmentError: an annotation covers something else than it says, or lies outside the passages.
    """
    for number, element in enumerate(elements(path, _ROOT, "document")):
        name = (element.findtext("id") or "").strip() or f"{stem(path)}-{number}"
        try:
            yield from _documents(element, name, options, problems)
        except DataError as error:
            place = f"{shown_name(path)}, line {element.sourceline}, document {name!r}"
            raise placed(error, place) from None


def _documents(element: Any, name: str, options: ReadBioC, problems: Problems) -> Iterator[Document]:  # noqa: ANN401
    parts = _parts(element, options.offset_unit)
    relations = sum(1 for _ in element.iter("relation"))
    if relations:
        problems.add("relations", "relations left out", name, f"{relations} relations", relations)
    mentions = list(_mentions(element, parts, name, options, problems))
    text = "\n".join(part.text for part in parts)
    yield from mention_documents(name, text, mentions, options, problems, discontinuous=options.discontinuous)


def _parts(document: Any, unit: OffsetUnit) -> list[_Part]:  # noqa: ANN401
    """The passages with text, or their sentences, in order of their offsets."""
    found = sorted(_texts(document), key=lambda part: part[0])
    parts: list[_Part] = []
    for offset, text in found:
        before = parts[-1] if parts else None
        if before is not None and offset < before.offset + _length(before.text, unit):
            raise FormatError(
                f"the passage or sentence at offset {offset} begins before the one at {before.offset} ends. "
                "Offsets must count characters from the start of the document"
            )
        start = 0 if before is None else before.start + _length(before.text, unit) + 1
        parts.append(_Part(offset, text, start))
    return parts


def _texts(document: Any) -> Iterator[tuple[int, str]]:  # noqa: ANN401
    for passage in document.iterfind("passage"):
        own = passage.findtext("text")
        for element in [passage] if own else passage.iterfind("sentence"):
            text = element.findtext("text")
            if text:
                yield whole_number(element.findtext("offset"), f"offset of a {element.tag}"), text


def _length(text: str, unit: OffsetUnit) -> int:
    return len(text) if unit == "codepoint" else len(text.encode("utf-16-le")) // 2


def _mentions(
    document: Any,  # noqa: ANN401
    parts: Sequence[_Part],
    name: str,
    options: ReadBioC,
    problems: Problems,
) -> Iterator[Mention]:
    for element in document.iter("annotation"):
        label = f"the annotation {element.get('id', 'without id')!r} in line {element.sourceline}"
        locations = [
            (
                whole_number(place.get("offset"), f"offset of {label}"),
                whole_number(place.get("length"), f"length of {label}"),
            )
            for place in element.iterfind("location")
        ]
        if not locations:
            problems.add("no_location", "annotations without location left out", name, label)
            continue
        surface = element.findtext("text") or None
        label = f"{label} (offset {locations[0][0]})"
        try:
            pieces = sorted(_place(start, length, parts, options.offset_unit) for start, length in locations)
        except AlignmentError as error:
            hint = units_hint("".join(part.text for part in parts), options)
            refuse_or_report(AlignmentError(f"{label} {error}. {hint}"), surface, name, options, problems)
            continue
        yield Mention(tuple(pieces), _type(element, options.type_key, label), surface, label)


def _place(offset: int, length: int, parts: Sequence[_Part], unit: OffsetUnit) -> tuple[int, int]:
    """Start and end in the text of the document of a location in the file."""
    places = []
    for inside in (offset, offset + max(length, 1) - 1):
        index = bisect_right(parts, inside, key=lambda part: part.offset) - 1
        if index < 0 or inside >= parts[index].offset + _length(parts[index].text, unit):
            raise AlignmentError(f"does not lie within the passages with its length {length}")
        places.append(inside - parts[index].offset + parts[index].start)
    return places[0], places[1] + min(length, 1)


def _type(annotation: Any, key: str, label: str) -> str:  # noqa: ANN401
    infons = {infon.get("key"): (infon.text or "").strip() for infon in annotation.iterfind("infon")}
    if not infons.get(key):
        known = ", ".join(repr(name) for name, value in infons.items() if value)
        raise FormatError(f"{label} has no infon {key!r}, only {known or 'none'}. Name another with type_key")
    return str(infons[key])


def write_bioc(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write documents of one passage each.

    Raises:
        AlignmentError: XML cannot hold a text; the message names the document.
    """
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "BioC files", ("entities",))
    write_elements(path, _ROOT, chain(_heading(), (_written(document, path, problems) for document in corpus)))
    problems.warn()


def _heading() -> Iterator[Any]:
    for name, value in (("source", "tagweave"), ("date", ""), ("key", "")):
        yield text_element(name, value)


def _written(document: Document, path: AnyPath, problems: Problems) -> Any:  # noqa: ANN401
    from lxml import etree

    text, spans = text_and_spans(document, problems)
    checked_text(document.id + text, document, path)
    element = etree.Element("document")
    element.append(text_element("id", document.id))
    passage = etree.SubElement(element, "passage")
    passage.extend([text_element("offset", "0"), text_element("text", text)])
    for number, (start, end, name) in enumerate(spans, 1):
        annotation = etree.SubElement(passage, "annotation", id=f"T{number}")
        annotation.append(text_element("infon", checked_text(name, document, path), key="type"))
        etree.SubElement(annotation, "location", offset=str(start), length=str(end - start))
        annotation.append(text_element("text", text[start:end]))
    return element


def _recognises(path: Path) -> bool:
    return has_root(path, _ROOT)


BIOC = Format(
    name="bioc",
    suffixes=(".xml",),
    documents=bioc_documents,
    read_options=ReadBioC,
    recognises=_recognises,
    write=write_bioc,
)
