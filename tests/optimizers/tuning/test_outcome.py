"""Which trial is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning.outcome import choose, front
from polyhop.optimizers.tuning.study import Trial


def trial(slot: int, scores: list[float], calls: float = 1.0, **more: Any) -> Trial:
    return Trial(
        slot, **{"state": "complete", **more}, values={}, scores=dict(enumerate(scores)), costs={"calls": calls}
    )


def test_the_highest_score_and_of_equal_ones_the_first() -> None:
    trials = [trial(0, [0.2, 0.2]), trial(1, [0.4, 0.8]), trial(2, [0.8, 0.4])]
    assert choose(trials, None, {})[0].slot == 1


def test_the_defaults_stay_if_they_come_within_a_standard_error_of_the_best() -> None:
    """The differences, by hand: mean 0.1, error 0.1; then mean 0.125, error 0.096."""
    best = trial(1, [0.8, 0.6, 0.8, 0.6])
    assert choose([trial(0, [0.4, 0.6, 0.8, 0.6]), best], None, {})[0].slot == 0
    assert choose([trial(0, [0.4, 0.6, 0.7, 0.6]), best], None, {})[0].slot == 1
    assert choose([trial(3, [0.4, 0.6, 0.8, 0.6]), best], None, {})[0].slot == 1


def test_only_complete_trials_within_the_limits_can_be_chosen() -> None:
    trials = [trial(0, [0.5], 2), trial(1, [0.9], state="pruned"), trial(2, [0.8], 5), trial(3, [0.6], 3)]
    assert choose(trials, None, {"calls": 3})[0].slot == 3


def test_the_front_is_what_nothing_beats() -> None:
    trials = [trial(0, [0.5], 2), trial(1, [0.5], 1), trial(2, [0.9], 4), trial(3, [0.8], 5), trial(4, [0.9], 4)]
    assert [each.slot for each in front(trials, "calls")] == [1, 2]


def test_the_cheapest_within_a_standard_error_of_the_best() -> None:
    """The differences to the best, by hand: mean 0.1, deviation 0.2, error 0.1; and the same mean without deviation."""
    best = [0.8, 0.6, 0.8, 0.6]
    close, apart = [0.4, 0.6, 0.8, 0.6], [0.7, 0.5, 0.7, 0.5]
    assert choose([trial(0, close, 1), trial(1, best, 2)], "calls", {})[0].slot == 0
    assert choose([trial(0, apart, 1), trial(1, best, 2)], "calls", {})[0].slot == 1
    assert choose([trial(0, apart, 1), trial(1, close, 1), trial(2, best, 2)], "calls", {})[0].slot == 2


def test_one_question_tells_no_difference_from_chance() -> None:
    assert choose([trial(0, [0.5], 1), trial(1, [0.6], 2)], "calls", {})[0].slot == 1


def test_when_nothing_was_completed_it_says_why() -> None:
    failed = trial(0, [], state="failed", error="too many rounds")
    with pytest.raises(PolyhopError, match="has found nothing: too many rounds"):
        choose([failed], None, {})
