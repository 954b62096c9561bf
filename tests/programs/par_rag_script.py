"""A comparison that PAR-RAG plans, and the replies of its agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dspy

from polyhop.data.passages import Passage
from polyhop.programs import ParRag
from polyhop.programs.trace import (
    Searched,
)

from .scripted import Reply, Request, Script, answer, playing, scripted

QUESTION = "Which film has the younger director, Vertigo or Solaris?"
PLAN = [
    {"thought": "Needs nothing before it.", "question": "Who directed Vertigo?"},
    {"thought": "Needs nothing before it.", "question": "Who directed Solaris?"},
    {"thought": "Needs the answer of step 1.", "question": "When was #1 born?"},
    {"thought": "Needs the answer of step 2.", "question": "When was #2 born?"},
]
POOL = [
    Passage.of("Vertigo", sentences=["Vertigo is a film.", "Vertigo was directed by Alfred Hitchcock."], id="vertigo"),
    Passage.of("Solaris", sentences=["Solaris was directed by Andrei Tarkovsky."], id="solaris"),
    Passage.of("Alfred Hitchcock", sentences=["Alfred Hitchcock was born in 1899."], id="hitchcock"),
    Passage.of("Andrei Tarkovsky", sentences=["Andrei Tarkovsky was born in 1932."], id="tarkovsky"),
]
ANSWERS = {
    "Who directed Vertigo?": "Alfred Hitchcock",
    "Who directed Solaris?": "Andrei Tarkovsky",
    "When was Alfred Hitchcock born?": "1899",
    "When was Andrei Tarkovsky born?": "1932",
}
ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]


def reads(answers: Mapping[str, str] = ANSWERS) -> Callable[[Request], dict[str, Any]]:
    """Answers each question as told, and cites the first sentence that has the answer."""

    def reply(request: Request) -> dict[str, Any]:
        text = answers.get(request.inputs["question"], "I don't know")
        lines = (line.split(" ", 1) for line in request.inputs["sources"].splitlines() if not line.startswith("["))
        return {"cited": [id for id, line in lines if text in line][:1], "answer": text}

    return reply


def doubts(*questions: str) -> Callable[[Request], dict[str, Any]]:
    """An accuracy judge that is sure of everything but the answers to some questions."""
    return lambda request: {"accuracy": 0.0 if request.inputs["question"] in questions else 1.0}


def revised(text: str, cited: list[str]) -> dict[str, Any]:
    return {"reason": "Read again.", "decision": "REVISED", "answer": text, "cited": cited}


def play(
    adapter: Any = None,
    *,
    set: Callable[[ParRag], None] = lambda program: None,
    pool: list[Passage] | None = None,
    **replies: Reply | list[Reply],
) -> tuple[Script, dspy.Prediction]:
    given: dict[str, Any] = {"planner": {"steps": PLAN}, "step_answerer": reads(), "answerer": answer("Solaris")}
    program = ParRag()
    program.review.confidence.adaptive.value = False  # accuracy and credibility weigh the same
    set(program)
    with playing(scripted(**(given | replies)), adapter) as script:
        prediction = program(question=QUESTION, pool=POOL if pool is None else pool)
    return script, prediction


def play_with(agent: str, reply: Reply, adapter: Any = None) -> tuple[Script, dspy.Prediction]:
    """A run in which an agent replies so."""
    replies: dict[str, Any] = {agent: reply}
    return play(adapter, **replies)


def steps(prediction: dspy.Prediction, kind: type) -> list[Any]:
    return [step for step in prediction.trace.flat() if isinstance(step, kind)]


def facts(prediction: dspy.Prediction) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in prediction.evidence]


def queries(prediction: dspy.Prediction) -> list[str]:
    return [step.query for step in steps(prediction, Searched)]


def asked(script: Script, agent: str, question: str) -> Request:
    """The one request to an agent about a question; steps side by side ask in any order."""
    (request,) = [each for each in script.asked(agent) if each.inputs["question"] == question]
    return request
