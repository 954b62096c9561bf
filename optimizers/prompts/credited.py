"""Demos for the agents that cost the points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy

from ...engines.models import roles
from ...eval.executor import Job, Window
from ...eval.gold_replies import GoldReplies
from ..credit.actions import reference
from ..credit.replay import Call, Replay
from ..exemplars import in_words
from ..measure import Metric
from .annotated import solved
from .registry import CompileJob, by_preset, register
from .student import shortened

_REASONING = frozenset({"reasoning", "reason", "thought", "thoughts"})
"""Fields in which an agent argues for its reply."""


@register(
    "credit",
    "replies that change the outcome, also of failed runs, for the agents that cost the most",
    "demos",
    by_preset(train=(20, 50, 100), val=(20, 40, 80), demos=(2, 3, 4), tries=(2, 3, 4)),
    runs=lambda n: n["train"] * (1 + n["agents"]) + (1 + min(n["tries"], n["agents"])) * n["val"],
)
def credit(job: CompileJob) -> dspy.Module:
    """An agent costs the points that the program would gain if the agent gave the replies that the annotations ask for
    (`polyhop.optimizers.credit`). These replies become its demos, those that gain most first. The ``tries`` agents that
    cost the most get demos in turn, and keep them if the program scores better on the validation questions.
    """
    found = _ask_all(job)
    gains: defaultdict[str, list[tuple[float, dspy.Example]]] = defaultdict(list)
    costs: defaultdict[str, float] = defaultdict(float)
    for one in found:
        for role, (gain, demos) in one.items() if one else ():
            costs[role] += gain
            gains[role] += [(gain, demo) for demo in demos if gain > 0]
    ranked = sorted((role for role in costs if costs[role] > 0), key=lambda role: -costs[role])
    if not ranked:
        return job.student
    # Not `measure`, whose own ledger would hide the calls from the job's.
    evaluate = dspy.Evaluate(devset=job.valset, metric=job.metric, num_threads=job.threads)
    best = evaluate(job.student).score
    for role in ranked[: job.numbers["tries"]]:
        chosen = [demo for _, demo in sorted(gains[role], key=lambda pair: -pair[0])][: job.numbers["demos"]]
        predictors = roles(job.student)[role]
        before = [predictor.demos for predictor in predictors]
        for predictor in predictors:
            predictor.demos = [demo for demo in chosen if set(predictor.signature.input_fields) <= set(demo)]
        score = evaluate(job.student).score
        if score > best:
            best = score
        else:
            for predictor, demos in zip(predictors, before, strict=True):
                predictor.demos = demos
    return job.student


Gains = dict[str, tuple[float, list[dspy.Example]]]
"""By role: the points that its better replies gain on one question, and these replies as demos."""


def _ask_all(job: CompileJob) -> list[Gains | None]:
    """The gains on each train question, in order; None where the program failed."""
    replay, window = Replay(job.student), Window[tuple[int, Gains | None]](job.threads)
    found: dict[int, Gains | None] = {}
    for n, example in enumerate(job.trainset):
        if window.full:
            found |= [window.next()]
        work = partial(_gains, n, replay, example, job.metric)
        window.start(Job(work, lambda: None, work))
    while window.busy:
        found |= [window.next()]
    return [found[n] for n in sorted(found)]


@dataclass
class _Corrected:
    """The replies of one role that the annotations correct."""

    role: str
    gold: GoldReplies
    own: dict[Any, dspy.Prediction]
    calls: list[tuple[Call, dspy.Prediction]] = field(default_factory=list)

    def __call__(self, call: Call) -> dspy.Prediction | None:
        if call.role != self.role:
            return None
        own = self.own.get(call.key) or call.ask()
        other = reference(call, "gold", self.gold, dict(own))
        if other is not None and dict(other) != dict(own):
            self.calls.append((call, other))
        return other


def _gains(n: int, replay: Replay, example: dspy.Example, metric: Metric) -> tuple[int, Gains | None]:
    start = replay.run(example)
    if start.prediction is None:
        return n, None
    gold = GoldReplies(in_words(example), start.prediction.get("ranking") or ())
    before, found = _score(metric, example, start.prediction), Gains()
    for role in dict.fromkeys(call.role for call in start.calls):
        corrected = _Corrected(role, gold, start.replies)
        run = replay.run(example, start.replies, corrected)
        if run.prediction is not None and corrected.calls:
            gain = _score(metric, example, run.prediction) - before
            found[role] = gain, _demos(example, corrected.calls)
    return n, found


def _score(metric: Metric, example: dspy.Example, prediction: dspy.Prediction) -> float:
    said: Any = metric(example, prediction)
    return float(said.score if isinstance(said, dspy.Prediction) else said)


def _demos(example: dspy.Example, calls: Sequence[tuple[Call, dspy.Prediction]]) -> list[dspy.Example]:
    """The first correction as a demo. Its reasoning is that of the annotations: the agent's own led elsewhere."""
    call, reply = calls[0]
    case = solved(example)
    argued = _REASONING & set(reply.keys())
    if argued - {"thought", "thoughts"} and case is None:
        return []
    fields = {name: reply[name] for name in call.signature.output_fields if name in reply and name not in argued}
    for name in argued - {"thought", "thoughts"}:
        fields[name] = case.answered(cite=False)["reasoning"] if case else ""
    return [dspy.Example(**shortened(call.inputs, reply), **fields)]
