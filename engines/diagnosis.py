"""Causes of errors, and checks of replies.

Providers, local servers and both of DSPy's clients report the same few conditions in different words. `diagnosed` gives
an error the class that says what to do about it, `checked` rejects unusable replies, and `estimate_usage` fills in
missing token counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from socket import gaierror
from typing import Any

from dspy import lm15
from dspy.utils.exceptions import (
    ContextWindowExceededError,
    LMError,
    LMInvalidRequestError,
    LMProviderError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
)

from ..signatures.replies import without_thinking
from .costs import record_incident
from .requests import joined
from .secrets import scrub, without_secrets

LONGEST_REPLY = 100_000
"""Characters. A longer reply comes from a runaway model, and parsing it would take minutes."""

MOST_TOKENS = 10**9  # of one reply, with its prompt; sums of more may overflow
_LONGEST_MESSAGE = 300  # characters: an error may be a whole page, or quote a whole reply
_FILTERED = re.compile(
    r"content_filter|content_policy|contentpolicyviolation|responsibleaipolicy|content management policy"
)
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:input|prompt) length|too many (?:input )?tokens"
    r"|(?:prompt|inputs?|request) (?:is |are )?too (?:long|large)|exceeds? the maximum number of tokens"
    r"|input tokens exceed|reduce the length of the (?:messages|prompt|input)|`inputs` tokens \+ `max_new_tokens`"
)
_GARBLED = re.compile(
    r"is not json|received response|unterminated string|codec can't decode"
    r"|invalid response (?:object|from llm endpoint)|'choices' that is not a list"
)
_LITELLM_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Timeout)\b[:\s]*)*(?:\w+Exception - )?")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_COMPLETED = "[[ ## completed ## ]]"  # the end of a reply to DSPy's `ChatAdapter`


class RefusedError(LMProviderError):
    """The model or its provider's content filter refused the prompt. Retrying does not help."""

    default_code = "refused"


class OverlongReplyError(LMProviderError):
    """The reply is too long to be an answer: the model runs away."""

    default_code = "overlong_reply"


class CutReplyError(LMProviderError):
    """The reply was cut at ``max_tokens``, so its last field is incomplete."""

    default_code = "cut_reply"


class EmptyReplyError(LMServerError):
    """The reply is empty. A retry may help."""

    default_code = "empty_reply"


# --- errors ----------------------------------------------------------------------------------------------------------


def diagnosed(error: LMError) -> LMError:
    """The error as the class that says what to do, with a short message, the server's ``retry_after``, and without the
    errors that caused it: they contain keys, whole replies and whole pages."""
    chain, message = list(_chain(error)), _short(error)
    text = f"{error.provider_code} {error.message}".lower()
    if overlong := next((each for each in chain if isinstance(each, OverlongReplyError)), None):
        found: LMError = overlong
    elif isinstance(error, LMInvalidRequestError) and _FILTERED.search(text):
        found = _as(RefusedError, error, "the provider's content filter refused the prompt")
    elif _is_too_long(error, text):
        found = _as(ContextWindowExceededError, error, message)
    elif isinstance(error, LMTransportError | LMTimeoutError) and "timed out" in text:
        found = _as(LMTimeoutError, error, "no reply in time")
    elif isinstance(error, LMServerError) and "connection error" in text:  # LiteLLM's wording
        found = _as(LMTransportError, error, "connection error")
    elif _is_garbled(error, text):
        found = _as(LMServerError, error, "the server's reply is not a completion")
    else:
        found = error
        found.message, found.args = message, (f"[{error.model}] {message}" if error.model else message,)
    if found.retry_after is None:
        found.retry_after = next((wait for each in chain if (wait := _retry_after(each)) is not None), None)
    found.__cause__ = found.__context__ = None
    scrub(found)
    return found


def unreachable(error: LMError) -> bool:
    """Whether no server listens at the address, or its name does not resolve."""
    return any(isinstance(each, ConnectionRefusedError | gaierror) for each in _chain(error))


def _is_too_long(error: LMError, text: str) -> bool:
    """vLLM's older message does not get through DSPy: a 400 without a message counts as a prompt that is too long,
    since a shorter prompt costs little if it was something else."""
    if not isinstance(error, LMInvalidRequestError):
        return False
    return bool((error.status == 400 and not error.message) or error.status == 413 or _TOO_LONG.search(text))


def _is_garbled(error: LMError, text: str) -> bool:
    """A reply that was damaged in transit, or a proxy's web page."""
    if type(error) is LMProviderError and error.status is not None:
        return bool(200 <= error.status < 300)
    return isinstance(error, LMServerError) and bool(_GARBLED.search(text))


def _as(kind: type[LMError], error: LMError, message: str) -> LMError:
    names = ("model", "provider", "provider_code", "status", "request_id", "retry_after")
    return kind(message=message, **{name: getattr(error, name) for name in names})


def _short(error: LMError) -> str:
    """The message without LiteLLM's prefixes and without the advice that follows it."""
    text = without_secrets(error.message or "")  # before truncating, or a partial key may leak
    if "<html" in text.lower():
        title = _TITLE.search(text)
        return f"HTTP {error.status}: {' '.join(title[1].split()) if title else 'a web page'}"[:_LONGEST_MESSAGE]
    text = " ".join(text[:10_000].partition("\n\n")[0].split())
    text = _LITELLM_PREFIX.sub("", text, count=1) or text
    text = text or (f"HTTP {error.status} without a reason" if error.status else "")
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    """Seconds, from the headers that LiteLLM's and OpenAI's errors keep."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        try:
            value = headers.get("retry-after")  # type: ignore[union-attr]
            if _SECONDS.fullmatch(str(value).strip()):
                return float(value)
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
        except (AttributeError, TypeError, ValueError):
            continue
    return None


# --- replies ---------------------------------------------------------------------------------------------------------


def checked(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """The response with valid Unicode, without the thinking; raises an `LMError` if adapters cannot use it."""
    parts, model = response.message.parts, request.model
    refusal = _refusal(response)
    if refusal is not None or response.finish_reason == "content_filter":
        reason = " ".join(without_secrets(refusal or "stopped by the provider's content filter").split())[:160]
        raise RefusedError(f"the model refused to answer: {reason}", model=model)
    whole = _text(response)
    text = without_thinking(whole, fields=("reasoning",))  # a tag of this name may also be a field
    if len(text) > LONGEST_REPLY:
        raise OverlongReplyError(f"a reply of {len(text):,} characters", model=model)
    if response.finish_reason == "length" and _COMPLETED not in text:
        raise CutReplyError("the reply was cut at max_tokens", model=model)
    if not text.strip() and all(isinstance(part, lm15.TextPart | lm15.ThinkingPart) for part in parts):
        raise EmptyReplyError(
            "the reply has no answer after its thinking" if whole.strip() else "the reply is empty", model=model
        )
    if text != whole:  # the thinking is gone before an adapter parses the reply
        parts = (
            lm15.TextPart(text),
            *(part for part in parts if not isinstance(part, lm15.TextPart | lm15.ThinkingPart)),
        )
    repaired = tuple(map(encodable, parts))
    if repaired == response.message.parts:
        return response
    return replace(response, message=replace(response.message, parts=repaired))


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
    """The response with token counts: four characters per token where the server does not report believable ones."""
    usage = response.usage
    if any(isinstance(count, int) and count > MOST_TOKENS for count in asdict(usage).values()):
        response = replace(response, usage=(usage := lm15.Usage()))
    if usage.input_tokens and (usage.output_tokens or not _text(response)):
        return response
    record_incident("tokens estimated")
    given = usage.input_tokens or -(-len(prompt_text(request)) // 4)
    taken = usage.output_tokens or -(-len(_text(response)) // 4)
    return replace(response, usage=replace(usage, input_tokens=given, output_tokens=taken, total_tokens=given + taken))


def prompt_text(request: lm15.Request) -> str:
    return joined(request.system) + "".join(joined(message.parts) for message in request.messages)


def _text(response: lm15.Response) -> str:
    """A reply without the model's thinking."""
    return joined([part for part in response.message.parts if not isinstance(part, lm15.ThinkingPart)])


def encodable(part: Any) -> Any:
    """A part without lone surrogates, which neither files nor further requests can contain."""
    text = getattr(part, "text", None)
    if not isinstance(text, str) or text.isascii():
        return part
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return part if whole == text else replace(part, text=whole)
