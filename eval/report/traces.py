"""What the record of a question shows: its outcome, and the recall of its evidence by search and by round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from ...programs.prediction import UNKNOWN
from ..records import QuestionRecord

Record = Mapping[str, Any]
"""A step of a trace as JSON."""


def flat(records: Iterable[Record]) -> Iterator[Record]:
    """Every step; parallel branches one after the other."""
    for record in records:
        if record["step"] == "parallel":
            for branch in record["branches"]:
                yield from flat(branch)
        else:
            yield record


def _hits(step: Record) -> set[str]:
    return {id for id, _, _ in step["found"]} if step["step"] == "searched" else set()


def _passages(facts: Iterable[tuple[str, int | None]]) -> set[str]:
    return {id for id, _ in facts}


# --- outcomes --------------------------------------------------------------------------------------------------------


class Outcome(StrEnum):
    """The result of a question; each question has exactly one. Reports show them in this order."""

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
    Outcome.correct: "the answer equals a gold answer after normalization (exact match)",
    Outcome.reading: "all gold passages are in the evidence, but the answer is wrong",
    Outcome.selection: "all gold passages were found, but not all are in the evidence, and the answer is wrong",
    Outcome.retrieval: "a gold passage was never found (or the program does not search), and the answer is wrong",
    Outcome.wrong: "the answer is wrong, and the dataset names no gold passages",
    Outcome.abstained: f"the program answered “{UNKNOWN}”, which is not the gold answer",
    Outcome.failed: "no answer because of an error, a time limit or an unreachable model; scored 0 in every mean",
}


def outcome(record: QuestionRecord) -> Outcome:
    if record.error is not None:
        return Outcome.failed
    if record.scores["answer_em"] == 1.0:
        return Outcome.correct
    if record.answer == UNKNOWN:
        return Outcome.abstained
    gold = set(record.gold)
    if not gold:
        return Outcome.wrong
    if not gold <= found(record):
        return Outcome.retrieval
    if not gold <= _evidence(record):
        return Outcome.selection
    return Outcome.reading


def found(record: QuestionRecord) -> set[str]:
    """Ids of all passages that a program retrieved; programs without a trace count what they return."""
    searched = [id for step in flat(record.trace) for id in _hits(step)]
    return set(record.counted([*searched, *record.ranking])) | _evidence(record)


def _evidence(record: QuestionRecord) -> set[str]:
    return set(record.counted(item.passage_id for item in record.evidence))


# --- convergence -----------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """The evidence after a round, scored against the gold passages."""

    recall: float
    precision: float
    required: int | None = None  # number of open questions, if the program reports it


@dataclass(frozen=True)
class Course:
    """One question over time."""

    found: tuple[float, ...]  # recall of the gold passages among all retrieved passages, after each search
    rounds: tuple[Round, ...]  # the evidence after each round


class Mean(NamedTuple):
    """A mean over questions after search or round ``number``; a question that stopped earlier keeps its last value."""

    number: int
    mean: float
    reached: int  # number of questions with that many searches or rounds


def course(record: QuestionRecord) -> Course | None:
    """The course of a question; None without gold passages or without a trace.

    A round is a `Selected` or `Added` step, or a sub-question that was answered with citations (`StepAnswered`, with
    the citations of `Revised`). A selector either replaces the evidence (PRISM) or extends it (C-3PO); the trace does
    not say which. It extends if a passage that it dropped is in the final evidence.
    """
    gold, steps = set(record.gold), list(flat(record.trace))
    if not gold or not steps:
        return None
    replaced, extended = _rounds(steps, extends=False), _rounds(steps, extends=True)
    dropped = extended[-1][0] - replaced[-1][0] if replaced else set()
    rounds = extended if dropped & {item.passage_id for item in record.evidence} else replaced
    scores = (_score(set(record.counted(evidence)), gold, open) for evidence, open in rounds)
    return Course(tuple(_recalls(record, steps, gold)), tuple(scores))


def _recalls(record: QuestionRecord, steps: Iterable[Record], gold: set[str]) -> Iterator[float]:
    seen: set[str] = set()
    for step in steps:
        if step["step"] == "searched":
            seen |= _hits(step)
            yield len(gold.intersection(record.counted(seen))) / len(gold)


def _rounds(steps: Iterable[Record], *, extends: bool) -> list[tuple[set[str], int | None]]:
    """The ids of the evidence after each round, and the number of open questions."""
    rounds: dict[int, tuple[set[str], int | None]] = {}
    evidence: set[str] = set()
    required: int | None = None
    number = 0
    for step in steps:
        match step["step"]:
            case "selected":
                number, kept = step["round"], _passages(step["kept"])
                evidence = evidence | kept if extends else kept
            case "added":
                number, evidence = step["round"], evidence | _passages(step["added"])
            case "stepanswered":
                number, evidence = step["number"], evidence | _passages(step["cited"])
            case "revised" if step["accepted"] and rounds:
                evidence = evidence | _passages(step["cited"])
            case "required":
                required = len(step["questions"])
            case "learned":  # recorded before the selection of its round
                required = len(step["required"])
                continue
            case _:
                continue
        if number:
            rounds[number] = evidence, required
    return [rounds[number] for number in sorted(rounds)]


def _score(evidence: set[str], gold: set[str], required: int | None) -> Round:
    common = len(evidence & gold)
    return Round(common / len(gold), common / len(evidence) if evidence else 0.0, required)


def means(series: Iterable[Sequence[float]]) -> list[Mean]:
    """Means over questions, from the values of each question after its first, second, ... search or round."""
    known = [values for values in series if values]
    longest = max(map(len, known), default=0)
    return [
        Mean(
            n + 1,
            sum(values[min(n, len(values) - 1)] for values in known) / len(known),
            sum(len(values) > n for values in known),
        )
        for n in range(longest)
    ]


def by_round(courses: Iterable[Course | None], value: Callable[[Round], float | None]) -> list[Mean]:
    return means(
        [known for each in course.rounds if (known := value(each)) is not None] for course in courses if course
    )


def by_search(courses: Iterable[Course | None]) -> list[Mean]:
    return means(course.found for course in courses if course)
