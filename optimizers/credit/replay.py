"""Runs of a program with recorded or other replies to its agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from math import nan
from threading import Lock
from typing import Any, NamedTuple

import dspy

from ...data.passages import Hit, Passage
from ...data.pool import PassagePool
from ...engines.models import roles
from ...eval.gold_replies import GoldReplies
from ...eval.metrics import Metric as PolyhopMetric
from ...programs.run import Run, running
from ...programs.search import Search
from ...signatures.fields import NumberedPassages
from ..measure import Metric, scored


class Key(NamedTuple):
    """A call: the agent, a hash of its inputs, and how often it was asked the same before in this run."""

    agent: str
    inputs: str
    again: int


@dataclass(frozen=True)
class Call:
    """One call of an agent. ``ask(**options)`` asks the agent's model; options are those of `dspy.Predict`."""

    key: Key
    role: str
    signature: type[dspy.Signature]
    inputs: Mapping[str, Any]
    ask: Callable[..., dspy.Prediction] = field(repr=False)
    demos: Sequence[dspy.Example] = ()
    reply: dspy.Prediction | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The output fields of the reply."""
        return {name: self.reply[name] for name in self.signature.output_fields if self.reply and name in self.reply}


Instead = Callable[[Call], dspy.Prediction | None]
"""Another reply to a call, or None for the recorded or the usual one."""


@dataclass
class Rollout:
    """One run of the program: its calls in order, and its prediction; None if it failed."""

    known: Mapping[Key, dspy.Prediction]
    instead: Instead
    calls: list[Call] = field(default_factory=list)
    asked: int = 0  # calls of language models
    prediction: dspy.Prediction | None = None
    error: Exception | None = None
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @property
    def replies(self) -> dict[Key, dspy.Prediction]:
        return {call.key: call.reply for call in self.calls if call.reply is not None}

    def score(self, example: dspy.Example, metric: Metric) -> float:
        """The score; 0 for a failure, NaN for a question without such a score."""
        if isinstance(metric, PolyhopMetric) and not metric.applies(example):
            return nan
        return 0.0 if self.prediction is None else scored(metric, example, self.prediction)

    def answer(
        self,
        agent: str,
        role: str,
        signature: type[dspy.Signature],
        inputs: Mapping[str, Any],
        ask: Callable[..., dspy.Prediction],
        demos: Sequence[dspy.Example],
    ) -> dspy.Prediction:
        """The reply to a call of this run."""
        digest = _digest(inputs)
        with self._lock:
            key = Key(agent, digest, self._seen[agent, digest])
            self._seen[agent, digest] += 1
        call = Call(key, role, signature, inputs, partial(self._ask, ask), demos)
        reply = self.instead(call) or self.known.get(key) or call.ask()
        with self._lock:
            self.calls.append(replace(call, reply=reply))
        return reply

    def _ask(self, ask: Callable[..., dspy.Prediction], **options: Any) -> dspy.Prediction:
        with self._lock:
            self.asked += 1
        return ask(**options)


_ROLLOUT: ContextVar[Rollout | None] = ContextVar("rollout", default=None)


class Replay:
    """Runs a copy of a program, with recorded or other replies to its agents.

    Args:
        program: Its models are shared, so a budget counts what is asked.
        perfect_search: Whether every search returns the gold passages first.
    """

    def __init__(self, program: dspy.Module, perfect_search: bool = False) -> None:
        self._search = next((part for _, part in program.named_sub_modules(Search)), None)
        self._perfect = perfect_search
        names = {id(predictor): role for role, known in roles(program).items() for predictor in known}
        models = {name: predictor.lm for name, predictor in program.named_predictors()}
        shorts = {name: names[id(predictor)] for name, predictor in program.named_predictors()}
        student = program.deepcopy()
        if isinstance(student, dspy.Predict):
            self._student: dspy.Module = _Replayed("predict", "predict", student, program.lm)
            return
        found = iter(models)

        def replayed(predictor: dspy.Predict) -> _Replayed:
            name = next(found)
            return _Replayed(name, shorts[name], predictor, models[name])

        self._student = student.map_named_predictors(replayed)
        if perfect_search:
            for _, part in self._student.named_sub_modules(Search):
                part.retriever = None  # `_GoldFirst` calls the original search

    def run(
        self,
        example: dspy.Example,
        known: Mapping[Key, dspy.Prediction] | None = None,
        instead: Instead = lambda call: None,
        oracle: GoldReplies | None = None,
    ) -> Rollout:
        """Run the program on a question. An `Exception` of the program is recorded as a failure.

        Args:
            known: Replies that are given back.
            instead: Replies that go before these.
            oracle: For ``perfect_search``.
        """
        rollout, inputs = Rollout(known or {}, instead), dict(example.inputs())
        if self._perfect and oracle is not None and self._search is not None:
            gold = [page for page in oracle.pages.values() if page is not None]
            inputs["pool"] = _GoldFirst(gold, partial(self._others, inputs.get("pool")))
        token = _ROLLOUT.set(rollout)
        try:
            with dspy.context(disable_history=True):
                rollout.prediction = self._student(**inputs)
        except Exception as error:  # noqa: BLE001  # a failed question scores 0, as in an evaluation
            rollout.error = error
        finally:
            _ROLLOUT.reset(token)
        return rollout

    def _others(self, pool: Any, query: str, k: int) -> list[Hit]:
        assert self._search is not None
        with running(Run(pool=pool)):
            hits: list[Hit] = self._search(query, k=k)
        return hits


class _Replayed(dspy.Predict):
    """A predictor that asks the current `Rollout` first."""

    def __init__(self, name: str, role: str, predictor: dspy.Predict, lm: Any) -> None:
        super().__init__(predictor.signature)
        self.name, self.role, self.lm, self.demos = name, role, lm, predictor.demos
        self.run = partial(predictor)  # the predictor as an attribute would be a part of the program

    def forward(self, **kwargs: Any) -> Any:
        signature: type[dspy.Signature] = kwargs.get("signature") or self.signature
        # Copies: programs go on to append to lists that agents were shown.
        inputs = {name: copy(kwargs[name]) for name in signature.input_fields if name in kwargs}
        ask = partial(self.run, **{"lm": self.lm, **kwargs})
        rollout = _ROLLOUT.get()
        if rollout is None:
            return ask()
        return rollout.answer(self.name, self.role, signature, inputs, ask, kwargs.get("demos", self.demos))


class _GoldFirst(PassagePool):
    """The gold passages, then what the program's own search finds."""

    def __init__(self, gold: Sequence[Passage], others: Callable[[str, int], list[Hit]]) -> None:
        super().__init__(gold)
        self._others = others

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        gold = {passage.id for passage in self.passages}
        others = [hit for hit in self._others(query, k + offset) if hit.passage.id not in gold]
        best = max((hit.score for hit in others), default=1.0)
        found = [*(Hit(passage, best, 0) for passage in self.passages), *others][offset : offset + k]
        return [Hit(hit.passage, hit.score, rank, hit.reason) for rank, hit in enumerate(found, offset + 1)]


def _digest(inputs: Mapping[str, Any]) -> str:
    """A hash of an agent's inputs."""
    texts = [
        f"{name}={value.model_dump_json() if isinstance(value, NumberedPassages) else repr(value)}"
        for name, value in inputs.items()
    ]
    return blake2b("\0".join(sorted(texts)).encode("utf-8", "replace"), digest_size=16).hexdigest()
