"""What DSPy's callbacks are told of a model behind an endpoint: each call once, and no key."""

from __future__ import annotations

import traceback
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from polyhop.engines.models import language_model
from polyhop.scripts.studies.faults.faults import FAULTS
from polyhop.scripts.studies.faults.schedule import Nth
from polyhop.scripts.studies.faults.server import ANSWER, Server

KEY = "sk-planted-0123456789"


class Told(BaseCallback):
    def __init__(self) -> None:
        self.calls = 0
        self.errors: list[str] = []

    def on_lm_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        self.calls += 1
        if exception is not None:
            self.errors.append("".join(traceback.format_exception(exception)))


def test_a_call_is_told_once_and_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server([(Nth(2), FAULTS["401-echo"])], canned=ANSWER) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        lm, told = language_model("openai/some-model"), Told()
        with dspy.context(callbacks=[told]):
            lm("one")
            with pytest.raises(Exception, match="Incorrect API key"):
                lm("two")
    assert server.injected["401-echo"] == 1
    assert told.calls == 2
    assert len(told.errors) == 1
    assert "Incorrect API key provided" in told.errors[0]
    assert KEY not in told.errors[0]
