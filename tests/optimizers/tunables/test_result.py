"""Which trial is chosen, and how trials are written."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tunables.result import TrialRecord, choose, pareto_front


def trial(number: int, scores: list[float], calls: float = 1.0, **more: Any) -> TrialRecord:
    known = {"state": "complete", "values": {}, "costs": {"calls": calls}, "score": None} | more
    mean = sum(scores) / len(scores) if scores else None
    return TrialRecord(number=number, **{**known, "score": mean}, scores=dict(enumerate(scores)))


BEST = [0.8, 0.6, 0.8, 0.6]
CLOSE = [0.4, 0.6, 0.8, 0.6]  # differences to the best: mean 0.1, standard error 0.1
APART = [0.4, 0.6, 0.7, 0.6]  # mean 0.125, standard error 0.096
SHIFTED = [0.7, 0.5, 0.7, 0.5]  # mean 0.1, no deviation


@pytest.mark.parametrize(
    ("trials", "cost", "at_most", "chosen"),
    [
        ([trial(0, [0.2, 0.2]), trial(1, [0.4, 0.8]), trial(2, [0.8, 0.4])], None, {}, 1),  # the first of equal ones
        ([trial(0, CLOSE), trial(1, BEST)], None, {}, 0),  # the defaults, within a standard error
        ([trial(0, APART), trial(1, BEST)], None, {}, 1),
        ([trial(3, CLOSE), trial(1, BEST)], None, {}, 1),  # only the defaults are kept so
        (
            [trial(0, [0.5], 2), trial(1, [0.9], state="pruned"), trial(2, [0.8], 5), trial(3, [0.6], 3)],
            None,
            {"calls": 3},
            3,
        ),
        ([trial(0, CLOSE, 1), trial(1, BEST, 2)], "calls", {}, 0),  # the cheapest within a standard error
        ([trial(0, SHIFTED, 1), trial(1, BEST, 2)], "calls", {}, 1),
        ([trial(0, SHIFTED, 1), trial(1, CLOSE, 1), trial(2, BEST, 2)], "calls", {}, 2),
        ([trial(0, [0.5], 1), trial(1, [0.6], 2)], "calls", {}, 1),  # one question has no standard error
    ],
)
def test_the_best_trial(trials: list[TrialRecord], cost: str | None, at_most: dict[str, float], chosen: int) -> None:
    assert choose(trials, cost, at_most)[0].number == chosen


def test_the_front_is_what_no_trial_dominates() -> None:
    trials = [trial(0, [0.5], 2), trial(1, [0.5], 1), trial(2, [0.9], 4), trial(3, [0.8], 5), trial(4, [0.9], 4)]
    assert [each.number for each in pareto_front(trials, "calls")] == [1, 2]


def test_without_a_complete_trial_the_error_says_why() -> None:
    with pytest.raises(PolyhopError, match="found nothing: too many rounds"):
        choose([trial(0, [], state="failed", error="too many rounds")], None, {})
