"""Engines with a script, for what stands before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

import dspy
from dspy import lm15

from polyhop.engines.limits import LimitedLM, Limits, RateLimit

ANSWER = "[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"
USAGE = lm15.Usage(input_tokens=100, output_tokens=10)


def response(text: str = ANSWER, usage: lm15.Usage = USAGE, **more: Any) -> lm15.Response:
    told = {"id": "1", "model": "made/up", "message": lm15.Message.assistant(text), "usage": usage}
    return lm15.Response(**{**told, "finish_reason": "stop", **more})


def request(text: str = "What?", **config: Any) -> lm15.Request:
    return lm15.Request(model="made/up", messages=(lm15.Message.user(text),), config=lm15.Config(**config))


Outcome: TypeAlias = BaseException | lm15.Response | Callable[[], lm15.Response]


@dataclass
class Scripted:
    """Does one thing after the other, and then what an engine should; counts how often it was asked."""

    script: list[Outcome] = field(default_factory=list)
    calls: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, request: lm15.Request) -> lm15.Response:
        with self._lock:
            self.calls += 1
            outcome: Outcome = self.script.pop(0) if self.script else response()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome if isinstance(outcome, lm15.Response) else outcome()

    def __deepcopy__(self, memo: dict[int, Any]) -> Scripted:
        return self


def limited(engine: Any, name: str = "made/up", *, limit: RateLimit | None = None, **more: Any) -> LimitedLM:
    """A model with an engine, and limits: of the keywords, those of `Limits`."""
    limits = {name: more.pop(name) for name in Limits.model_fields.keys() & more.keys()}
    lm = engine if isinstance(engine, dspy.LM) else dspy.LM(name, engine=engine, **{"cache": False} | more)
    return LimitedLM(lm, limit or RateLimit(Limits(**limits)))


class Time:
    """A clock that goes on when somebody rests."""

    def __init__(self) -> None:
        self.now, self.rests = 1_000.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def rest(self, seconds: float) -> None:
        if seconds > 0:
            self.rests.append(round(seconds, 6))
            self.now += seconds


def ask(lm: Any, question: str = "What?") -> str:
    with dspy.context(lm=lm):
        return str(dspy.Predict("question -> answer")(question=question).answer)
