"""How the evidence grew: what was found after each search, and what was kept after each round.

A round is one of `Selected` and `Added`, or a sub-question that was answered with citations (`StepAnswered`, with what
`Revised` cited in its place). Two kinds of Selector are known: one judges everything anew, so that its choice takes the
place of the evidence before (PRISM), the other only collects (C-3PO). Which it was the end tells: a passage that was
kept, was not kept again, and is evidence all the same has been collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .steps import Record, flat, hits, passages


class Round(NamedTuple):
    """The evidence after a round against the gold passages.

    Attributes:
        required: How many questions were still open, where the program says so.
    """

    recall: float
    precision: float
    required: int | None = None


@dataclass(frozen=True)
class Course:
    """What one question's trace shows.

    Attributes:
        found: Recall of the gold passages over all that was found, after each search.
        rounds: The evidence after each round.
    """

    found: tuple[float, ...]
    rounds: tuple[Round, ...]


class Point(NamedTuple):
    """The mean over questions after one search or round. A question that ended before keeps what it had.

    Attributes:
        reached: How many questions came so far.
    """

    number: int
    mean: float
    reached: int


def course(line: Mapping[str, Any]) -> Course | None:
    """The course of a question; None without gold passages or without a trace."""
    gold = set(line["gold"])
    steps = list(flat(line.get("trace") or ()))
    if not gold or not steps:
        return None
    rounds = _rounds(steps, {item["passage_id"] for item in line["evidence"]})
    return Course(_found(steps, gold), tuple(_score(evidence, gold, open) for evidence, open in rounds))


def _found(steps: Iterable[Record], gold: set[str]) -> tuple[float, ...]:
    seen: set[str] = set()
    recalls = []
    for step in steps:
        if step["step"] == "searched":
            seen.update(hits(step))
            recalls.append(len(seen & gold) / len(gold))
    return tuple(recalls)


_Rounds = list[tuple[set[str], int | None]]


def _rounds(steps: Sequence[Record], final: set[str]) -> _Rounds:
    """The passages of the evidence after each round, and how many questions were open."""
    anew = _replayed(steps, collects=False)
    collected = _replayed(steps, collects=True)
    lost = collected[-1][0] - anew[-1][0] if anew else set()
    return collected if lost & final else anew


def _replayed(steps: Iterable[Record], *, collects: bool) -> _Rounds:
    rounds: dict[int, tuple[set[str], int | None]] = {}
    evidence: set[str] = set()
    required: int | None = None
    number = 0
    for step in steps:
        match step["step"]:
            case "selected":
                number, kept = step["round"], passages(step["kept"])
                evidence = evidence | kept if collects else kept
            case "added":
                number, evidence = step["round"], evidence | passages(step["added"])
            case "stepanswered":
                number, evidence = step["number"], evidence | passages(step["cited"])
            case "revised" if step["accepted"] and rounds:
                evidence = evidence | passages(step["cited"])
            case "required":
                required = len(step["questions"])
            case "learned":  # said before the round's choice
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


def means(series: Iterable[Sequence[float]]) -> list[Point]:
    """The means of several questions' values after their first, second, ... search or round."""
    known = [values for values in series if values]
    longest = max(map(len, known), default=0)
    return [
        Point(
            n + 1,
            sum(values[min(n, len(values) - 1)] for values in known) / len(known),
            sum(len(values) > n for values in known),
        )
        for n in range(longest)
    ]


def over_rounds(courses: Iterable[Course | None], value: Callable[[Round], float | None]) -> list[Point]:
    """`means` of a value of the rounds."""
    return means(
        [known for each in course.rounds if (known := value(each)) is not None] for course in courses if course
    )


def over_searches(courses: Iterable[Course | None]) -> list[Point]:
    """`means` of what was found."""
    return means(course.found for course in courses if course)
