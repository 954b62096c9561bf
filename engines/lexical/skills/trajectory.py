"""Answers from the steps of a plan: one step from its sources, and the question from all steps."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..chain import Chain
from ..decompose import decompose
from ..prompt import Prompt
from ..reading import Page, read_pages
from ..relations import relation_terms
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
    """What a question's answer is according to some passages, and the lines that say so."""

    answer: str
    confidence: float
    cited: tuple[str, ...] = ()


def read(question: str, passages: str) -> Reading:
    """Read the answer to a question from rendered passages.

    Where a question without parts was answered, and no page that is cited explains all of it, it is one that could not
    be taken apart: then the chain that leads to the answer is cited, too.
    """
    parts = decompose(question)
    reading = _read(question, passages, parts)
    if reading.answer == UNKNOWN or len(parts) > 1:
        return reading
    pages = read_pages(passages)
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


def _read(question: str, passages: str, sub_questions: Sequence[str]) -> Reading:
    inputs = {"question": question, "passages": passages, "sub_questions": json.dumps(list(sub_questions))}
    reply = answer_question(Prompt(inputs, ("reasoning", "answer", "confidence"), as_json=True))
    cited = dict.fromkeys(_CITED.findall(reply["reasoning"])) if reply["answer"] != UNKNOWN else {}
    return Reading(reply["answer"], reply["confidence"], tuple(cited))


def answer_step(prompt: Prompt) -> dict[str, Any]:
    """The answer to one step, with the lines that it came from."""
    reading = read(prompt.inputs.get("question", ""), prompt.inputs.get("sources", ""))
    return {"cited": list(reading.cited), "answer": reading.answer if reading.cited else "I don't know"}


def answer_finally(prompt: Prompt) -> dict[str, Any]:
    """Conclude from a trajectory, where the prompt has one; from the passages alone where it has none."""
    steps = read_trajectory(prompt)
    if not steps:
        return answer_question(prompt)
    question, evidence = prompt.inputs.get("question", ""), prompt.inputs.get("evidence", "")
    reading = _read(question, evidence, [step.question for step in steps])
    reasoning = " ".join(f"{step.question} {step.answer}." for step in steps)
    return {"reasoning": reasoning, "answer": reading.answer, "confidence": reading.confidence}
