"""What one call is worth: its reply against others at the same place, by the runs that they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, get_origin

import dspy
import numpy as np

from ...eval.gold_replies import GoldReplies
from ...eval.metrics import Metric, joint_f1
from ...eval.statistics import Interval
from ...programs.prediction import UNKNOWN
from ..exemplars import in_words
from .replay import Call, Replay, Rollout

REFERENCES = ("gold", "absent")

SAMPLING = {"temperature": 1.0}
"""How other replies are sampled."""


@dataclass
class Action:
    """A reply to a call, where it comes from, and the scores of the runs that it leads to.

    ``source`` is "own", "choice", "sample", "model", "gold" or "absent".
    """

    source: str
    reply: dspy.Prediction
    scores: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class CallCredit:
    """One call of a run, after ``depth`` others; the agent's own reply is the first of ``actions``."""

    call: Call
    depth: int
    actions: tuple[Action, ...]

    def advantage(self, n: int = 0) -> Interval:
        """The value of action ``n`` less the mean value of the others, with Welch's 95% interval.

        Its ends are NaN if an action has only one run; there is no advantage (NaN) without other actions.
        """
        from scipy.stats import ttest_ind

        own = self.actions[n].scores
        others = [action for m, action in enumerate(self.actions) if m != n]
        if not others:
            return Interval(nan, nan, nan)
        mean = float(np.mean(own) - np.mean([action.value for action in others]))
        pooled = [score for action in others for score in action.scores]
        if min(len(own), len(pooled)) < 2:
            return Interval(mean, nan, nan)
        if np.ptp(own) == np.ptp(pooled) == 0:
            return Interval(mean, mean, mean)
        found = ttest_ind(own, pooled, equal_var=False).confidence_interval()
        shift = mean - float(np.mean(own) - np.mean(pooled))
        return Interval(mean, float(found.low) + shift, float(found.high) + shift)


def credit(
    program: dspy.Module | Replay,
    example: dspy.Example,
    metric: Metric = joint_f1,
    *,
    width: int = 3,
    shrink: float = 0.7,
    runs: int = 1,
    models: Sequence[dspy.LM] = (),
    references: Sequence[str] = ("gold",),
) -> list[CallCredit]:
    """Credit every call that a program makes for a question.

    At each call the run branches. A reply with a choice of a few words (a route, an action) is repeated with each other
    word; otherwise the agent's model is sampled ``width * shrink ** depth`` times, at least once, at temperature 1.
    Equal replies count once. Each branch is finished by the program; its prefix costs nothing.

    Args:
        width, shrink: The number of samples at the first call, and its decline from call to call.
        runs: Runs from each reply; the first gives later calls their recorded replies where their inputs did not
            change, the others sample them.
        models: Other models, each asked once at every call.
        references: "gold", what the annotations ask for, and "absent", an empty reply.

    Returns:
        The calls in order; none if the program failed.
    """
    replay = program if isinstance(program, Replay) else Replay(program)
    start = replay.run(example)
    if start.prediction is None:
        return []
    oracle = GoldReplies(in_words(example), start.prediction.get("ranking") or ())
    found = []
    for depth, call in enumerate(start.calls):
        samples = max(1, round(width * shrink**depth))
        actions = tuple(_distinct(_actions(call, depth, samples, models, references, oracle)))
        for action in actions:
            for n in range(runs):
                first = action.source == "own" and n == 0
                run = start if first else _finish(replay, example, start, depth, call, action.reply, n)
                action.scores.append(run.score(example, metric))
        found.append(CallCredit(call, depth, actions))
    return found


def _finish(
    replay: Replay, example: dspy.Example, start: Rollout, depth: int, call: Call, reply: dspy.Prediction, n: int
) -> Rollout:
    """The run in which one call gets another reply; from the second on, later calls are sampled."""
    prefix = {each.key for each in start.calls[:depth]}
    known = start.replies if n == 0 else {key: value for key, value in start.replies.items() if key in prefix}

    def instead(other: Call) -> dspy.Prediction | None:
        if other.key == call.key:
            return reply
        return None if n == 0 or other.key in prefix else sampled(other, n)

    return replay.run(example, known, instead)


def sampled(call: Call, n: int) -> dspy.Prediction:
    """Sample ``n`` of a reply; the same one again from DSPy's cache."""
    return call.ask(config={**SAMPLING, "rollout_id": n})


def _actions(
    call: Call, depth: int, samples: int, models: Sequence[dspy.LM], references: Sequence[str], oracle: GoldReplies
) -> Iterator[Action]:
    assert call.reply is not None
    own = call.fields
    yield Action("own", call.reply)
    enumerated = choices(call.signature)
    for name, words in enumerated.items():
        for word in words:
            if word != own.get(name):
                yield Action("choice", dspy.Prediction(**{**own, name: word}))
    if not enumerated:
        for n in range(1, samples + 1):
            yield Action("sample", sampled(call, n))
    for model in models:
        yield Action("model", call.ask(lm=model))
    for name in references:
        if (reply := reference(call, name, oracle, own)) is not None:
            yield Action(name, reply)


def reference(call: Call, name: str, oracle: GoldReplies, own: dict[str, Any]) -> dspy.Prediction | None:
    """The reply "gold", that the annotations ask for, or "absent", an empty one; None if the annotations tell nothing.
    What they do not tell stays as it is in ``own``."""
    if name == "absent":
        return dspy.Prediction(**absent(call.signature, own))
    if name not in REFERENCES:
        raise ValueError(f"a reference is {' or '.join(map(repr, REFERENCES))}, not {name!r}")
    told = oracle.reply(call.signature, call.inputs, own)
    return dspy.Prediction(**told.fields) if told.told else None


def _distinct(actions: Iterator[Action]) -> Iterator[Action]:
    known: list[dict[str, Any]] = []
    for action in actions:
        if (fields := dict(action.reply)) not in known:
            known.append(fields)
            yield action


def absent(signature: type[dspy.Signature], own: dict[str, Any]) -> dict[str, Any]:
    """The reply of an agent that is not there: empty lists and texts, numbers 0, answers unknown. Choices stay."""
    reply: dict[str, Any] = {}
    for name, info in signature.output_fields.items():
        kind = get_origin(info.annotation) or info.annotation
        if name in choices(signature):
            reply[name] = own.get(name)
        elif isinstance(kind, type) and issubclass(kind, list | dict):
            reply[name] = kind()
        elif isinstance(kind, type) and issubclass(kind, int | float):
            reply[name] = kind(0)
        else:
            reply[name] = UNKNOWN if name in ("answer", "correction") else ""
    return reply


def choices(signature: type[dspy.Signature]) -> dict[str, tuple[str, ...]]:
    """The output fields of a signature that are one of a few words, with these words."""
    found: dict[str, tuple[str, ...]] = {}
    for name, info in signature.output_fields.items():
        words = getattr(info.annotation, "words", None) or getattr(info.annotation, "__args__", ())
        if words and all(isinstance(word, str) for word in words):
            found[name] = tuple(words)
    return found
