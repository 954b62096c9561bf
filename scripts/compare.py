"""`polyhop compare`: which of several runs is better, and whether that is more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from ..eval.comparison import Flip, Result, Run
    from ..eval.statistics import Comparison

_SHOWN = 3  # flipped questions of a kind


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Folders of runs; the first is the baseline.")
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare by this, such as answer_f1. May be repeated.  [default: the usual]"),
    ] = None,
    flips: Annotated[
        bool, typer.Option("--flips", help="Show all questions that became right or wrong, not just a few.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write everything as CSV.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a LaTeX table (booktabs).")] = None,
) -> None:
    """Compare runs with the first of them, on the questions that they share.

    p-values are two-sided: of a paired bootstrap and of a permutation test. Wins are questions on which a run has the
    higher value; of what a question costs that is the worse one.
    """
    from rich.console import Console

    from ..eval.comparison import compare_runs, write_csv, write_latex
    from .tables import HEADINGS

    _check(runs)
    result = compare_runs(runs, metric or [*HEADINGS, "seconds"])
    console = Console(highlight=False)
    for run in result.runs:
        if run.done < run.questions:
            typer.secho(f"{run.path} is not finished: {run.done} of {run.questions}", fg=typer.colors.YELLOW, err=True)
    sizes = {run.questions for run in result.runs}
    console.print(f"{result.shared} questions shared" + ("" if sizes == {result.shared} else f" of {_sizes(result)}"))
    console.print(_means(result))
    for run in result.runs[1:]:
        console.print(_differences(result, run))
    _print_flips(console, result, everything=flips)
    for path, write in ((csv, write_csv), (latex, write_latex)):
        if path is not None:
            try:
                write(path, result)
            except OSError as error:
                raise PolyhopError(f"{path} cannot be written: {error.strerror}") from error


def _check(paths: Sequence[Path]) -> None:
    """
    Raises:
        PolyhopError: one is no run, but holds some, as the folder of an optimization does.
    """
    from ..eval.folder import PREDICTIONS

    for path in paths:
        found = [each.parent for pattern in ("*", "test/*") for each in path.glob(f"{pattern}/{PREDICTIONS}")]
        if found and not (path / PREDICTIONS).exists():
            inside = ", ".join(map(str, sorted(found)))
            raise PolyhopError(f"{path} is no run of polyhop evaluate, but holds some: {inside}")


def _sizes(result: Result) -> str:
    return ", ".join(f"{run.questions} in {run.name}" for run in result.runs)


def _means(result: Result) -> Table:
    """A line a metric, a column a run."""
    table = _table()
    for run in result.runs:
        table.add_column(run.name, justify="right", overflow="fold")
    for metric in dict.fromkeys(row.metric for row in result.rows):
        heading, factor = _heading(metric)
        rows = [result.row(metric, run.name) for run in result.runs]
        table.add_row(heading, *(_number(factor * row.mean) if row else "" for row in rows))
    return table


def _differences(result: Result, run: Run) -> Table:
    """What a run has ahead of the first; the columns fit a terminal of 80 characters."""
    table = _table(f"{run.name} against {result.runs[0].name}")
    for heading in ("difference (95%)", "p boot", "p perm", "wins /\nlosses"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.rows:
        if row.run == run.name and row.versus:
            heading, factor = _heading(row.metric)
            table.add_row(heading, *_cells(row.versus, factor))
    return table


def _table(heading: str = "") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(heading, min_width=18, overflow="fold")
    return table


def _heading(metric: str) -> tuple[str, float]:
    from ..eval.scoring import METRICS
    from .tables import HEADINGS

    if metric == "seconds":
        return "ms a question", 1000
    return HEADINGS.get(metric, (metric, 100 if metric in METRICS else 1))


def _cells(versus: Comparison, factor: float) -> list[str]:
    from ..eval.report.numbers import p_value

    difference, low, high = (_number(factor * value, "+") for value in versus.difference)
    chances = map(p_value, (versus.p_bootstrap, versus.p_permutation))
    return [f"{difference} ({low} to {high})", *chances, f"{versus.wins} / {versus.losses}"]


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if abs(value) < 1000 else f"{value:{sign},.0f}"


def _print_flips(console: Console, result: Result, *, everything: bool) -> None:
    for run in result.runs[1:]:
        for gained in (True, False):
            found = [flip for flip in result.flips if (flip.run, flip.gained) == (run.name, gained)]
            if found:
                change = "wrong before and right now" if gained else "right before and wrong now"
                console.print(f"\n{run.name}: {len(found)} {change}", style="green" if gained else "red", markup=False)
                for flip in found if everything else found[:_SHOWN]:
                    _print_flip(console, flip)
                if not everything and len(found) > _SHOWN:
                    console.print(f"  ... and {len(found) - _SHOWN} more: --flips", style="dim")


def _print_flip(console: Console, flip: Flip) -> None:
    from rich.text import Text

    from .text import plain

    console.print(Text(f"  {flip.id}  {plain(flip.question)}"))
    console.print(Text(f"    gold {plain(flip.gold)} | before {plain(flip.before)} | now {plain(flip.after)}", "dim"))
