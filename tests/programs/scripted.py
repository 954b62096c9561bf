"""A language model that plays a script: what each agent is asked is recorded, what it replies is given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import dspy
from dspy import lm15
from dspy.utils.callback import BaseCallback

from polyhop.data.passages import Passage
from polyhop.engines.replies import Message, read_request, respond
from polyhop.programs.trace import Searched

ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]
QUESTION = "Where was the director of Vertigo born?"
FILM = Passage.of("Vertigo (film)", sentences=["Vertigo is a film.", "Its director was Alfred Hitchcock."], id="film")
MAN = Passage.of("Alfred Hitchcock", sentences=["Hitchcock made films.", "He came from Leytonstone."], id="man")
ALBUM = Passage.of("Vertigo (album)", sentences=["Vertigo is an album.", "It was produced by Dan."], id="album")

AGENTS = {
    "first_fact": "writer",
    "missing": "reader",
    "answer attribution": "verifier",
    "thought sub_questions": "planner",
    "sub_questions": "analyzer",
    "requirements": "set_selector",
    "keep": "selector",
    "add": "adder",
    "route": "router",
    "roadmap": "roadmap",
    "useful": "filter",
    "action": "decider",
    "next_thought": "reasoner",
    "queries": "querier",
    "new_facts": "updater",
    "spans": "filterer",
    "supported": "checker",
    "sufficiency": "moderator",
    "refined_question": "refiner",
    "accuracy": "accuracy_judge",
    "attribution": "attribution_judge",
    "decision": "reviser",
    "cited": "step_answerer",
    "answer": "answerer",
}
"""Every agent is known by one output field, or two; of several that fit the first counts."""

OFTEN: dict[str, dict[str, Any]] = {
    "accuracy_judge": {"reasoning": ""},
    "attribution_judge": {"reasoning": ""},
    "planner": {"thought": ""},
    "reader": {"reasoning": "", "confidence": 0.9, "citations": [], "missing": "none"},
    "verifier": {"reasoning": "", "attribution": "attributable"},
    "selector": {"reasoning": ""},
    "adder": {"reasoning": ""},
    "querier": {"reasoning": "", "diversity": 0.5},
    "updater": {"reasoning": ""},
    "checker": {"reasoning": "", "contradicted": []},
    "moderator": {"reasoning": ""},
    "filterer": {"supported": []},
}
"""What a reply in a script may leave out."""

_OUTPUTS = re.compile(r"Your output fields are:\n(.*?)\nAll interactions", re.DOTALL)
_LISTED = re.compile(r"^\d+\. `(\w+)` \(", re.MULTILINE)
_FIELD = re.compile(
    r"^\[\[ ## (\w+) ## \]\]\n(.*?)(?=\n\n\[\[ ## \w+ ## \]\]\n|\n\nRespond with |\Z)", re.MULTILINE | re.DOTALL
)

Reply = dict[str, Any] | str | Callable[["Request"], dict[str, Any] | str] | BaseException


@dataclass(frozen=True)
class Request:
    """What one agent was sent."""

    agent: str
    system: str
    messages: tuple[Message, ...]
    as_json: bool

    @property
    def prompt(self) -> str:
        """The last user message: the task itself, without demos."""
        return self.messages[-1].text

    @property
    def inputs(self) -> dict[str, str]:
        return {name: text.strip() for name, text in _FIELD.findall(self.prompt)}

    @property
    def demos(self) -> int:
        return sum(message.role == "assistant" for message in self.messages)


@dataclass
class Script:
    """An engine for `dspy.LM`: replies agent by agent from ``replies``; the last reply of an agent is repeated.

    A reply is a dict of output fields, written in the dialect of the adapter that asks; a text, sent as it is; a
    function of the request that returns either; or an exception, raised.
    """

    replies: dict[str, list[Reply]]
    requests: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, request: lm15.Request) -> lm15.Response:
        seen = self._read(request)
        with self._lock:
            turn = sum(other.agent == seen.agent for other in self.requests)
            self.requests.append(seen)
        script = self.replies[seen.agent]
        reply = script[min(turn, len(script) - 1)]
        if callable(reply) and not isinstance(reply, BaseException):
            reply = reply(seen)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, dict):
            reply = OFTEN.get(seen.agent, {}) | reply
        return respond(request, reply if isinstance(reply, str) else write(reply, seen.as_json))

    def asked(self, agent: str) -> list[Request]:
        return [request for request in self.requests if request.agent == agent]

    @property
    def order(self) -> list[str]:
        return [request.agent for request in self.requests]

    def __deepcopy__(self, memo: dict[int, Any]) -> Script:
        return self  # teleprompters copy language models; the record stays one

    def dump_state(self) -> dict[str, Any]:
        return {}

    def _read(self, request: lm15.Request) -> Request:
        system, messages = read_request(request)
        listed = _OUTPUTS.search(system)
        outputs = _LISTED.findall(listed[1]) if listed else []
        agent = next((agent for names, agent in AGENTS.items() if set(names.split()) <= set(outputs)), "other")
        return Request(agent, system, messages, "Outputs will be a JSON object" in system)


def write(values: dict[str, Any], as_json: bool) -> str:
    """A well-formed reply in an adapter's dialect."""
    if as_json:
        return json.dumps(values)
    parts = [f"[[ ## {k} ## ]]\n{v if isinstance(v, str) else json.dumps(v)}" for k, v in values.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def answer(text: str, confidence: Any = 0.9) -> dict[str, Any]:
    return {"reasoning": f"Because of {text}.", "answer": text, "citations": [], "confidence": confidence}


def scripted(**replies: Reply | list[Reply]) -> Script:
    """A script with one reply, or a list of replies, for each agent; an agent without any answers a default."""
    script: dict[str, list[Reply]] = {
        "analyzer": [{"sub_questions": ["Who is asked about?"]}],
        "planner": [{"thought": "", "sub_questions": ["Who is asked about?"]}],
        "reader": [answer("unknown", 0.1) | {"missing": "none"}],
        "verifier": [{"reasoning": "", "answer": "unknown", "attribution": "attributable"}],
        "selector": [{"keep": []}],
        "set_selector": [{"requirements": [], "chosen": [1]}],
        "adder": [{"add": []}],
        "router": [{"route": "plan", "query": ""}],
        "roadmap": [{"roadmap": ["Who is asked about?"]}],
        "filter": [{"thoughts": "1: about something else.", "useful": []}],
        "decider": [{"thought": "That is enough.", "action": "answer", "query": ""}],
        "reasoner": [{"next_thought": "So the answer is: unknown."}],
        "querier": [{"queries": [], "diversity": 0.5}],
        "updater": [{"new_facts": [], "gaps": []}],
        "checker": [{"supported": [1, 2, 3], "relevant": [1, 2, 3], "contradicted": []}],
        "filterer": [{"spans": [], "supported": []}],
        "moderator": [{"sufficiency": 0}],
        "refiner": [{"refined_question": ""}],
        "accuracy_judge": [{"reasoning": "", "accuracy": 0.9}],
        "attribution_judge": [{"reasoning": "", "attribution": "attributable"}],
        "reviser": [{"reason": "", "decision": "unconfident", "answer": "", "cited": []}],
        "step_answerer": [{"cited": [], "answer": "I don't know"}],
        "answerer": [answer("unknown", 0.1)],
    }
    script |= {agent: reply if isinstance(reply, list) else [reply] for agent, reply in replies.items()}
    return Script(script)


class Listener(BaseCallback):
    """The signature, inputs and messages of every call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self._asked: dict[str, Any] = {}

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self._asked[call_id] = inputs

    def on_adapter_format_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        asked = self._asked.pop(call_id)
        self.calls.append((asked["signature"], dict(asked["inputs"]), outputs))


def lm(script: Script) -> dspy.LM:
    return dspy.LM("scripted", engine=script, cache=False)


@contextmanager
def playing(script: Script, adapter: Any = None) -> Iterator[Script]:
    """Run programs on a script, in this thread."""
    with dspy.context(lm=lm(script), adapter=adapter or dspy.ChatAdapter()):
        yield script


def steps(prediction: dspy.Prediction, kind: type) -> list[Any]:
    return [step for step in prediction.trace.flat() if isinstance(step, kind)]


def facts(prediction: dspy.Prediction) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in prediction.evidence]


def whole_passages(prediction: dspy.Prediction) -> list[str]:
    """The ids of the evidence, none of which is a sentence."""
    assert all(item.sentence is None for item in prediction.evidence)
    return [item.passage.id for item in prediction.evidence]


def queries(prediction: dspy.Prediction) -> list[str]:
    return [step.query for step in steps(prediction, Searched)]
