"""What a joint run will cost, before it starts."""

from __future__ import annotations

from collections.abc import Sequence

import dspy

from ...programs.exemplars import Exemplars
from ..prompts import Cost, Probe
from ..prompts import estimate as estimate_prompts
from .plan import Plan, Splits, divide
from .stages import EXEMPLAR_TRIALS

Row = tuple[str, Cost]


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
    ).total


def total(rows: Sequence[Row]) -> Cost:
    return sum((cost for _, cost in rows), Cost())
