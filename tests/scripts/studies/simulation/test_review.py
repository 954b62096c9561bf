"""The judges alone: what the two alphas make of the same verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from polyhop.scripts.studies.simulation.review import ASSUMPTIONS, Review, review

AT_EVERY_HOP, ALIKE = ASSUMPTIONS
MANY_HOPS, FEW_HOPS = [4] * 100, [1] * 100


def means(found: Review) -> tuple[float, float]:
    return float(np.mean(found.auc)), float(np.mean(found.error))


def test_the_judge_of_accuracy_gets_worse_with_hops_up_to_a_coin() -> None:
    errs = ASSUMPTIONS[AT_EVERY_HOP]
    assert [round(errs(0.1, hops), 4) for hops in (1, 2, 3, 4)] == [0.1, 0.19, 0.271, 0.3439]
    assert errs(0.2, 4) == 0.5
    assert {ASSUMPTIONS[ALIKE](0.2, hops) for hops in (1, 2, 3, 4)} == {0.2}


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_judges_that_never_err_decide_right_under_any_alpha(assumption: str) -> None:
    for found in review([1, 2, 3, 4], 0.0, assumption).values():
        assert means(found) == (1.0, 0.0)


def test_an_adaptive_alpha_pays_at_many_hops_where_the_assumption_holds() -> None:
    found = review(MANY_HOPS, 0.2, AT_EVERY_HOP)
    (adaptive_auc, adaptive_error), (fixed_auc, fixed_error) = means(found["adaptive"]), means(found["fixed"])
    assert adaptive_error < fixed_error - 0.05
    assert adaptive_auc > fixed_auc


def test_the_same_seed_gives_the_same_verdicts() -> None:
    assert review(FEW_HOPS, 0.1, ALIKE, seed=1) == review(FEW_HOPS, 0.1, ALIKE, seed=1)
    assert review(FEW_HOPS, 0.1, ALIKE, seed=1) != review(FEW_HOPS, 0.1, ALIKE, seed=2)
