"""What the formats of annotation tools have in common."""

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.test_argilla import RECORD
from formats.test_label_studio import TASK
from formats.test_prodigy import EXAMPLE
from tagweave import Corpus, Document, read, write
from tagweave.errors import DataError
from tagweave.formats.tool_files import write_tool_records

LABELLED = {"id": 1, "text": "Ada", "label": [[0, 3, "PER"]], "relations": [{"id": 1}]}
RECORDS = {"label-studio": TASK, "argilla": RECORD, "prodigy": EXAMPLE, "doccano": LABELLED}

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 30) | st.floats(-1, 2) | st.sampled_from(["", "a", "text", "labels"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "start", "x"]), inner),
    max_leaves=4,
)


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """The ways to all values inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, item in items for place in places(item, (*before, key))]
    return [before, *inner] if before else inner


@pytest.mark.parametrize("name", RECORDS)
@given(data=st.data())
def test_whatever_stands_in_a_record_it_is_read_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    record = copy.deepcopy(RECORDS[name])
    *way, last = data.draw(st.sampled_from(places(record)))
    inside: Any = record
    for key in way:
        inside = inside[key]
    inside[last] = data.draw(ANYTHING)
    path = tmp_path_factory.mktemp("fuzz") / "in.jsonl"
    path.write_text(json.dumps(record))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(path, format=name)
        except DataError as error:
            assert "in.jsonl" in str(error)


@pytest.mark.parametrize("name", RECORDS)
def test_wrong_records_may_be_left_out(name: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("{}\n[\n" + json.dumps(RECORDS[name]) + "\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(read(path, format=name, on_error="skip")) == 1
    assert caught[0].message.counts["skipped"] == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("name", RECORDS)
def test_it_is_written_as_a_list_or_as_lines(name: str, tmp_path: Path) -> None:
    documents = [Document(str(number), ["\U0001f680"], "\U0001f680", [(0, 1)], entities=[]) for number in range(3)]
    corpus = Corpus.from_documents(documents)
    for ending in (".json", ".jsonl", ".json.gz"):
        path = tmp_path / f"out{ending}"
        write(corpus, path, format=name)
        assert len(read(path, format=name)) == 3
    assert len(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))) == 3
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [type(json.loads(line)) for line in lines] == [dict] * 3


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    def records() -> Any:  # noqa: ANN401
        yield {}
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        write_tool_records(tmp_path / "a.json", records())
    assert not [*tmp_path.iterdir()]
