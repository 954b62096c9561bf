"""What each fault of an endpoint is taken for, by both of DSPy's ways to it, over real connections."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import (
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    is_retryable_lm_error,
)

from polyhop.engines.costs import Ledger
from polyhop.engines.limits import LimitedLM, Limits, RateLimit
from polyhop.engines.replies import LONGEST_REPLY, checked, diagnosed, explain, without_thinking

from ..faults.faults import FAULTS, Fault, drip, slow
from ..faults.schedule import Always
from ..faults.server import Server

KEY = "sk-planted-0123456789"
FAULTY = {**FAULTS, "slow": slow(2.0), "drip": drip(0.2)}
SIGNATURE = dspy.Signature("question, passages -> reasoning, answer, confidence: float")
ASKED = {"question": "Who directed Solaris?", "passages": "[1] Solaris\n1s1 Solaris was directed by Andrei Tarkovsky."}

PASSING = {
    "rate_limit": ("429", "429-date", "429-bare"),
    "server": ("500", "502", "503", "truncated", "latin-1"),
    "timeout": ("slow", "hang", "drip"),
    "transport": ("reset", "reset-in-body"),
    "empty_reply": ("empty", "null"),
}
LASTING = {
    "billing": ("429-quota",),
    "auth": ("401-echo",),
    "context_window_exceeded": ("context-vllm", "context-llama"),
    "refused": ("refusal", "filter"),
    "invalid_request": ("filter-400-azure",),
    "overlong_reply": ("1mb", "1mb-in-field", "1mb-braces"),
    "cut_reply": ("length",),
}
CODES = {name: code for group in (PASSING, LASTING) for code, names in group.items() for name in names}
HARMLESS = ("prose-around-json", "lone-surrogate", "utf-16", "bom", "no-usage", "usage-as-text", "unknown-fields")
WAYS = ("lm15", "litellm")


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """LiteLLM imports half of itself at its first error, which takes longer than the tests have patience."""
    with Server([(Always(), FAULTS["500"])]) as server, pytest.raises(LMServerError):
        dspy.LM("openai/x", engine="litellm", api_base=server.url, api_key=KEY, cache=False, num_retries=0)("?")


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.01)))


def guarded(server: Server, way: str, limits: Limits | None = None, **settings: Any) -> dspy.LM:
    lm = dspy.LM("openai/behind-http", engine=way, api_base=server.url, api_key=KEY, **{"cache": False, **settings})
    return LimitedLM(lm, RateLimit(limits or Limits(timeout=30, retries=1)))


def ask(lm: dspy.LM, ledger: Ledger | None = None) -> Any:
    with dspy.context(lm=lm, usage_tracker=ledger or Ledger()):
        return dspy.Predict(SIGNATURE)(**ASKED)


def failure(fault: Fault, way: str, limits: Limits | None = None) -> tuple[LMError, int]:
    """What is raised where every request is hit, and how many there were."""
    with Server([(Always(), fault)]) as server, pytest.raises(LMError) as caught:
        ask(guarded(server, way, limits))
    return caught.value, server.requests


def told(error: BaseException) -> str:
    """Everywhere an error may be printed."""
    return "".join([str(error), repr(error), explain(error), *traceback.format_exception(error)])


def test_every_fault_is_tested_here() -> None:
    assert {*CODES, *HARMLESS, "prose", "429-absurd", "dies"} == set(FAULTY)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CODES)
def test_what_passes_is_repeated_and_what_lasts_is_not(name: str, way: str) -> None:
    code, passes = CODES[name], CODES[name] in PASSING
    raised, requests = failure(FAULTY[name], way, Limits(timeout=0.5, retries=1) if code == "timeout" else None)
    # LiteLLM takes a lost connection for an error of the server.
    assert raised.code == code or (way, code, raised.code) == ("litellm", "transport", "server")
    assert (is_retryable_lm_error(raised), requests) == (passes, 1 + passes)
    assert len(str(raised)) < 300
    assert KEY not in told(raised)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_no_harm_does_none(name: str, way: str) -> None:
    with Server([(Always(), FAULTY[name])]) as server:
        prediction = ask(guarded(server, way))
    assert prediction.answer == "Andrei Tarkovsky"
    assert prediction.confidence > 0.5
    assert prediction.reasoning.encode()


@pytest.mark.parametrize(
    ("name", "least", "most", "way"),
    [*((name, 1, 1, way) for name in ("429", "503") for way in WAYS), ("429-date", 0.5, 2, "lm15")],
)
def test_the_time_that_a_server_asks_for_is_found(name: str, least: float, most: float, way: str) -> None:
    raised, _ = failure(FAULTS[name], way, Limits(retries=0))
    assert raised.retry_after is not None
    assert least <= raised.retry_after <= most


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_asks_for_a_day_is_not_waited_for(way: str) -> None:
    raised, requests = failure(FAULTS["429-absurd"], way)
    assert (raised.code, requests) == ("rate_limit", 1)
    assert "asks to wait 86,400 s (wait, use fewer" in explain(raised)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("there", [True, False])
def test_a_server_that_hangs_up_is_told_from_none(there: bool, way: str) -> None:
    ledger = Ledger()
    with Server([(Always(), FAULTS["reset"])]) as server:
        url = server.url if there else "http://127.0.0.1:9/v1"
        lm = dspy.LM("openai/x", engine=way, api_base=url, api_key=KEY, cache=False)
        with pytest.raises(LMError) as caught:
            ask(LimitedLM(lm, RateLimit(Limits(timeout=10, retries=4))), ledger)
    assert is_retryable_lm_error(caught.value) == there
    assert sum(ledger.incidents.values()) == (5 if there else 0)


@pytest.mark.parametrize("way", WAYS)
def test_each_empty_reply_is_paid(way: str) -> None:
    ledger = Ledger()
    with Server([(Always(), FAULTS["empty"])]) as server, pytest.raises(LMServerError):
        ask(guarded(server, way, Limits(retries=2)), ledger)
    assert server.requests == 3
    assert ledger.incidents == {"request failed (empty_reply)": 3}
    assert ledger.costs()["lm_calls"] == 3
    assert ledger.costs()["tokens_in"] > 0


# --- without a server ------------------------------------------------------------------------------------------------


REQUEST = lm15.Request(model="m", system="abcd", messages=(lm15.Message.user("x" * 36),))


def response(text: str, finish: Any = "stop", **usage: int) -> lm15.Response:
    message = lm15.Message.assistant(text)
    return lm15.Response(id="1", model="n", message=message, usage=lm15.Usage(**usage), finish_reason=finish)


DRAFT = "[[ ## answer ## ]]\nRome\n\n[[ ## completed ## ]]"


def test_what_may_be_read() -> None:
    whole = response("[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]\n\n[[ ## question ## ]]\nAnd what", "length")
    assert checked(whole, REQUEST) is whole
    assert checked(response("x" * LONGEST_REPLY), REQUEST)
    assert checked(response(f"<think>{'x' * LONGEST_REPLY}</think>42"), REQUEST).message.text.strip() == "42"
    thought = lm15.Message.assistant([lm15.ThinkingPart(DRAFT), lm15.TextPart("")])
    for reply, code in (
        (response("[[ ## answer ## ]]\n42", "length"), "cut_reply"),
        (response("x" * (LONGEST_REPLY + 1)), "overlong_reply"),
        (response(f"<think>{DRAFT}"), "empty_reply"),
        (response(f"<think>{DRAFT}</think>\n"), "empty_reply"),
        (response(f"<think>{DRAFT}</think>", "length"), "cut_reply"),
        (replace(response(""), message=thought), "empty_reply"),
    ):
        with pytest.raises(LMError) as caught:
            checked(reply, REQUEST)
        assert caught.value.code == code
        assert "max_tokens" in explain(caught.value)
        assert "Rome" not in told(caught.value)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<think>[[ ## answer ## ]]\n41</think>[[ ## answer ## ]]\n42", "[[ ## answer ## ]]\n42"),
        ("Let me see.</think>42", "42"),
        ("<thinking>41</thinking>42<thinking>43", "42"),
        ("<reasoning>a field</reasoning>42", "<reasoning>a field</reasoning>42"),
        ("42 <think>so </thinking> not 41", "42"),
        ('<Think a="b">41</THINK >42', "42"),
        ("[THINK]41[/THINK]42", "42"),
        ("<|channel|>analysis 41<|channel|>final<|message|>42", "42"),
        ("<seed:think>41", ""),
    ],
)
def test_thinking_is_removed_before_a_reply_is_parsed(reply: str, text: str) -> None:
    assert without_thinking(reply).strip() == text


def test_half_of_a_pair_is_replaced_and_a_pair_is_joined() -> None:
    text = checked(response("a\ud83d\ude00b\ud83dc"), REQUEST).message.text
    assert text == "a\U0001f600b\N{REPLACEMENT CHARACTER}c"


TOO_LONG, OTHER = "context_window_exceeded", "invalid_request"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", TOO_LONG),
        ("This model's maximum context length is 8192 tokens.", TOO_LONG),
        ("The input token count (40000) exceeds the maximum number of tokens allowed (32768).", TOO_LONG),
        ("Input is too long for requested model.", TOO_LONG),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096.", TOO_LONG),
        ("Requested tokens (5000) exceed context window of 4096", TOO_LONG),
        ("Please reduce the length of the messages or completion.", TOO_LONG),
        ("The decoder prompt (length 8123) is longer than the maximum model length of 4096.", TOO_LONG),
        ("Input validation error: `inputs` must have less than 4096 tokens. Given: 8123", TOO_LONG),
        ("The sequence of 9000 is larger than n_ctx", TOO_LONG),
        ("temperature must be at most 2", OTHER),
        ("top_logprobs is too large", OTHER),
        ("max_tokens is too large: 100000", OTHER),
        ("HTTP 400", OTHER),
    ],
)
def test_words_for_a_prompt_that_is_too_long(words: str, code: str) -> None:
    for status in (400, 422):
        assert diagnosed(LMInvalidRequestError(words, status=status)).code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LMServerError("Context size has been exceeded.", status=500), TOO_LONG),
        (LMServerError("the request exceeded its time limit", status=500), "server"),
        (LMRateLimitError("Request too large for model on tokens per minute", status=413), TOO_LONG),
        (LMRateLimitError("too many tokens per minute", status=429), "rate_limit"),
    ],
)
def test_a_prompt_may_be_too_long_by_another_name(error: LMError, code: str) -> None:
    assert diagnosed(error).code == code
