"""The JSON lines of doccano's projects on sequence labelling and relations.

::

    {"id": 1, "text": "Ada moved to Oslo", "label": [[0, 3, "PER"], [13, 17, "LOC"]]}
    {"id": 2, "text": "Ada", "entities": [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 3}]}

Labels are entities; relations are left out and reported. Old versions call the text `data`. `group` is read and written
too: doccano keeps what it does not know beside a text.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tagweave.corpus import Corpus, Document
from tagweave.errors import FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions
from tagweave.formats.losses import report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.standoff import spans_in_text, text_and_places
from tagweave.formats.streams import shown_name
from tagweave.formats.tool_files import tool_documents, write_tool_records

_LABELS = ("label", "labels", "entities")


def doccano_documents(path: AnyPath, options: ReadRecords, problems: Problems) -> Iterator[Document]:
    """The documents of an export of doccano.

    Raises:
        FormatError, AlignmentError: a record is wrong; the message names file, line and id.
    """

    def translated(fields: dict[str, Any]) -> Mapping[str, Any]:
        present = [key for key in _LABELS if fields.get(key) is not None]
        record = {key: fields[key] for key in ("id", "text", "group", *present) if key in fields}
        if "text" not in fields and isinstance(fields.get("data"), str):
            record["text"] = fields["data"]
        if any(isinstance(item, str) for key in present if isinstance(fields[key], list) for item in fields[key]):
            raise FormatError(f"{present[0]}: labels of whole texts are no spans. Is it a project on classification?")
        relations = fields.get("relations")
        if isinstance(relations, list) and relations:
            problems.add("relations", "relations left out", str(fields.get("id")), f"{len(relations)}", len(relations))
        return record

    return tool_documents(path, translated, options, problems)


def write_doccano(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write records that doccano imports; it takes `label` for the labels, and what else there is for metadata."""
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "records of doccano", ("entities", "groups"))
    write_tool_records(path, (_record(document, problems) for document in corpus))
    problems.warn()


def _record(document: Document, problems: Problems) -> dict[str, Any]:
    text, places = text_and_places(document, problems)
    record: dict[str, Any] = {"id": document.id, "text": text}
    if document.group is not None:
        record["group"] = document.group
    if document.entities is not None:
        spans = spans_in_text(document.entities, text, places, document.id, problems)
        record["label"] = [[*span[:3]] for span in spans]
    return record


DOCCANO = Format(
    name="doccano",
    suffixes=(),
    documents=doccano_documents,
    read_options=ReadRecords,
    write=write_doccano,
)
