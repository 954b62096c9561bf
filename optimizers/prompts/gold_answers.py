"""Demos for the agents that answer, judge an answer, or revise it."""

from __future__ import annotations

from ...data.passages import Evidence
from ...signatures import (
    AnswerDirectly,
    AnswerFromCollection,
    AnswerFromEvidence,
    AnswerFromKnowledge,
    AnswerFromPassages,
    AnswerFromTrajectory,
    AnswerStep,
    AnswerWithCitations,
    JudgeAccuracy,
    JudgeAttribution,
    ReviseAnswer,
    VerifyAnswer,
)
from .solved import Agents, Demo, Solved

_SURE = 0.95


def _answer_directly(case: Solved, n: int) -> Demo | None:
    return {"question": case.question, **_answer(case, cite=False)}


def _answer_from_passages(case: Solved, n: int) -> Demo | None:
    return {"question": case.question, "passages": case.show(), **_answer(case)} if case.evidence else None


def _answer_from_collection(case: Solved, n: int) -> Demo | None:
    demo = _answer_from_passages(case, n)
    return None if demo is None else {**demo, "notes": []}


def _answer_from_evidence(case: Solved, n: int) -> Demo | None:
    return {**case.task, "evidence": case.show(case.evidence), **_answer(case)} if case.evidence else None


def _answer_from_knowledge(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    known = [f"{item.passage.title}: {item.text}" for item in case.evidence]
    return {"question": case.question, "known": known, "evidence": case.show(case.evidence), **_answer(case)}


def _answer_from_trajectory(case: Solved, n: int) -> Demo | None:
    if not case.evidence or not case.steps:
        return None
    shown = case.show(case.evidence)
    return {"question": case.question, "trajectory": case.trajectory, "evidence": shown, **_answer(case)}


def _answer_step(case: Solved, n: int) -> Demo | None:
    step = case.steps[n % len(case.steps)] if case.steps else None
    if step is None or not step.evidence:
        return None
    cited = case.ids(step.evidence)
    return {"question": step.asked, "sources": case.show(), "cited": cited, "answer": step.answer}


def _answer_with_citations(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    return {**case.task, **_read(case), **_answer(case), "citations": case.ids(case.evidence)}


def _verify(case: Solved, n: int) -> Demo | None:
    """In turns: a right answer, and that of an earlier step."""
    if not case.evidence:
        return None
    wrong = case.wrong if n % 2 else None
    return {
        **case.task,
        **_read(case),
        "proposed_answer": wrong or case.answer,
        "correction": case.answer,
        "attribution": "contradictory" if wrong else "attributable",
        "accuracy": 1 - _SURE if wrong else _SURE,
    }


def _judge_accuracy(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    wrong = case.wrong if n % 2 else None
    return {
        "question": case.question,
        "sources": case.show(),
        "answer": wrong or case.answer,
        "accuracy": 1 - _SURE if wrong else _SURE,
    }


def _judge_attribution(case: Solved, n: int) -> Demo | None:
    """In turns: all of the evidence, a passage too few, and the answer of an earlier step."""
    first, _ = case.parted()
    if not case.evidence:
        return None
    wrong = case.wrong if n % 3 == 2 else None
    partly = bool(first) and n % 3 == 1
    return {
        "question": case.question,
        "evidence": case.show(first if partly else case.evidence),
        "answer": wrong or case.answer,
        "attribution": "contradictory" if wrong else "extrapolatory" if partly else "attributable",
    }


def _revise(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    return {
        "question": case.question,
        "sources": case.show(),
        "draft": (case.wrong if n % 2 else None) or "unknown",
        "reason": case.reasoning(),
        "decision": "revised",
        "answer": case.answer,
        "cited": case.ids(case.evidence),
    }


def _read(case: Solved) -> Demo:
    """The passages of the evidence, whole, and the others."""
    whole = [Evidence(item.passage) for item in case.evidence]
    return {"evidence": case.show(whole), "other_passages": case.others()}


def _answer(case: Solved, cite: bool = True) -> Demo:
    return {"reasoning": case.reasoning(cite), "answer": case.answer, "confidence": _SURE}


ANSWERS: Agents = {
    AnswerDirectly: _answer_directly,
    AnswerFromPassages: _answer_from_passages,
    AnswerFromCollection: _answer_from_collection,
    AnswerFromEvidence: _answer_from_evidence,
    AnswerFromKnowledge: _answer_from_knowledge,
    AnswerFromTrajectory: _answer_from_trajectory,
    AnswerStep: _answer_step,
    AnswerWithCitations: _answer_with_citations,
    VerifyAnswer: _verify,
    JudgeAccuracy: _judge_accuracy,
    JudgeAttribution: _judge_attribution,
    ReviseAnswer: _revise,
}
