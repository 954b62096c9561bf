"""Demos for the agents that cost the points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isnan
from typing import Any

import dspy

from ...engines.models import roles
from ..credit.costs import diagnose
from ..credit.replay import Call
from ..measure import named
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
    names = list(roles(job.student))
    found = diagnose(job.student, job.trainset, [job.metric], alone=True, among=names, threads=job.threads)
    gains: defaultdict[str, list[tuple[float, dspy.Example]]] = defaultdict(list)
    costs: defaultdict[str, float] = defaultdict(float)
    for example, one in zip(job.trainset, found.questions, strict=True):
        for role, calls in one.corrected.items():
            gain = one.changes[role][named(job.metric)]
            if calls and not isnan(gain):
                costs[role] += gain
                gains[role] += [(gain, demo) for demo in _demos(example, calls) if gain > 0]
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


def _demos(example: dspy.Example, calls: Sequence[tuple[Call, dspy.Prediction]]) -> list[dspy.Example]:
    """The first correction as a demo."""
    call, reply = calls[0]
    fields = argued(example, call, reply)
    if "reasoning" in reply and "reasoning" not in fields:
        return []
    return [dspy.Example(**shortened(call.inputs, reply), **fields)]


def argued(example: dspy.Example, call: Call, reply: dspy.Prediction) -> dict[str, Any]:
    """The output fields of a reply that the annotations correct, with their reasoning, if they have one: the agent's
    own led elsewhere."""
    fields = {name: reply[name] for name in call.signature.output_fields if name in reply and name not in _REASONING}
    if "reasoning" in reply and (case := solved(example)) is not None:
        fields["reasoning"] = case.answered(cite=False)["reasoning"]
    return fields
