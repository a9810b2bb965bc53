"""A language model for tests: an HTTP server on this machine that answers as it is told."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


@dataclass
class Response:
    """What the server sends."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pieces: int = 1


def completion(content: object, **response: Any) -> Response:  # noqa: ANN401
    """A chat completion; what is no text is written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    body = {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": USAGE}
    return Response(json.dumps(body).encode(), **response)


@dataclass
class ChatServer:
    """A running server.

    Args:
        answer: the response to a prompt; the second argument is how many requests came before.
    """

    answer: Callable[[str, int], Response]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][0]["content"] for request in self.requests]

    def begin(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> int:
        """Note a request; the answer is its number."""
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(dict(handler.headers))
            self.paths.append(handler.path)
            self.times.append(time.monotonic())
            self.open.add(number)
            self.most_at_once = max(self.most_at_once, len(self.open))
        return number

    def end(self, number: int) -> None:
        """Count a request no more: who has the last piece of a response may send the next one."""
        with self.lock:
            self.open.discard(number)


@contextmanager
def chat_server(answer: Callable[[str, int], Response]) -> Iterator[ChatServer]:
    """A server that runs while the block does."""
    state = ChatServer(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            number = state.begin(self, request)
            try:
                self.respond(state.answer(request["messages"][0]["content"], number), number)
            except OSError:
                pass  # the client has gone
            finally:
                state.end(number)

        def respond(self, response: Response, number: int) -> None:
            size = -(-len(response.body) // response.pieces)
            if response.pieces == 1:
                time.sleep(response.delay)
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            for start in range(0, len(response.body), size or 1):
                if response.pieces > 1:
                    time.sleep(response.delay)
                if start + size >= len(response.body):
                    state.end(number)
                self.wfile.write(response.body[start : start + size])
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
