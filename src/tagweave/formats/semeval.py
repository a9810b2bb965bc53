"""XML of SemEval-2014, task 4: sentences of reviews with their aspect terms.

::

    <sentences>
     <sentence id="2339">
      <text>The battery life is good.</text>
      <aspectTerms><aspectTerm term="battery life" polarity="positive" from="4" to="16"/></aspectTerms>
     </sentence>
    </sentences>

All aspect terms are entities of one type, which the file does not name. A sentence without any has an empty list of
entities. Polarities are not kept; categories of aspects, which have no place in the text, are left out and reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.raw_text import TextOptions
from tagweave.formats.standoff import Mention, mention_documents, text_and_spans
from tagweave.formats.streams import shown_name, stem
from tagweave.formats.xml_files import checked_text, elements, has_root, text_element, whole_number, write_elements

_ROOT = "sentences"


@dataclass(frozen=True)
class ReadSemEval(TextOptions):
    """Options of reading the XML of SemEval-2014, task 4."""

    type: str = "TERM"
    """What the entity type of aspect terms is called."""


def semeval_documents(path: AnyPath, options: ReadSemEval, problems: Problems) -> Iterator[Document]:
    """The sentences of a file; see the module's text for the rules.

    Raises:
        FormatError: the file is not well-formed, or a sentence has no text; the message names file and sentence.
        AlignmentError: an aspect term is not where it says.
    """
    for number, element in enumerate(elements(path, _ROOT, "sentence")):
        name = element.get("id") or f"{stem(path)}-{number}"
        try:
            yield from _documents(element, name, options, problems)
        except DataError as error:
            place = f"{shown_name(path)}, line {element.sourceline}, sentence {name!r}"
            raise placed(error, place) from None


def _documents(element: Any, name: str, options: ReadSemEval, problems: Problems) -> Iterator[Document]:  # noqa: ANN401
    text = element.findtext("text")
    if text is None:
        raise FormatError("has no text")
    categories = sum(1 for _ in element.iter("aspectCategory"))
    if categories:
        title = "categories of aspects left out, which have no place in the text"
        problems.add("categories", title, name, f"{categories} categories", categories)
    mentions = [_mention(term, options.type) for term in element.iter("aspectTerm")]
    yield from mention_documents(name, text, mentions, options, problems)


def _mention(element: Any, entity_type: str) -> Mention:  # noqa: ANN401
    label = f"the aspect term in line {element.sourceline}"
    place = (whole_number(element.get("from"), f"from of {label}"), whole_number(element.get("to"), f"to of {label}"))
    return Mention((place,), entity_type, element.get("term"), label)


def write_semeval(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write sentences with their entities as aspect terms; names of entity types are lost.

    Raises:
        AlignmentError: XML cannot hold a text; the message names the document.
    """
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "files of aspect terms", ("entities",))
    if len(corpus.types) > 1:
        names = ", ".join(corpus.types)
        problems.add(
            "types",
            "names of entity types left out, which files of aspect terms cannot hold",
            None,
            names,
            len(corpus.types),
        )
    write_elements(path, _ROOT, (_written(document, path, problems) for document in corpus))
    problems.warn()


def _written(document: Document, path: AnyPath, problems: Problems) -> Any:  # noqa: ANN401
    from lxml import etree

    text, spans = text_and_spans(document, problems)
    checked_text(document.id + text, document, path)
    element = etree.Element("sentence", id=document.id)
    element.append(text_element("text", text))
    if spans:
        terms = etree.SubElement(element, "aspectTerms")
        for start, end, _ in spans:
            etree.SubElement(terms, "aspectTerm", {"term": text[start:end], "from": str(start), "to": str(end)})
    return element


def _recognises(path: Path) -> bool:
    return has_root(path, _ROOT)


SEMEVAL = Format(
    name="semeval",
    suffixes=(".xml",),
    documents=semeval_documents,
    read_options=ReadSemEval,
    recognises=_recognises,
    write=write_semeval,
)
