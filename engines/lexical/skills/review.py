"""PAR-RAG's judges and its reviser: each reads the question again and compares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....data.text import title_key
from ....signatures import JudgeAccuracy, JudgeAttribution, ReviseAnswer
from ..engine import skill
from ..prompt import Prompt
from ..reading import Page, read_pages
from ..relations import relation_terms
from ..resolve import same
from .answer import UNKNOWN
from .trajectory import Reading, read

CLEARLY = 0.1  # how much surer another answer must be
PLAINLY = 0.4  # confidence of a reading that cited evidence plainly leads to


@skill(JudgeAccuracy)
def judge_accuracy(prompt: Prompt) -> dict[str, Any]:
    """The confidence of a second reading that gives the same answer; of another reading, what it leaves."""
    question, sources, answer = (prompt.inputs.get(name, "") for name in ("question", "sources", "answer"))
    reading = read(question, sources)
    if same(reading.answer, answer):
        return {"accuracy": reading.confidence}
    return {"accuracy": round(min(_reading_of(answer, question, sources).confidence, 1 - reading.confidence), 2)}


@skill(JudgeAttribution)
def judge_attribution(prompt: Prompt) -> dict[str, Any]:
    """Whether a cited line has the answer and what was asked, or has what was asked and an answer that fits better."""
    question, evidence, answer = (prompt.inputs.get(name, "") for name in ("question", "evidence", "answer"))
    reading, pages = read(question, evidence), read_pages(evidence)
    agrees = same(reading.answer, answer)
    if (agrees and reading.confidence >= PLAINLY) or _says(answer, question, pages):
        return {"attribution": "attributable"}
    better = not agrees and reading.confidence >= _reading_of(answer, question, evidence).confidence + CLEARLY
    contradicts = better and _says(reading.answer, question, pages)
    return {"attribution": "contradictory" if contradicts else "extrapolatory"}


@skill(ReviseAnswer)
def revise_answer(prompt: Prompt) -> dict[str, Any]:
    """Read again over all sources: revised if the answer is another and clearly surer."""
    question, sources, draft = (prompt.inputs.get(name, "") for name in ("question", "sources", "draft"))
    reading = read(question, sources)
    known = reading.answer != UNKNOWN and not same(reading.answer, draft)
    if known and reading.confidence >= _reading_of(draft, question, sources).confidence + CLEARLY:
        reason = f"{' '.join(f'[{id}]' for id in reading.cited)} tells {reading.answer}."
        return {"decision": "revised", "answer": reading.answer, "cited": list(reading.cited), "reason": reason}
    return {"decision": "unconfident", "answer": draft, "cited": [], "reason": "No source tells it better."}


def _says(answer: str, question: str, pages: Iterable[Page]) -> bool:
    """Whether a line has the answer and most of what is asked; the title counts as part of the line."""
    key, asked = f" {title_key(answer)} ", relation_terms(question)
    return any(
        key in f"{line.key} {title_key(page.title)} "
        and 2 * len(asked & relation_terms(f"{page.title} {line.text}")) > len(asked)
        for page in pages
        for line in page.lines
    )


def _reading_of(answer: str, question: str, passages: str) -> Reading:
    """The reading of the passages that mention an answer, if it is that answer; else nothing."""
    nothing = Reading(UNKNOWN, 0.0, ())
    key = title_key(answer)
    mentioning = [page for page in read_pages(passages) if _mentions(page, key)] if key else []
    reading = read(question, "\n".join(map(_render, mentioning))) if mentioning else nothing
    return reading if same(reading.answer, answer) else nothing


def _mentions(page: Page, key: str) -> bool:
    return f" {key} " in f" {title_key(page.title)} " or any(f" {key} " in line.key for line in page.lines)


def _render(page: Page) -> str:
    return "\n".join([f"[{page.number}] {page.title}", *(f"{line.id} {line.text}" for line in page.lines)])
