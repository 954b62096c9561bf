"""What `polyhop optimize` shows: what it will cost, how it is going, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..optimizers.joint.estimate import Row
    from ..optimizers.joint.plan import Plan, Splits
    from ..optimizers.joint.run import Told


def show_estimate(rows: Sequence[Row], console: Console, splits: Splits) -> None:
    from rich.table import Table

    from ..optimizers.joint.estimate import total

    counts = ", ".join(f"{len(part):,} {name}" for name, part in splits.named.items())
    table = Table(title=f"At most, over {counts} questions", title_justify="left", header_style="bold")
    table.add_column("")
    for name in ("LM calls", "tokens in", "tokens out", "dollars"):
        table.add_column(name, justify="right")
    for name, cost in [*rows, ("in all", total(rows))]:
        dollars = "?" if cost.cost_usd is None else f"{cost.cost_usd:,.2f}"
        table.add_row(name, *(f"{value:,.0f}" for value in (cost.lm_calls, cost.tokens_in, cost.tokens_out)), dollars)
    console.print(table)


@contextmanager
def joint_bar(console: Console) -> Iterator[Callable[[Told], None]]:
    """A bar for each thing that a stage does; without a terminal a line."""
    from ..eval.bar import progress_bar

    with progress_bar("tuning", console) as bar:
        task = bar.add_task("", total=None)
        before = ""

        def show(told: Told) -> None:
            nonlocal before
            report = told.report
            what = f"{told.stage}: {report.detail.partition(',')[0]}"
            if what != before:
                before = what
                bar.reset(task)
                if not console.is_terminal:
                    typer.echo(what, err=True)
            dollars = f", ${told.spent.usd:.2f}" if told.spent.usd else ""
            detail = f"{told.stage}: {report.detail}; {told.spent.calls:,} LM calls{dollars} in all"
            bar.tasks[0].total = report.total  # `update` takes None for "as before"
            bar.update(task, completed=report.done, description=detail)

        yield show


def print_summary(summary: dict[str, Any], out: Path, plan: Plan) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..eval.report.numbers import p_value

    table = Table(title=f"{plan.metric} on the validation questions", title_justify="left", header_style="bold")
    table.add_column("stage")
    for name in ("score", "gain", "p", *([plan.cost] if plan.cost else [])):
        table.add_column(name, justify="right")
    table.add_column("")
    for line in summary["stages"]:
        cells = [f"{100 * line['score']:.1f}" if "score" in line else ""]
        cells += [f"{100 * line['gain']:+.1f}", p_value(line["p"])] if "gain" in line else ["", ""]
        cells += [f"{line['cost']:.2f}" if line.get("cost") is not None else ""] if plan.cost else []
        word = "" if line["stage"] == "start" else f"{'kept' if line['kept'] else 'not kept'}: {line['why']}"
        note = f" ({line['note']})" if line.get("note") else ""
        table.add_row(f"{line['stage']}", *cells, word + note)
    console = Console()
    console.print(table)
    console.print(
        f"{summary['ended']}; {summary['spent']['calls']:,} LM calls and ${summary['spent']['usd']:.2f} in all"
    )
    test = summary["test"]
    if test is None:
        console.print("The test questions were not asked.")
    else:
        asked = next(iter(test["runs"].values()))["counts"]["questions"]
        start, best, gap = test["start"], test["best"], test["difference"]
        between = f"95% {100 * gap['low']:+.1f} to {100 * gap['high']:+.1f}, p {p_value(test['p'])}"
        console.print(
            f"{asked:,} test questions: {plan.metric} {100 * start['mean']:.1f} at the start, "
            f"{100 * best['mean']:.1f} tuned ({100 * gap['mean']:+.1f}, {between})"
        )
    console.print(f"{out / 'best'}: the program, for --program, polyhop.load, polyhop diff and polyhop export")
