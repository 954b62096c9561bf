"""What is kept: by hand-worked cases."""

from __future__ import annotations

import pytest

from polyhop.optimizers.joint.verdict import judge
from polyhop.optimizers.measure import Measured


def measured(scores: list[float], calls: float = 2.0) -> Measured:
    return Measured(dict(enumerate(scores)), {n: {"lm_calls": calls} for n in range(len(scores))})


OLD = measured([0.0] * 10 + [1.0] * 10)


@pytest.mark.parametrize(
    ("new", "kept", "why"),
    [
        ([1.0] * 8 + [0.0] * 2 + [1.0] * 10, True, "better"),  # 8 of 8 changes to the good: p = 2 / 2^8
        ([1.0] * 3 + [0.0] * 7 + [1.0] * 10, False, "better by luck, for all that can be told"),  # p = 2 / 2^3
        ([0.0] * 10 + [1.0] * 10, False, "no better"),
        ([0.0] * 20, False, "no better"),
    ],
)
def test_only_what_is_no_luck_is_kept(new: list[float], kept: bool, why: str) -> None:
    verdict = judge(measured(new), OLD, cost=None, level=0.05, seed=0)
    assert (verdict.kept, verdict.why) == (kept, why)
    assert verdict.gain == pytest.approx(sum(new) / 20 - 0.5)


def test_the_p_value_is_that_of_a_paired_permutation_test() -> None:
    verdict = judge(measured([1.0] * 8 + [0.0] * 2 + [1.0] * 10), OLD, cost=None, level=0.05, seed=0)
    assert verdict.p == pytest.approx(2 / 2**8, abs=0.004)


@pytest.mark.parametrize(
    ("score", "calls", "kept", "why"),
    [
        (10, 1.0, True, "cheaper, and no worse"),
        (9, 1.0, False, "neither better nor cheaper"),  # one question lost
        (10, 2.0, False, "neither better nor cheaper"),
        (18, 3.0, True, "better"),  # quality comes first
    ],
)
def test_what_is_cheaper_is_kept_if_nothing_is_lost(score: int, calls: float, kept: bool, why: str) -> None:
    right = [0.0] * (20 - score) + [1.0] * score
    verdict = judge(measured(right, calls), OLD, cost="lm_calls", level=0.05, seed=0)
    assert (verdict.kept, verdict.why) == (kept, why)
    assert verdict.saved == pytest.approx(2.0 - calls)


def test_a_failed_question_counts_against_the_new_program() -> None:
    new = Measured(dict(enumerate([0.0] * 20)), {n: {} for n in range(20)}, {19: "gone"})
    assert not judge(new, OLD, cost=None, level=0.05, seed=0).kept
