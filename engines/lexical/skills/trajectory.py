"""Answers from the steps of a plan: one step from its sources, and the question from all steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....signatures import AnswerFromTrajectory, AnswerStep
from ..chain import Chain
from ..decompose import decompose
from ..engine import skill
from ..prompt import Prompt
from ..reader import read as candidate_answers
from ..reading import Page, read_pages
from ..relations import relation_terms
from .answer import SURE, UNKNOWN, answer_question, cited

_STEP = re.compile(r"#(\d{1,9}) (.*) -> (.*)", re.DOTALL)


@dataclass(frozen=True)
class Taken:
    """A step of a trajectory."""

    number: int
    question: str
    answer: str


def read_trajectory(prompt: Prompt) -> list[Taken]:
    """The steps in a prompt's trajectory, "#n question -> answer" each."""
    steps = filter(None, map(_STEP.fullmatch, prompt.listed("trajectory")))
    return [Taken(int(step[1]), step[2], step[3]) for step in steps]


@dataclass(frozen=True)
class Reading:
    """What a question's answer is according to some passages, and the lines that say so."""

    answer: str
    confidence: float
    cited: tuple[str, ...] = ()


def read(question: str, passages: str) -> Reading:
    """Read the answer to a question from rendered passages.

    Where a question without parts was answered, and no page that is cited explains all of it, it is one that could not
    be taken apart: then the chain that leads to the answer is cited, too.
    """
    parts, pages = decompose(question), read_pages(passages)
    reading = _read(question, parts, pages)
    if reading.answer == UNKNOWN or len(parts) > 1:
        return reading
    numbers = {id.partition("s")[0] for id in reading.cited}
    if any(_explains(page, question) for page in pages if page.number in numbers):
        return reading
    chain = Chain(question, tuple(parts), pages)
    chosen = chain.extend([])
    lines = (line.id for line in chain.lines(chosen, chosen))
    return Reading(reading.answer, reading.confidence, tuple(dict.fromkeys([*reading.cited, *lines])))


def _explains(page: Page, question: str) -> bool:
    """Whether a page has every topic word of a question."""
    return relation_terms(question) <= relation_terms(" ".join([page.title, *(line.text for line in page.lines)]))


def _read(question: str, sub_questions: Sequence[str], pages: Sequence[Page]) -> Reading:
    best = next(iter(candidate_answers(question, sub_questions, pages)), None)
    if best is None or best.probability < SURE:
        return Reading(UNKNOWN, 0.0)
    return Reading(best.text, round(best.probability, 2), tuple(cited(best)))


@skill(AnswerStep)
def answer_step(prompt: Prompt) -> dict[str, Any]:
    """The answer to one step, with the lines that it came from."""
    reading = read(prompt.inputs.get("question", ""), prompt.inputs.get("sources", ""))
    return {"cited": list(reading.cited), "answer": reading.answer if reading.cited else "I don't know"}


@skill(AnswerFromTrajectory)
def answer_finally(prompt: Prompt) -> dict[str, Any]:
    """Conclude from a trajectory, where the prompt has one; from the passages alone where it has none."""
    steps = read_trajectory(prompt)
    if not steps:
        return answer_question(prompt)
    question, pages = prompt.inputs.get("question", ""), read_pages(prompt.inputs.get("evidence", ""))
    reading = _read(question, [step.question for step in steps], pages)
    reasoning = " ".join(f"{step.question} {step.answer}." for step in steps)
    return {"reasoning": reasoning, "answer": reading.answer, "confidence": reading.confidence}
