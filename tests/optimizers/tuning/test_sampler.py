"""Where the next trial is tried depends on the seed, its slot, and what is known by then, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tuning.sampler import SAMPLERS, Seen, make_sampler, number
from polyhop.optimizers.tuning.space import Space, Values

from .world import Hill

SPACE = Space.of(Hill())


def score(values: Values) -> float:
    style = 0.05 * (values["style"] == "fancy")
    return float(1.0 - (values["width"] - 0.7) ** 2 - 0.03 * abs(values["rounds"] - 4) - style)


def walk(name: str, trials: int, seed: int = 0) -> list[Seen]:
    sampler = make_sampler(name, SPACE, seed)
    seen = [Seen(SPACE.defaults, (score(SPACE.defaults),))]
    for slot in range(1, trials):
        values = sampler(slot, seen)
        assert SPACE.covers(values)
        seen.append(Seen(values, (score(values),)))
    return seen


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_new_sampler_goes_on_where_another_one_was(name: str) -> None:
    seen = walk(name, 30)
    for slot in (1, 9, 14, 29):
        assert make_sampler(name, SPACE, 0)(slot, seen[:slot]) == seen[slot].values


@pytest.mark.parametrize("name", SAMPLERS)
def test_seeds_differ(name: str) -> None:
    assert walk(name, 8)[1:] != walk(name, 8, seed=1)[1:]


@pytest.mark.parametrize("name", ["tpe", "cmaes"])
def test_they_learn(name: str) -> None:
    for seed in range(3):
        seen = walk(name, 60, seed)
        early, late = ([each.results[0] for each in part if each.results] for part in (seen[1:11], seen[50:]))
        assert sum(late) / len(late) > sum(early) / len(early)
        assert max(late) > 0.95  # of 1.0; the defaults have 0.53


def test_a_grid_is_walked_once_without_the_defaults() -> None:
    space = Space.of(Hill(), freeze=["width"])
    sampler = make_sampler("grid", space, 0, points=6)
    found = [sampler(slot, []) for slot in range(1, 12)]
    assert len({tuple(values.values()) for values in found}) == 11  # of 6 * 2, less the defaults
    assert space.defaults not in found


def test_trials_that_run_elsewhere_are_kept_clear_of() -> None:
    """What is known is the same, but another worker is where this one would go."""
    sampler, seen = make_sampler("tpe", SPACE, 0), walk("tpe", 20)
    there = sampler(20, seen)
    assert sampler(20, [*seen, *[Seen(there, None)] * 5]) != there


def test_what_breaks_a_limit_is_not_looked_for() -> None:
    """The high scores are all beyond the limit of a cost, which grows with the rounds."""
    sampler = make_sampler("tpe", SPACE, 0, limits=True)
    seen: list[Seen] = []
    for slot in range(40):
        values = sampler(slot, seen)
        seen.append(Seen(values, (score(values),), {"calls": values["rounds"] - 2.5}))
    late = [each.values["rounds"] for each in seen[20:]]
    assert sum(rounds <= 2 for rounds in late) > 0.6 * len(late)  # of all values it would be a third


def test_two_objectives() -> None:
    sampler = make_sampler("tpe", SPACE, 0, objectives=2)
    seen: list[Seen] = []
    for slot in range(30):
        values = sampler(slot, seen)
        seen.append(Seen(values, (score(values), values["rounds"])))
    assert any(each.values["rounds"] == 1 for each in seen[15:])


def test_trials_outside_a_narrowed_range_are_left_out() -> None:
    space = Space.of(Hill(), ranges={"rounds": (3, 6)})
    for name in SAMPLERS:
        assert space.covers(make_sampler(name, space, 0)(1, [Seen(space.defaults, (0.5,))]))


@pytest.mark.parametrize("given", [{"objectives": 2}, {"limits": True}])
def test_cmaes_refuses_costs(given: dict[str, Any]) -> None:
    with pytest.raises(PolyhopError, match="cmaes goes by the score alone"):
        make_sampler("cmaes", SPACE, 0, **given)


def test_an_unknown_sampler_is_an_error() -> None:
    with pytest.raises(PolyhopError, match="no sampler 'best'; known are tpe, cmaes, random, grid"):
        make_sampler("best", SPACE, 0)


def test_numbers_depend_on_all_they_are_made_of() -> None:
    assert number(1, 23) == number(1, 23)
    assert len({number(1, 23), number(12, 3), number(1, 23, "order"), number(2, 23)}) == 4
