"""Questions to a language model over real HTTP, to a server on this machine."""

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from typing import Any

import pytest

from chat_server import ChatServer, Response, chat_server, completion
from tagweave.errors import SourceError, UsageError
from tagweave.sources import chat
from tagweave.sources.chat import Chat, Outcome

QUICK: dict[str, Any] = {"wait": 0.01, "timeout": 5.0, "retries": 2}


def serve(*responses: Response) -> AbstractContextManager[ChatServer]:
    """A server that gives these responses in turn, the last one for ever."""
    return chat_server(lambda prompt, number: responses[min(number, len(responses) - 1)])


def ask(
    server: ChatServer,
    read: Callable[[str], Any] = str,
    **settings: Any,  # noqa: ANN401
) -> Outcome[Any]:
    return Chat(server.url, "small", **{**QUICK, **settings}).ask("Which towns?", read)


def test_a_question_is_sent_and_its_answer_read() -> None:
    with serve(completion("Oslo")) as server:
        outcome = ask(server, parameters={"temperature": 0, "max_tokens": 7})
    assert outcome.value == "Oslo"
    assert outcome.counts == {"requests": 1, "prompt tokens": 100, "completion tokens": 10}
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests == [
        {
            "model": "small",
            "messages": [{"role": "user", "content": "Which towns?"}],
            "temperature": 0,
            "max_tokens": 7,
        }
    ]


def test_the_whole_address_may_be_given() -> None:
    with serve(completion("Oslo")) as server:
        Chat(f"{server.url}/chat/completions?version=2", "small", **QUICK).ask("?", str)
        Chat(f"{server.url}/", "small", **QUICK).ask("?", str)
    assert server.paths == ["/v1/chat/completions?version=2", "/v1/chat/completions"]


def test_the_key_comes_from_the_environment_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(completion("Oslo")) as server:
        model = Chat(server.url, "small", api_key_env="LLM_KEY", **QUICK)
        for key in ("secret-1", " secret-2\n"):
            monkeypatch.setenv("LLM_KEY", key)
            model.ask("?", str)
            assert "secret" not in repr(vars(model))
        monkeypatch.delenv("LLM_KEY")
        with pytest.raises(UsageError, match="LLM_KEY, which should hold the key, is not set"):
            model.ask("?", str)
        assert ask(server).value == "Oslo"
    assert [headers.get("Authorization") for headers in server.headers] == ["Bearer secret-1", "Bearer secret-2", None]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_asks_again_when_the_server_is_busy(status: int) -> None:
    with serve(Response(b"busy", status), completion("Oslo")) as server:
        outcome = ask(server)
    assert outcome.value == "Oslo"
    assert (outcome.counts["requests"], outcome.counts["retries"]) == (2, 1)


def test_it_waits_as_long_as_the_server_says() -> None:
    with serve(Response(b"", 429, {"Retry-After": "1"}), completion("Oslo")) as server:
        assert ask(server).value == "Oslo"
    assert server.times[1] - server.times[0] >= 1


def test_it_never_waits_longer_than_it_may() -> None:
    with serve(Response(b"", 429, {"Retry-After": "3600"}), completion("Oslo")) as server:
        assert ask(server, longest_wait=0.05).value == "Oslo"
    assert server.times[1] - server.times[0] < 2


def test_it_waits_twice_as_long_each_time() -> None:
    with serve(Response(b"", 500)) as server:
        outcome = ask(server, wait=0.1, retries=3)
    first, second, third = (after - before for before, after in zip(server.times, server.times[1:], strict=False))
    assert first >= 0.1
    assert second >= 0.2
    assert third >= 0.4
    assert outcome.value is None
    assert "status 500" in outcome.problem
    assert (outcome.counts["requests"], outcome.counts["retries"]) == (4, 3)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("", 0, 0), ("12", 12, 12), ("soon", 0, 0), ("-3", 0, 0), ("9" * 40, 1e6, 1e9), ("date", 20, 30)],
)
def test_asked_waits_are_seconds_or_times(value: str, least: float, most: float) -> None:
    headers = Message()
    later = datetime.now(UTC) + timedelta(seconds=30)
    headers["Retry-After"] = format_datetime(later, usegmt=True) if value == "date" else value
    assert least <= chat._asked_wait(headers) <= most


def test_a_time_in_the_past_is_no_wait() -> None:
    headers = Message()
    headers["Retry-After"] = "Wed, 21 Oct 2015 07:28:00 GMT"
    assert chat._asked_wait(headers) == 0


def test_a_server_that_is_too_slow_is_asked_again() -> None:
    with serve(completion("late", delay=1.0), completion("Oslo")) as server:
        outcome = ask(server, timeout=0.5)
    assert outcome.value == "Oslo"
    assert outcome.counts["retries"] >= 1


def test_a_response_that_drips_is_too_slow() -> None:
    with serve(completion("late", delay=0.1, pieces=50)) as server:
        begin = time.monotonic()
        outcome = ask(server, timeout=0.3, retries=0)
        assert time.monotonic() - begin < 2
    assert outcome.value is None
    assert "no whole response in 0.3 seconds" in outcome.problem


def test_a_long_response_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "MOST_BYTES", 1000)
    with serve(completion("x" * 5000)) as server:
        outcome = ask(server)
        assert outcome.counts["requests"] == 1
    assert "more than 1000 bytes" in outcome.problem


def test_half_a_response_is_asked_again() -> None:
    whole = completion("Oslo")
    with serve(Response(whole.body[:20]), whole) as server:
        assert ask(server).value == "Oslo"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": null}}]}', b"[" * 99999],
    ids=["empty", "html", "list", "object", "no-choices", "no-text", "deep"],
)
def test_what_is_no_completion_is_asked_again(body: bytes) -> None:
    with serve(Response(body), completion("Oslo")) as server:
        assert ask(server).value == "Oslo"
        assert len(server.requests) == 2


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": "many", "completion_tokens": -1}])
def test_servers_need_not_count_tokens(usage: object) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Oslo"}}], "usage": usage}).encode()
    with serve(Response(body)) as server:
        outcome = ask(server)
    assert outcome.value == "Oslo"
    assert (outcome.counts["prompt tokens"], outcome.counts["completion tokens"]) == (0, 0)


def test_malformed_answers_are_asked_again_at_once_and_paid() -> None:
    with serve(completion("no number"), completion("7")) as server:
        outcome = ask(server, int, wait=50)
    assert outcome.value == 7
    assert outcome.counts["prompt tokens"] == 200


def test_an_answer_that_stays_malformed_is_none() -> None:
    with serve(completion("no number")) as server:
        outcome = ask(server, int)
    assert outcome.value is None
    assert "the answer is malformed" in outcome.problem
    assert outcome.counts["requests"] == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_question_that_is_refused_is_not_asked_again(status: int) -> None:
    with serve(Response(b'{"error": "too long"}', status)) as server:
        outcome = ask(server)
        assert len(server.requests) == 1
    assert outcome.value is None
    assert "too long" in outcome.problem


@pytest.mark.parametrize("status", [301, 302, 307, 401, 403, 404])
def test_a_server_that_refuses_all_is_an_error(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KEY", "sk-secret")
    with serve(Response(b"bad key sk-secret, go", status, {"Location": "/elsewhere"})) as server:
        with pytest.raises(SourceError, match=f"status {status}") as caught:
            ask(server, api_key_env="LLM_KEY")
        assert len(server.requests) == 1
    assert "sk-secret" not in str(caught.value)


def test_no_server_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SourceError, match=f"no language model at http://127.0.0.1:{port}/v1/chat/completions"):
        Chat(f"http://127.0.0.1:{port}/v1?key=secret", "small", **QUICK).ask("?", str)


def test_it_stops_when_told() -> None:
    stop = threading.Event()
    with serve(Response(b"", 500)) as server:
        threading.Timer(0.2, stop.set).start()
        begin = time.monotonic()
        outcome = Chat(server.url, "small", wait=30).ask("?", str, stop)
    assert outcome.value is None
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("url", ["", "localhost:80/v1", "ftp://host/v1", "file:///etc/passwd", "https:///v1"])
def test_addresses_are_of_http(url: str) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        Chat(url, "small")


def test_odd_addresses_are_refused() -> None:
    with pytest.raises(UsageError, match="odd characters"):
        Chat("http://host/a b", "small")


def test_keys_are_not_taken_elsewhere() -> None:
    with pytest.raises(UsageError, match="api_key_env") as caught:
        Chat("https://me:secret@host/v1", "small")
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="must be the name of an environment variable") as caught:
        Chat("https://host/v1", "small", "sk-secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "parameters", [{"stream": True}, {"messages": []}, {"stop": {1}}, {"temperature": float("nan")}]
)
def test_some_parameters_cannot_be(parameters: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="parameters of"):
        Chat("https://host/v1", "small", parameters=parameters)


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_keys_have_no_odd_characters(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_KEY", key)
    with pytest.raises(UsageError, match="odd characters"):
        Chat("https://host/v1", "small", "LLM_KEY").check()
