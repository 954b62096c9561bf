"""The search for weights: CMA-ES on the recall of rankings, and a sweep of the threshold where chains stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from operator import itemgetter

from ....data.chain.weights import ChainWeights
from .workers import ALL_GOLD, RECALL, Chains, Scores

_SWEPT = "enough"  # does not change rankings; has a sweep of its own
_UNUSED = ("similarity", "later")  # the graphs have no vectors, and no passages of longer documents
PENALTY = 0.002  # if all weights are at the end of their reach
_STEP = 0.02  # of the sweep
_BEST = 10  # trials that are averaged

Trial = tuple[ChainWeights, float]  # with the objective


def tuned_names(start: ChainWeights) -> list[str]:
    """The weights that are searched; those that are 0 at the start are left out."""
    names = (weight.name for weight in fields(start))
    return [name for name in names if name not in (_SWEPT, *_UNUSED) and getattr(start, name)]


def objective(scores: Scores, shares: Mapping[str, float]) -> float:
    """Recall@5 + all-gold@5 / 2, as the mean over sets by weight."""
    return mean({name: found[RECALL] + found[ALL_GOLD] / 2 for name, found in scores.items()}, shares)


def penalty(weights: ChainWeights, start: ChainWeights, reach: float) -> float:
    """The penalty for leaving the start: the mean square of the weights' logarithmic distances."""
    ways = [math.log(getattr(weights, name) / getattr(start, name), reach) for name in tuned_names(start)]
    return PENALTY * math.fsum(way * way for way in ways) / len(ways)


def search(
    score: Callable[[ChainWeights], float], start: ChainWeights, reach: float, trials: int, seed: int
) -> list[Trial]:
    """Trials of CMA-ES around the start, which is the first. The same scores and seed give the same trials."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # an interrupt needs no warning
    names = tuned_names(start)
    # The study stays in memory: a resumed run repeats its trials with the recorded scores, and so ends like an
    # uninterrupted one. A stored study would do so only with a stored sampler.
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial(dict.fromkeys(names, 0.0))
    found: list[Trial] = []

    def run(trial: optuna.Trial) -> float:
        # Logarithmic distances with the start in the middle, where the sampler begins, with steps of a third.
        weights = _moved(start, {name: reach ** trial.suggest_float(name, -1.0, 1.0) for name in names})
        found.append((weights, score(weights)))
        return found[-1][1]

    study.optimize(run, n_trials=trials)
    return found


def _moved(start: ChainWeights, factors: Mapping[str, float]) -> ChainWeights:
    values = {}
    for weight in fields(start):
        if weight.name in factors:
            value = getattr(start, weight.name) * factors[weight.name]
            values[weight.name] = min(max(value, weight.metadata["low"]), weight.metadata["high"])
    return replace(start, **values)


def outcomes(trials: Sequence[Trial]) -> dict[str, ChainWeights]:
    """Candidates: ``start``; ``centre``, the mean of the last third of the trials, which is about the mean of CMA-ES's
    distribution; ``best``, the mean of the best 10 trials; ``luckiest``, the best trial."""
    ranked = sorted(trials, key=itemgetter(1), reverse=True)
    chosen = {"centre": trials[-max(len(trials) // 3, 1) :], "best": ranked[:_BEST], "luckiest": ranked[:1]}
    averages = {name: _average([weights for weights, _ in each]) for name, each in chosen.items()}
    return {"start": trials[0][0]} | averages


def _average(each: Sequence[ChainWeights]) -> ChainWeights:
    """The geometric mean, to three digits."""
    return replace(
        each[0],
        **{
            name: float(f"{math.exp(math.fsum(math.log(getattr(one, name)) for one in each) / len(each)):.3g}")
            for name in tuned_names(each[0])
        },
    )


def f1(chains: Chains, enough: float) -> dict[str, float]:
    """The mean passage F1 of each set's chains."""
    return {name: math.fsum(chain.f1(enough) for chain in each) / len(each) for name, each in chains.items()}


def sweep(chains: Chains, shares: Mapping[str, float]) -> float:
    """The threshold with the best passage F1, averaged over five neighbors of a grid."""
    high = next(weight.metadata["high"] for weight in fields(ChainWeights) if weight.name == _SWEPT)
    grid = [round(step * _STEP, 6) for step in range(round(high / _STEP) + 1)]
    found = [mean(f1(chains, enough), shares) for enough in grid]
    return grid[max(range(2, len(grid) - 2), key=lambda at: math.fsum(found[at - 2 : at + 3]))]


def mean(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    return math.fsum(shares[name] * value for name, value in values.items()) / math.fsum(
        shares[name] for name in values
    )
