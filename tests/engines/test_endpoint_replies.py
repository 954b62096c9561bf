"""What an endpoint makes of the replies and errors that come back."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as dspy_errors
from dspy.utils.exceptions import LMError

from polyhop.engines.costs import Ledger
from polyhop.engines.diagnosis import LONGEST_REPLY, OverlongReplyError, RefusedError
from polyhop.engines.endpoint import Endpoint

from .guarded import Scripted, request, response


def filtered(code: str | None, message: str) -> LMError:
    return dspy_errors.LMInvalidRequestError(message, provider_code=code, status=400, model="made/up")


@pytest.mark.parametrize(
    "outcome",
    [
        filtered("content_filter", "no"),
        filtered(None, "triggering Azure OpenAI's content management policy"),
        filtered(None, "litellm.ContentPolicyViolationError: no"),
        filtered("content_policy_violation", "no"),
        response(finish_reason="content_filter"),
        response(message=lm15.Message.assistant([lm15.RefusalPart("I will\nnot.")])),
    ],
)
def test_refusals_are_not_asked_again(outcome: Any) -> None:
    engine = Scripted([outcome])
    with pytest.raises(RefusedError, match="refused|filter") as caught:
        Endpoint().ask(engine.complete, request())
    assert engine.calls == 1
    assert caught.value.code == "refused"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Request too large for model `x` on tokens per minute (TPM)",
        "Input is too long for requested model.",
    ],
)
def test_prompts_that_are_too_long_by_other_words(message: str) -> None:
    engine = Scripted([dspy_errors.LMInvalidRequestError(message, status=400, model="made/up")])
    with pytest.raises(dspy_errors.ContextWindowExceededError) as caught:
        Endpoint().ask(engine.complete, request())
    assert message in str(caught.value)
    assert engine.calls == 1


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (response(finish_reason="content_filter"), RefusedError),
        (response("a" * (LONGEST_REPLY + 1)), OverlongReplyError),
    ],
)
def test_what_cannot_be_used_is_paid_for(outcome: lm15.Response, kind: type[LMError]) -> None:
    ledger = Ledger()
    lm = Endpoint().guard(dspy.LM("made/up", engine=Scripted([outcome]), cache=False))
    with dspy.context(usage_tracker=ledger), pytest.raises(kind):
        lm("What?")
    assert (ledger.costs()["lm_calls"], ledger.costs()["tokens"]) == (1, 110)


def test_a_model_may_think_longer_than_it_may_speak() -> None:
    parts = [lm15.ThinkingPart("hm " * LONGEST_REPLY), lm15.TextPart("42")]
    reply = Endpoint().ask(Scripted([response(message=lm15.Message.assistant(parts))]).complete, request())
    assert reply.text == "42"


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    reply = Endpoint().ask(Scripted([response("a\ud83d b \U0001f600 é")]).complete, request())
    assert reply.text == "a\ufffd b \U0001f600 é"


def test_other_replies_are_given_as_they_are() -> None:
    given = response("é")
    assert Endpoint().ask(Scripted([given]).complete, request()) is given


def test_errors_say_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MADE_UP_API_KEY", "planted-0123456789")
    error = dspy_errors.LMAuthError("planted-0123456789 is no key", status=401)
    error.__cause__ = ValueError("header: planted-0123456789")
    with pytest.raises(dspy_errors.LMAuthError) as caught:
        Endpoint().ask(Scripted([error]).complete, request())
    assert str(caught.value) == caught.value.message == "*** is no key"
    assert caught.value.__cause__ is caught.value.__context__ is None  # which would be in every traceback
