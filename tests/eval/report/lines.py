"""Made-up records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyhop.eval.records import QuestionRecord


def line(n: int = 0, **changes: Any) -> dict[str, Any]:
    """A correct answer to a question with two gold passages, which one search found and one selection kept."""
    made = {
        "n": n,
        "id": f"q{n}",
        "question": "Which river flows through the town?",
        "hops": 2,
        "kind": "bridge",
        "gold_answers": ["Blue River"],
        "gold": ["a", "b"],
        "gold_not_found": False,
        "answer": "Blue River",
        "evidence": evidence("a", "b"),
        "ranking": ["a", "b", "c"],
        "confidence": 0.9,
        "stop_reason": "stable",
        "trace": [searched("a", "b", "c"), selected(1, "a", "b")],
        "scores": {"answer_em": 1.0, "answer_f1": 1.0, "joint_f1": 1.0, "evidence_f1": 1.0},
        "costs": {"lm_calls": 2, "lm_calls_critical_path": 2, "searches": 1, "seconds": 0.1},
        "official": None,
    }
    return {**made, **changes}


def wrong(**changes: Any) -> dict[str, Any]:
    scores = {"answer_em": 0.0, "answer_f1": 0.0, "joint_f1": 0.0, "evidence_f1": 1.0}
    return line(**{"answer": "Red River", "scores": scores, **changes})


def failed(n: int = 0, message: str = "no luck") -> dict[str, Any]:
    made = wrong(n=n, answer=None, evidence=[], ranking=[])
    for name in ("confidence", "stop_reason", "trace"):
        del made[name]
    return {**made, "error": {"cause": "model", "type": "LMError", "message": message}}


def evidence(*ids: str) -> list[dict[str, Any]]:
    return [{"passage_id": id, "title": id.upper(), "sentence": 0, "text": f"About {id}."} for id in ids]


def searched(*ids: str) -> dict[str, Any]:
    return {"step": "searched", "query": "which river", "found": [[id, id.upper(), 1.0] for id in ids], "offset": 0}


def selected(round: int, *ids: str) -> dict[str, Any]:
    return {"step": "selected", "round": round, "kept": [[id, 0] for id in ids], "invalid": [], "flagged": []}


def parallel(*branches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"step": "parallel", "branches": [list(branch) for branch in branches]}


def record(line: Mapping[str, Any]) -> QuestionRecord:
    return QuestionRecord.model_validate(line)
