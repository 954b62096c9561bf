"""Runs of any DSPy program, question by question: their scores and costs; and with recorded or other replies.

    replay = Replay(program)
    start = replay.run(example)
    other = replay.run(example, start.replies, instead=lambda call: better.get(call.key))

A call with an input that was seen gets its recorded reply: only what a change reaches is asked for. A question on which
the program fails scores 0; a `BaseException` that is no `Exception`, such as a spent budget, ends the run at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from math import nan
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import dspy

from ..data.passages import Hit, Passage
from ..data.pool import PassagePool
from ..engines.costs import Ledger
from ..engines.models import roles
from ..engines.replies import explain
from ..engines.secrets import learn_models
from ..eval.metrics import Metric as PolyhopMetric
from ..eval.metrics import attempt_of, scored
from ..eval.oracle import GoldReplies
from ..eval.run import in_order, trace_counts
from ..programs.program import ask
from ..programs.run import Run, running
from ..programs.search import Search
from ..signatures.fields import NumberedPassages

Metric = Callable[..., Any]
"""A DSPy metric: called with an example and a prediction, returns a number (or a `dspy.Prediction` with ``score``)."""


class Scored(NamedTuple):
    """The score of a question, and why it failed, if so. Costs are ``seconds``, ``lm_calls``, ``tokens_in``,
    ``tokens_out``, ``cost_usd`` where prices are known, and what a polyhop trace counts: there ``lm_calls`` includes
    cached replies.
    """

    number: int
    score: float
    costs: dict[str, float]
    failure: str | None


def scored_runs(
    program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, order: Sequence[int], threads: int = 1
) -> Generator[Scored, None, None]:
    """Run a program on questions and score its predictions, in the ``order`` of their numbers whatever the threads.

    Raises:
        PolyhopError: the metric fails, see `scored`.
    """

    def run(number: int, example: dspy.Example, ledger: Ledger) -> Scored:
        start = perf_counter()
        try:
            prediction = ask(program, example)
        except Exception as error:  # noqa: BLE001  # one question must not fail the others
            return Scored(number, 0.0, {**ledger.costs(), "seconds": perf_counter() - start}, explain(error))
        costs = {**ledger.costs(), **trace_counts(prediction), "seconds": perf_counter() - start}
        return Scored(number, scored(metric, example, prediction), costs, None)

    learn_models(program)
    return in_order(run, [(number, questions[number]) for number in order], threads)


# --- recorded and other replies --------------------------------------------------------------------------------------


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
class ReplayedRun:
    """One run of the program: its calls in order, and its prediction; None if it failed."""

    recorded: Mapping[Key, dspy.Prediction]
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
        if isinstance(metric, PolyhopMetric) and not (
            metric.applies(example) if self.prediction is None else metric.scores(attempt_of(example, self.prediction))
        ):
            return nan
        return 0.0 if self.prediction is None else scored(metric, example, self.prediction)

    def answer(
        self,
        agent: StandIn,
        signature: type[dspy.Signature],
        inputs: Mapping[str, Any],
        predict: Callable[..., dspy.Prediction],
        demos: Sequence[dspy.Example],
    ) -> dspy.Prediction:
        """The reply to a call of this run."""

        def ask(**options: Any) -> dspy.Prediction:
            with self._lock:
                self.asked += 1
            return predict(**options)

        texts = sorted(
            f"{name}={value.model_dump_json() if isinstance(value, NumberedPassages) else repr(value)}"
            for name, value in inputs.items()
        )
        digest = blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=16).hexdigest()
        with self._lock:
            key = Key(agent.name, digest, self._seen[agent.name, digest])
            self._seen[agent.name, digest] += 1
        call = Call(key, agent.role, signature, inputs, ask, demos)
        reply = self.instead(call) or self.recorded.get(key) or ask()
        with self._lock:
            self.calls.append(replace(call, reply=reply))
        return reply


_RUN: ContextVar[ReplayedRun | None] = ContextVar("replayed run", default=None)


class Replay:
    """Runs a copy of a program, with recorded or other replies to its agents.

    Args:
        program: Its models are shared, so a budget counts what is asked.
        perfect_search: Whether every search returns the gold passages first.
    """

    def __init__(self, program: dspy.Module, perfect_search: bool = False) -> None:
        self._search = next((part for _, part in program.named_sub_modules(Search)), None)
        self._student = with_stand_ins(program)
        for _, part in self._student.named_sub_modules(Search) if perfect_search else ():
            part.retriever = None  # `_GoldFirst` calls the original search

    def run(
        self,
        example: dspy.Example,
        recorded: Mapping[Key, dspy.Prediction] | None = None,
        instead: Instead = lambda call: None,
        oracle: GoldReplies | None = None,
    ) -> ReplayedRun:
        """Run the program on a question. An `Exception` of the program is recorded as a failure.

        Args:
            recorded: Replies that are given back.
            instead: Replies that go before these.
            oracle: For ``perfect_search``.
        """
        replayed, inputs = ReplayedRun(recorded or {}, instead), dict[str, Any]()
        if oracle is not None and self._search is not None:
            gold = [page for page in oracle.pages.values() if page is not None]
            inputs["pool"] = _GoldFirst(gold, self._search, example.get("pool"))
        token = _RUN.set(replayed)
        try:
            replayed.prediction = ask(self._student, example, **inputs)
        except Exception as error:  # noqa: BLE001  # a failed question scores 0, as in an evaluation
            replayed.error = error
        finally:
            _RUN.reset(token)
        return replayed


class _GoldFirst(PassagePool):
    """The gold passages, then what a program's search finds, in a question's own pool if it has one."""

    def __init__(self, gold: Sequence[Passage], search: Search, pool: Any) -> None:
        super().__init__(gold)
        self._search, self._pool = search, pool

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        with running(Run(pool=self._pool)):
            hits = self._search(query, k=k + offset)
        gold = {passage.id for passage in self.passages}
        others = [hit for hit in hits if hit.passage.id not in gold]
        best = max((hit.score for hit in others), default=1.0)
        ranked = [*(Hit(passage, best, 0) for passage in self.passages), *others][offset : offset + k]
        return [Hit(hit.passage, hit.score, rank, hit.reason) for rank, hit in enumerate(ranked, offset + 1)]


class StandIn(dspy.Predict):
    """Runs a predictor with its own prompt and model, in its place in a copy of the program; a `Replay` replies first.

    DSPy's optimizers reset models and make demos of everything that an agent was shown: this one keeps its model, and
    shares it with its copies, since it may count what is spent; with ``brief``, demos have only `shortened` inputs."""

    def __init__(self, name: str, role: str, predictor: dspy.Predict, model: Any, brief: bool) -> None:
        super().__init__(predictor.signature)
        self.name, self.role, self.brief = name, role, brief
        self.demos, self.config = list(predictor.demos), predictor.config
        self.model = self.lm = model
        self.run = partial(predictor)  # the predictor as an attribute would be a part of the program

    def reset(self) -> None:
        super().reset()
        self.lm = getattr(self, "model", None)

    def __deepcopy__(self, memo: dict[int, Any]) -> StandIn:
        twin = StandIn.__new__(StandIn)
        memo[id(self)] = twin
        twin.__dict__.update(self.__dict__, demos=list(self.demos))
        return twin

    def forward(self, **kwargs: Any) -> Any:
        call = {"signature": self.signature, "demos": self.demos, "lm": self.lm, **kwargs}
        # Copies: programs go on to append to lists that agents were shown.
        inputs = {name: copy(kwargs[name]) for name in call["signature"].input_fields if name in kwargs}
        ask, run, trace = partial(self.run, **call), _RUN.get(), dspy.settings.trace
        with dspy.context(trace=None):
            reply = run.answer(self, call["signature"], inputs, ask, call["demos"]) if run else ask()
        if trace is not None:
            trace.append((self, shortened(inputs, reply) if self.brief else inputs, reply))
        return reply


def with_stand_ins(program: dspy.Module, brief: bool = False) -> dspy.Module:
    """A copy of the program with a `StandIn` for each predictor. Models are not copied."""
    role_of = {id(predictor): role for role, predictors in roles(program).items() for predictor in predictors}
    originals, twin = iter(list(program.named_predictors())), program.deepcopy()

    def stand_in(predictor: dspy.Predict) -> StandIn:
        name, original = next(originals)
        role, predictor.lm = role_of[id(original)], original.lm or dspy.settings.lm
        return predictor if isinstance(predictor, StandIn) else StandIn(name, role, predictor, predictor.lm, brief)

    return stand_in(twin) if isinstance(twin, dspy.Predict) else twin.map_named_predictors(stand_in)


# --- what a reply should be ------------------------------------------------------------------------------------------

_REASONING = frozenset({"reasoning", "reason", "thought", "thoughts"})
"""Fields in which an agent argues for its reply."""

_DISTRACTORS = 2  # passages in a demo that nothing in it refers to
_ID = re.compile(r"(?<![\w#.])(\d{1,3})(?:s\d{1,3})?(?![\w.])")


def argued(example: dspy.Example, signature: type[dspy.Signature], reply: Mapping[str, Any]) -> dict[str, Any]:
    """The output fields of a reply that the annotations correct, with their reasoning: the agent's own led elsewhere.
    Other fields in which an agent argues are left out."""
    fields = {name: reply[name] for name in signature.output_fields if name in reply and name not in _REASONING}
    if "reasoning" in signature.output_fields:
        oracle = GoldReplies(example)
        steps = " ".join(f"{oracle.asked(n)} {step.answer}." for n, step in enumerate(oracle.steps))
        if steps or oracle.gold.answers:
            fields["reasoning"] = steps or f"It is {oracle.gold.answers[0]}."
    return fields


def shortened(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """An agent's inputs with only the passages that the reply or the other inputs cite, and the first few others, as
    text: DSPy draws among demos by their pickle, which for passages differs between processes."""
    texts = [value for value in inputs.values() if not isinstance(value, NumberedPassages)]
    cited = {int(number) for number in _ID.findall(" ".join(map(str, [*texts, *outputs.values()])))}

    def few(shown: NumberedPassages) -> NumberedPassages:
        others = [passage.number for passage in shown.passages if passage.number not in cited][:_DISTRACTORS]
        kept = cited.union(others)
        return NumberedPassages(passages=[passage for passage in shown.passages if passage.number in kept])

    return {
        name: few(value).format() if isinstance(value, NumberedPassages) else value for name, value in inputs.items()
    }
