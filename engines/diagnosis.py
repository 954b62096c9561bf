"""What an endpoint's errors and replies mean.

Every provider, every local server and both of DSPy's ways to them have words of their own for the same few things.
`understood` gives an error the class that says what to do about it, `checked` refuses a reply that only looks like one,
and `counted` sees that every reply says what it took.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
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

from .costs import happened
from .secrets import scrub, without_secrets

LONGEST_REPLY = 100_000
"""Characters. A longer reply is a model that runs away, and parsing it would take minutes."""

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
_UNSAID = "and DSPy hands on no reason"
_LITELLM = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Timeout)\b[:\s]*)*(?:\w+Exception - )?")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_COMPLETED = "[[ ## completed ## ]]"  # DSPy's `ChatAdapter` has a reply end so


class RefusedError(LMProviderError):
    """The model or its provider's content filter does not answer this prompt. To ask again would not help."""

    default_code = "refused"


class OverlongReplyError(LMProviderError):
    """The reply is so long that it cannot be what was asked for."""

    default_code = "overlong_reply"


class CutReplyError(LMProviderError):
    """The reply stops at the most tokens that it might have: what its last field says is not what was meant."""

    default_code = "cut_reply"


class EmptyReplyError(LMServerError):
    """The reply says nothing at all. That passes, or it does not."""

    default_code = "empty_reply"


RETRIES = {EmptyReplyError.default_code: 2}
"""How often a request is repeated after an error that is as likely to stay as to pass."""


# --- errors ----------------------------------------------------------------------------------------------------------


def understood(error: LMError) -> LMError:
    """An error of the class that says what to do about it, in few words, with the time after which the server wants to
    be asked again. The errors that it came from are left behind: they hold keys, whole replies and whole pages."""
    chain = list(_chain(error))
    message = _short(error)
    said = f"{error.provider_code} {error.message}".lower()
    if isinstance(error, LMInvalidRequestError) and _FILTERED.search(said):
        meant: LMError = _as(RefusedError, error, "the provider's content filter refused the prompt")
    elif _is_too_long(error, said):
        meant = _as(ContextWindowExceededError, error, message)
    elif isinstance(error, LMTransportError | LMTimeoutError) and "timed out" in said:
        meant = _as(LMTimeoutError, error, "no reply in time")
    elif isinstance(error, LMServerError) and "connection error" in said:  # LiteLLM's word for it
        meant = _as(LMTransportError, error, "connection error")
    elif _is_garbled(error, said):
        meant = _as(LMServerError, error, "the server's reply is no completion")
    else:
        meant = error
        meant.message, meant.args = message, (f"[{error.model}] {message}" if error.model else message,)
    if meant.retry_after is None:
        meant.retry_after = next((wait for each in chain if (wait := _retry_after(each)) is not None), None)
    meant.__cause__ = meant.__context__ = None
    scrub(meant)
    return meant


def nobody_there(error: LMError) -> bool:
    """Whether no server took the request, by what an error comes from: its name has no address, or nobody listens."""
    return any(isinstance(each, ConnectionRefusedError | gaierror) for each in _chain(error))


def _is_too_long(error: LMError, said: str) -> bool:
    """A prompt that is too long. What vLLM says about it in its older words does not get through DSPy: a 400 that comes
    without a word is taken for it, since asking for less costs little where it was something else."""
    if not isinstance(error, LMInvalidRequestError):
        return False
    unsaid = error.status == 400 and not error.message
    return bool(unsaid or error.status == 413 or _TOO_LONG.search(said))


def _is_garbled(error: LMError, said: str) -> bool:
    """A reply that was cut off or spoilt on its way, or is the page of a proxy."""
    if type(error) is LMProviderError and error.status is not None:
        return bool(200 <= error.status < 300)
    return isinstance(error, LMServerError) and bool(_GARBLED.search(said))


def _as(kind: type[LMError], error: LMError, message: str) -> LMError:
    return kind(
        message=message,
        model=error.model,
        provider=error.provider,
        provider_code=error.provider_code,
        status=error.status,
        request_id=error.request_id,
        retry_after=error.retry_after,
    )


def _short(error: LMError) -> str:
    """What an error says, without what LiteLLM says before it and the advice that follows it."""
    text = without_secrets(error.message or "")  # before it is cut: nobody knows half a key
    if "<html" in text.lower():
        title = _TITLE.search(text)
        return f"HTTP {error.status}: {' '.join(title[1].split()) if title else 'a web page'}"[:_LONGEST_MESSAGE]
    text = " ".join(text[:10_000].partition("\n\n")[0].split())
    text = _LITELLM.sub("", text, count=1) or text or (f"HTTP {error.status}, {_UNSAID}" if error.status else "")
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    """Seconds, by the header of the response that an error of LiteLLM or of OpenAI's client keeps."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        with suppress(AttributeError, TypeError, ValueError):
            value = headers.get("retry-after")  # type: ignore[union-attr]
            if _SECONDS.fullmatch(str(value).strip()):
                return float(value)
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


# --- replies ---------------------------------------------------------------------------------------------------------


def checked(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """A response that adapters can be given.

    Raises:
        RefusedError, OverlongReplyError, CutReplyError, EmptyReplyError: it is none.
    """
    parts, model = response.message.parts, request.model
    refusal = next((part.text for part in parts if isinstance(part, lm15.RefusalPart)), None)
    if refusal is not None or response.finish_reason == "content_filter":
        told = " ".join(without_secrets(refusal or "stopped by the provider's content filter").split())[:160]
        raise RefusedError(f"the model refused to answer: {told}", model=model)
    text = _text(response)
    if len(text) > LONGEST_REPLY:
        raise OverlongReplyError(f"a reply of {len(text):,} characters", model=model)
    if response.finish_reason == "length" and _COMPLETED not in text:
        raise CutReplyError("the reply was cut at max_tokens", model=model)
    if not text.strip() and all(isinstance(part, lm15.TextPart | lm15.ThinkingPart) for part in parts):
        raise EmptyReplyError("the reply is empty", model=model)
    repaired = tuple(map(_encodable, parts))
    return response if repaired == parts else replace(response, message=replace(response.message, parts=repaired))


def counted(response: lm15.Response, request: lm15.Request) -> lm15.Response:
    """A response that says how many tokens it took: where the server does not, four characters are one."""
    usage = response.usage
    if usage.input_tokens and (usage.output_tokens or not _text(response)):
        return response
    happened("tokens estimated")
    given = usage.input_tokens or -(-written(request) // 4)
    taken = usage.output_tokens or -(-len(_text(response)) // 4)
    return replace(response, usage=replace(usage, input_tokens=given, output_tokens=taken, total_tokens=given + taken))


def written(request: lm15.Request) -> int:
    """Characters of a prompt."""
    return len(_joined(request.system)) + sum(len(_joined(message.parts)) for message in request.messages)


def _text(response: lm15.Response) -> str:
    """What a model says to whoever asked, without what it thinks."""
    return _joined([part for part in response.message.parts if not isinstance(part, lm15.ThinkingPart)])


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(getattr(part, "text", None) or "" for part in content or ())


def _encodable(part: Any) -> Any:
    """A part without half of a surrogate pair in its text: no file and no other request could hold it."""
    text = getattr(part, "text", None)
    if not isinstance(text, str) or text.isascii():
        return part
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return part if whole == text else replace(part, text=whole)
