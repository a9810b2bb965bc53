"""Answers of language models, read leniently, and kept on disk."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagweave.errors import StorageError
from tagweave.sources.answers import AnswerCache, read_list, read_lists


@pytest.mark.parametrize(
    "answer",
    [
        '["Oslo", "Rome"]',
        '```json\n["Oslo", "Rome"]\n```',
        'Sure [as you asked]: ["Oslo", "Rome"]. Anything [1] else?',
        '{"entities": ["Oslo", "Rome"]}',
        '<think>Perhaps ["Paris"], no.</think>\n["Oslo", "Rome"]',
        'First I thought ["Oslo"]. But the answer is ["Oslo", "Rome"]',
        '[" Oslo\\n", "", "Rome"]',
        '[{"text": ["Oslo", "Rome"]}]',
    ],
)
def test_lists_are_found_in_answers(answer: str) -> None:
    assert read_list(answer) == ["Oslo", "Rome"]


@pytest.mark.parametrize("answer", ["", "None.", "Oslo, Rome", '["Oslo"', "[1, 2]", '["Oslo", null]', "[" * 5000])
def test_no_list_is_an_error(answer: str) -> None:
    with pytest.raises(ValueError, match="no JSON list of strings in"):
        read_list(answer)


def test_an_empty_list_is_an_answer() -> None:
    assert read_list("There are none: []") == []


@given(
    st.lists(st.text().map(str.strip).filter(bool)),
    st.text(st.characters(exclude_characters='[]"<')),
    st.text(st.characters(exclude_characters='[]"<')),
)
def test_any_list_comes_back(strings: list[str], before: str, after: str) -> None:
    assert read_list(f"{before}{json.dumps(strings)}{after}") == strings
    assert read_list(f"{before}{json.dumps(strings, ensure_ascii=False, indent=2)}{after}") == strings


@given(st.lists(st.lists(st.text().map(str.strip).filter(bool)), min_size=1))
def test_any_lists_come_back_by_number(lists: list[list[str]]) -> None:
    answer = {str(number): strings for number, strings in enumerate(lists, start=1)}
    shuffled = dict(reversed(answer.items()))
    assert read_lists(f"Here: ```{json.dumps(shuffled)}```", len(lists)) == lists
    assert read_lists(json.dumps({"answers": answer}), len(lists)) == lists


@pytest.mark.parametrize(
    "answer", ['{"1": ["a"]}', '{"1": ["a"], "2": "b"}', '{"1": [], "2": [], "3": []}', '[["a"], ["b"]]', "{}"]
)
def test_lists_of_other_texts_are_an_error(answer: str) -> None:
    with pytest.raises(ValueError, match="for each of 2 texts"):
        read_lists(answer, 2)


# On disk


@given(st.lists(st.text(st.characters())))
def test_answers_are_kept(answer: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = AnswerCache(Path(folder))
        key = cache.key("m", {"b": 1, "a": [2]}, "Which?")
        assert key == cache.key("m", {"a": [2], "b": 1}, "Which?")
        assert cache.get(key) is None
        cache.put(key, ["older"])
        cache.put(key, answer)
        assert cache.get(key) == answer
        assert [path.name for path in Path(folder).rglob("*") if path.is_file()] == [f"{key}.json"]


@pytest.mark.parametrize("content", ["", "[]", '{"answer": "Oslo"}', '{"answer": [1]}', '{"answer": ["Os'])
def test_what_is_no_answer_counts_as_missing(content: str, tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    cache.put("abc", ["Oslo"])
    (path,) = tmp_path.rglob("*.json")
    path.write_text(content, encoding="utf-8")
    assert cache.get("abc") is None
    cache.put("abc", ["Oslo"])
    assert cache.get("abc") == ["Oslo"]


def test_a_folder_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be kept in"):
        AnswerCache(tmp_path / "file").put("abc", [])
