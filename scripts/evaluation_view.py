"""What `polyhop evaluate` shows: what it will cost, how it is going, what came of it and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from ..eval.estimate import Expected
    from ..eval.questions import Questions
    from ..eval.run import Progress


def show_expected(name: str, expected: Expected) -> None:
    from rich.console import Console

    from .tables import costs_table

    title = f"{name}: {expected.questions:,} questions, if they are like {expected.asked} that were asked"
    console = Console()
    console.print(costs_table(expected.by_agent, title))
    if expected.cached:
        told = f"{expected.cached:,} of their calls came from DSPy's cache and are not counted: all would cost more"
        typer.secho(told, fg=typer.colors.YELLOW, err=True)
    failed = f"; {expected.failed} of {expected.asked} failed" if expected.failed else ""
    console.print(f"about {_duration(expected.seconds)}{failed}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


@contextmanager
def evaluation_bar(name: str, console: Console) -> Iterator[Callable[[Progress], None]]:
    """A progress bar with the running scores."""
    from ..eval.bar import progress_bar

    with progress_bar(name, console) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.questions, description=_state(progress))

        yield show


def _state(progress: Progress) -> str:
    scores = {"answer F1": progress.mean("answer_f1"), "evidence F1": progress.mean("evidence_f1")}
    from .text import compact

    parts = [f"{name} {100 * value:.1f}" for name, value in scores.items() if value is not None]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.repeated:
        parts.append(f"{progress.repeated} repeated")
    if progress.tokens:
        parts.append(f"{compact(progress.tokens)} tokens")
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.2f}" + ("" if progress.priced else "+"))
    return ", ".join(parts)


def print_summaries(
    summaries: dict[str, dict[str, Any]], questions: Questions, out: Path | None, as_json: bool
) -> None:
    from rich.console import Console

    from ..eval.submissions import SUBMISSIONS
    from .tables import costs_table, summary_table

    if as_json:
        one = {"dataset": questions.dataset, "split": questions.split, "programs": summaries}
        typer.echo(json.dumps(next(iter(summaries.values())) if out else one, ensure_ascii=False))
        return
    count = next(iter(summaries.values()))["counts"]["questions"]
    where = ", ".join(part for part in (questions.dataset, questions.split, questions.setting) if part)
    console = Console()
    console.print(summary_table(summaries, f"{where}: {count} questions"))
    if len(summaries) == 1:
        (summary,) = summaries.values()
        if summary["by_agent"]:
            console.print(costs_table(summary["by_agent"], "costs, by agent, without replies from the cache"))
    if out is not None:
        more = "the official files" if questions.dataset in SUBMISSIONS else "the rankings"
        typer.echo(f"{out}: summary.json, predictions.jsonl and {more}")


def show_skipped(questions: Questions) -> None:
    """Which records were left out when the questions were last gone through, on stderr."""
    for problem in questions.problems:
        _warn(f"skipped {problem.where}: {problem.reason}")
    if questions.skipped > len(questions.problems):
        _warn(f"... {questions.skipped:,} records were skipped in all")


def show_problems(summaries: Mapping[str, Mapping[str, Any]], questions: Questions) -> None:
    """What went wrong, on stderr."""
    show_skipped(questions)
    counts = next(iter(summaries.values()))["counts"]
    if counts["gold_not_found"]:
        lost = f"{counts['gold_not_found']:,} of {counts['questions']:,} questions"
        _warn(f"{lost} have gold passages that are not in what is searched: is it the right index?")
    for name, summary in summaries.items():
        for cause in summary["failures"]:
            _warn(f"{name}: {cause['count']} failed: {cause['message']}")
        if summary["incidents"]:
            told = ", ".join(f"{incident} {number:,} times" for incident, number in summary["incidents"].items())
            _warn(f"{name}: {told}")


def _warn(text: str) -> None:
    typer.secho(text, fg=typer.colors.YELLOW, err=True)
