"""What a running program does, in words and as it happens.

with following(print):
    program(question="...")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import dspy
from dspy.streaming import StatusMessageProvider
from dspy.utils.callback import BaseCallback

from ..data.passages import Fact
from ..data.text import count
from . import trace as steps
from .search import Search
from .trace import TraceStep, listening


@dataclass(frozen=True)
class Event:
    """What a program has done or now waits for.

    Attributes:
        text: The same in a few words.
        step: The step that is done; None while the program waits.
        agent: The agent whose reply the program waits for; "" for a step.
        branch: The parallel branches in which it happened, numbered from 1, outermost first.
    """

    text: str
    step: TraceStep | None = None
    agent: str = ""
    branch: tuple[int, ...] = ()


@contextmanager
def following(tell: Callable[[Event], None]) -> Iterator[None]:
    """Inside, each step of a program and each agent that it asks is told, from any thread of the program.

    An exception that ``tell`` raises for a step stops the program.
    """
    callbacks = [*(dspy.settings.callbacks or ()), _Agents(tell)]
    with (
        listening(lambda step, branch: tell(Event(_line(step), step, branch=branch))),
        dspy.context(callbacks=callbacks),
    ):
        yield


def _line(step: TraceStep) -> str:
    said = describe(step)
    return f"{said.verb} {said.text}".rstrip()


class _Agents(BaseCallback):
    """Tells of each agent that is asked."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, dspy.Predict):
            self._tell(Event(_asking(instance), agent=_role(instance)))


class StatusMessages(StatusMessageProvider):
    """The messages of `dspy.streamify` on a program: searches, and agents that are asked."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str | None:
        if isinstance(instance, dspy.Predict):
            return _asking(instance)
        if isinstance(instance, Search):
            query = inputs.get("query") or next(iter(inputs.get("args") or ()), "")
            return f"searching for “{query}”"
        return None


def _asking(agent: dspy.Predict) -> str:
    return f"asking the {_role(agent).replace('_', ' ')}"


def _role(agent: dspy.Predict) -> str:
    return str(getattr(agent, "role", "") or agent.signature.__name__)


@dataclass(frozen=True)
class Description:
    """A step in words: what was done (one verb), what came of it, and the texts and facts that it is about."""

    verb: str
    text: str = ""
    details: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


def describe(step: TraceStep) -> Description:
    """A step in words; of a program of the user's own, as it is recorded."""
    match step:
        case steps.Estimated(probabilities):
            likely = ", ".join(f"{hops} {share:.0%}" for hops, share in enumerate(probabilities, 1))
            return Description("estimated", f"hops: {likely}")
        case steps.Recalled(questions):
            return Description("recalled", count(len(questions), "solved question"), questions)
        case steps.Routed(route, query):
            return Description("routed", _with(route, query))
        case steps.Decomposed(sub_questions, _, thoughts, route):
            pairs = enumerate(zip_longest(sub_questions, thoughts, fillvalue=""), 1)
            asked = tuple(f"#{n} {text}" + (f" ({thought})" if thought else "") for n, (text, thought) in pairs)
            return Description("asked", f"{route}, " * bool(route) + count(len(sub_questions), "sub-question"), asked)
        case steps.Searched(query, found):
            further = f", from rank {step.offset + 1}" if step.offset else ""
            return Description("found", f"{count(len(found), 'passage')} for “{query}”{further}")
        case steps.Selected(number, facts) | steps.Added(number, facts):
            verb = "kept" if isinstance(step, steps.Selected) else "added"
            return Description(verb, f"{len(facts) or 'nothing'} in round {number}", facts=facts)
        case steps.Proposed(queries):
            scored = tuple(f"{score:.2f} {query}" for query, score in queries)
            return Description("proposed", count(len(queries), "query", "queries"), scored)
        case steps.Learned(known, required):
            details = (*(f"known: {text}" for text in known), *(f"required: {text}" for text in required))
            return Description(
                "learned", f"{count(len(known), 'fact')}, {len(required) or 'nothing'} required", details
            )
        case steps.Required(questions, answers):
            details = (*(f"#{n} {answer}" for n, answer in enumerate(answers, 1)), *questions)
            return Description("required", str(len(questions) or "nothing more"), details)
        case steps.Checked(supported, unsupported, _, _, contradicted):
            details = tuple(f"not supported: {text}" for text in unsupported)
            details += tuple(f"contradicted: {text}" for text in contradicted)
            return Description("checked", f"{len(supported)} supported, {len(unsupported)} not", details)
        case steps.Decided(action, query, thought):
            return Description("decided", _with(action, query), (thought,) if thought else ())
        case steps.Thought(text):
            return Description("thought", text)
        case steps.StepAnswered(number, question, answer, cited):
            return Description(f"answered #{number}", f"{answer} ← {question}", facts=cited)
        case steps.Judged(aspect, score, verdict):
            return Description("judged", f"{aspect} {score:.2f}" + (f", {verdict}" if verdict else ""))
        case steps.Scored(credibility):
            return Description("scored", f"credibility {credibility:.2f}")
        case steps.Weighed(alpha, confidence, passed):
            verdict = "passed" if passed else "did not pass"
            return Description("weighed", f"{confidence:.2f} (alpha {alpha:.2f}): {verdict}")
        case steps.Revised(answer, reason, accepted):
            return Description("revised", answer if accepted else f"not: {answer}", (reason,) if reason else ())
        case steps.Replaced(answer, reason):
            return Description("replaced", f"by {answer}: {reason}")
        case steps.Refined(number, question):
            return Description("refined", f"#{number} {question}")
        case steps.Answered(answer, reasoning, confidence):
            return Description("answered", f"{answer} ({confidence:.2f})", tuple(reasoning.splitlines()))
        case steps.Replied(agent, replied):
            return Description(agent or "replied", details=tuple(f"{name}: {text}" for name, text in replied))
        case steps.Shortened(agent, needed, shown):
            return Description("shortened", f"{agent}: about {needed:,} tokens to {shown:,}")
        case steps.Stopped(reason):
            return Description("stopped", reason)
        case _:
            details = tuple(f"{name}: {value}" for name, value in vars(step).items() if name != "invalid")
            return Description(type(step).__name__.lower(), details=details)


def _with(choice: str, query: str) -> str:
    return choice + (f": “{query}”" if query else "")
