"""Samplers: the values of the next trial, as a function of the seed, the trial's number and the earlier trials.

Samplers keep no state, so that a resumed search draws what an uninterrupted one draws.

    tpe      Optuna's tree-structured Parzen estimator, for one or two objectives
    cmaes    CMA-ES (Hansen, arXiv 1604.00772), for one objective; the values of a choice count as ordered
    random   independent of earlier trials
    grid     the points of a grid in random order, each once
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from warnings import catch_warnings

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from ...data.errors import PolyhopError
from .space import SearchSpace, Values

SAMPLERS = ("tpe", "cmaes", "random", "grid")

_STEP = 1 / 6  # initial step of CMA-ES, as a fraction of each range

Sampler = Callable[[int, Sequence[FrozenTrial]], Values]
"""Called with the number of a draw, from 1, and the earlier trials with a score, in their order."""


def make_sampler(
    name: str, space: SearchSpace, seed: int, *, cost: bool = False, limits: bool = False, points: int = 5
) -> Sampler:
    """A sampler by name. ``cost`` and ``limits``: whether a cost is minimized, and costs are limited; ``points`` are
    the grid points per number.
    """
    if name == "tpe":
        return _optuna(optuna.samplers.TPESampler, space, seed, cost)
    if name == "random":
        return _optuna(optuna.samplers.RandomSampler, space, seed, cost)
    if name == "cmaes":
        if cost or limits:
            raise PolyhopError("cmaes maximizes the score alone: remove cost and at_most, or use another sampler")
        return _cmaes(space, seed)
    if name == "grid":
        grid = [values for values in space.grid(points) if values != space.defaults]
        random.Random(derived_seed(seed, "grid")).shuffle(grid)
        return lambda number, trials: grid[(number - 1) % len(grid)]
    raise PolyhopError(f"no sampler {name!r}: choose from {', '.join(SAMPLERS)}")


def derived_seed(*parts: object) -> int:
    """A seed in [0, 2**32) that depends on its arguments alone."""
    return int.from_bytes(blake2b("\n".join(map(str, parts)).encode(), digest_size=4).digest())


def study_in_memory(trials: Iterable[FrozenTrial], cost: bool = False) -> optuna.Study:
    study = optuna.create_study(directions=directions(cost))
    study.add_trials(trials)
    return study


def directions(cost: bool) -> list[StudyDirection]:
    """Optuna's directions of the score and, if there is one, the cost."""
    return [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE][: 2 if cost else 1]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Optuna's log of studies that live for one draw, and its warnings about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with catch_warnings(action="ignore", category=ExperimentalWarning):
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _optuna(kind: Callable[..., optuna.samplers.BaseSampler], space: SearchSpace, seed: int, cost: bool) -> Sampler:
    def draw(number: int, trials: Sequence[FrozenTrial]) -> Values:
        with quiet():
            study = study_in_memory(trials, cost)
            drawn = {name: each for name, each in space.distributions.items() if name not in space.conditions}
            while True:
                study.sampler = kind(seed=derived_seed(seed, number))
                values = space.defaults | study.ask(drawn).params
                matter = {name: space.distributions[name] for name in space.active(values)}
                if matter.keys() <= drawn.keys():
                    return space.defaults | space.active(values)
                drawn |= matter  # the same draw again, and what matters beside it

    return draw


def _cmaes(space: SearchSpace, seed: int) -> Sampler:
    """CMA-ES from the defaults. Its generations are replayed for each draw: Optuna's own sampler does not search
    choices, and keeps state."""
    from cmaes import CMA

    dimensions = len(space.distributions)

    def draw(number: int, trials: Sequence[FrozenTrial]) -> Values:
        start = space.from_unit([0.5] * dimensions) | space.inside(space.defaults)
        evolution = CMA(
            mean=np.clip(space.to_unit(start), 0.05, 0.95),  # at an edge, half of all draws would fall outside
            sigma=_STEP,
            bounds=np.array([[0.0, 1.0]] * dimensions),
            seed=derived_seed(seed, "cmaes"),
            n_max_resampling=10 * dimensions,
        )
        points = [space.to_unit(start | trial.params) for trial in trials]  # what is off is where the search began
        results = [(np.array(point), -trial.values[0]) for point, trial in zip(points, trials, strict=True)]
        size = evolution.population_size
        for first in range(0, len(results) - size + 1, size):
            evolution.tell(results[first : first + size])
        evolution.reseed_rng(derived_seed(seed, number))
        return space.from_unit(evolution.ask())

    return draw
