"""A question that polyhop answers over four passages, and the replies of its agents."""

from __future__ import annotations

from typing import Any

import dspy

from polyhop.data.passages import Passage
from polyhop.data.pool import PassagePool
from polyhop.programs import PolyHop, tunables
from polyhop.programs.trace import Searched

from .scripted import Script, answer, playing, scripted

QUESTION = "Where was the director of Vertigo born?"
SUB_QUESTIONS = ["Who directed Vertigo?", "Where was #1 born?"]
PLAN = {"route": "plan", "sub_questions": SUB_QUESTIONS}
FILM = Passage.of("Vertigo (film)", sentences=["Vertigo is a film.", "Its director was Alfred Hitchcock."], id="film")
ALBUM = Passage.of("Vertigo (album)", sentences=["Vertigo is an album.", "It was produced by Dan."], id="album")
MAN = Passage.of("Alfred Hitchcock", sentences=["Hitchcock made films.", "He came from Leytonstone."], id="man")
TOWN = Passage.of("Leytonstone", sentences=["Leytonstone lies in London."], id="town")
POOL = [FILM, ALBUM, MAN, TOWN]
ADAPTERS = [dspy.ChatAdapter(), dspy.JSONAdapter()]


def play(
    adapter: Any = None,
    *,
    question: str = QUESTION,
    pool: list[Passage] | None = None,
    k: int = 20,
    settings: dict[str, Any] | None = None,
    **replies: Any,
) -> tuple[Script, dspy.Prediction]:
    """One question, with exact numbers of candidates: 1 film, 2 album, then what is found later."""
    program = PolyHop(PassagePool(POOL if pool is None else pool), k=k)
    program.exemplars.mode.value = "none"
    program.easy.value = 1.0
    known = tunables(program)
    known["least_gain"].value = 0.2
    for name, value in (settings or {}).items():
        known[name].value = value
    replies = {"planner": PLAN, "answerer": cited("Leytonstone")} | replies
    with playing(scripted(**replies), adapter) as script:
        return script, program(question=question)


def cited(text: str, confidence: float = 0.9, ids: tuple[str, ...] = ("1s2", "3s2")) -> dict[str, Any]:
    return answer(text, confidence) | {"citations": list(ids)}


def facts(prediction: dspy.Prediction) -> list[tuple[str, int | None]]:
    return [tuple(item.fact) for item in prediction.evidence]


def queries(prediction: dspy.Prediction) -> list[str]:
    return [step.query for step in steps(prediction, Searched)]


def steps(prediction: dspy.Prediction, kind: type) -> list[Any]:
    return [step for step in prediction.trace.steps if isinstance(step, kind)]
