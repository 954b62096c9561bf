"""Demos from what a dataset knows about its questions: for each agent one with its own inputs and outputs.

Decompositions (MuSiQue, the sample) are for analyzers and planners, supporting facts for those who choose evidence,
answers for those who answer and verify. An agent is known by its fields, whatever its instruction has become; of other
programs' agents those get demos whose fields are all in the questions themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import dspy

from ...programs.plan import demonstrated
from ...signatures import AnalyzeQuestion, DrawRoadmap, PlanResearch, PlanSteps, RefineQuestion, RouteQuestion
from .gold_answers import ANSWERS
from .gold_evidence import EVIDENCE
from .solved import Agents, Demo, Solved, solved

MOST_WORDS = 400
"""A demo that is longer is left out."""


def gold_demos(program: dspy.Module, questions: Sequence[dspy.Example]) -> dict[str, list[dspy.Example]]:
    """Demos by the name of the agent that they are for; none for an agent about whose work nothing is known.

    Passages come from the question's own pool, or from the program's retriever, if it has one. No model is asked.
    """
    retriever = getattr(getattr(program, "search", None), "retriever", None)
    if getattr(retriever, "source", retriever) is None:  # one that only follows chains through a question's own pool
        retriever = None
    known = [case for case in (solved(question, retriever) for question in questions) if case is not None]
    return {name: list(_demos(predictor.signature, known, questions)) for name, predictor in program.named_predictors()}


def _demos(
    signature: type[dspy.Signature], known: Iterable[Solved], questions: Iterable[dspy.Example]
) -> Iterator[dspy.Example]:
    make = _MAKERS.get(frozenset(signature.fields))
    if make is None:
        for question in questions:
            given = {"answer": next(iter(question.get("answers") or ()), None), **question}
            if all(given.get(name) is not None for name in signature.fields):
                yield dspy.Example({name: given[name] for name in signature.fields})
        return
    for n, case in enumerate(known):
        demo = make(case, n)
        if demo is not None and sum(len(str(value).split()) for value in demo.values()) <= MOST_WORDS:
            yield dspy.Example(demo)


# --- agents that plan ---


def _analyze(case: Solved, n: int) -> Demo | None:
    return {"question": case.question, "sub_questions": case.sub_questions} if case.steps else None


def _plan(case: Solved, n: int) -> Demo | None:
    route = "plan" if len(case.steps) > 1 else "single"
    return {"question": case.question, "route": route, "sub_questions": case.sub_questions} if case.steps else None


def _plan_steps(case: Solved, n: int) -> Demo | None:
    return {"question": case.question, "steps": demonstrated(case.sub_questions)} if case.steps else None


def _draw_roadmap(case: Solved, n: int) -> Demo | None:
    return {"question": case.question, "roadmap": case.sub_questions} if case.steps else None


def _route(case: Solved, n: int) -> Demo | None:
    if not case.steps:
        return None
    single = len(case.steps) == 1
    return {
        "question": case.question,
        "route": "single" if single else "plan",
        "query": case.question if single else "none",
    }


def _refine(case: Solved, n: int) -> Demo | None:
    last = len(case.steps) - 1
    if last < 1 or case.steps[last].question == case.steps[last].asked:
        return None
    return {
        "question": case.question,
        "trajectory": case.trajectory[:last],
        "next_question": case.steps[last].question,
        "refined_question": case.steps[last].asked,
    }


_PLANS: Agents = {
    AnalyzeQuestion: _analyze,
    PlanResearch: _plan,
    PlanSteps: _plan_steps,
    DrawRoadmap: _draw_roadmap,
    RouteQuestion: _route,
    RefineQuestion: _refine,
}
_MAKERS = {frozenset(signature.fields): make for signature, make in {**_PLANS, **EVIDENCE, **ANSWERS}.items()}
