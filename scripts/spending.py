"""What `polyhop optimize` may cost: shown, held against the budget and confirmed before anything is spent for it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from ..data.errors import PolyhopError
from .optimization_view import show_estimate

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..engines.budget import Budget
    from ..optimizers.settings import OptimizationSettings, Splits

ASKED_FROM = 1_000
"""LM calls of a model that may cost something, from which on the run has to be confirmed."""


def confirm_cost(
    program: dspy.Module,
    splits: Splits,
    settings: OptimizationSettings,
    budget: Budget,
    prompt_model: dspy.LM | None,
    console: Console,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Show what the run will cost, where it may cost something, refuse a budget that cannot be enough, and ask whether
    to go on. For that a few questions are asked, on the account of the run if the models may cost something.

    Raises:
        PolyhopError: the budget does not suffice, or nobody is there to be asked.
    """
    from ..engines.budget import BudgetSpent
    from ..engines.costs import FREE
    from ..optimizers.estimate import CostBound, total
    from ..optimizers.prompts import Probe

    models = [predictor.lm for predictor in program.predictors()]
    free = all(lm is None or lm.model in FREE for lm in [*models, prompt_model])
    if free and not dry_run and budget.calls is None:
        return
    if not free:
        budget.meter_program(program)
    before = budget.spent.calls
    try:
        probe = Probe.of(program, splits.val, threads=settings.threads)
    except BudgetSpent as spent:
        raise PolyhopError(f"the budget ({spent}) does not suffice to ask five questions") from None
    bound = CostBound(program, splits, settings, probe, prompt_model)
    rows = bound.rows()
    if not free or dry_run:
        show_estimate(rows, console, splits)
    if free or budget.spent.calls - before >= probe.questions:  # else DSPy's cache has replies, which cost nothing
        bound.check(budget)
    calls = round(total(rows).lm_calls)
    if free or dry_run or yes or min(calls, budget.calls or calls) < ASKED_FROM:
        return
    if not sys.stdin.isatty():
        raise PolyhopError(f"this may take {calls:,} LM calls: confirm with --yes, or set --budget-calls")
    typer.confirm("Start?", abort=True)
