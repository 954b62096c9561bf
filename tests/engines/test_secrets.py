"""Secrets: which are known, and that nothing of a message but they is lost."""

from __future__ import annotations

from collections.abc import Callable

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError, LMAuthError, LMProviderError, LMServerError

from polyhop.engines.replies import checked, diagnosed, explain
from polyhop.engines.secrets import learn, without_secret_settings, without_secrets

from .guarded import request, response

KEY = "planted-0123456789"
SIGNATURE = dspy.Signature("question -> reasoning, answer")


@pytest.mark.parametrize("name", ["MY_API_KEY", "hf_token", "AWS_SECRET_ACCESS", "DB_PASSWORD", "GOOGLE_CREDENTIALS"])
def test_what_the_environment_calls_a_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("B_KEY", f"{KEY}-and-more")
    assert without_secrets(f"{KEY}, key={KEY}-and-more&x, x{KEY.upper()}y") == "***, key=***&x, x***y"


def test_what_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("MY_KEY", "")
    monkeypatch.setenv("PLACE", "somewhere-else")
    for text in ("false", "in somewhere-else", "task-1 asks for risk-taking", "https://host:80/path@x"):
        assert without_secrets(text) == text


def test_what_looks_like_one() -> None:
    text = "Incorrect: sk-abc*****xyz. Authorization: Bearer abc.def; https://me:pass@host/v1"
    assert without_secrets(text) == "Incorrect: *** Authorization: *** https://***@host/v1"


def unread(adapter: dspy.Adapter, reply: str) -> str:
    with pytest.raises(AdapterParseError) as caught:
        adapter.parse(SIGNATURE, reply)
    return explain(caught.value)


def refused(words: str) -> str:
    with pytest.raises(LMProviderError) as caught:
        checked(response(message=lm15.Message.assistant([lm15.RefusalPart(words)])), request())
    return str(caught.value)


CUTS: dict[str, tuple[int, Callable[[str], str]]] = {
    "an error": (250, lambda text: str(diagnosed(LMServerError(text, status=500, model="made/up")))),
    "a page": (250, lambda text: str(diagnosed(LMAuthError(f"<html><title>{text}</title>", status=401)))),
    "a long error": (10_000, lambda text: str(diagnosed(LMServerError(text.replace("x", " "))))),
    "a refusal": (160, refused),
    "a reply": (160, lambda text: explain(AdapterParseError("ChatAdapter", SIGNATURE, text))),
    "a line": (600, lambda text: explain(LMServerError(text, model="made/up"))),
    "a reply to the chat adapter": (160, lambda text: unread(dspy.ChatAdapter(), text + "x" * 2_000)),
}


@pytest.mark.parametrize("cut", CUTS)
def test_no_piece_of_a_key_is_left_where_a_text_is_cut(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "Q7w8e9r0T1y2u3i4o5p6a7s8d9f0g1h2"
    monkeypatch.setenv("MADE_UP_API_KEY", key)
    limit, told = CUTS[cut]
    pieces = [key[at : at + 8] for at in range(len(key) - 7)]
    for before in range(max(limit - 40, 0), limit + 8, 3):
        text = told("x" * before + key + "y" * 40)
        assert [piece for piece in pieces if piece in text] == [], before


def test_what_models_are_given() -> None:
    learn(dspy.LM("openai/x", api_key="key-of-a-model", headers={"X-Whatever": "header-of-a-model"}, max_tokens=77))
    learn(dspy.LM("openai/x", extra_body={"auth": {"token": "token-of-a-model"}, "mode": "mode-of-a-model"}))
    learn(None)
    text = "key-of-a-model header-of-a-model token-of-a-model mode-of-a-model 77"
    assert without_secrets(text) == "*** *** *** mode-of-a-model 77"


def test_settings_without_their_secrets() -> None:
    settings = {"api_key": KEY, "headers": {"X": KEY}, "max_tokens": 77, "temperature": None, "extra_body": {"a": "b"}}
    kept = {"max_tokens": 77, "temperature": None, "extra_body": {"a": "b"}}
    assert without_secret_settings(settings) == kept
