"""Demos for the agents that choose evidence, or say what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ...data.passages import Evidence
from ...programs.candidates import Candidates
from ...signatures import (
    AddEvidence,
    AssessEvidence,
    CompleteEvidence,
    DecideNext,
    FilterForObjective,
    FilterPassages,
    FilterSpans,
    SelectEvidence,
)
from .solved import Agents, Demo, Solved


def _select(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    return {**case.task, "candidates": case.show(), "selected": [], "keep": case.ids(case.evidence)}


def _add(case: Solved, n: int) -> Demo | None:
    """What a passage too few was selected of, and every third time nothing to add."""
    first, last = case.parted()
    if not case.evidence:
        return None
    selected, added = (first, last) if first and n % 3 < 2 else (list(case.evidence), [])
    return {**case.task, "candidates": case.show(), "selected": case.ids(selected), "add": case.ids(added)}


def _complete(case: Solved, n: int) -> Demo | None:
    """As `_add`, and every third time the passage of the last step is not there: its question is still required."""
    first, last = case.parted()
    if not case.evidence:
        return None
    demo = {**case.task, "open_questions": []}
    if first and n % 3 == 1 and case.steps and {item.passage for item in case.steps[-1].evidence} == {last[0].passage}:
        gone = last[0].passage
        there = Candidates(passage for passage in case.passages if passage != gone)
        return {
            **demo,
            "candidates": there.show(),
            "selected": there.ids(first[:1]),
            "add": there.ids(first[1:]),
            "required": [case.steps[-1].asked],
        }
    selected, added = (first, last) if first and n % 3 < 2 else (list(case.evidence), [])
    return {
        **demo,
        "candidates": case.show(),
        "selected": case.ids(selected),
        "add": case.ids(added),
        "required": [],
    }


def _filter(case: Solved, n: int) -> Demo | None:
    if not case.evidence:
        return None
    return {"question": case.question, "passages": case.show(), **_useful(case, case.evidence)}


def _filter_for_objective(case: Solved, n: int) -> Demo | None:
    """The objective is one of the steps; what later steps need is kept, too."""
    if not case.evidence or not case.steps:
        return None
    at = n % len(case.steps)
    needed = [item for step in case.steps[at:] for item in step.evidence]
    return {
        "question": case.question,
        "objective": case.steps[at].asked,
        "passages": case.show(),
        **_useful(case, needed),
    }


def _decide(case: Solved, n: int) -> Demo | None:
    """In turns: the last step is still to be searched for, and all is there."""
    if not case.evidence or len(case.steps) < 2:
        return None
    whole = n % 2 == 1
    *before, last = case.steps
    there = [Evidence(item.passage) for step in (case.steps if whole else before) for item in step.evidence]
    known = " ".join(f"{step.asked} {step.answer}." for step in (case.steps if whole else before))
    return {
        "question": case.question,
        "roadmap": case.sub_questions,
        "passages": case.show(there),
        "queries": [f'"{step.asked}" - 1 kept' for step in (case.steps if whole else before)],
        "thought": f"{known} That is enough." if whole else f"{known} Next: {last.asked}",
        "action": "answer" if whole else "retrieve",
        "query": "none" if whole else last.asked,
    }


def _filter_spans(case: Solved, n: int) -> Demo | None:
    if not case.evidence or any(item.sentence is None for item in case.evidence):
        return None
    return {
        "question": case.question,
        "known": [],
        "required": [step.asked for step in case.steps] or [case.question],
        "passages": case.show(),
        "spans": [f"{id} {item.text}" for id, item in zip(case.ids(case.evidence), case.evidence, strict=True)],
    }


def _assess(case: Solved, n: int) -> Demo | None:
    """In turns: enough, and a passage too few."""
    first, _ = case.parted()
    if not case.evidence:
        return None
    missing = bool(first) and n % 2 == 1
    evidence = case.show(first if missing else case.evidence)
    return {"question": case.question, "evidence": evidence, "sufficiency": 0.2 if missing else 1.0}


def _useful(case: Solved, evidence: Sequence[Evidence]) -> Demo:
    """A filter's reply: a line on each passage, and the numbers of those to keep."""
    ids = case.ids(list(dict.fromkeys(Evidence(item.passage) for item in evidence)))
    told = dict.fromkeys(case.ids([Evidence(passage) for passage in case.passages]), "does not help")
    told |= dict.fromkeys(ids, "is needed for the answer")
    for step in case.steps:
        for item in step.evidence:
            if (id := case.ids([Evidence(item.passage)])[0]) in ids:
                told[id] = f"tells: {step.asked} {step.answer}"
    return {"thoughts": "\n".join(f"{id}: {text}" for id, text in told.items()), "useful": ids}


EVIDENCE: Agents = {
    SelectEvidence: _select,
    AddEvidence: _add,
    CompleteEvidence: _complete,
    FilterPassages: _filter,
    FilterForObjective: _filter_for_objective,
    DecideNext: _decide,
    FilterSpans: _filter_spans,
    AssessEvidence: _assess,
}
