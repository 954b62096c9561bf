"""A local OpenAI-compatible endpoint, answered by the embedded lexical engine, that injects faults.

with Server([(First(1), FAULTS["429"])]) as server:
    lm = dspy.LM("openai/lexical-behind-http", api_base=server.url, api_key="any")
    ...
print(server.injected, server.requests)
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic, sleep
from typing import Any, Self

from .completions import completion_of, encode
from .exchange import Exchange, HungUp, response
from .faults import Fault
from .schedule import Asked, Schedule

_HOST = "127.0.0.1"
ANSWER = "[[ ## reasoning ## ]]\nCanned.\n[[ ## answer ## ]]\n42\n[[ ## confidence ## ]]\n0.9\n[[ ## completed ## ]]"
"""A reply of the agents that answer."""


class Server:
    """Answers ``POST /v1/chat/completions`` on loopback, over persistent connections.

    Args:
        faults: Schedules and faults; the first schedule that hits a request counts.
        latency: Seconds from the end of a request to its reply.
        canned: A fixed reply instead of the engine's.
    """

    def __init__(
        self, faults: Iterable[tuple[Schedule, Fault]] = (), *, latency: float = 0.0, canned: str = ""
    ) -> None:
        self.requests = 0
        self.injected: Counter[str] = Counter()
        self._faults, self._latency = tuple(faults), latency
        self._canned = response(encode(completion_of("canned", canned))) if canned else b""
        self._seen: Counter[str] = Counter()
        self._first = 0.0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener = _Listener(self, 0)
        self.port: int = self._listener.server_address[1]
        self.url = f"http://{_HOST}:{self.port}/v1"

    def __enter__(self) -> Self:
        self._listener.listen()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed.set()
            self._listener.stop()

    def die(self, seconds: float) -> None:
        """Drop all connections and refuse new ones for some seconds."""
        with self._lock:
            if self._closed.is_set() or not self._listener.listening:
                return
            self._listener.stop()
            self._listener = _Listener(self, self.port)  # bound, to keep the port, but not listening
        threading.Thread(target=self._come_back, args=(seconds,), daemon=True).start()

    def _come_back(self, seconds: float) -> None:
        self._closed.wait(seconds)
        with self._lock:
            if not self._closed.is_set():
                self._listener.listen()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Send the reply to a request, or apply a fault.

        Raises:
            HungUp: the connection is closed.
        """
        due = monotonic() + self._latency
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        exchange = Exchange(request.connection, body, request.headers.get("authorization", ""), self.die)
        if (request.command, request.path) != ("POST", "/v1/chat/completions"):
            return exchange.reply(_error(f"there is no {request.command} {request.path}"), 404)
        try:
            fault = self._fault(exchange)
            data = b"" if fault else self._canned or response(encode(exchange.completion()))
            sleep(max(0.0, due - monotonic()))
            return fault.act(exchange) if fault else exchange.send(data)
        except (ValueError, KeyError, TypeError) as error:  # not a chat request, or none that the engine reads
            return exchange.reply(_error(f"{type(error).__name__}: {error}"), 400)

    def _fault(self, exchange: Exchange) -> Fault | None:
        """The fault that hits this request."""
        prompt = exchange.prompt if self._faults else ""
        with self._lock:
            now = monotonic()
            self._first = self._first or now
            self.requests += 1
            asked = Asked(self.requests, prompt, self._seen[prompt], now - self._first)
            self._seen[prompt] += 1
            fault = next((fault for schedule, fault in self._faults if schedule(asked)), None)
            if fault:
                self.injected[fault.name] += 1
            return fault


class _Connection(BaseHTTPRequestHandler):
    """Serves a connection until one side closes it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_POST(self) -> None:
        try:
            self.server.answer(self)
        except HungUp:
            self.close_connection = True

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _Listener(ThreadingHTTPServer):
    """The listening socket and its connections. Bound at once; `listen` accepts, until `stop`."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, server: Server, port: int) -> None:
        super().__init__((_HOST, port), _Connection, bind_and_activate=False)
        self.answer, self.listening = server.answer, False
        self._open: set[socket.socket] = set()
        self.server_bind()

    def listen(self) -> None:
        self.server_activate()
        self.listening = True
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Close everything, as after a kill of the process."""
        if self.listening:
            self.shutdown()
        self.server_close()
        for connection in self._open.copy():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients hang up."""

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        request.close()  # no shutdown first: a reset connection must not end in order


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
