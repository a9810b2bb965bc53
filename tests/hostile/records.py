"""JSON records, and the tables that hold the same, with nonsense in every field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from hostile.cases import Case, Ends

TOKENS = {"id": "a", "tokens": ["Ada", "saw", "Oslo"]}
TEXT = {"id": "a", "text": "Ada saw Oslo"}
SOFT = {**TOKENS, "labels": ["O", "B-PER", "I-PER"]}
EVEN = [1 / 3] * 3
GOOD = {"id": "z", "tokens": ["Bo"], "entities": [[0, 1, "PER"]]}
SOFT_GOOD = {**GOOD, "labels": SOFT["labels"], "probabilities": [EVEN]}
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]

LINES: dict[str, tuple[str, Ends]] = {
    "lone_surrogate": (r'{"id":"a","tokens":["\ud800"]}', "refused"),
    "lone_surrogate_in_id": (r'{"id":"\udfff","tokens":["a"]}', "refused"),
    "lone_surrogate_in_type": (r'{"id":"a","tokens":["a"],"entities":[[0,1,"\ud83d"]]}', "refused"),
    "lone_surrogate_in_key": (r'{"id":"a","tokens":["a"],"sources":{"\udc00":[[0,1,"A"]]}}', "refused"),
    "surrogate_pair": (r'{"id":"a","tokens":["\ud83d\ude80"]}', "fine"),
    "nul_escape": (r'{"id":"a","tokens":["a\u0000b"]}', "cleanly"),
    "nan_score": ('{"id":"a","tokens":["a"],"entities":[[0,1,"A",NaN]]}', "refused"),
    "infinite_score": ('{"id":"a","tokens":["a"],"entities":[[0,1,"A",1e999]]}', "refused"),
    "infinite_start": ('{"id":"a","tokens":["a"],"entities":[[-Infinity,1,"A"]]}', "refused"),
    "nan_probability": (json.dumps({**SOFT, "probabilities": [[1, 0, 0], [float("nan"), 0, 1], EVEN]}), "refused"),
    "infinite_probability": (json.dumps({**SOFT, "probabilities": [[float("inf"), 0, 0], EVEN, EVEN]}), "refused"),
    "huge_whole_number": ('{"id":"a","tokens":["a"],"entities":[[0,' + "9" * 4000 + ',"A"]]}', "refused"),
    "number_without_end": ('{"id":"a","tokens":["a"],"entities":[[0,' + "9" * 100_000 + ',"A"]]}', "refused"),
    "huge_id": ('{"id":' + "9" * 4000 + ',"tokens":["a"]}', "fine"),
    "exponent": ('{"id":"a","tokens":["a"],"entities":[[0,1e0,"A"]]}', "refused"),
    "doubled_key": ('{"id":"a","id":"b","tokens":["a"],"tokens":["b"]}', "cleanly"),
    "trailing_comma": ('{"id":"a","tokens":["a",]}', "refused"),
    "single_quotes": ("{'id':'a'}", "refused"),
    "comment": ('{"id":"a","tokens":["a"]} // a', "refused"),
    "two_on_a_line": ('{"id":"a","tokens":["a"]}{"id":"b","tokens":["b"]}', "refused"),
    "cut": ('{"id":"a","tokens":["a"', "refused"),
    "list": ("[]", "refused"),
    "string": ('"tokens"', "refused"),
    "number": ("7", "refused"),
    "null": ("null", "refused"),
    "nan": ("NaN", "refused"),
    "raw_control": ('{"id":"a","tokens":["a\x01"]}', "refused"),
    "nested": ("[" * 100_000 + "]" * 100_000, "refused"),
    "nested_tokens": ('{"id":"a","tokens":' + "[" * 100_000 + "]" * 100_000 + "}", "refused"),
    "nested_objects": ('{"id":"a","sources":' * 100_000 + "1" + "}" * 100_000, "refused"),
    "nested_a_little": (json.dumps({**TOKENS, "sources": {"a": DEEP}}), "refused"),
    "nested_id": (json.dumps({**TOKENS, "id": DEEP}), "refused"),
    "nested_elsewhere": (json.dumps({**TOKENS, "meta": DEEP}), "cleanly"),
    "long_token": (json.dumps({"id": "a", "tokens": ["x" * 10_000_000]}), "fine"),
    "long_text": (json.dumps({"id": "a", "text": "xy " * 200_000}), "fine"),
    "long_id": (json.dumps({"id": "x" * 1_000_000, "tokens": ["a"], "entities": [[0, 9, "A"]]}), "refused"),
    "many_tokens": (json.dumps({"id": "a", "tokens": ["x"] * 300_000}), "fine"),
    "many_spans": (json.dumps({**TOKENS, "entities": [[0, 1, f"T{n}"] for n in range(20_000)]}), "cleanly"),
    "many_types": (json.dumps({**TOKENS, "entities": [[0, 1, f"T{n}"] for n in range(40_000)]}), "refused"),
    "many_sources": (json.dumps({**TOKENS, "sources": {f"s{n}": [] for n in range(5000)}}), "fine"),
}
"""Lines of JSON that no program writes, and how reading each must end."""

_SPANS: dict[str, Any] = {
    "reversed": [2, 1, "A"],
    "empty": [1, 1, "A"],
    "negative": [-2, 1, "A"],
    "beyond": [0, 99, "A"],
    "huge": [0, 2**70, "A"],
    "fraction": [0, 1.5, "A"],
    "text_offset": ["0", "1", "A"],
    "boolean": [False, True, "A"],
    "null": [None, 1, "A"],
    "too_short": [0, 1],
    "too_long": [0, 1, "A", 1, 2],
    "number_type": [0, 1, 7],
    "null_type": [0, 1, None],
    "empty_type": [0, 1, ""],
    "list_type": [0, 1, ["A"]],
    "score_above": [0, 1, "A", 2],
    "score_below": [0, 1, "A", -0.5],
    "score_text": [0, 1, "A", "high"],
    "other_text": {"start": 0, "end": 1, "label": "A", "text": "Rome"},
    "number_text": {"start": 0, "end": 1, "label": "A", "text": 7},
    "no_start": {"end": 1, "label": "A"},
    "nothing": {},
    "string": "A",
    "number": 5,
}
"""Spans that are none."""

_LISTS: dict[str, Any] = {"string": "A", "number": 5, "object": {"a": 1}, "true": True, "null_item": [None]}
"""What stands where a list of spans is expected."""

_FIELDS: dict[str, Any] = {
    "tokens_string": {"tokens": "Ada saw"},
    "tokens_null": {"tokens": None},
    "tokens_numbers": {"tokens": [1, 2]},
    "tokens_nulls": {"tokens": [None]},
    "tokens_lists": {"tokens": [["a"]]},
    "tokens_objects": {"tokens": [{"text": "a"}]},
    "tokens_object": {"tokens": {"0": "a"}},
    "text_number": {"tokens": ["a"], "text": 5},
    "text_list": {"text": ["a"]},
    "text_null": {"text": None},
    "other_text": {"tokens": ["Ada"], "text": "Rome"},
    "nothing": {},
    "id_float": {"id": 1.5, "tokens": ["a"]},
    "id_true": {"id": True, "tokens": ["a"]},
    "id_null": {"id": None, "tokens": ["a"]},
    "id_list": {"id": ["a"], "tokens": ["a"]},
    "group_list": {"tokens": ["a"], "group": ["g"]},
    "group_number": {"tokens": ["a"], "group": 1.5},
    "offsets_short": {"tokens": ["a", "b"], "text": "a b", "offsets": [[0, 1]]},
    "offsets_wrong": {"tokens": ["a", "b"], "text": "a b", "offsets": [[0, 1], [0, 1]]},
    "offsets_negative": {"tokens": ["b"], "text": "a b", "offsets": [[-1, 3]]},
    "offsets_huge": {"tokens": ["a"], "text": "a", "offsets": [[0, 2**70]]},
    "offsets_floats": {"tokens": ["a"], "text": "a", "offsets": [[0.0, 1.0]]},
    "offsets_text": {"tokens": ["a"], "text": "a", "offsets": "01"},
    "tags_short": {"tokens": ["a", "b"], "tags": ["O"]},
    "tags_long": {"tokens": ["a"], "tags": ["O", "O"]},
    "tags_null": {"tokens": ["a"], "tags": [None]},
    "tags_numbers": {"tokens": ["a"], "tags": [0]},
    "tags_ragged": {"tokens": ["a", "b"], "tags": [["O"], "O"]},
    "tags_string": {"tokens": ["a"], "tags": "O"},
    "tags_stray": {"tokens": ["a"], "tags": ["0"]},
    "tags_prefix_only": {"tokens": ["a"], "tags": ["B-"]},
    "tags_unknown_prefix": {"tokens": ["a"], "tags": ["Q-PER"]},
    "sources_list": {"tokens": ["a"], "sources": ["s"]},
    "sources_string": {"tokens": ["a"], "sources": "s"},
    "sources_number": {"tokens": ["a"], "sources": {"s": 1}},
    "votes_o_strange": {"tokens": ["a"], "votes_o": {"s": "a"}},
    "votes_o_beyond": {"tokens": ["a"], "sources": {"s": []}, "votes_o": {"s": [[0, 5]]}},
    "links_strange": {"tokens": ["a", "b"], "links": {"l": [[0, 2, "maybe"]]}},
    "links_list": {"tokens": ["a", "b"], "links": [[0, 2]]},
    "links_beyond": {"tokens": ["a", "b"], "links": {"l": [[0, 9]]}},
    "two_kinds": {"tokens": ["a"], "tags": ["O"], "entities": [[0, 1, "A"]]},
}
"""Records with a field that has another form than it should."""

_FIELD_ENDS: dict[str, Ends] = {"tags_unknown_prefix": "repaired"}

_ROWS: dict[str, Any] = {
    "negative": [[1, 0, 0], [-0.5, 1, 0.5], EVEN],
    "above_one": [[2, 0, 0], EVEN, EVEN],
    "not_one": [[0.2, 0.2, 0.2], EVEN, EVEN],
    "all_zero": [[0, 0, 0], EVEN, EVEN],
    "ragged": [[1, 0, 0], [1, 0], EVEN],
    "wide": [[1, 0, 0, 0]] * 3,
    "few": [EVEN],
    "many": [EVEN] * 4,
    "text": [["1", "0", "0"]] * 3,
    "null": [None, EVEN, EVEN],
    "null_inside": [[1, None, 0], EVEN, EVEN],
    "deep": [[[1]], EVEN, EVEN],
    "string": "even",
    "number": 1,
    "object": {"0": EVEN},
    "huge": [[10**400, 0, 0], EVEN, EVEN],
    "booleans": [[True, False, False]] * 3,
}
"""Probabilities that are none."""

_LABELS: dict[str, Any] = {
    "missing": None,
    "doubled": ["O", "B-PER", "B-PER"],
    "no_inside": ["O", "B-PER", "B-LOC"],
    "no_outside": ["B-PER", "I-PER", "B-LOC"],
    "numbers": [0, 1, 2],
    "string": "O,B-PER,I-PER",
    "few": ["O"],
    "stray": ["O", "PER", "Q-PER"],
    "nested": [["O"], "B-PER", "I-PER"],
}
"""Names of labels that do not name the columns."""


def records(folder: Path) -> Iterator[Case]:
    """All of them, each on the second line of a file of its own."""
    for name, (line, ends) in LINES.items():
        yield _lines(folder, f"line_{name}", line, ends)
    for name, span in _SPANS.items():
        yield _lines(folder, f"span_{name}", json.dumps({**TOKENS, "entities": [span]}))
        yield _lines(folder, f"vote_{name}", json.dumps({**TOKENS, "sources": {"s": [span]}}))
        ends: Ends = "refused" if name in ("other_text", "string") else "repaired"
        yield _lines(folder, f"character_span_{name}", json.dumps({**TEXT, "entities": [span]}), ends)
    for name, value in _LISTS.items():
        yield _lines(folder, f"spans_{name}", json.dumps({**TOKENS, "entities": value}))
    for name, fields in _FIELDS.items():
        yield _lines(folder, f"field_{name}", json.dumps({"id": "a", **fields}), _FIELD_ENDS.get(name, "refused"))
    for name, rows in _ROWS.items():
        ends = "cleanly" if name == "booleans" else "refused"
        yield _lines(folder, f"rows_{name}", json.dumps({**SOFT, "probabilities": rows}), ends, SOFT_GOOD)
        soft = {"labels": SOFT["labels"], "probabilities": rows}
        yield _lines(folder, f"soft_source_{name}", json.dumps({**TOKENS, "sources": {"s": soft}}), ends, _SOFT_SOURCE)
    for name, labels in _LABELS.items():
        line = json.dumps({**SOFT, "labels": labels, "probabilities": [EVEN] * 3})
        ends = "fine" if name in ("no_inside", "no_outside") else "refused"
        yield _lines(folder, f"labels_{name}", line, ends, SOFT_GOOD)
    yield from _several(folder)
    yield from _tables(folder)


_SOFT_SOURCE = {**GOOD, "sources": {"s": {"labels": SOFT["labels"], "probabilities": [EVEN]}}}


def _lines(folder: Path, name: str, line: str, ends: Ends = "refused", good: dict[str, Any] = GOOD) -> Case:
    """A good record, then a line."""
    path = folder / f"{name}.jsonl"
    path.write_text(f"{json.dumps(good)}\n{line}\n", encoding="utf-8", newline="\n")
    return Case(path, ends, "line 2|document 'a'" if ends == "refused" else "")


def _several(folder: Path) -> Iterator[Case]:
    """Records that go together with others badly."""
    for name, others, ends in _TOGETHER:
        path = folder / f"together_{name}.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in others), encoding="utf-8")
        yield Case(path, ends)


_TOGETHER: tuple[tuple[str, list[dict[str, Any]], Ends], ...] = (
    ("same_id", [TOKENS, {**TOKENS, "tokens": ["b"]}], "refused"),
    ("id_of_two_types", [{"id": 7, "tokens": ["a"]}, {"id": "7", "tokens": ["b"]}], "refused"),
    ("overlapping", [{**TOKENS, "entities": [[0, 2, "A"], [1, 3, "A"]]}], "repaired"),
    ("other_labels", [{**SOFT, "probabilities": [EVEN] * 3}, {**SOFT, "id": "b", "labels": ["O", "B-X", "I-X"],
                                                           "probabilities": [EVEN] * 3}], "cleanly"),
    ("soft_and_not", [{**SOFT, "probabilities": [EVEN] * 3}, GOOD], "cleanly"),
    ("soft_source_and_not", [{**TOKENS, "sources": {"s": {"labels": SOFT["labels"], "probabilities": [EVEN] * 3}}},
                             {**GOOD, "sources": {"s": [[0, 1, "PER"]]}}], "cleanly"),
    ("no_tokens", [{"id": "a", "tokens": []}, {"id": "b", "tokens": []}], "cleanly"),
    ("empty_tokens", [{"id": "a", "tokens": ["", " ", "\u200b"], "entities": [[0, 3, "A"]]}], "cleanly"),
    ("empty_texts", [{"id": "a", "text": ""}, {"id": "b", "text": " \n "}], "cleanly"),
    ("no_entities", [TOKENS, {**TOKENS, "id": "b"}], "cleanly"),
    ("nothing_but_o", [{**TOKENS, "entities": [[0, 1, "O"]]}], "cleanly"),
)  # fmt: skip


def _tables(folder: Path) -> Iterator[Case]:
    """Parquet files of other schemas than ours."""
    tables: dict[str, dict[str, Any]] = {
        "no_columns": {"a": [1, 2], "b": ["x", "y"]},
        "no_rows": {"id": pa.array([], pa.string()), "tokens": pa.array([], pa.list_(pa.string()))},
        "tokens_numbers": {"id": ["a"], "tokens": [[1, 2]]},
        "tokens_text": {"id": ["a"], "tokens": ["Ada saw"]},
        "tokens_null": {"id": ["a", "b"], "tokens": [["a"], None]},
        "token_null": {"id": ["a"], "tokens": [["a", None]]},
        "tags_short": {"id": ["a"], "tokens": [["a", "b"]], "ner_tags": [["O"]]},
        "tags_numbers": {"id": ["a"], "tokens": [["a"]], "ner_tags": [[99]]},
        "tags_negative": {"id": ["a"], "tokens": [["a"]], "ner_tags": [[-1]]},
        "tags_floats": {"id": ["a"], "tokens": [["a"]], "ner_tags": [[0.5]]},
        "tags_stray": {"id": ["a"], "tokens": [["a"]], "ner_tags": [["0"]]},
        "same_id": {"id": ["a", "a"], "tokens": [["a"], ["b"]]},
        "id_null": {"id": [None, "b"], "tokens": [["a"], ["b"]]},
        "id_numbers": {"id": [1.5, 2.5], "tokens": [["a"], ["b"]]},
        "bytes": {"id": ["a"], "tokens": [[b"\xff\xfe"]]},
        "dates": {"id": pa.array([0], pa.timestamp("us")), "tokens": [["a"]]},
        "uniform": {"id": ["a"], "tokens": pa.array([["a"] * 500_000], pa.list_(pa.string()))},
        "uniform_without_end": {"id": ["a"], "tokens": pa.array([["a"] * 5_000_000], pa.list_(pa.string()))},
        "long_text": {"id": ["a" * 50_000_000], "tokens": [["a"]]},
    }
    for name, columns in tables.items():
        path = folder / f"table_{name}.parquet"
        pa.parquet.write_table(pa.table(columns), path, compression="zstd")
        yield Case(path, "cleanly" if name in ("no_rows", "uniform", "id_null", "tags_negative") else "refused")
    good = pa.table({"id": ["a"], "tokens": [["a"]], "ner_tags": [[0]]})
    for name, metadata in _METADATA.items():
        path = folder / f"metadata_{name}.parquet"
        pa.parquet.write_table(good.replace_schema_metadata({"huggingface": metadata}), path)
        yield Case(path, "refused")


_METADATA = {
    "broken": b"{",
    "not_utf8": b"\xff",
    "nested": b"[" * 100_000,
    "list": b"[]",
    "no_names": json.dumps({"info": {"features": {"ner_tags": {"feature": {"_type": "ClassLabel"}}}}}).encode(),
    "numbers": json.dumps({"info": {"features": {"ner_tags": {"feature": {"names": [1], "_type": "ClassLabel"}}}}}),
    "stray": json.dumps({"info": {"features": {"ner_tags": {"feature": {"names": ["?"], "_type": "ClassLabel"}}}}}),
}
"""Descriptions of columns, as Hugging Face datasets put them into Parquet files."""
