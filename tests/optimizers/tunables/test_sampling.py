"""The next values depend on the seed, the trial's number and the earlier trials, and on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from optuna.trial import FrozenTrial, create_trial

from polyhop.data.errors import PolyhopError
from polyhop.optimizers.tunables.sampling import SAMPLERS, make_sampler
from polyhop.optimizers.tunables.space import SearchSpace, Values
from polyhop.programs import PolyHop

from .world import Hill

SPACE = SearchSpace.of(Hill())


def score(values: Values) -> list[float]:
    style = 0.05 * (values["style"] == "fancy")
    return [float(1.0 - (values["width"] - 0.7) ** 2 - 0.03 * abs(values["rounds"] - 4) - style)]


def walk(
    name: str, trials: int, seed: int = 0, result: Callable[[Values], list[float]] = score, limit: float | None = None
) -> list[FrozenTrial]:
    """``limit``: of the rounds, as a cost."""
    sampler = make_sampler(name, SPACE, seed, cost=len(result(SPACE.defaults)) > 1, limits=limit is not None)
    seen: list[FrozenTrial] = []
    for number in range(trials):
        values = sampler(number, seen) if number else SPACE.defaults
        assert SPACE.covers(values)
        excess = {} if limit is None else {"calls": values["rounds"] - limit}
        seen.append(
            create_trial(params=values, distributions=SPACE.distributions, values=result(values), constraints=excess)
        )
    return seen


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_new_sampler_continues_another_one(name: str) -> None:
    seen = walk(name, 25)
    for number in (1, 9, 24):
        assert make_sampler(name, SPACE, 0)(number, seen[:number]) == seen[number].params
    assert [trial.params for trial in walk(name, 8, seed=1)[1:]] != [trial.params for trial in seen[1:8]]


@pytest.mark.parametrize("name", ["tpe", "cmaes"])
@pytest.mark.parametrize("seed", range(2))
def test_samplers_learn(name: str, seed: int) -> None:
    scores = [trial.values[0] for trial in walk(name, 60, seed)]
    assert sum(scores[50:]) > sum(scores[1:11])
    assert max(scores[50:]) > 0.95  # of 1.0; the defaults have 0.53


def test_a_grid_is_walked_once_without_the_defaults() -> None:
    space = SearchSpace.of(Hill(), freeze=["width"])
    sampler = make_sampler("grid", space, 0, points=6)
    found = [sampler(number, []) for number in range(1, 12)]
    assert len({tuple(values.values()) for values in found}) == 11  # of 6 * 2, less the defaults
    assert space.defaults not in found


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("cmaes", {"cost": True}, "cmaes maximizes the score alone"),
        ("cmaes", {"limits": True}, "cmaes maximizes the score alone"),
        ("best", {}, "no sampler 'best': choose from tpe, cmaes, random, grid"),
    ],
)
def test_invalid_samplers(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PolyhopError, match=message):
        make_sampler(name, SPACE, 0, **settings)


@pytest.mark.parametrize("name", ["tpe", "random"])
def test_what_is_off_keeps_its_default(name: str) -> None:
    space = SearchSpace.of(PolyHop())
    sampler = make_sampler(name, space, 0)
    drawn = [sampler(number, []) for number in range(1, 40)]
    reviews = [values["review"] for values in drawn]
    assert set(reviews) == {"doubt", "complete", "always", "never"}
    for values in drawn:
        assert space.covers(values)
        moved = [each for each in values if each not in space.active(values) and values[each] != space.defaults[each]]
        assert not moved
        if values["review"] != "never":
            assert values["confidence.threshold"] != space.defaults["confidence.threshold"]


def test_evolution_takes_what_is_off_for_its_default() -> None:
    space = SearchSpace.of(PolyHop())
    off = space.active(space.defaults | {"review": "never"})
    seen = [
        create_trial(params=off, distributions={name: space.distributions[name] for name in off}, values=[0.5])
        for _ in range(40)
    ]
    assert space.covers(make_sampler("cmaes", space, 0)(40, seen))
