"""What became of a question: right, or at which of the stages it was lost. Each question is exactly one of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ...programs.prediction import UNKNOWN
from .steps import flat, hits


class Outcome(StrEnum):
    """In the order in which reports show them."""

    correct = "correct"
    reading = "reading error"
    selection = "selection miss"
    retrieval = "retrieval miss"
    wrong = "wrong, no gold"
    abstained = "abstained"
    failed = "failed"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Outcome.correct: "the answer equals a gold answer after normalisation (exact match)",
    Outcome.reading: "the evidence holds every gold passage, and the answer is wrong",
    Outcome.selection: "every gold passage was found, but not every one is in the evidence, and the answer is wrong",
    Outcome.retrieval: "a gold passage was never found (a program that does not search finds none), and the answer is "
    "wrong",
    Outcome.wrong: "the answer is wrong, and the dataset names no gold passages",
    Outcome.abstained: f"the program said “{UNKNOWN}”, and that is not the gold answer",
    Outcome.failed: "there is no answer: an error, a time limit, a model out of reach; it scores 0 in every mean",
}


def outcome(line: Mapping[str, Any]) -> Outcome:
    """What became of the question of a run's line."""
    if "error" in line:
        return Outcome.failed
    if line["scores"]["answer_em"] == 1.0:
        return Outcome.correct
    if line["answer"] == UNKNOWN:
        return Outcome.abstained
    gold = set(line["gold"])
    if not gold:
        return Outcome.wrong
    if not gold <= found(line):
        return Outcome.retrieval
    if not gold <= {item["passage_id"] for item in line["evidence"]}:
        return Outcome.selection
    return Outcome.reading


def found(line: Mapping[str, Any]) -> set[str]:
    """The passages that came into sight: those of every search, and of programs that record none those they name."""
    searched = {id for step in flat(line.get("trace") or ()) for id in hits(step)}
    return searched | set(line["ranking"]) | {item["passage_id"] for item in line["evidence"]}
