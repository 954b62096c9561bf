"""Where the next trial is tried: a pure function of the seed, the number of the trial and what is known by then.

Nothing is kept between two trials, so there is no state that a stopped search could lose: each draw is made by a
sampler as new, with a seed made of the search's seed and the trial's slot, that is shown the trials so far.

    tpe      Optuna's tree-structured Parzen estimator, for one objective or several
    cmaes    the covariance matrix adaptation evolution strategy, for one objective; the values of a choice count as
             ordered, as they are declared
    random   independent of what is known
    grid     the points of a grid in random order, each once
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from warnings import catch_warnings

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from ...data.errors import PolyhopError
from .space import Space, Values

SAMPLERS = ("tpe", "cmaes", "random", "grid")

_STEP = 1 / 6  # of CMA-ES at first, as a share of each range


@dataclass(frozen=True)
class Seen:
    """What a sampler is told of an earlier trial.

    Attributes:
        results: The score, which is to be high, and the cost, if there is one, which is to be low; None while it runs.
        excess: By cost, how far it is beyond its limit; negative within.
    """

    values: Values
    results: tuple[float, ...] | None
    excess: dict[str, float] = field(default_factory=dict)


Sampler = Callable[[int, Sequence[Seen]], Values]
"""Called with the slot of a trial, from 1, and the earlier trials in the order of their slots."""


def make_sampler(
    name: str, space: Space, seed: int, *, objectives: int = 1, limits: bool = False, points: int = 5
) -> Sampler:
    """A sampler by name.

    Args:
        objectives: 1 for the score alone, 2 for score and cost.
        limits: Whether costs have limits.
        points: Of a grid, for each number.

    Raises:
        PolyhopError: the name is not known, the sampler cannot do with costs, or the grid is too large.
    """
    if name == "tpe":
        return _tpe(space, seed, objectives)
    if name == "cmaes":
        if objectives > 1 or limits:
            raise PolyhopError("cmaes goes by the score alone: leave out cost and at_most, or use another sampler")
        return _cmaes(space, seed)
    if name == "random":
        return lambda slot, seen: space.values(_uniform(len(space.distributions), number(seed, slot)))
    if name == "grid":
        grid = [values for values in space.grid(points) if values != space.defaults]
        random.Random(number(seed, "grid")).shuffle(grid)
        return lambda slot, seen: grid[(slot - 1) % len(grid)]
    raise PolyhopError(f"there is no sampler {name!r}; known are {', '.join(SAMPLERS)}")


def number(*of: object) -> int:
    """A number in [0, 2**32) that depends on nothing but its arguments."""
    text = "\n".join(map(str, of))
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _uniform(count: int, seed: int) -> list[float]:
    dice = random.Random(seed)
    return [dice.random() for _ in range(count)]


def _tpe(space: Space, seed: int, objectives: int) -> Sampler:
    def draw(slot: int, seen: Sequence[Seen]) -> Values:
        with quiet():
            study = view(seen, space, objectives)
            study.sampler = optuna.samplers.TPESampler(seed=number(seed, slot))
            return dict(study.ask(space.distributions).params)

    return draw


def view(seen: Sequence[Seen], space: Space, objectives: int = 1) -> optuna.Study:
    """The trials as a study in memory, for what Optuna makes of a study; less those outside the ranges."""
    study = optuna.create_study(directions=[StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE][:objectives])
    study.add_trials(
        create_trial(
            state=TrialState.RUNNING if each.results is None else TrialState.COMPLETE,
            values=each.results,
            params=each.values,
            distributions=space.distributions,
            constraints=each.excess,
        )
        for each in seen
        if space.covers(each.values)
    )
    return study


@contextmanager
def quiet() -> Iterator[None]:
    """Studies that live for one draw are no news, nor is what optuna calls experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with catch_warnings(action="ignore", category=ExperimentalWarning):
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _cmaes(space: Space, seed: int) -> Sampler:
    """CMA-ES from the defaults: its generations are told anew for every draw, so that it need not be stored.

    With several workers a generation is made of trials in the order of their slots, whoever has drawn them.
    """
    from cmaes import CMA

    def draw(slot: int, seen: Sequence[Seen]) -> Values:
        start = space.values([0.5] * dimensions) | space.inside(space.defaults)
        evolution = CMA(
            mean=np.clip(space.place(start), 0.05, 0.95),  # not on an edge, where half of all draws are beyond it
            sigma=_STEP,
            bounds=np.array([[0.0, 1.0]] * dimensions),
            seed=number(seed, "cmaes"),
            n_max_resampling=10 * dimensions,
        )
        told = [
            (np.array(space.place(each.values)), -each.results[0])
            for each in seen
            if each.results and space.covers(each.values)
        ]
        size = evolution.population_size
        for first in range(0, len(told) - size + 1, size):
            evolution.tell(told[first : first + size])
        evolution.reseed_rng(number(seed, slot))
        return space.values(evolution.ask())

    dimensions = len(space.distributions)
    return draw
