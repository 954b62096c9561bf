"""The connection to a model's server: each reply is read up to a size and up to a moment.

DSPy's two clients, lm15 and LiteLLM, limit the time between two bytes and nothing else: a reply without end fills the
memory, and one that drips keeps its thread for ever. Here both send their requests over one `BoundedTransport`, which
reads a reply decompressed, within `LARGEST_REPLY` and the attempt's deadline, and then closes the connection. An
attempt can be cancelled from another thread, which closes its connection at once.
"""

from __future__ import annotations

import json
import socket
import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict
from functools import cache
from math import inf
from threading import Lock
from time import monotonic
from typing import Any
from urllib.request import getproxies, proxy_bypass

import dspy
import httpcore
import httpx
from dspy import lm15
from dspy.clients.backend_selection import select_backend
from dspy.clients.engines.lm15_engine import LM15Engine, timeouts_for
from dspy.clients.errors import error_boundary

from .diagnosis import MOST_TOKENS, OverlongReplyError

LARGEST_REPLY = 4 << 20
"""Bytes of a reply with its thinking, decompressed."""

_MOST_OBJECTS = 200_000
_attempt: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class Attempt:
    """One request and the connection that it uses now. Thread-safe."""

    def __init__(self, seconds: float) -> None:
        self.deadline = monotonic() + seconds
        self._lock = Lock()
        self._socket: Any = None

    def cancel(self) -> None:
        """End the attempt: its connection is shut down, and no other is used."""
        with self._lock:
            self.deadline = -inf
            if self._socket is not None:
                with suppress(OSError):  # it is closed already
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # beneath TLS

    def uses(self, used: Any) -> None:
        """The socket that is used from now on, or None."""
        with self._lock:
            self._socket = used


@contextmanager
def attempt(seconds: float = inf) -> Iterator[Attempt]:
    """What is sent in this context over a `BoundedTransport` is read within its limits, and within so many seconds."""
    made = Attempt(seconds)
    token = _attempt.set(made)
    try:
        yield made
    finally:
        _attempt.reset(token)


class Connection:
    """Sends a model's requests as DSPy would, but over a `BoundedTransport`.

    Args:
        lm: A model without cache, retries and callbacks. A subclass, or one with an engine of its own, connects as it
            likes.
    """

    def __init__(self, lm: dspy.LM) -> None:
        self._lm = lm
        self._lock, self._found = Lock(), False
        self._engine: LM15Engine | None = None
        self._streams = True  # until the server sends something else

    def complete(self, request: lm15.Request, tell: Callable[[Any], None] | None = None) -> lm15.Response:
        """The reply; ``tell`` gets its events as they come, if DSPy's own client is used and the server streams."""
        engine = self._native()
        if engine and _can_send(engine, request):
            with error_boundary(request.model, unexpected=True):
                if tell and self._streams:
                    try:
                        return _streamed(engine, request, tell)
                    except (lm15.UnsupportedFeatureError, _NoStreamError):
                        self._streams = False
                return engine.complete(request)
        if isinstance(self._lm.engine, str):
            _bound_litellm()
        # Usage, history and callbacks are the outer model's.
        with dspy.context(usage_tracker=None, disable_history=True, callbacks=[], send_stream=None):
            return self._lm(request)

    def _native(self) -> LM15Engine | None:
        """DSPy's own client, if it would choose it for this model."""
        with self._lock:
            if not self._found:
                if type(self._lm) is dspy.LM and isinstance(self._lm.engine, str):
                    with error_boundary(self._lm.model):
                        self._engine = _engine(self._lm)
                self._found = True
            return self._engine

    def __reduce__(self) -> Any:
        """In another process: connects anew."""
        return Connection, (self._lm,)


def _engine(lm: dspy.LM) -> LM15Engine | None:
    selection = select_backend(lm)
    if not selection.native:
        return None
    given, provider = selection.clients, selection.resolution.provider
    url = given.get("api_base") or given.get("base_url")
    config = lm15.RouterConfig(
        api_keys={provider: given["api_key"]} if "api_key" in given else None,
        base_urls={provider: url} if url else None,
        providers=tuple(registered.definition for registered in lm15.registered_providers()),
        transport=_Lm15Transport(timeouts_for(given.get("timeout")) or lm15.Timeouts()),
    )
    return LM15Engine(config, model_type=lm.model_type)


class _NoStreamError(Exception):
    """The server has sent no event of a stream."""


def _streamed(engine: LM15Engine, request: lm15.Request, tell: Callable[[Any], None]) -> lm15.Response:
    begun = False
    try:
        with lm15.ResponseStream(engine.stream(request), request) as stream:
            for event in stream.events():
                begun = begun or event.type == "delta"
                tell(event)
            return stream.response
    except lm15.StreamAssemblyError as error:
        if begun:
            raise
        raise _NoStreamError from error


def _can_send(engine: LM15Engine, request: lm15.Request) -> bool:
    try:
        engine.plan(request)
    except lm15.UnsupportedFeatureError:
        return False  # DSPy sends it with LiteLLM, or says why not
    return True


@cache
def _bound_litellm() -> None:
    """Have LiteLLM send over a `BoundedTransport`, by its settings for this, unless somebody uses them.

    Calls of others that use LiteLLM in this process are outside of an `attempt`, and have no other limits than before.
    """
    import litellm

    if litellm.client_session is None:  # OpenAI and Azure
        litellm.client_session = httpx.Client(transport=_shared(), follow_redirects=True)
    if getattr(litellm, "sync_transport", None) is None:  # all others
        litellm.sync_transport = _shared()


# --- transports ------------------------------------------------------------------------------------------------------


class BoundedTransport(httpx.BaseTransport):
    """A transport of `httpx` with proxies from the environment. Thread-safe.

    In an `attempt`, a reply is read whole and decompressed, and counts of tokens that no reply can have are left out.

    Raises:
        OverlongReplyError: the reply is larger than `LARGEST_REPLY`.
        httpx.TransportError: the connection failed, or the deadline passed.
    """

    def __init__(self) -> None:
        self._pools: dict[str, httpcore.ConnectionPool] = {}
        self._lock = Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        current = _attempt.get()
        if current:
            request.headers["accept-encoding"] = ", ".join(_DECODERS)
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        asked = httpcore.Request(
            request.method,
            target,
            headers=request.headers.raw,
            content=request.stream,
            extensions={**request.extensions},
        )
        with _httpx_errors(request):
            reply = self._pool(url).handle_request(asked)
            if not current or _is_stream(reply):
                return httpx.Response(reply.status, headers=reply.headers, stream=_Stream(reply, request, current))
            try:
                body = _read(reply)
            finally:
                current.uses(None)
                reply.close()
        headers = [(name, value) for name, value in reply.headers if name.lower() not in _OF_THE_BODY]
        return httpx.Response(reply.status, headers=headers, content=body)

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        proxies = getproxies()
        proxy = "" if proxy_bypass(url.host) else proxies.get(url.scheme) or proxies.get("all") or ""
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = httpcore.ConnectionPool(
                    proxy=_proxy(proxy) if proxy else None,
                    ssl_context=_ssl_context(),
                    max_connections=None,  # the endpoint limits them
                    keepalive_expiry=60.0,
                    network_backend=_Backend(),
                )
            return self._pools[proxy]


_shared = cache(BoundedTransport)
_ssl_context = cache(ssl.create_default_context)


def _proxy(address: str) -> httpcore.Proxy:
    proxy = httpx.Proxy(address if "://" in address else f"http://{address}")
    return httpcore.Proxy(str(proxy.url), auth=proxy.raw_auth, headers=proxy.headers.raw)


class _Lm15Transport:
    """`BoundedTransport` as lm15 uses a transport."""

    def __init__(self, timeouts: lm15.Timeouts) -> None:
        self._timeouts = asdict(timeouts)

    @contextmanager
    def stream(self, request: Any) -> Iterator[_Reply]:
        asked = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body,
            extensions={"timeout": self._timeouts},
        )
        reply = None
        try:
            reply = _shared().handle_request(asked)
            yield _Reply(reply)
        except httpx.TimeoutException as error:
            raise lm15.TimeoutError("timed out") from error
        except httpx.TransportError as error:
            raise lm15.TransportError(str(error) or type(error).__name__) from error
        finally:
            if reply is not None:
                reply.close()


class _Reply:
    """A reply as lm15 reads it."""

    http_version = "HTTP/1.1"

    def __init__(self, reply: httpx.Response) -> None:
        self.status, self.reason, self._reply = reply.status_code, reply.reason_phrase, reply
        self.headers = [(name, value) for name, value in reply.headers.multi_items()]

    def read(self) -> bytes:
        return self._reply.read()

    def __iter__(self) -> Iterator[bytes]:
        return iter((self._reply.content,)) if self._reply.is_stream_consumed else self._reply.iter_raw()


class _Stream(httpx.SyncByteStream):
    """A body that is read as it comes; in an attempt, up to `LARGEST_REPLY`."""

    def __init__(self, reply: httpcore.Response, request: httpx.Request, attempt: Attempt | None) -> None:
        self._reply, self._request, self._attempt = reply, request, attempt

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        with _httpx_errors(self._request):
            for chunk in self._reply.iter_stream():
                size += len(chunk)
                if self._attempt and size > LARGEST_REPLY:
                    raise _overlong()
                yield chunk

    def close(self) -> None:
        if self._attempt:
            self._attempt.uses(None)
        self._reply.close()


_ERRORS = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.TimeoutException, httpx.ReadTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ProxyError, httpx.ProxyError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
    (httpcore.NetworkError, httpx.ReadError),
)


@contextmanager
def _httpx_errors(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except tuple(ours for ours, _ in _ERRORS) as error:
        kind = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        raise kind(str(error), request=request) from error


# --- reading ---------------------------------------------------------------------------------------------------------


class _Socket(httpcore.NetworkStream):
    """A connection on which no operation lasts longer than the attempt."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._use()
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._use()
        self._inner.write(buffer, _left(timeout))

    def _use(self) -> None:
        if current := _attempt.get():
            current.uses(self._inner.get_extra_info("socket"))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Socket(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """The network, whose connections are `_Socket`."""

    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        return _Socket(self._inner.connect_tcp(host, port, _left(timeout), local_address, socket_options))


def _left(timeout: float | None) -> float | None:
    """Seconds that an operation may last."""
    current = _attempt.get()
    left = current.deadline - monotonic() if current else inf
    if left <= 0:
        raise httpcore.ReadTimeout("timed out")
    shortest = min(left, inf if timeout is None else timeout)
    return None if shortest == inf else shortest


_OF_THE_BODY = (b"content-encoding", b"content-length", b"transfer-encoding")
_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "deflate": zlib.decompressobj,
}


def _header(reply: httpcore.Response, name: bytes) -> str:
    return next((v.decode("latin-1").strip().lower() for n, v in reply.headers if n.lower() == name), "")


def _is_stream(reply: httpcore.Response) -> bool:
    """Whether the body is read as it comes: server-sent events that are not compressed."""
    plain = _header(reply, _OF_THE_BODY[0]) in ("", "identity")
    return reply.status < 400 and plain and _header(reply, b"content-type").startswith("text/event-stream")


def _overlong() -> OverlongReplyError:
    return OverlongReplyError(f"a reply of more than {LARGEST_REPLY >> 20} MB")


def _read(reply: httpcore.Response) -> bytes:
    """The whole body, decompressed."""
    encoding = _header(reply, _OF_THE_BODY[0])
    if encoding not in ("", "identity", *_DECODERS):
        raise httpcore.RemoteProtocolError(f"the reply is compressed with {encoding[:20]!r}, which was not asked for")
    decoder = _DECODERS[encoding]() if encoding in _DECODERS else None
    body = bytearray()
    for chunk in reply.iter_stream():
        try:
            body += decoder.decompress(chunk, LARGEST_REPLY + 1 - len(body)) if decoder else chunk
        except zlib.error as error:
            raise httpcore.RemoteProtocolError(f"the reply is not valid {encoding}") from error
        if len(body) > LARGEST_REPLY:
            raise _overlong()
    return _readable(bytes(body))


def _readable(body: bytes) -> bytes:
    """The body without counts of tokens that no reply can have: DSPy would refuse the whole reply for them."""
    try:
        if body.count(b"{") + body.count(b"[") > _MOST_OBJECTS:  # each may take a hundred times its bytes
            raise OverlongReplyError(f"a reply of more than {_MOST_OBJECTS:,} objects")
        reply = json.loads(body)
    except ValueError:
        return body  # refused where it is read, or a web page
    except RecursionError:
        return b"nested too deep"
    odd = [name for name in ("usage", "usageMetadata") if isinstance(reply, dict) and not _is_sound(reply.get(name))]
    if not odd:
        return body
    return json.dumps({name: value for name, value in reply.items() if name not in odd}).encode()


def _is_sound(usage: Any) -> bool:
    """Whether each count of tokens is one, at any depth; None for an unknown count."""
    return usage is None or (isinstance(usage, dict) and all(_is_count(name, value) for name, value in usage.items()))


def _is_count(name: str, value: Any) -> bool:
    detailed = "detail" in (name := name.lower())
    if "token" in name and not detailed:
        return value is None or (type(value) is int and 0 <= value <= MOST_TOKENS)
    if detailed and not isinstance(value, list):
        return _is_sound(value)
    return all(_is_sound(each) for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))
