"""Model servers of one's own machine, as people have them: on loopback, with what each does to schemas, long prompts,
thinking and parallel requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[str, str] | dict[str, Any]
"""The content of a reply and why it ended; or the body of an error 400."""


class Local:
    """Answers ``POST /v1/chat/completions``; ``requests`` holds what was asked.

    Args:
        reply: From the body of a request, and the number of requests so far, makes an answer.
        window: Tokens of the longest prompt; the beginning of a longer one is dropped without a word.
    """

    def __init__(self, reply: Callable[[dict[str, Any], int], Answer], window: int = 1_000_000) -> None:
        self.reply, self.window = reply, window
        self.requests: list[dict[str, Any]] = []
        self.most = self._open = 0  # requests at a time
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answered(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.requests.append(asked)
            self._open += 1
            self.most, n = max(self.most, self._open), len(self.requests)
        try:
            answer = self.reply(asked, n)
        finally:
            with self._lock:
                self._open -= 1
        if isinstance(answer, dict):
            return 400, answer
        content, finish = answer
        words = sum(len(message["content"].split()) for message in asked["messages"])
        usage = {"prompt_tokens": min(words, self.window), "completion_tokens": len(content.split())}
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
        return 200, {
            "id": f"chatcmpl-{n}",
            "object": "chat.completion",
            "created": 0,
            "model": "local",
            "choices": [choice],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        local = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_POST(self) -> None:
                status, body = local._answered(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
