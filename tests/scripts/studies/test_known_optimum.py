"""The search finds an optimum that a full grid knows."""

from __future__ import annotations

import pytest

from polyhop.scripts.studies.known_optimum import SEEDS, TRIALS, made_up, study, table

pytestmark = pytest.mark.slow


def test_sixty_trials_come_within_two_percent_of_the_best_of_a_full_grid() -> None:
    grid, *searches = found = study()
    assert grid.trials == 6 * 25
    assert 1 < grid.rounds < 6
    assert 1.2 < grid.midpoint < 3.8
    assert grid.start < 0.95 * grid.value  # the defaults are not the best
    assert len(searches) == len(SEEDS) == 3
    for search in searches:
        assert search.trials == TRIALS == 60
        assert search.value >= 0.98 * grid.value
    assert table(found).count("\n") == 1 + len(found)


def test_the_questions_are_of_two_and_three_hops() -> None:
    questions = made_up(4)
    assert [len(question.gold) for question in questions] == [2, 3, 2, 3]
    for question in questions:
        assert len(question.pool) == 10
        assert all(any(fact.matches(passage) for passage in question.pool) for fact in question.gold)
