"""The JSON of CHMM-ALT and of the sequence data sets of WRENCH: one object whose keys number the sentences.

::

    {"0": {"label": [[0, 2, "PER"]], "weak_labels": [[[0, 2, "PER"]], []], "data": {"text": ["Ada", "Lovelace"]}}}

`weak_labels` has one list of spans for each source. Their names stand in the file `meta.json` beside it, under `lf`;
without it they are `source-0`, `source-1` and so on. Every source counts as having run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tagweave.corpus import Document
from tagweave.errors import DataError, FormatError
from tagweave.formats.base import AnyPath, Format, NoOptions, placed
from tagweave.formats.json_lines import parse_json
from tagweave.formats.problems import Problems
from tagweave.formats.spans import token_spans
from tagweave.formats.streams import STANDARD, read_text, shown_name, stem


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
    meta = Path(path).with_name("meta.json") if str(path) != STANDARD else None
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
    known = names or [f"source-{number}" for number in range(len(votes))]
    return Document(
        id=name,
        tokens=tokens,
        entities=None if gold is None else token_spans(gold, tokens),
        sources={source: token_spans(items, tokens) for source, items in zip(known, votes, strict=False)},
    )


CHMM_ALT = Format(name="chmm-alt", suffixes=(".json",), documents=chmm_alt_documents)
