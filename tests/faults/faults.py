"""Faults of endpoints, by name in `FAULTS`; each acts on one request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from time import time
from typing import Any

from .completions import content_of, encode, with_content
from .exchange import Exchange, head

MEGABYTE = 1 << 20
_VALUE = re.compile(r'(?:\]\]\n|": )')  # after it a field begins, in either dialect
_COMPLETED = "\n\n[[ ## completed ## ]]"


@dataclass(frozen=True)
class Fault:
    """A fault: ``act`` applies it to a request."""

    name: str
    act: Callable[[Exchange], None]


# --- error responses ----------------------------------------------------------------------------------------------


def error(name: str, status: int, message: str, code: str | int | None = None, **others: Any) -> Fault:
    """An error in OpenAI's format."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code, **others}}
    return Fault(name, lambda exchange: exchange.reply(body, status))


def rate_limited(name: str, retry_after: Callable[[], str] | None) -> Fault:
    """429; ``retry_after`` makes the header when the reply is sent."""
    body = {"error": {"message": "Rate limit reached.", "type": "requests", "code": "rate_limit_exceeded"}}

    def act(exchange: Exchange) -> None:
        exchange.reply(body, 429, {"Retry-After": retry_after()} if retry_after else {})

    return Fault(name, act)


def unavailable(name: str, status: int, page: bytes, **headers: str) -> Fault:
    """The page of a proxy whose backend is down."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Fault(name, lambda exchange: exchange.reply(page, status, named, "text/html"))


def _rejected_key(exchange: Exchange) -> None:
    message = f"Incorrect API key provided: {exchange.authorization.removeprefix('Bearer ')}."
    exchange.reply({"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}}, 401)


# --- time and connections --------------------------------------------------------------------------------------------


def slow(seconds: float = 30.0) -> Fault:
    """A valid reply that comes late."""

    def act(exchange: Exchange) -> None:
        exchange.wait(seconds)
        exchange.reply(exchange.completion())

    return Fault("slow", act)


def drip(every: float = 1.0) -> Fault:
    """The headers at once, then single bytes that never become a reply."""

    def act(exchange: Exchange) -> None:
        exchange.send(head(MEGABYTE))
        for _ in range(MEGABYTE):
            exchange.send(b" ")
            exchange.wait(every)

    return Fault("drip", act)


def _reset_in_body(exchange: Exchange) -> None:
    data = encode(exchange.completion())
    exchange.send(head(len(data)) + data[: len(data) // 2])
    exchange.wait(0.05)  # a reset throws away what has not been read yet
    exchange.close(reset=True)


def dies(seconds: float = 2.0) -> Fault:
    """The server drops every connection and stops listening, then comes back on the same port."""
    return Fault("dies", lambda exchange: exchange.die(seconds))


# --- replies that are none -------------------------------------------------------------------------------------------


def _said(name: str, content: Callable[[str], str | None], finish: str = "stop", **others: Any) -> Fault:
    """A reply made from the one that should have come."""

    def act(exchange: Exchange) -> None:
        sound = exchange.completion()
        exchange.reply(with_content(sound, content(content_of(sound)), finish, **others))

    return Fault(name, act)


def _bytes(name: str, data: Callable[[dict[str, Any]], bytes], type: str = "application/json") -> Fault:
    """Other bytes instead of the reply."""
    return Fault(name, lambda exchange: exchange.reply(data(exchange.completion()), type=type))


def _half(completion: dict[str, Any]) -> bytes:
    data = encode(completion)
    return data[: len(data) // 2]


def _cut(content: str) -> str:
    """All fields, the last one without its end."""
    content, _, _ = content.partition(_COMPLETED)
    last = [mark.end() for mark in _VALUE.finditer(content)][-1:] or [0]
    return content[: (last[0] + len(content)) // 2]


def _endless_field(content: str) -> str:
    """A reply that repeats itself in its first field."""
    return content[: _in_first_word(content)] + _ENDLESS


def _as_json_in_prose(content: str) -> str:
    fields = re.findall(r"^\[\[ ## (\w+) ## \]\]\n(.*?)\n\n(?=\[\[ ## )", content + "\n\n", re.MULTILINE | re.DOTALL)
    text = json.dumps(dict(fields), ensure_ascii=False) if fields else content
    return f"Sure! Here is what you asked for:\n\n```json\n{text}\n```\n\nLet me know if {{you}} need anything else."


def _spoilt(completion: dict[str, Any], character: str) -> dict[str, Any]:
    """The same reply with an extra character in the first word of a field."""
    content = content_of(completion)
    at = _in_first_word(content)
    return with_content(completion, content[:at] + character + content[at:])


def _in_first_word(content: str) -> int:
    word = re.search(_VALUE.pattern + r"\W*[^\W\d_]", content)
    return word.end() if word else 0


_PROSE = "I have looked at this with care. On the whole it seems likely, although the sources do not say so outright."
_ENDLESS = "and so on, " * (MEGABYTE // 11 + 1)
_PAGE = b"<html><head><title>Bad Gateway</title></head><body><h1>The server made no reply.</h1></body></html>"
_TOO_LONG = {
    "object": "error",
    "message": "This model's maximum context length is 1000 tokens. However, you requested 2200 tokens (2000 in the "
    "messages, 200 in the completion). Please reduce the length of the messages or completion.",
    "type": "BadRequestError",
    "code": 400,
}
_FILTERED = {"hate": {"filtered": False, "severity": "safe"}, "violence": {"filtered": True, "severity": "medium"}}

FAULTS = {
    fault.name: fault
    for fault in (
        rate_limited("429", lambda: "1"),
        rate_limited("429-date", lambda: formatdate(time() + 2, usegmt=True)),
        rate_limited("429-absurd", lambda: "86400"),
        rate_limited("429-bare", None),
        error("429-quota", 429, "You exceeded your current quota.", "insufficient_quota", type="insufficient_quota"),
        error("500", 500, "The server had an error.", type="server_error"),
        unavailable("502", 502, _PAGE),
        unavailable("503", 503, _PAGE, Retry_After="1"),
        Fault("401-echo", _rejected_key),
        Fault("context-vllm", lambda exchange: exchange.reply(_TOO_LONG, 400)),
        error(
            "context-llama",
            400,
            "the request exceeds the available context size, try increasing it",
            400,
            type="exceed_context_size_error",
        ),
        error(
            "filter-400-azure",
            400,
            "The prompt triggered the content management policy.",
            "content_filter",
            type=None,
            param="prompt",
            innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": _FILTERED},
        ),
        slow(),
        Fault("hang", lambda exchange: exchange.wait(float(10**6))),
        drip(),
        Fault("reset", lambda exchange: exchange.close(reset=True)),
        Fault("reset-in-body", _reset_in_body),
        dies(),
        _bytes("truncated", _half),
        _said("empty", lambda _: ""),
        _said("null", lambda _: None),
        _said("refusal", lambda _: None, refusal="I'm sorry, but I can't help with that."),
        _said("filter", lambda _: "", "content_filter"),
        _said("prose", lambda _: _PROSE),
        _said("prose-around-json", _as_json_in_prose),
        _said("1mb", lambda content: f"{content}\n{_ENDLESS}", "length"),
        _said("1mb-in-field", _endless_field, "length"),
        _said("1mb-braces", lambda _: "{" * MEGABYTE, "length"),
        _said("length", _cut, "length"),
        _bytes(
            "latin-1",
            lambda sound: encode(_spoilt(sound, "é")).decode().encode("latin-1", "replace"),
            "application/json; charset=utf-8",
        ),
        _bytes("lone-surrogate", lambda sound: json.dumps(_spoilt(sound, "\ud800")).encode()),
        _bytes("utf-16", lambda sound: encode(_spoilt(sound, "é")).decode().encode("utf-16")),
        _bytes("bom", lambda sound: b"\xef\xbb\xbf" + encode(sound)),
        _bytes("usage-as-text", lambda sound: encode({**sound, "usage": {"prompt_tokens": "7", "total_tokens": "9"}})),
        _bytes("no-usage", lambda sound: encode({key: value for key, value in sound.items() if key != "usage"})),
        _bytes("unknown-fields", lambda sound: encode({**sound, "x_provider": {"cached": [1, None]}, "usage2": 3})),
    )
}
"""All faults, with durations for runs; tests use shorter ones (`slow`, `drip`, `dies`)."""
