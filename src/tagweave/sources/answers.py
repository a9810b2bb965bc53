"""What a language model answers, read leniently, and `AnswerCache`, which keeps answers on disk."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagweave.errors import StorageError

Strings = list[str]

_THOUGHT = re.compile(r"<(/?)think(?:ing)?>")
_LONGEST = 1_000_000
"""Characters of an answer that is read."""
_MOST_FAILURES = 1000
"""How often something in an answer may begin like JSON and be none."""


def read_list(answer: str) -> Strings:
    r"""The last JSON list of strings in an answer, whatever stands around it.

    Raises:
        ValueError: there is none.

    >>> read_list('Sure! Here is the list [of towns]:\n```json\n["Oslo", "Rome"]\n```')
    ['Oslo', 'Rome']
    """
    found = _last(answer, "[", _is_list)
    if found is None:
        raise ValueError(f"no JSON list of strings in {_excerpt(answer)}")
    return _filled(found)


def read_lists(answer: str, count: int) -> list[Strings]:
    """The lists of several texts: an object with the numbers from 1 on as keys.

    Raises:
        ValueError: there is no such object, or it lacks a number.

    >>> read_lists('{"1": ["Oslo"], "2": []}', 2)
    [['Oslo'], []]
    """
    wanted = [str(number) for number in range(1, count + 1)]

    def fits(value: Any) -> bool:  # noqa: ANN401
        return isinstance(value, dict) and set(value) == set(wanted) and all(map(_is_list, value.values()))

    found = _last(answer, "{", fits)
    if found is None:
        raise ValueError(f"no JSON object with a list for each of {count} texts in {_excerpt(answer)}")
    return [_filled(found[number]) for number in wanted]


def _without_thoughts(answer: str) -> str:
    """An answer without what stands between the marks of a model that thinks aloud; an open mark hides nothing.

    >>> _without_thoughts("a <think>b <think> c</think> d </thinking> e")
    'a  d </thinking> e'
    """
    kept, begin, done = [], -1, 0
    for mark in _THOUGHT.finditer(answer):
        if begin < 0 and not mark[1]:
            begin = mark.start()
        elif begin >= 0 and mark[1]:
            kept.append(answer[done:begin])
            begin, done = -1, mark.end()
    return "".join([*kept, answer[done:]])


def _is_list(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _filled(strings: Strings) -> Strings:
    return [string.strip() for string in strings if string.strip()]


def _last(answer: str, opening: str, fits: Callable[[Any], bool]) -> Any:  # noqa: ANN401
    """The last JSON value in a text that begins with a sign and fits, and lies in no other such value."""
    if len(answer) > _LONGEST:
        raise ValueError(f"it has {len(answer)} characters, more than {_LONGEST}")
    text, decoder, found, place = _without_thoughts(answer), json.JSONDecoder(), None, -1
    failures = 0
    while (place := text.find(opening, place + 1)) >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            failures += 1
            if failures == _MOST_FAILURES:
                return None
            continue
        if fits(value):
            found, place = value, end - 1
    return found


def _excerpt(answer: str) -> str:
    return repr(answer if len(answer) <= 100 else f"{answer[:60]} ... {answer[-30:]}")


@dataclass(frozen=True)
class AnswerCache:
    """Answers by what was asked, each in a JSON file of its own.

    The name of a file is a hash of the question, and in the file is the answer only. Files appear whole or not at all,
    so several processes may share a folder. One that cannot be read counts as missing.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = AnswerCache(Path(folder))
    ...     cache.put(AnswerCache.key("Which towns?"), ["Oslo"])
    ...     cache.get(AnswerCache.key("Which towns?")), cache.get(AnswerCache.key("Which rivers?"))
    (['Oslo'], None)
    """

    folder: Path

    @staticmethod
    def key(*question: object) -> str:
        """The name of a question: all that the answer depends on, as values that JSON can hold."""
        return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def get(self, key: str) -> Strings | None:
        """The answer to a question, or None."""
        try:
            answer = json.loads(self._path(key).read_bytes())["answer"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        return answer if _is_list(answer) else None

    def put(self, key: str, answer: Strings) -> None:
        """Keep an answer.

        Raises:
            StorageError: the folder cannot be written.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
            try:
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    json.dump({"answer": answer}, file)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            raise StorageError(f"answers of language models cannot be kept in {self.folder}: {error}") from None

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
