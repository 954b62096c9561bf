"""What `polyhop optimize` prints: an upper bound of the cost, progress, the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .text import confirm, new_table

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..engines.budget import Budget
    from ..optimizers.estimate import Row
    from ..optimizers.pipeline import OptimizationProgress
    from ..optimizers.records import OptimizationSummary
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
        _show_estimate(rows, console, splits)
    if free or budget.spent.calls - before >= probe.questions:  # else DSPy's cache has replies, which cost nothing
        bound.check(budget)
    calls = round(total(rows).lm_calls)
    if free or dry_run or yes or min(calls, budget.calls or calls) < ASKED_FROM:
        return
    confirm(calls, "set --budget-calls")


def _show_estimate(rows: Sequence[Row], console: Console, splits: Splits) -> None:
    from ..optimizers.estimate import total

    counts = ", ".join(f"{len(part):,} {name}" for name, part in splits.named.items())
    shown = new_table(f"Upper bound, for {counts} questions", "", "LM calls", "tokens in", "tokens out", "dollars")
    for name, cost in [*rows, ("in all", total(rows))]:
        dollars = "?" if cost.cost_usd is None else f"{cost.cost_usd:,.2f}"
        shown.add_row(name, *(f"{value:,.0f}" for value in (cost.lm_calls, cost.tokens_in, cost.tokens_out)), dollars)
    console.print(shown)


@contextmanager
def optimization_bar(console: Console) -> Iterator[Callable[[OptimizationProgress], None]]:
    """A progress bar for each part of a stage; without a terminal a line."""
    from ..eval.bar import progress_bar

    with progress_bar("tuning", console) as bar:
        task = bar.add_task("", total=None)
        before = ""

        def show(each: OptimizationProgress) -> None:
            nonlocal before
            progress, spent = each.progress, each.spent
            part = f"{each.stage}: {progress.detail.partition(',')[0]}"
            if part != before:
                before = part
                bar.reset(task)
                if not console.is_terminal:
                    typer.echo(part, err=True)
            dollars = f", ${spent.usd:.2f}" if spent.usd else ""
            bar.tasks[0].total = progress.total  # `update` takes None for "as before"
            description = f"{each.stage}: {progress.detail}; {spent.calls:,} LM calls{dollars} in all"
            bar.update(task, completed=progress.done, description=description)

        yield show


def print_summary(summary: OptimizationSummary, out: Path, settings: OptimizationSettings) -> None:
    from rich.console import Console

    from ..eval.report.numbers import p_value

    metric, cost = settings.metric, settings.cost
    shown = new_table(f"{metric} on the validation questions", "stage", "score", "gain", "p", *([cost] if cost else []))
    shown.add_column("")
    for stage in summary.stages:
        cells = [f"{100 * stage.score:.1f}" if stage.score is not None else ""]
        cells.append("" if stage.gain is None else f"{100 * stage.gain:+.1f}")
        cells.append("" if stage.p is None else p_value(stage.p))
        cells += [f"{stage.cost:.2f}" if stage.cost is not None else ""] if cost else []
        verdict = "" if stage.stage == "start" else f"{'kept' if stage.kept else 'not kept'}: {stage.why}"
        shown.add_row(stage.stage, *cells, plain(verdict + (f" ({stage.note})" if stage.note else "")))
    console = Console(markup=False, emoji=False)
    console.print(shown)
    console.print(f"{summary.ended}; {summary.spent.calls:,} LM calls and ${summary.spent.usd:.2f} in all")
    test = summary.test
    if test is None:
        console.print("The test questions were not used.")
    else:
        questions = next(iter(test.runs.values())).counts["questions"]
        gap = test.difference
        between = f"95% {100 * gap.low:+.1f} to {100 * gap.high:+.1f}, p {p_value(test.p)}"
        console.print(
            f"{questions:,} test questions: {metric} {100 * test.start.mean:.1f} at the start, "
            f"{100 * test.best.mean:.1f} tuned ({100 * gap.mean:+.1f}, {between})"
        )
    own = f"{settings.program.partition('=')[0]}=" if ":" in settings.program else ""
    console.print(f"{own}{out / 'best'}: the program, for --program, polyhop.load, polyhop diff and polyhop export")
