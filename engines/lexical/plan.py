"""The planning agents: decomposition, routing, and the next step."""

from __future__ import annotations

import re
from typing import Any

from ...data.references import references, replace_references
from ...data.text import content_terms, title_key
from ...signatures import (
    AnalyzeQuestion,
    DecideNext,
    DrawRoadmap,
    PlanResearch,
    PlanSteps,
    ReasonOn,
    RefineQuestion,
    RouteQuestion,
)
from .answer import NEXT, UNKNOWN, answer_question, read_trajectory, small_talk
from .decompose import decompose
from .engine import skill
from .hops import NONE, SubGoal, sub_goals
from .prompt import ParsedPrompt
from .question import mask
from .spans import WH

ATOMIC = 5  # most content words, beside a name, of a question about one fact
# Tuned for evidence F1 on train questions of 2WikiMultihopQA, HotpotQA and MuSiQue, with BM25.
KNOWN = 0.3  # least probability of an answer that needs no search
STATED = 0.1  # least probability of an answer that the reasoner states; it may state another one later

_CLAUSE = re.compile(rf"\b(?:that|{WH})\b", re.IGNORECASE)
_KIN = re.compile(r"\b(?:grand|step|half-|great-)\w+|in-law\b|\b(?:nephew|niece|uncle|aunt|cousin)\b", re.IGNORECASE)
_SEARCHED = re.compile(r'^"(?P<query>.*)"(?:, page \d+)? - ')


@skill(AnalyzeQuestion)
def analyze_question(prompt: ParsedPrompt) -> dict[str, Any]:
    """The ordered sub-questions."""
    return {"sub_questions": decompose(prompt.question)}


@skill(PlanResearch)
def plan_research(prompt: ParsedPrompt) -> dict[str, Any]:
    """The sub-questions and the route."""
    return analyze_question(prompt) | {"route": route_question(prompt)["route"]}


@skill(RouteQuestion)
def route_question(prompt: ParsedPrompt) -> dict[str, Any]:
    """No search for small talk, one for one relation of one name, a plan for everything else."""
    question = prompt.question
    if small_talk(question):
        return {"route": "direct", "query": ""}
    if _is_atomic(question):
        return {"route": "single", "query": question}
    return {"route": "plan", "query": ""}


def _is_atomic(question: str) -> bool:
    """Whether a question asks for one relation of one thing.

    It has no sub-questions, no second clause, and no relation that is made of two, as "grandfather" is.
    """
    masked = mask(question)
    asked = [term for term in content_terms(masked.text) if not term.isdigit()]  # without the "0" of "@0"
    short = len(decompose(question)) == 1 and len(masked.names) <= 1 and len(asked) <= ATOMIC
    return short and len(_CLAUSE.findall(masked.text)) <= 1 and not _KIN.search(masked.text)


@skill(DrawRoadmap)
def draw_roadmap(prompt: ParsedPrompt) -> dict[str, Any]:
    return {"roadmap": decompose(prompt.question)}


@skill(PlanSteps)
def plan_steps(prompt: ParsedPrompt) -> dict[str, Any]:
    """One step per sub-question; its thought lists the steps that it refers to."""
    return {"steps": [{"thought": _thought(each), "question": each} for each in decompose(prompt.question)]}


def _thought(question: str) -> str:
    needed = [str(number) for number in references(question)]
    if not needed:
        return "Needs nothing before it."
    return f"Needs the answer{'s' * (len(needed) > 1)} of step{'s' * (len(needed) > 1)} {' and '.join(needed)}."


@skill(RefineQuestion)
def refine_question(prompt: ParsedPrompt) -> dict[str, Any]:
    """The next question with the known answers in place of its references."""
    known = {number: answer for number, _, answer in read_trajectory(prompt) if answer != UNKNOWN}
    return {"refined_question": replace_references(prompt.text("next_question"), known.get)}


@skill(DecideNext)
def decide_next(prompt: ParsedPrompt) -> dict[str, Any]:
    """Search for the question first, then once for each open sub-goal; then answer."""
    matches = (_SEARCHED.match(entry) for entry in prompt.listed("queries"))
    searched = {title_key(match["query"]) for match in matches if match}
    goals = _ready_goals(prompt.listed("roadmap"), prompt, KNOWN)
    for query in (prompt.question, *(goal.question for goal in goals if goal.answer is NONE)):
        if title_key(query) not in searched:
            return {"thought": f"{NEXT}{query}", "action": "retrieve", "query": query}
    return {"thought": "All that can be found has been found.", "action": "answer", "query": ""}


def _ready_goals(sub_questions: list[str], prompt: ParsedPrompt, least: float) -> list[SubGoal]:
    """The sub-goals whose references are answered. An answer counts if it is likely."""
    goals = sub_goals(sub_questions, prompt.passages("passages"), least)
    return [goal for goal in goals if goal.is_ready]


# --- IRCoT -----------------------------------------------------------------------------------------------------------


@skill(ReasonOn)
def reason_on(prompt: ParsedPrompt) -> dict[str, Any]:
    """State the answer of the first sub-question that the thoughts do not cover, or that it is missing."""
    thoughts = {title_key(thought) for thought in prompt.listed("thoughts")}
    for goal in _ready_goals(decompose(prompt.question), prompt, STATED):
        thought = _statement(goal)
        if title_key(thought) not in thoughts:
            return {"next_thought": thought}
    return {"next_thought": f"So the answer is: {answer_question(prompt)['answer']}."}


def _statement(goal: SubGoal) -> str:
    """One sentence with the question and its answer: the names of all that it is about, so that it works as a query."""
    asked = goal.question.rstrip("? ")
    return f"It is missing here: {asked}." if goal.answer is NONE else f"{asked}: {goal.answer.text.rstrip('.')}."
