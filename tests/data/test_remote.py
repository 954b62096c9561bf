"""An index behind a server that does not keep to the protocol."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from polyhop.data.errors import IndexFault
from polyhop.data.passages import Reason
from polyhop.data.remote import RemoteIndex

HIT: dict[str, Any] = {
    "passage": {"id": "a", "title": "Ada", "text": "Ada wrote odes."},
    "score": 1.5,
    "rank": 1,
    "reason": None,
}
REASON: dict[str, Any] = {"via": "named", "name": "ada", "source": None, "words": []}


class Server(ThreadingHTTPServer):
    """Replies what it is told: the status, the headers and the parts of the body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.says(b'{"passages": 3}')

    def says(self, *body: bytes, status: int = 200, endless: bool = False, **headers: str) -> None:
        self.status, self.body, self.endless, self.headers = status, body, endless, headers

    def hits(self, *hits: Any) -> None:
        self.says(json.dumps({"hits": hits}).encode())


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        try:
            for part in self.server.body:
                self.wfile.write(part)
            while self.server.endless:
                self.wfile.write(self.server.body[-1])
        except ConnectionError:
            pass

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def server(running: Server) -> Server:
    running.says(b'{"passages": 3}')
    return running


@pytest.fixture
def index(server: Server) -> RemoteIndex:
    return RemoteIndex(f"http://127.0.0.1:{server.server_port}")


def refused(ask: Callable[[], object], expected: str) -> None:
    with pytest.raises(IndexFault, match=expected) as error:
        ask()
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("passages", ['"3"', "-1", "1.5", "null", "NaN", "1e999", "true", "[3]", "1" * 5000])
def test_an_index_without_a_size(passages: str, server: Server) -> None:
    server.says(f'{{"passages": {passages}}}'.encode())
    refused(lambda: RemoteIndex(f"http://127.0.0.1:{server.server_port}"), "something else|not a polyhop server")


@pytest.mark.parametrize("address", ["http://a:99999", "http://[", "http://\x00", "http://a b", "http://a\x1b[2J"])
def test_an_address_that_is_none(address: str) -> None:
    refused(lambda: RemoteIndex(address), "is not the address|cannot be reached")


ODD: list[Any] = ["x", [], {"a": 1}, True, -1]
NO_TEXTS: dict[str, Any] = {"text": 1, "title": [], "id": {}}


@pytest.mark.parametrize(
    "change",
    [
        *({name: odd} for name in HIT for odd in ODD),
        *({"score": odd} for odd in (None, float("nan"), float("inf"), 10**400)),
        *({"passage": {**HIT["passage"], name: odd}} for name, odd in NO_TEXTS.items()),
        *({"reason": {**REASON, name: odd}} for name in REASON for odd in (1, [1])),
    ],
)
def test_a_hit_that_is_none(change: dict[str, Any], server: Server, index: RemoteIndex) -> None:
    server.hits(HIT, {**HIT, "reason": REASON})
    assert [hit.passage.title for hit in index.search("Ada", 2)] == ["Ada", "Ada"]
    if change == {"score": -1}:
        return  # which is a score
    server.hits({**HIT, **change})
    refused(lambda: index.search("Ada", 5), "something else than passages|not a polyhop server")


def test_what_cannot_be_written_is_replaced(server: Server, index: RemoteIndex) -> None:
    server.hits({**HIT, "reason": {"via": "link", "name": "\ud800", "source": "\ud800", "words": ["\ud800"]}})
    (hit,) = index.search("Ada", 1)
    assert hit.reason == Reason("link", "\ufffd", "\ufffd", ("\ufffd",))


def test_replies_that_are_none(server: Server, index: RemoteIndex) -> None:
    for body in (b"", b"[]", b"null", b'{"hits": 3}', b'{"hits": [1]}', b'{"hits": null}', b"{}", b"\xff", b"<html>"):
        server.says(body)
        refused(lambda: index.search("Ada", 5), "something else|not a polyhop server|refuses")
    server.hits(HIT, HIT, HIT)
    refused(lambda: index.search("Ada", 2), "3 passages instead of 2")
    server.says(b"[" * 150_000)
    refused(lambda: index.search("Ada", 5), "not a polyhop server")
    server.says(b'{"text": 1}')
    refused(lambda: index.passages(["a"]), "something else than passages")
    server.says(b"{}", status=302, location="http://127.0.0.1:9/")
    refused(lambda: index.search("Ada", 5), "status 302")
    for message in ("\x1b[2J\n" * 9, "x" * 100_000, ["a"], None):
        server.says(json.dumps({"error": {"message": message}}).encode(), status=500)
        refused(lambda: index.search("Ada", 5), "refuses")


def test_replies_without_end(server: Server, index: RemoteIndex) -> None:
    server.says(b" " * (1 << 20), endless=True)
    refused(lambda: index.search("Ada", 5), "more than 32 MB")
    server.says(b'{"hits": [', b"{}," * 100_000, endless=True)
    refused(lambda: index.search("Ada", 5), "200,000 objects")
    server.says(gzip.compress(bytes(64 << 20)), content_encoding="gzip")
    refused(lambda: index.search("Ada", 5), "compresses")
