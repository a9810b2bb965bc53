"""A language model as a source, over real HTTP, with a server on this machine."""

import json
import pickle
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat_server import ChatServer, Response, chat_server, completion
from source_documents import from_text
from tagweave import Corpus, annotate
from tagweave.annotations import Span
from tagweave.corpus import Document
from tagweave.errors import SourceError, TagweaveWarning, UsageError
from tagweave.sources import LanguageModel, create_source
from tagweave.sources.base import checked

TOWNS = {"Oslo", "Rome", "York", "New York"}
PEOPLE = {"Ada", "York"}
TYPES = {"LOC": "towns", "PER": "people"}


def named(kind: str, text: str) -> list[str]:
    """What a good language model says."""
    wanted = TOWNS if kind == "LOC" else PEOPLE
    return [word for word in re.findall(r"New York|\w+", text) if word in wanted]


def answer(prompt: str, number: int = 0) -> Response:
    """A good answer to the default prompt."""
    kind = "LOC" if "Type: LOC" in prompt else "PER"
    texts = re.findall(r'<text number="(\d+)">\n(.*?)\n</text>', prompt, re.DOTALL)
    if texts:
        return completion({count: named(kind, text) for count, text in texts})
    return completion(named(kind, prompt.partition("Text:\n")[2]))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAGWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "language-models"


def source(server: ChatServer, definitions: dict[str, str] = TYPES, **settings: Any) -> LanguageModel:  # noqa: ANN401
    return LanguageModel("llm", server.url, "small", definitions, **{"wait": 0.01, "retries": 2, **settings})


def votes(model: LanguageModel, *texts: str) -> list[list[tuple[str, str]] | None]:
    """The text and type of each vote, for each text."""
    documents = [from_text(text, str(number)) for number, text in enumerate(texts)]
    model.load()
    found = [
        checked(model, document, given) for document, given in zip(documents, model.annotate(documents), strict=True)
    ]
    return [
        None if spans is None else [(_text(document, span), span.type) for span in spans]
        for document, spans in zip(documents, found, strict=True)
    ]


def _text(document: Document, span: Span) -> str:
    assert document.text is not None
    assert document.characters is not None
    return document.text[document.characters[span.start][0] : document.characters[span.end - 1][1]]


def test_entities_of_each_type_are_found_in_their_documents() -> None:
    with chat_server(answer) as server:
        found = votes(source(server), "Ada left Oslo.", "Oslo, Rome and Oslo", "Nothing here.")
    assert found == [[("Ada", "PER"), ("Oslo", "LOC")], [("Oslo", "LOC"), ("Rome", "LOC"), ("Oslo", "LOC")], None]
    assert len(server.requests) == 6


def test_the_prompt_has_type_definition_and_text() -> None:
    with chat_server(answer) as server:
        votes(
            source(server, {"LOC": "towns {type} \\1"}, prompt="{type}|{definition}|{answer}|{text}|{x}"), "{type} Oslo"
        )
    (prompt,) = server.prompts
    assert prompt.startswith("LOC|towns {type} \\1|Copy each")
    assert prompt.endswith("|{type} Oslo|{x}")
    assert server.requests[0]["temperature"] == 0


def test_silence_is_abstention_unless_set_otherwise() -> None:
    texts = ("Nothing here.", "   ", "Ada")
    with chat_server(answer) as server:
        assert votes(source(server), *texts) == [None, None, [("Ada", "PER")]]
        assert votes(source(server, abstain=False), *texts) == [[], [], [("Ada", "PER")]]


def test_blank_texts_and_equal_texts_make_no_request_of_their_own() -> None:
    with chat_server(answer) as server:
        model = source(server)
        assert votes(model, "Ada", "", " \n", "Ada") == [[("Ada", "PER")], None, None, [("Ada", "PER")]]
        assert len(server.requests) == 2
    assert model.counters["requests"] == 2


@pytest.mark.parametrize("size", [2, 3, 7])
def test_several_documents_in_a_request(size: int) -> None:
    texts = [f"{number}: {'Oslo' if number % 2 else 'Ada'}" for number in range(7)]
    with chat_server(answer) as server:
        found = votes(source(server, documents_per_request=size, parallel=1), *texts)
        assert len(server.requests) == 2 * -(-7 // size)
    assert found == [[("Oslo", "LOC")] if number % 2 else [("Ada", "PER")] for number in range(7)]


def test_documents_keep_their_order_when_answers_do_not() -> None:
    def slower_first(prompt: str, number: int) -> Response:
        response = answer(prompt)
        response.delay = max(0.0, 0.1 - number * 0.02)
        return response

    texts = [("Oslo " * count).strip() for count in range(1, 7)]
    with chat_server(slower_first) as server:
        found = votes(source(server, {"LOC": ""}, parallel=6), *texts)
        assert 2 <= server.most_at_once <= 6
    assert found == [[("Oslo", "LOC")] * count for count in range(1, 7)]


def test_no_more_requests_at_a_time_than_are_set() -> None:
    with chat_server(lambda prompt, number: completion([], delay=0.02)) as server:
        votes(source(server, parallel=2), *map(str, range(6)))
    assert server.most_at_once == 2


# Places


@pytest.mark.parametrize(
    ("answered", "occurrences", "expected"),
    [
        (["Oslo"], "listed", [(0, 1)]),
        (["Oslo"], "all", [(0, 1), (2, 3)]),
        (["oslo", "OSLO"], "listed", [(0, 1), (2, 3)]),
        (["Oslo", "Oslo", "Oslo"], "listed", [(0, 1), (2, 3)]),
        (["Öslo"], "listed", [(0, 1)]),
        (["Paris", "Osl"], "listed", None),
    ],
)
def test_what_is_named_is_looked_for(answered: list[str], occurrences: Any, expected: Any) -> None:  # noqa: ANN401
    with chat_server(lambda prompt, number: completion(answered)) as server:
        model = source(server, {"LOC": ""}, occurrences=occurrences)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TagweaveWarning)
            (found,) = model.annotate([from_text("Oslo or Oslo")])
    spans = None if found is None else [tuple(vote)[:2] for vote in found]
    assert spans == expected


def test_what_is_not_in_the_text_is_counted_and_told(tmp_path: Path) -> None:
    with chat_server(lambda prompt, number: completion(["Paris", "Oslo"])) as server:
        model = source(server, {"LOC": ""}, unaligned=tmp_path / "lost.jsonl")
        with pytest.warns(TagweaveWarning, match=r"not in the text.*'0', LOC 'Paris'") as told:
            assert votes(model, "Oslo", "No town") == [[("Oslo", "LOC")], None]
    assert len(told) == 1
    assert model.counters["not in the text"] == 3
    lines = (tmp_path / "lost.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["Paris", "Paris", "Oslo"]


# Cache


def test_what_was_answered_is_not_asked_again(cache: Path) -> None:
    with chat_server(answer) as server:
        first = votes(source(server), "Ada in Oslo", "Nothing")
        again = source(server)
        assert votes(again, "Ada in Oslo", "Nothing", "Rome") == [*first, [("Rome", "LOC")]]
        assert len(server.requests) == 6
    assert (again.counters["cached"], again.counters["requests"]) == (4, 2)
    assert len(list(cache.rglob("*.json"))) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"model": "large"},
        {"parameters": {"temperature": 1}},
        {"prompt": "Find {type}.\n{answer}\nText:\n{text}"},
        {"definitions": {"LOC": "rivers", "PER": "people"}},
        {"documents_per_request": 2},
    ],
)
def test_another_question_is_asked(change: dict[str, Any]) -> None:
    with chat_server(lambda prompt, number: completion([])) as server:
        model = source(server)
        votes(model, "Ada in Oslo")
        for name, value in change.items():
            setattr(model, name, value)
        model = pickle.loads(pickle.dumps(model))
        votes(model, "Ada in Oslo")
        assert len(server.requests) in (3, 4)


@pytest.mark.parametrize("change", [{"parallel": 1}, {"abstain": False}, {"api_key_env": "LLM_KEY"}, {"retries": 0}])
def test_other_settings_ask_nothing_again(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KEY", "sk-secret")
    with chat_server(answer) as server:
        votes(source(server), "Ada in Oslo")
        votes(source(server, **change), "Ada in Oslo")
        assert len(server.requests) == 2


def test_the_folder_of_answers_is_a_setting(tmp_path: Path, cache: Path) -> None:
    with chat_server(answer) as server:
        votes(source(server, cache=tmp_path / "mine"), "Ada in Oslo")
    assert len(list((tmp_path / "mine").rglob("*.json"))) == 2
    assert not cache.exists()


def test_neither_key_nor_text_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KEY", "sk-secret")
    with chat_server(answer) as server:
        model = source(server, api_key_env="LLM_KEY")
        votes(model, "Ada left for a confidential place")
        assert server.headers[0]["Authorization"] == "Bearer sk-secret"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    for content in [*written, pickle.dumps(model), repr(model).encode()]:
        assert b"sk-secret" not in content
        assert b"confidential" not in content


# Failures


def failing(text: str, response: Response) -> Callable[[str, int], Response]:
    """A server that fails on one text."""
    return lambda prompt, number: response if text in prompt else answer(prompt)


@pytest.mark.parametrize(
    ("response", "problem", "requests"),
    [
        (completion("I see no towns."), "no JSON list of strings in 'I see no towns.'", 3),
        (Response(b"overloaded", 503), "status 503, overloaded", 3),
        (Response(b"too long", 400), "status 400, too long", 1),
        (Response(b"<html>"), "no chat completion", 3),
    ],
)
def test_a_document_without_usable_answer_abstains_and_is_counted(
    response: Response, problem: str, requests: int
) -> None:
    with chat_server(failing("Rome", response)) as server:
        model = source(server, {"LOC": ""})
        with pytest.warns(TagweaveWarning, match=re.escape(problem)) as told:
            assert votes(model, "Oslo", "Rome", "York") == [[("Oslo", "LOC")], None, [("York", "LOC")]]
        assert len(told) == 1
        assert "document '1'" in str(told[0].message)
        assert model.counters["failed documents"] == 1
        assert model.counters["requests"] == 2 + requests
        assert votes(source(server, {"LOC": ""}), "Oslo", "York") == [[("Oslo", "LOC")], [("York", "LOC")]]


def test_a_document_abstains_if_one_type_fails_and_goes_on_from_there() -> None:
    with chat_server(failing("Type: PER", completion("?"))) as server:
        with pytest.warns(TagweaveWarning, match="no usable answer"):
            assert votes(source(server), "Ada in Oslo") == [None]
        server.answer = answer
        model = source(server)
        assert votes(model, "Ada in Oslo") == [[("Ada", "PER"), ("Oslo", "LOC")]]
    assert (model.counters["cached"], model.counters["requests"]) == (1, 1)


def test_a_request_with_a_text_left_out_is_asked_again() -> None:
    def forgetful(prompt: str, number: int) -> Response:
        return completion({"1": ["Oslo"]}) if number == 0 else answer(prompt)

    with chat_server(forgetful) as server:
        model = source(server, {"LOC": ""}, documents_per_request=2)
        assert votes(model, "Oslo", "Rome") == [[("Oslo", "LOC")], [("Rome", "LOC")]]
    assert (model.counters["requests"], model.counters["retries"]) == (2, 1)


@pytest.mark.parametrize("response", [Response(b"down", 500), completion("?")])
def test_it_gives_up_when_nothing_works(response: Response) -> None:
    with chat_server(lambda prompt, number: response) as server:
        model = source(server, {"LOC": ""}, parallel=1, retries=0)
        with pytest.raises(
            SourceError, match="10 questions in a row got no usable answer, the last: (status 500|the ans)"
        ):
            votes(model, *map(str, range(50)))
        asked = len(server.requests)
        assert asked < 15
        with pytest.raises(SourceError, match="10 questions in a row"):
            votes(model, "one more")
        assert len(server.requests) == asked


def test_it_does_not_give_up_when_a_model_is_only_bad() -> None:
    texts = ["Oslo", *(f"{number} Rome" for number in range(30))]
    with chat_server(failing("Rome", completion("?"))) as server:
        for _ in range(2):
            model = source(server, {"LOC": ""}, parallel=1, retries=0)
            with pytest.warns(TagweaveWarning, match="no usable answer"):
                assert votes(model, *texts) == [[("Oslo", "LOC")], *[None] * 30]
            assert model.counters["failed documents"] == 30


def test_it_gives_up_when_the_server_goes_away() -> None:
    with chat_server(failing("Rome", Response(b"", 502))) as server:
        model = source(server, {"LOC": ""}, parallel=1, retries=0)
        with pytest.raises(SourceError, match="status 502"):
            votes(model, "Oslo", *(f"{number} Rome" for number in range(30)))
        assert len(server.requests) < 16


def test_a_wrong_key_stops_a_run_at_once() -> None:
    with chat_server(lambda prompt, number: Response(b"bad key", 401)) as server:
        corpus = Corpus.from_documents([from_text(f"text {number}", str(number)) for number in range(20)])
        with pytest.raises(SourceError, match="refuses: status 401, bad key"):
            annotate(corpus, [source(server, parallel=1)])
        assert len(server.requests) < 5


def test_an_interrupt_does_not_wait_for_what_is_to_be_asked_again() -> None:
    class Interrupted(BaseException):
        pass

    with chat_server(lambda prompt, number: Response(b"", 500) if "slow" in prompt else answer(prompt)) as server:
        model = source(server, {"LOC": ""}, wait=60, parallel=2)
        model._count = lambda counts: (_ for _ in ()).throw(Interrupted())  # type: ignore[method-assign, assignment]
        timer = threading.Timer(30, lambda: None)
        timer.start()
        with pytest.raises(Interrupted):
            votes(model, "slow", "Oslo")
        assert timer.is_alive()
        timer.cancel()


# Runs


def test_what_it_took_is_counted() -> None:
    with chat_server(answer) as server:
        model = source(server, prompt_price=0.15, completion_price=0.6)
        votes(model, "Ada", "Oslo", "Rome")
    assert model.counters["requests"] == 6
    assert model.counters["prompt tokens"] == 600
    assert model.counters["completion tokens"] == 60
    assert model.counters["cost in millionths"] == round(600 * 0.15 + 60 * 0.6)


@pytest.mark.parametrize("processes", [1, 2])
def test_it_runs_over_a_corpus(processes: int) -> None:
    with chat_server(answer) as server:
        corpus = Corpus.from_documents([from_text(f"{number} Oslo Ada", str(number)) for number in range(300)])
        model = source(server, parallel=8, documents_per_request=10)
        found = annotate(corpus, [model], processes=processes)
    assert len(server.requests) == 60
    assert all(document.sources["llm"] == [Span(1, 2, "LOC"), Span(2, 3, "PER")] for document in found)


def test_settings_come_from_toml(tmp_path: Path) -> None:
    settings = {
        "name": "llm",
        "url": "http://localhost:8000/v1",
        "model": "small",
        "definitions": {"LOC": "towns"},
        "parameters": {"temperature": 0.5, "max_tokens": 100},
        "cache": "answers",
        "occurrences": "all",
    }
    model = create_source("language-model", settings, tmp_path)
    assert isinstance(model, LanguageModel)
    assert model.parameters == {"temperature": 0.5, "max_tokens": 100}
    assert model.cache == tmp_path / "answers"
    assert model.types == ("LOC",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"definitions": {}}, "needs a definition of each type"),
        ({"prompt": "Which towns?"}, r"has no \{text\}"),
        ({"parallel": 0}, "parallel must be at least 1"),
        ({"documents_per_request": 0}, "documents_per_request must be at least 1"),
        ({"retries": -1}, "retries must not be negative"),
        ({"timeout": 0}, "timeout must be"),
        ({"url": "host"}, "must begin with http"),
        ({"api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY, which should hold the key, is not set"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, Any], message: str) -> None:
    settings = {"url": "http://localhost:1/v1", "model": "small", "definitions": TYPES, **change}
    with pytest.raises(UsageError, match=message):
        LanguageModel("llm", **settings).load()
