"""Requests as text, checks of replies, and errors that say what to do.

`checked` rejects replies that no adapter can use, `diagnosed` gives the error of a client the class and the code that
say what to do about it, and `explain` puts an error into one line, with advice and without keys. The class of an error
says whether DSPy repeats the request; its code, besides those of DSPy "refused", "overlong_reply", "cut_reply" and
"empty_reply", says why it failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from string import digits, punctuation
from typing import Any, NamedTuple

from dspy import (
    AdapterParseError,
    ContextWindowExceededError,
    DSPyError,
    LMError,
    LMInvalidRequestError,
    LMProviderError,
    LMServerError,
    lm15,
)

from ..data.errors import PolyhopError
from .costs import record_incident
from .secrets import without_secrets

LONGEST_REPLY = 20_000
"""Characters after the thinking. A longer reply comes from a runaway model, and parsing it would take minutes."""

_LONGEST_MESSAGE = 250  # characters: an error may be a whole page, or quote a whole reply
_MARKS = (digits + punctuation).encode()
_COMPLETED = "[[ ## completed ## ]]"  # the end of a reply to DSPy's `ChatAdapter`


class ModelError(PolyhopError):
    """A language model is unknown, cannot be reached, or gives unusable replies."""


class CutReplyError(LMProviderError):
    """The reply was cut at ``max_tokens``, so its last field is incomplete. ``reply`` is what there is of it, without
    the thinking."""

    default_code = "cut_reply"
    reply = ""


# --- requests and replies as text -------------------------------------------------------------------------------------


class Message(NamedTuple):
    """One message of a request."""

    role: str
    text: str


def read_request(request: lm15.Request) -> tuple[str, tuple[Message, ...]]:
    """The system prompt, and the messages in order: demos, then the task."""
    return _joined(request.system), tuple(
        Message(str(message.role), _joined(message.parts)) for message in request.messages
    )


def prompt_text(request: lm15.Request) -> str:
    system, messages = read_request(request)
    return system + "".join(message.text for message in messages)


def respond(request: lm15.Request, reply: str) -> lm15.Response:
    """A response whose usage counts four characters per token."""
    return lm15.Response(
        id=blake2b(reply.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        model=request.model,
        message=lm15.Message.assistant(reply),
        usage=lm15.Usage(input_tokens=len(prompt_text(request)) // 4, output_tokens=len(reply) // 4),
        finish_reason="stop",
    )


def as_events(response: lm15.Response) -> Iterator[Any]:
    """A finished reply as the events of a stream, its text word by word, as DSPy's stream listeners expect it."""
    for event in lm15.response_to_events(response):
        delta = getattr(event, "delta", None)
        if isinstance(delta, lm15.TextDelta) and not delta.logprobs:
            for word in re.findall(r"\s*\S+|\s+", delta.text):
                yield replace(event, delta=replace(delta, text=word))
        else:
            yield event


def estimated_tokens(text: str) -> float:
    """About how many tokens a text has: four letters or spaces each, two digits or marks, three bytes of what is beyond
    ASCII. Tokenizers make fewer of most texts.
    """
    ascii = text.encode("ascii", "ignore")
    beyond = len(text.encode("utf-8", "replace")) - len(ascii)
    plain = len(ascii.translate(None, _MARKS))
    return plain / 4 + (len(ascii) - plain) / 2 + beyond / 3


def _joined(content: Any) -> str:
    """The text of a system prompt, or of the parts of a message."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else getattr(part, "text", None) or "" for part in content or ())


# --- checks -----------------------------------------------------------------------------------------------------------

_BLOCK = re.compile(r"<(think|thinking)(?:\s[^<>/]*)?>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_CLOSED = re.compile(r".*</think(?:ing)?\s*>", re.IGNORECASE | re.DOTALL)
_FIRST = {  # thinking of Magistral, Seed-OSS and gpt-oss, which a reply can only begin with
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|channel|>analysis": "<|channel|>final<|message|>",
}


def without_thinking(reply: str) -> str:
    """A reply without ``<think>`` and ``<thinking>`` blocks, so that no draft in one is an answer.

    A block ends at the first tag that closes its own name; one that is not closed lasts to the end. Before a closing
    tag that nothing opened, all is thinking: chat templates of some models open it in the prompt. A reply that begins
    with another model's mark of thinking is thinking up to the last mark of its end.
    """
    for opening, closing in _FIRST.items():
        if reply.lstrip().startswith(opening):
            reply = reply.rpartition(closing)[2] if closing in reply else ""
    reply = _BLOCK.sub(" ", reply)  # a space: what stood on both sides does not become one marker
    closed = _CLOSED.match(reply)
    return reply[closed.end() :] if closed else reply


def checked(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """The response with valid Unicode, without the thinking; raises an `LMError` if adapters cannot use it."""
    parts, model = response.message.parts, request.model
    refusal = _refusal(response)
    if refusal is not None or response.finish_reason == "content_filter":
        reason = " ".join(without_secrets(refusal or "stopped by the provider's content filter").split())[:160]
        raise LMProviderError(f"the model refused to answer: {reason}", model=model, code="refused")
    whole = _text(response)
    text = without_thinking(whole)
    if len(text) > LONGEST_REPLY:
        raise LMProviderError(f"a reply of {len(text):,} characters", model=model, code="overlong_reply")
    if response.finish_reason == "length" and _COMPLETED not in text:
        cut = CutReplyError("the reply was cut at max_tokens", model=model)
        cut.reply = _sound(text)
        raise cut
    others = tuple(part for part in parts if not isinstance(part, lm15.TextPart | lm15.ThinkingPart))
    if not text.strip() and not others:
        what = "has no answer after its thinking" if whole.strip() else "is empty"
        raise LMServerError(f"the reply {what}", model=model, code="empty_reply")  # asking again may help
    text = _sound(text)
    if text == whole:
        return response
    return replace(response, message=replace(response.message, parts=(lm15.TextPart(text), *others)))


def _sound(text: str) -> str:
    """A text without lone surrogates, which neither files nor further requests can contain."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refusal(response: lm15.Response) -> str | None:
    """The model's refusal; from LiteLLM's fields where DSPy does not look, as the reply would seem empty without it."""
    for part in response.message.parts:
        if isinstance(part, lm15.RefusalPart):
            return str(part.text)
    data = response.provider_data if isinstance(response.provider_data, dict) else {}
    for choice in data.get("choices") or ():
        fields = (choice.get("message") or {}).get("provider_specific_fields") or {}
        if isinstance(text := fields.get("refusal"), str) and text:
            return text
    return None


def estimate_usage(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """The response with token counts: four characters per token where the server reports none."""
    usage, text = response.usage, _text(response)
    tokens_in, tokens_out = usage.input_tokens or 0, usage.output_tokens or 0
    if tokens_in > 0 and (tokens_out > 0 or not text):
        return response
    record_incident("tokens estimated")
    tokens_in = tokens_in or -(-len(prompt_text(request)) // 4)
    tokens_out = tokens_out or -(-len(text) // 4)
    total = tokens_in + tokens_out
    return replace(response, usage=replace(usage, input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=total))


def _text(response: lm15.Response) -> str:
    """A reply without the parts that the provider calls thinking."""
    return _joined([part for part in response.message.parts if not isinstance(part, lm15.ThinkingPart)])


# --- errors -----------------------------------------------------------------------------------------------------------

# A server refuses what is too long in words of its own: what it is, and that it is too much, in any order.
_WHAT = r"\b(?:prompts?|inputs?|contexts?|messages?|requests?|sequences?|tokens?)\b"
_TOO_MUCH = (
    r"exceed|longer than|larger than|too (?:long|large|many|big)|less than|<=|at most|maximum|limit|reduce|overflow"
)
_TOO_LONG = re.compile(
    rf"context[ _](?:length|window|size|limit)|{_WHAT}.{{0,80}}?(?:{_TOO_MUCH})|(?:{_TOO_MUCH}).{{0,80}}?{_WHAT}"
)
_NAMES = re.compile(r"[\w.]*(?:Error|Exception)\b|\W")  # all that LiteLLM leaves of some messages


def diagnosed(error: LMError) -> LMError:
    """The error as the class that says what to do, with a short message, the server's ``retry_after``, and without the
    errors that caused it: they contain keys, whole replies and whole pages."""
    text = f"{error.provider_code} {(error.message or '')[:10_000]}".lower()
    retry_after = next(filter(None, map(_retry_after, causes(error))), None)
    # The first paragraph; redacted before it is cut, or a partial key may be left.
    message = re.sub(r"<[^<>]*>", " ", without_secrets(error.message or "")).strip().partition("\n\n")[0]
    message = " ".join(message[:10_000].split())[:_LONGEST_MESSAGE] or f"HTTP status {error.status}"
    result = error
    is_too_large = 413 in {getattr(cause, "status_code", error.status) for cause in causes(error)}
    # DSPy loses vLLM's message; a shorter prompt costs little if it was something else.
    is_bare = error.status == 400 and not _NAMES.sub("", error.message or "")
    is_refused = isinstance(error, LMInvalidRequestError)
    is_refused |= isinstance(error, LMServerError) and "context" in text  # what llama.cpp takes it for
    if is_too_large or (is_refused and (is_bare or _TOO_LONG.search(text))):
        result = _as(ContextWindowExceededError, error, message)
    elif type(error) is LMProviderError and 200 <= (error.status or 0) < 300:
        result = _as(LMServerError, error, "the server's reply is not a completion")  # damaged, or a proxy's page
    if result is error:
        result.message, result.args = message, (f"[{error.model}] {message}" if error.model else message,)
    result.retry_after = retry_after
    result.__cause__ = result.__context__ = None
    return result


def _as(kind: type[LMError], error: LMError, message: str) -> LMError:
    return kind(message=message, model=error.model, provider=error.provider, status=error.status)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    """Seconds; also from the headers that LiteLLM keeps where DSPy does not look."""
    value = (getattr(error, "litellm_response_headers", None) or {}).get("retry-after") or ""
    return getattr(error, "retry_after", None) or (float(value) if value.replace(".", "", 1).isdecimal() else None)


@contextmanager
def model_errors() -> Iterator[None]:
    """Turn errors of models into a `ModelError` that says what to do."""
    try:
        yield
    except (LMError, AdapterParseError) as error:
        raise ModelError(explain(error)) from error


def explain(error: BaseException) -> str:
    """An error in one line, with advice, without keys."""
    if isinstance(error, AdapterParseError):
        fields = ", ".join(error.signature.output_fields)
        reply = " ".join(without_secrets(str(error.lm_response)).split()) or "nothing"
        return (
            f"the model's reply to {error.signature.__name__} does not have the expected fields ({fields}): "
            f"{reply[:160]!r}. Try a more capable model for this role."
        )
    text = without_secrets(str(error)).strip()
    if isinstance(error, DSPyError):  # advice for programmers and the provider's details follow its first line
        return text.partition("\n")[0][:600] + _ADVICE.get(error.code or "", "")
    text = " ".join(text.split())
    if len(text) > 2_000:  # its middle is left out, since advice stands at the end
        text = f"{text[:1000]} ... {text[-1000:]}"
    return text if isinstance(error, PolyhopError) else f"{type(error).__name__}: {text}".rstrip(": ")


_ADVICE = {
    "not_configured": " Or use --lm lexical, which needs no key.",
    "not_recorded": ": record it with --record FILE and the model's --lm",
    "auth": " (check the provider's key in the environment)",
    "transport": " (is the server up and the network reachable? --lm lexical needs neither)",
    "timeout": " (a profile can raise the timeout)",
    "rate_limit": " (wait, use fewer --threads, or set requests_per_minute in a profile)",
    "context_window_exceeded": " (give the program fewer passages with -k)",
    "overlong_reply": " (set max_tokens in a profile, or try a more capable model)",
    "cut_reply": " (raise max_tokens in a profile)",
    "empty_reply": " (try a more capable model, or raise max_tokens if it thinks before it answers)",
}
