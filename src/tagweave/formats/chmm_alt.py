"""The JSON of CHMM-ALT and of the sequence data sets of WRENCH: one object whose keys number the sentences.

::

    {"0": {"label": [[0, 2, "PER"]], "weak_labels": [[[0, 2, "PER"]], []], "data": {"text": ["Ada", "Lovelace"]}}}

`weak_labels` has one list of spans for each source. Their names stand in the file `meta.json` beside it, under `lf`;
without it they are `source-0`, `source-1` and so on. Every source counts as having run.

Ids and groups are written as `data.id` and `data.group`, which others ignore; without them a sentence is called after
file and key. All files of a folder share one `meta.json`, which has the number of sentences of each.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tagweave.corpus import Corpus, Document
from tagweave.errors import DataError, FormatError, UsageError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.json_lines import parse_json
from tagweave.formats.losses import held_votes, report_losses
from tagweave.formats.problems import Problems
from tagweave.formats.records import identifier
from tagweave.formats.spans import token_spans
from tagweave.formats.streams import STANDARD, read_text, shown_name, stem, written
from tagweave.formats.tool_files import head
from tagweave.storage import write_json

_META = "meta.json"
_NUMBERED = re.compile(r'\{\s*("\d+"\s*:|\}\s*$)')
"""Beginning of an object whose keys are numbers, or all of an empty one."""


def chmm_alt_documents(path: AnyPath, options: NoOptions, problems: Problems) -> Iterator[Document]:
    """The sentences of the JSON of CHMM-ALT.

    Raises:
        FormatError, AlignmentError: a sentence is wrong; the message names file and key.
    """
    names = _source_names(path)
    for key, sentence in _object(path).items():
        try:
            yield _document(f"{stem(path)}-{key}", sentence, names)
        except DataError as error:
            raise placed(error, f"{shown_name(path)}, sentence {key!r}") from None


def _object(path: AnyPath) -> dict[str, Any]:
    try:
        value = parse_json(read_text(path))
    except FormatError as error:
        message = str(error)
        raise FormatError(message if message.startswith(shown_name(path)) else f"{shown_name(path)}: {error}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{shown_name(path)}: one JSON object whose keys number the sentences is expected")
    return value


def _source_names(path: AnyPath) -> list[str] | None:
    meta = Path(path).with_name(_META) if str(path) != STANDARD else None
    if meta is None or not meta.exists():
        return None
    names = _object(meta).get("lf")
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"{meta}: 'lf' must be the list of the names of the sources")
    return names


def _document(name: str, sentence: object, names: list[str] | None) -> Document:
    if not isinstance(sentence, dict) or not isinstance(sentence.get("data"), dict):
        raise FormatError("an object with 'data' is expected")
    tokens = sentence["data"].get("text")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise FormatError("data.text must be a list of strings")
    gold, votes = sentence.get("label"), sentence.get("weak_labels") or []
    if not isinstance(votes, list) or not all(isinstance(items, list) for items in [*votes, gold or []]):
        raise FormatError("'label' must be a list of spans, and 'weak_labels' one such list for each source")
    if names is not None and votes and len(votes) != len(names):
        raise FormatError(f"{len(votes)} lists in weak_labels, but meta.json names {len(names)} sources")
    data = sentence["data"]
    known = names or [f"source-{number}" for number in range(len(votes))]
    return Document(
        id=identifier(data["id"], "data.id") if "id" in data else name,
        tokens=tokens,
        group=identifier(data["group"], "data.group") if "group" in data else None,
        entities=None if gold is None else token_spans(gold, tokens),
        sources={source: token_spans(items, tokens) for source, items in zip(known, votes, strict=False)},
    )


def write_chmm_alt(corpus: Corpus, path: AnyPath, options: NoOptions) -> None:
    """Write sentences, and `meta.json` beside them, which is brought up to date if there is one.

    Raises:
        UsageError: the `meta.json` that is there names other sources or other types.
    """
    problems = Problems(shown_name(path))
    report_losses(corpus, problems, "this JSON", ("entities", "sources", "groups"))
    held = held_votes(corpus, problems, "this JSON", ("overlaps",))
    meta = None if str(path) == STANDARD else _meta(held, path)
    with written(path) as handle:
        handle.write(b"{")
        for key, document in enumerate(held):
            sentence = json.dumps(_sentence(document, tuple(held.sources)), ensure_ascii=False)
            handle.write(f'{"," if key else ""}\n"{key}": {sentence}'.encode())
        handle.write(b"\n}\n")
    if meta is not None:
        write_json(Path(path).with_name(_META), meta)
    if corpus.texts is not None:
        problems.add("texts", "columns of texts left out, which this JSON cannot hold", None, "tokens stay")
    problems.warn()


def _sentence(document: Document, names: tuple[str, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {"text": list(document.tokens), "id": document.id}
    if document.group is not None:
        data["group"] = document.group
    sentence: dict[str, Any] = {} if document.entities is None else {"label": _plain(document.entities)}
    return {**sentence, "weak_labels": [_plain(document.sources[name]) for name in names], "data": data}


def _plain(spans: Any) -> list[list[Any]]:  # noqa: ANN401
    return [[*span[:3]] for span in spans or ()]


def _meta(corpus: Corpus, path: AnyPath) -> dict[str, Any]:
    """What stands in `meta.json`: names of sources and types, sizes; what else is there already stays."""
    place = Path(path).with_name(_META)
    before = _object(place) if place.exists() else {}
    names, types = [*corpus.sources], [*corpus.types, *corpus.coarse]
    for key, value in (("lf", names), ("entity_types", types)):
        if key in before and before[key] != value:
            raise UsageError(
                f"{place} has other names under {key!r}, {before[key]}, than this corpus, {value}. Files of one folder "
                "share them: give sources and types in the same order, or write to another folder"
            )
    lengths = [int(length) for length in np.diff(corpus.offsets)]
    return {
        **before,
        "lf": names,
        "num_lf": len(names),
        "lf_rec": before.get("lf_rec", names),
        "num_lf_rec": len(before.get("lf_rec", names)),
        "entity_types": types,
        "num_labels": 2 * len(types) + 1,
        "max_length": max([*lengths, before.get("max_length", 0)]),
        f"{stem(path)}_size": len(corpus),
    }


CHMM_ALT = Format(
    name="chmm-alt",
    suffixes=(".json",),
    documents=chmm_alt_documents,
    recognises=lambda path: _NUMBERED.match(head(path)) is not None,
    write=write_chmm_alt,
)
