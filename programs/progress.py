"""What a running program does, in words and as it happens.

with following(print):
    program(question="...")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.streaming import StatusMessageProvider
from dspy.utils.callback import BaseCallback

from ..data.text import count
from ..engines.streams import hearing
from . import trace as steps
from .agent import Agent
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
def following(tell: Callable[[Event], None], hear: Callable[[str], None] | None = None) -> Iterator[None]:
    """Inside, each step of a program and each agent that it asks is told, from any thread of the program.

    An exception that ``tell`` raises for a step stops the program. With ``hear``, replies of models are streamed where
    their server does that, and ``hear`` gets the field that is being written, as "answer: Roadside".
    """
    callbacks = [*(dspy.settings.callbacks or ()), _Agents(tell)]
    with (
        listening(lambda step, branch: tell(Event(describe(step), step, branch=branch))),
        dspy.context(callbacks=callbacks),
        hearing(lambda reply: hear(_last_field(reply))) if hear else nullcontext(),
    ):
        yield


def _last_field(reply: str) -> str:
    """What is being written, in the form of DSPy's ChatAdapter; in other forms the whole text so far."""
    *_, name, text = ["", *re.split(r"^\[\[ ## (\w+) ## \]\]", reply, flags=re.MULTILINE)]
    text = f"\n{text}".partition("\n[[")[0].strip()  # the next field begins
    return f"{name.replace('_', ' ')}: {text}" if name and text else text


class _Agents(BaseCallback):
    """Tells of each agent that is asked."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        if isinstance(instance, Agent):
            self._tell(Event(_asking(instance), agent=_role(instance)))


class StatusMessages(StatusMessageProvider):
    """The messages of `dspy.streamify` on a program: searches, and agents that are asked."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str | None:
        if isinstance(instance, Agent):
            return _asking(instance)
        if isinstance(instance, Search):
            query = inputs.get("query") or next(iter(inputs.get("args") or ()), "")
            return f"searching for “{query}”"
        return None


def _asking(agent: Agent) -> str:
    return f"asking the {_role(agent).replace('_', ' ')}"


def _role(agent: Agent) -> str:
    return agent.role or str(agent.signature.__name__)


def describe(step: TraceStep) -> str:
    """A step in a few words."""
    match step:
        case steps.Estimated(probabilities):
            hops = max(range(len(probabilities)), key=probabilities.__getitem__) + 1
            return f"looks like {count(hops, 'hop')}"
        case steps.Recalled(questions):
            return f"recalled {count(len(questions), 'solved question')}"
        case steps.Routed(route, query):
            return f"route: {route}" + (f", “{query}”" if query else "")
        case steps.Decomposed(sub_questions, _, _, route):
            asked = " · ".join(sub_questions)
            return f"{route}: {asked}" if route else f"sub-questions: {asked}"
        case steps.Searched(query, found):
            return f"{count(len(found), 'passage')} for “{query}”"
        case steps.Selected(round, kept):
            return f"kept {_facts(kept)} in round {round}"
        case steps.Added(round, added):
            return f"added {_facts(added)} in round {round}"
        case steps.Proposed(queries):
            return f"proposed {count(len(queries), 'query', 'queries')}"
        case steps.Learned(known, required):
            return f"knows {count(len(known), 'fact')}, {len(required) or 'nothing'} missing"
        case steps.Required(questions, answers):
            so_far = ", ".join(f"#{n} {answer}" for n, answer in enumerate(answers, 1))
            return "; ".join(filter(None, (so_far, f"missing: {' · '.join(questions)}" if questions else "all known")))
        case steps.Checked(supported, unsupported):
            return f"checked: {len(supported)} supported, {len(unsupported)} not"
        case steps.Decided(action, query):
            return action + (f": “{query}”" if query else "")
        case steps.Thought(text):
            return text
        case steps.StepAnswered(number, _, answer):
            return f"#{number}: {answer}"
        case steps.Judged(aspect, score, verdict):
            return f"{aspect} {score:.2f}" + (f", {verdict}" if verdict else "")
        case steps.Scored(credibility):
            return f"credibility {credibility:.2f}"
        case steps.Weighed(_, confidence, passed):
            return f"confidence {confidence:.2f}: {'passed' if passed else 'did not pass'}"
        case steps.Revised(answer, _, accepted):
            return f"revised: {answer}" if accepted else f"not revised to {answer}"
        case steps.Replaced(answer, reason):
            return f"replaced by {answer}: {reason}"
        case steps.Refined(number, question):
            return f"#{number} reworded: {question}"
        case steps.Answered(answer, _, confidence):
            return f"answered {answer} ({confidence:.2f})"
        case steps.Shortened(agent, needed, shown):
            return f"the {agent.replace('_', ' ')} was shown about {shown:,} of {needed:,} tokens"
        case steps.Stopped(reason):
            return f"stopped: {reason}"
        case _:
            return type(step).__name__.lower()


def _facts(facts: tuple[Any, ...]) -> str:
    return count(len(facts), "sentence") if facts else "nothing"
