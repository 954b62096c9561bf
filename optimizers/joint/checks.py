"""What can be said of a plan before anything is asked."""

from __future__ import annotations

import dspy

from ...data.errors import PolyhopError
from ...eval.metrics import Metric, find_metric
from .plan import Plan, Splits

COUNTED = ("lm_calls", "lm_calls_critical_path", "searches")
"""Costs that a program's trace counts, whoever replied; replies from a cache have no others."""

COSTS = (*COUNTED, "tokens", "tokens_in", "tokens_out", "cost_usd", "seconds")


def check_plan(plan: Plan, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    """
    Raises:
        PolyhopError: a stage could not be played with this program, or the cost that counts is one that replies from a
            cache do not have.
    """
    metric_named(plan.metric)
    if plan.cost not in (None, *COSTS):
        raise PolyhopError(f"no cost {plan.cost!r}: choose from {', '.join(COSTS)}")
    if "prompts" in plan.stages:
        from ..prompts import check

        check(plan.optimizer, program, preset=plan.preset, prompt_model=prompt_model)
    if "tunables" in plan.stages:
        from ..tunables.sampling import make_sampler
        from ..tunables.space import SearchSpace

        space = SearchSpace.of(program, plan.freeze, plan.ranges)
        make_sampler(plan.sampler, space, plan.seed, cost=plan.cost is not None)
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if plan.cost not in (None, *COUNTED) and any(lm is not None and lm.cache for lm in models):
        raise PolyhopError(
            f"{plan.cost} says nothing while replies come from DSPy's cache: name one of {', '.join(COUNTED)} as the "
            "cost, or give the program models with cache=False"
        )


def check_questions(plan: Plan, splits: Splits) -> None:
    """
    Raises:
        PolyhopError: the questions of a split have nothing that the metric could go by.
    """
    for name, questions in splits.named.items():
        if not any(metric_named(plan.metric).applies(example) for example in questions):
            raise PolyhopError(
                f"{plan.metric} cannot be measured on the {name} questions, which do not say what proves answers: "
                "name another --metric, such as answer_f1"
            )


def metric_named(name: str) -> Metric:
    """
    Raises:
        PolyhopError: it does not exist, or lower values are better.
    """
    metric = find_metric(name)
    if not metric.maximize:
        raise PolyhopError(f"{name} cannot be optimized: lower values are better")
    return metric
