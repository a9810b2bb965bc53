r"""The JSON of Label Studio: tasks with annotations of people and predictions of models.

::

    [{"data": {"text": "Ada moved"},
      "predictions": [{"model_version": "names", "result": [{"id": "d-0", "from_name": "label", "to_name": "text",
                       "type": "labels", "value": {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}}]}]}]

Offsets are code points, as Label Studio stores them since 2022; for older files there is `offset_unit="utf16"`, and
what a region says that it covers is checked in any case. In there, Label Studio writes a line end as `\n`, two
characters.

Reading
    Entities are the annotation of a task: the first that was not cancelled, or the first by `completed_by`. Predictions
    are sources, named by `model_version`; with `entities="VERSION"` those of one version are the entities instead.
    A source of which a task has no prediction did not run on it. Regions of other kinds are left out and counted.

Writing
    A task has one prediction for each source that ran, and one of version `entities` for the entities, or with
    `entities_as="annotations"` an annotation. Beside FILE.json stands FILE.config.xml, the labelling configuration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tagweave.annotations import Span
from tagweave.corpus import Corpus, Document
from tagweave.errors import FormatError, LabelError
from tagweave.formats.base import AnyPath, Format
from tagweave.formats.losses import held_votes, report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.records import ReadRecords
from tagweave.formats.standoff import spans_in_text, text_and_places
from tagweave.formats.streams import STANDARD, shown_name, written
from tagweave.formats.tool_files import is_list_with, tool_documents, write_tool_records
from tagweave.formats.words import Offsets

ANNOTATIONS = "annotations"
ENTITIES = "entities"
"""The version under which entities are written as predictions."""

_NO_VERSION = "prediction"


@dataclass(frozen=True)
class ReadLabelStudio(ReadRecords):
    """Options of reading the JSON of Label Studio."""

    field: str = "text"
    """Key of `data` under which the text is."""
    entities: str = ANNOTATIONS
    """What the entities are: `annotations`, or the version of a model whose predictions are."""
    completed_by: int | str | None = None
    """Number or e-mail address of the person whose annotations count; None takes the first annotation of each task."""


@dataclass(frozen=True)
class WriteLabelStudio:
    """Options of writing the JSON of Label Studio."""

    entities_as: Literal["predictions", "annotations"] = "predictions"
    """Whether entities are predictions to be corrected, or annotations that people made."""
    config: bool = True
    """Whether a file with the labelling configuration is written beside."""


def label_studio_documents(path: AnyPath, options: ReadLabelStudio, problems: Problems) -> Iterator[Document]:
    """The documents of tasks; see the module's text for what becomes of annotations and predictions.

    Raises:
        FormatError, AlignmentError: a task is wrong; the message names file, item or line, and id.
    """
    return tool_documents(path, _Translator(options, problems).record, options, problems)


@dataclass(frozen=True)
class _Translator:
    """Turns tasks into records."""

    options: ReadLabelStudio
    problems: Problems

    def record(self, task: dict[str, Any]) -> Mapping[str, Any]:
        data = task.get("data")
        if not isinstance(data, dict):
            raise FormatError("a task has 'data'. Export as JSON, not as JSON-MIN")
        text = data.get(self.options.field)
        if not isinstance(text, str):
            keys = ", ".join(map(repr, data)) or "nothing"
            raise FormatError(f"data has no text under {self.options.field!r}, but {keys}: name another key by 'field'")
        name = data.get("id", task.get("id"))
        record: dict[str, Any] = {"text": text} if name is None else {"id": name, "text": text}
        if "group" in data:
            record["group"] = data["group"]
        document = None if name is None else str(name)
        record["sources"] = self._sources(task, text, document)
        if self.options.entities == ANNOTATIONS:
            record["entities"] = self._annotated(task, text, document)
        else:
            record["entities"] = record["sources"].pop(self.options.entities, None)
        return record

    def _annotated(self, task: Mapping[str, Any], text: str, document: str | None) -> list[dict[str, Any]] | None:
        """The spans of the annotation that counts, None if there is none."""
        found = [item for item in _objects(task, ANNOTATIONS) if not item.get("was_cancelled")]
        if self.options.completed_by is not None:
            found = [item for item in found if str(self.options.completed_by) in _persons(item.get("completed_by"))]
        if not found:
            return None
        if len(found) > 1:
            title = "annotations left out of tasks that have several"
            message = "the first counts, or name a person by 'completed_by'"
            self.problems.add("several_annotations", title, document, message, len(found) - 1)
        return self._spans(found[0], text, document)

    def _sources(self, task: Mapping[str, Any], text: str, document: str | None) -> dict[str, list[dict[str, Any]]]:
        sources: dict[str, list[dict[str, Any]]] = {}
        for prediction in _objects(task, "predictions"):
            version = prediction.get("model_version") or _NO_VERSION
            if not isinstance(version, str):
                raise FormatError(f"model_version: {version!r} is no name")
            if version in sources:
                title = "earlier predictions left out of tasks that have several of one version"
                self.problems.add("several_predictions", title, document, version)
            sources[version] = self._spans(prediction, text, document)
        return sources

    def _spans(self, annotation: Mapping[str, Any], text: str, document: str | None) -> list[dict[str, Any]]:
        """The regions of an annotation or prediction as spans of characters, one for each label."""
        spans = []
        for region in _objects(annotation, "result"):
            value = region.get("value")
            labels = value.get("labels") if isinstance(value, dict) else None
            if region.get("type") != "labels" or not isinstance(value, dict) or not isinstance(labels, list):
                title = "regions and answers of other kinds left out"
                self.problems.add("other_regions", title, document, f"type {region.get('type')!r}")
                continue
            span = {"start": value.get("start"), "end": value.get("end"), "text": _surface(value.get("text"), text)}
            score = value.get("score", region.get("score"))
            spans += [{**span, "label": label, "score": score} for label in labels]
        return spans


def _objects(fields: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list; exports may have numbers in their place, which stand for what was not exported."""
    items = fields.get(key) or []
    if not isinstance(items, list):
        raise FormatError(f"{key}: must be a list")
    return [item for item in items if isinstance(item, dict)]


def _persons(completed_by: object) -> tuple[str, ...]:
    """The ways in which a person may be named."""
    if isinstance(completed_by, dict):
        return tuple(str(completed_by[key]) for key in ("id", "email") if key in completed_by)
    return (str(completed_by),)


def _surface(surface: object, text: str) -> object:
    r"""What a region covers, with its line ends; they are written as `\n`, unless the text itself has that."""
    if not isinstance(surface, str) or r"\n" not in surface:
        return surface
    return None if r"\n" in text else surface.replace(r"\n", "\n")


def write_label_studio(corpus: Corpus, path: AnyPath, options: WriteLabelStudio) -> None:
    """Write tasks, as a list or, if the name does not end in `.json`, one a line; see the module's text.

    Raises:
        LabelError: a type has a name that XML cannot hold.
    """
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "tasks of Label Studio", ("entities", "sources", "scores", "groups"))
    held = held_votes(corpus, problems, "tasks of Label Studio", ("scores", "not_run", "overlaps"))
    config = _config(corpus) if options.config and str(path) != STANDARD else None
    write_tool_records(path, (_task(document, options, problems) for document in held))
    if config is not None:
        name = Path(path).name.removesuffix(".gz")
        with written(Path(path).with_name(f"{Path(name).stem}.config.xml")) as handle:
            handle.write(config)
    problems.warn()


def _config(corpus: Corpus) -> bytes:
    """The labelling configuration, with all types that occur."""
    from lxml import etree

    view = etree.Element("View")
    labels = etree.SubElement(view, "Labels", name="label", toName="text")
    for name in (*corpus.types, *corpus.coarse):
        try:
            etree.SubElement(labels, "Label", value=name)
        except ValueError:
            raise LabelError(f"Label Studio cannot hold the entity type {name!r}: it is no text in XML") from None
    etree.SubElement(view, "Text", name="text", value="$text")
    etree.indent(view)
    config: bytes = etree.tostring(view, encoding="utf-8")
    return config + b"\n"


def _task(document: Document, options: WriteLabelStudio, problems: Problems) -> dict[str, Any]:
    text, places = text_and_places(document, problems)
    data = {"id": document.id, "text": text}
    if document.group is not None:
        data["group"] = document.group
    regions = _Regions(document.id, text, places, problems)
    sources = [(name, spans) for name, spans in document.sources.items() if spans is not None]
    task: dict[str, Any] = {"data": data}
    if document.entities is not None and options.entities_as == "annotations":
        task["annotations"] = [{"result": regions.result(document.entities)}]
    elif document.entities is not None:
        sources.append((ENTITIES, document.entities))
    task["predictions"] = [_prediction(name, regions.result(spans)) for name, spans in sources]
    return task


class _Regions:
    """Makes regions of spans; no two in a task have the same id."""

    def __init__(self, document: str, text: str, places: Offsets, problems: Problems) -> None:
        self._document = document
        self._text = text
        self._places = places
        self._problems = problems
        self._count = 0

    def result(self, spans: Sequence[Span]) -> list[dict[str, Any]]:
        """The regions of spans."""
        found = spans_in_text(spans, self._text, self._places, self._document, self._problems)
        return [self._region(*span) for span in found]

    def _region(self, start: int, end: int, name: str, score: float | None) -> dict[str, Any]:
        value = {"start": start, "end": end, "text": self._text[start:end], "labels": [name]}
        scored = {} if score is None else {"score": round(min(max(score, 0.0), 1.0), 4)}
        region = {"id": f"{self._document}-{self._count}", "from_name": "label", "to_name": "text", "type": "labels"}
        self._count += 1
        return {**region, "value": {**value, **scored}, **scored}


def _prediction(version: str, regions: list[dict[str, Any]]) -> dict[str, Any]:
    """A prediction; its score is the lowest of its regions, so that tasks can be sorted by what is least sure."""
    scores = [region["score"] for region in regions if "score" in region]
    return {"model_version": version, **({"score": min(scores)} if scores else {}), "result": regions}


LABEL_STUDIO = Format(
    name="label-studio",
    suffixes=(".json",),
    documents=label_studio_documents,
    read_options=ReadLabelStudio,
    recognises=lambda path: is_list_with(path, "data|annotations|predictions") and not is_list_with(path, "fields"),
    write=write_label_studio,
    write_options=WriteLabelStudio,
)
