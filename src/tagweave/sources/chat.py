"""`Chat`: questions to a language model behind an HTTP endpoint of the kind that OpenAI introduced.

Most servers of language models understand it, in the cloud (OpenAI, Mistral, Together, OpenRouter) and on machines of
one's own (vLLM, llama.cpp, Ollama).
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import cached_property
from http.client import HTTPException
from threading import Event
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from tagweave.errors import SourceError, UsageError

Value = TypeVar("Value")

MOST_BYTES = 16 * 1024 * 1024
"""Longer responses are not read."""

_PATH = "/chat/completions"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = ("messages", "model", "n", "stream")
_BUSY = (408, 409, 425, 429)
"""Statuses, besides those from 500 on, after which the same question may be answered later."""

_THIS_QUESTION = (400, 413, 422)
"""Statuses that say something of one question (too long, say). All others would come back for every question."""


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What came of a question.

    Attributes:
        value: what was read from the answer; None if there was no usable one.
        problem: why there is none.
        counts: requests, retries and tokens that it took.
        answered: whether the server was there, and said something of this very question.
    """

    value: Value | None
    problem: str
    counts: Counter[str]
    answered: bool


class Reply(NamedTuple):
    """An answer and what it cost."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class _Failed(Exception):
    """A request that failed.

    Args:
        message: what happened.
        again: whether another try may help.
        answered: whether the trouble is with this very question, so that there is nothing to wait for.
        wait: seconds that the server asks to wait.
        unreachable: whether there was no server.
    """

    def __init__(
        self,
        message: str,
        *,
        again: bool = True,
        answered: bool = False,
        wait: float = 0.0,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.again, self.answered, self.wait, self.unreachable = again, answered, wait, unreachable


class _NoRedirects(HTTPRedirectHandler):
    """Another address would get the key and the texts."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401
        """None, which makes a redirection an error."""


@dataclass(frozen=True)
class Chat:
    """A language model behind an HTTP endpoint.

    The key is read from the environment for each request. It is kept nowhere and taken out of every message.

    Args:
        url: address of the interface, such as `https://api.openai.com/v1` or `http://localhost:8000/v1`.
        model: what the server calls the model.
        api_key_env: name of the environment variable that holds the key; None for a server that wants none.
        parameters: more fields of the request, such as `temperature`.
        timeout: seconds to wait for the server, and for the whole of its response.
        retries: how often a question is asked again.
        wait: seconds before it is asked again, doubled each time; longer if the server says so.
        longest_wait: most seconds to wait before it is asked again, whatever the server says.

    Raises:
        UsageError: the address is none, or a parameter is one that is set here.

    >>> Chat("localhost:8000", "small")
    Traceback (most recent call last):
    tagweave.errors.UsageError: 'localhost:8000' is no address of a language model: it must begin with http:// or https://
    """

    url: str
    model: str
    api_key_env: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 120.0
    retries: int = 4
    wait: float = 1.0
    longest_wait: float = 60.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{self.url!r} is no address of a language model: it must begin with http:// or https://")
        if not self.url.isascii() or not self.url.isprintable() or " " in self.url:
            raise UsageError(f"{self.url!r} is no address of a language model: it has odd characters")
        if parts.username or parts.password:
            raise UsageError(
                f"the address of the language model at {parts.hostname} has a name or password in it: put the key into "
                "an environment variable and name that in api_key_env"
            )
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            raise UsageError(
                "api_key_env must be the name of an environment variable; the key itself has no place here"
            )
        for name in self.parameters:
            if name in _OWN:
                raise UsageError(f"{name!r} cannot be among the parameters of a language model")
        try:
            json.dumps(dict(self.parameters), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the parameters of the language model cannot be sent as JSON: {error}") from None

    @cached_property
    def endpoint(self) -> str:
        """Where questions are sent."""
        scheme, host, path, query, _ = urlsplit(self.url)
        path = path.rstrip("/")
        return urlunsplit((scheme, host, path if path.endswith(_PATH) else path + _PATH, query, ""))

    @property
    def _shown(self) -> str:
        """The endpoint in messages, without what may be secret."""
        return self.endpoint.partition("?")[0]

    @property
    def _key(self) -> str:
        if self.api_key_env is None:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise UsageError(f"the environment variable {self.api_key_env}, which should hold the key, is not set")
        if not key.isascii() or not key.isprintable():
            raise UsageError(f"the environment variable {self.api_key_env} holds no key: it has odd characters")
        return key

    def check(self) -> None:
        """Check what can be without a request.

        Raises:
            UsageError: the environment variable of the key is not set.
        """
        _ = self._key

    def ask(self, prompt: str, read: Callable[[str], Value], stop: Event | None = None) -> Outcome[Value]:
        """Ask a question, again if need be.

        Args:
            prompt: the question.
            read: makes something of the answer; a ValueError says that it is malformed, and the question is asked
                again at once.
            stop: when it is set, nothing is asked any more.

        Raises:
            SourceError: there is no server, or no question would get an answer, because of a wrong key, say.
        """
        stop, counts, wait = stop or Event(), Counter[str](), self.wait
        for remaining in reversed(range(self.retries + 1)):
            counts["requests"] += 1
            try:
                return Outcome(self._answer(prompt, read, counts), "", counts, True)
            except _Failed as error:
                failure = error
            if not failure.again or not remaining:
                break
            if stop.wait(0 if failure.answered else min(max(wait, failure.wait), self.longest_wait)):
                return Outcome(None, "stopped", counts, False)
            counts["retries"] += 1
            wait *= 2
        if failure.unreachable:
            raise SourceError(f"there is no language model at {self._shown}: {failure}")
        return Outcome(None, str(failure), counts, failure.answered)

    def _answer(self, prompt: str, read: Callable[[str], Value], counts: Counter[str]) -> Value:
        """What is read from the answer to one request."""
        reply = self._request(prompt)
        counts["prompt tokens"] += reply.prompt_tokens
        counts["completion tokens"] += reply.completion_tokens
        try:
            return read(reply.text)
        except ValueError as error:
            raise _Failed(f"the answer is malformed: {error}", answered=True) from None

    # One request

    @cached_property
    def _opener(self) -> OpenerDirector:
        return build_opener(_NoRedirects)

    def _request(self, prompt: str) -> Reply:
        key = self._key
        content = {**self.parameters, "model": self.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "tagweave"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = Request(self.endpoint, json.dumps(content).encode(), headers, method="POST")
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return _reply(self._read(response))
        except HTTPError as error:
            with error:
                raise self._refused(error, key) from None
        except TimeoutError:
            raise _Failed(f"no whole response in {self.timeout:g} seconds") from None
        except URLError as error:
            slow = isinstance(error.reason, TimeoutError)
            raise _Failed(f"it cannot be reached ({error.reason})", unreachable=not slow) from None
        except (HTTPException, OSError) as error:
            raise _Failed(f"the connection broke ({type(error).__name__})") from None

    def _read(self, response: Any) -> bytes:  # noqa: ANN401
        """The body, unless it is too long or comes too slowly."""
        parts: list[bytes] = []
        size, end = 0, time.monotonic() + self.timeout
        while part := response.read1(65536):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise _Failed(f"the response has more than {MOST_BYTES} bytes", again=False)
            if time.monotonic() > end:
                raise TimeoutError
        return b"".join(parts)

    def _refused(self, error: HTTPError, key: str) -> Exception:
        """What a status other than success means."""
        try:
            said = error.read(2000).decode("utf-8", "replace")
        except (HTTPException, OSError):
            said = ""
        said = " ".join((said.replace(key, "***") if key else said).split())[:300]
        message = f"status {error.code}" + (f", {said}" if said else "")
        if error.code in _BUSY or error.code >= 500:
            return _Failed(message, wait=_asked_wait(error.headers))
        if error.code in _THIS_QUESTION:
            return _Failed(message, again=False, answered=True)
        return SourceError(f"the language model at {self._shown} refuses: {message}")


def _reply(body: bytes) -> Reply:
    """The answer in a response."""
    try:
        response = json.loads(body)
        text = response["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _Failed("the response is no chat completion") from None
    if not isinstance(text, str):
        raise _Failed("the response has no text", answered=True)
    usage = response.get("usage")
    counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return Reply(text, prompt, completion)


def _asked_wait(headers: Message) -> float:
    """The seconds that a server asks to wait, given as such or as a time; 0 if it says nothing that can be read.

    >>> message = Message()
    >>> message["Retry-After"] = "7"
    >>> _asked_wait(message)
    7.0
    """
    value = str(headers.get("Retry-After", "")).strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
