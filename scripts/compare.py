"""`polyhop compare`: paired statistical comparison of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .text import warn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..eval.comparison import ComparedRun, RunComparison

_SHOWN = 3  # flipped questions of a kind


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...",
            help="Folders of runs, or files of JSON lines with an id and scores; the first is the baseline.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A metric or cost, such as answer_f1; may be repeated.  [default: the main]"),
    ] = None,
    flips: Annotated[
        bool, typer.Option("--flips", help="Show all questions that became right or wrong, not just a few.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all statistics as CSV.")] = None,
) -> None:
    """Compare runs with the first of them, on the questions that they share.

    p-values are two-sided, of a paired permutation test; Holm's are corrected for all metrics shown. Wins are questions
    on which a run has the higher value; for costs, higher is worse. "shows from" is the smallest true difference that
    so many questions, which vary so, show at p < 0.05 in 80% of cases.
    """
    from rich.console import Console

    from ..eval.comparison import compare_runs, write_csv

    result = compare_runs(runs, metric, few=True)
    console = Console(highlight=False, markup=False, emoji=False)
    for run in result.runs:
        if run.done < run.questions:
            warn(f"{run.path} is not finished: {run.done} of {run.questions}")
    sizes = ", ".join(f"{run.questions} in {run.name}" for run in result.runs)
    equal = {run.questions for run in result.runs} == {result.shared}
    console.print(f"{result.shared} questions shared" + ("" if equal else f" of {sizes}"))
    console.print(_means(result))
    for run in result.runs[1:]:
        console.print(_differences(result, run))
    _print_flips(console, result, everything=flips)
    if csv is not None:
        try:
            write_csv(csv, result)
        except OSError as error:
            raise PolyhopError(f"{csv} cannot be written: {error.strerror}") from error


def _means(result: RunComparison) -> Table:
    """A row per metric, a column per run."""
    from ..eval.metrics import quantity

    table = _table()
    for run in result.runs:
        table.add_column(run.name, justify="right", overflow="fold")
    for metric in dict.fromkeys(row.metric for row in result.rows):
        rows = [result.row(metric, run.name) for run in result.runs]
        table.add_row(quantity(metric).heading, *(quantity(metric).text(row.mean) if row else "" for row in rows))
    return table


def _differences(result: RunComparison, run: ComparedRun) -> Table:
    """A run against the baseline; the columns fit a terminal of 80 characters."""
    from ..eval.metrics import quantity
    from ..eval.report import p_value

    table = _table(f"{run.name} against {result.runs[0].name}")
    for heading in ("difference (95%)", "p", "p Holm", "wins /\nlosses", "shows\nfrom"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.rows:
        if row.run == run.name and row.versus:
            difference, low, high = (quantity(row.metric).text(value, "+") for value in row.versus.difference)
            chances = (p_value(row.versus.p_permutation), p_value(row.p_holm or 0.0))
            wins = f"{row.versus.wins} / {row.versus.losses}"
            cells = (*chances, wins, quantity(row.metric).text(row.versus.shown or None))
            table.add_row(quantity(row.metric).heading, f"{difference} ({low} to {high})", *cells)
    return table


def _table(heading: str = "") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(heading, min_width=18, overflow="fold")
    return table


def _print_flips(console: Console, result: RunComparison, *, everything: bool) -> None:
    from rich.text import Text

    for run in result.runs[1:]:
        for gained in (True, False):
            found = [flip for flip in result.flips if (flip.run, flip.gained) == (run.name, gained)]
            if not found:
                continue
            change = "wrong before and right now" if gained else "right before and wrong now"
            console.print(f"\n{run.name}: {len(found)} {change}", style="green" if gained else "red", markup=False)
            for flip in found if everything else found[:_SHOWN]:
                console.print(Text(f"  {plain(flip.id)}  {plain(flip.question)}"))
                answers = f"before {plain(flip.before)} | now {plain(flip.after)}"
                console.print(Text(f"    gold {plain(flip.gold)} | {answers}", "dim"))
            if not everything and len(found) > _SHOWN:
                console.print(f"  ... and {len(found) - _SHOWN} more: --flips", style="dim")
