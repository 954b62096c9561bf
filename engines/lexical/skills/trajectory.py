"""Answers from the steps of a plan: one step from its sources, and the question from all steps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..prompt import Prompt
from .answer import UNKNOWN, answer_question

_STEP = re.compile(r"#(\d+) (.*) -> (.*)", re.DOTALL)
_CITED = re.compile(r"\[(\d+s\d+)\]")


@dataclass(frozen=True)
class Taken:
    """A step of a trajectory; ``number`` as it is written."""

    number: str
    question: str
    answer: str


def read_trajectory(prompt: Prompt) -> list[Taken]:
    """The steps in a prompt's trajectory, "#n question -> answer" each."""
    return [Taken(*found.groups()) for found in map(_STEP.fullmatch, prompt.listed("trajectory")) if found]


@dataclass(frozen=True)
class Reading:
    """What a question's answer is according to some passages."""

    answer: str
    confidence: float
    cited: tuple[str, ...]


def read(question: str, passages: str, sub_questions: list[str] | None = None) -> Reading:
    """Read the answer to a question from rendered passages, and cite the lines that it came from."""
    inputs = {"question": question, "passages": passages, "sub_questions": json.dumps(sub_questions or [])}
    reply = answer_question(Prompt(inputs, ("reasoning", "answer", "confidence"), as_json=True))
    known = reply["answer"] != UNKNOWN
    cited = dict.fromkeys(_CITED.findall(reply["reasoning"])) if known else {}
    return Reading(reply["answer"], reply["confidence"], tuple(cited))


def answer_step(prompt: Prompt) -> dict[str, Any]:
    """The answer to one step, with the lines that it came from."""
    reading = read(prompt.inputs.get("question", ""), prompt.inputs.get("sources", ""))
    return {"citations": list(reading.cited), "answer": reading.answer if reading.cited else "I don't know"}


def answer_finally(prompt: Prompt) -> dict[str, Any]:
    """Conclude from a trajectory, where the prompt has one; from the passages alone where it has none."""
    steps = read_trajectory(prompt)
    if not steps:
        return answer_question(prompt)
    question, evidence = prompt.inputs.get("question", ""), prompt.inputs.get("evidence", "")
    reading = read(question, evidence, [step.question for step in steps])
    reasoning = " ".join(f"{step.question} {step.answer}." for step in steps)
    return {"reasoning": reasoning, "answer": reading.answer, "confidence": reading.confidence}
