"""What a joint run will cost, before it starts, and whether a budget can be enough."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import dspy

from ...data.errors import PolyhopError
from ...engines.budget import Budget
from ...programs.exemplars import Exemplars
from ..prompts import Cost, Probe
from ..prompts import estimate as estimate_prompts
from .plan import Plan, Splits, divide
from .stages import EXEMPLAR_TRIALS

Row = tuple[str, Cost]

SPARE = 1.25
"""What is kept back for a measurement, in shares of what it should need."""


def estimate(
    program: dspy.Module, splits: Splits, plan: Plan, probe: Probe, prompt_model: dspy.LM | None = None
) -> list[Row]:
    """A row for each thing that is done, in their order; asks nothing.

    Trials are counted as if none were given up early, and stages as if they were played in every round: a run mostly
    needs less. Replies that DSPy has in its cache cost nothing and are counted here.
    """
    val, test = len(splits.val), len(splits.test)
    rows: list[Row] = [("start: validation", probe.asked(val))]
    for round_ in range(1, plan.rounds + 1):
        for stage in plan.stages:
            rows.append((f"round {round_}: {stage}", _of(stage, program, splits, plan, probe, prompt_model)))
            rows.append((f"round {round_}: validation", probe.asked(val)))
    return [*rows, ("test, start and result", probe.asked(2 * test))]


def _of(
    stage: str, program: dspy.Module, splits: Splits, plan: Plan, probe: Probe, prompt_model: dspy.LM | None
) -> Cost:
    questions = len(splits.train)
    if stage == "tunables":
        return probe.asked(plan.trials * questions)
    if stage == "exemplars":
        has = any(True for _ in program.named_sub_modules(Exemplars))
        return probe.asked((1 + EXEMPLAR_TRIALS) * questions) if has else Cost()
    first, second = divide(splits.train, (0.5, 0.5), plan.seed)
    return estimate_prompts(
        plan.optimizer, program, first, second, probe=probe, preset=plan.preset, prompt_model=prompt_model
    )


def total(rows: Sequence[Row]) -> Cost:
    return sum((cost for _, cost in rows), Cost())


def check_budget(
    budget: Budget, program: dspy.Module, splits: Splits, plan: Plan, probe: Probe, prompt_model: dspy.LM | None = None
) -> None:
    """Whether the budget can be enough for a first stage: one that is not has the run end with nothing tuned.

    Raises:
        PolyhopError: it cannot; says how much would be.
    """
    needed, spent = _least(program, splits, plan, probe, prompt_model), budget.spent
    calls, usd = spent.calls + ceil(needed.lm_calls), ceil(1_000 * (spent.usd + (needed.cost_usd or 0.0))) / 1_000
    why = (
        f"measuring the start on {len(splits.val):,} validation questions, a first stage, and what both are then "
        f"measured with, on these and on {len(splits.test):,} test questions, take"
    )
    if budget.calls is not None and calls > budget.calls:
        raise PolyhopError(f"a budget of {budget.calls:,} LM calls is too small: {why} at least about {calls:,}")
    if budget.usd is not None and usd > budget.usd:
        raise PolyhopError(f"a budget of ${budget.usd:,g} is too small: {why} at least about ${usd:,.3f}")


def _least(program: dspy.Module, splits: Splits, plan: Plan, probe: Probe, prompt_model: dspy.LM | None) -> Cost:
    """What it takes to measure the start, and to play and judge the first stage that has something to do; with what the
    run keeps back for the test questions."""
    val, test = len(splits.val), len(splits.test)
    found = (_first(stage, program, splits, plan, probe, prompt_model) for stage in plan.stages)
    stage = next((cost for cost in found if cost != Cost()), Cost())
    return probe.asked(val) + stage + probe.asked(SPARE * (val + 2 * test))


def _first(
    stage: str, program: dspy.Module, splits: Splits, plan: Plan, probe: Probe, prompt_model: dspy.LM | None
) -> Cost:
    """What a stage needs to propose something: prompts one run of each question, a search the defaults and a trial."""
    whole, questions = _of(stage, program, splits, plan, probe, prompt_model), len(splits.train)
    shortest = {"prompts": 1, "tunables": 2, "exemplars": 3}  # the latter collects plans before
    return probe.asked(shortest[stage] * questions) if stage in shortest and whole != Cost() else whole
