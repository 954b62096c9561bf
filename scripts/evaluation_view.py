"""The output of `polyhop evaluate`: expected costs, progress, results and problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from .options import artifact_of, label
from .text import compact, dollars, new_table, warn

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.metrics import Quantity
    from ..eval.questions import Questions
    from ..eval.run import RunProgress


def show_estimate(name: str, sample: Mapping[str, Any], questions: int, parallel: int) -> None:
    """The costs of a sample, extrapolated.

    Args:
        sample: Its summary.
        parallel: How many questions are executed at the same time.
    """
    from rich.console import Console

    counts, agents = sample["counts"], sample["by_agent"]
    if not counts["answered"]:
        message = sample["failures"][0]["message"]
        raise PolyhopError(f"all of {counts['questions']} questions failed: {message}")
    factor = questions / counts["questions"]
    expected = {agent: {key: value * factor for key, value in costs.items()} for agent, costs in agents.items()}
    title = f"{name}: expected costs of {questions:,} questions, from a sample of {counts['questions']}"
    console = Console(markup=False, emoji=False)
    console.print(costs_table(expected, title))
    cached = round(sample["totals"]["lm_calls"] - sum(costs["lm_calls"] for costs in agents.values()))
    if cached > 0:
        warn(f"{cached:,} calls were answered by DSPy's cache and are not counted: --no-cache asks them, too")
    failed = f"; {counts['failed']} of {counts['questions']} failed" if counts["failed"] else ""
    console.print(f"about {_duration(sample['timing']['seconds_mean'] * questions / parallel)}{failed}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


@contextmanager
def evaluation_bar(name: str) -> Iterator[Callable[[RunProgress], None]]:
    """A progress bar with the running scores, on stderr."""
    from .bar import progress_bar

    with progress_bar(name) as bar:
        task = bar.add_task("", total=None)
        yield lambda run: bar.update(task, completed=run.done, total=run.questions, description=_state(run))


def _state(progress: RunProgress) -> str:
    from ..eval.metrics import answer_f1, evidence_f1

    means = {metric: progress.mean(metric.name) for metric in (answer_f1, evidence_f1)}
    parts = [f"{metric.label} {metric.text(value)}" for metric, value in means.items() if value is not None]
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

    from ..eval.official import SUBMISSIONS

    if as_json:
        one = {"dataset": questions.dataset, "split": questions.split, "programs": summaries}
        typer.echo(json.dumps(next(iter(summaries.values())) if out else one, ensure_ascii=False))
        return
    count = next(iter(summaries.values()))["counts"]["questions"]
    where = ", ".join(part for part in (questions.dataset, questions.split, questions.setting) if part)
    console = Console(markup=False, emoji=False)
    lost = [f"{questions.skipped:,} records skipped"] if questions.skipped else []
    failed = sum(summary["counts"]["failed"] for summary in summaries.values())
    lost += [f"{failed:,} failed"] if failed else []
    console.print(summary_table(summaries, ", ".join([f"{where}: {count} questions", *lost])))
    if len(summaries) == 1:
        (summary,) = summaries.values()
        if summary["by_agent"]:
            console.print(costs_table(summary["by_agent"], "costs by agent, without cached replies"))
    if out is not None:
        more = "the official files" if questions.dataset in SUBMISSIONS else "the rankings"
        typer.echo(f"{out}: summary.json, predictions.jsonl and {more}")


def show_skipped(questions: Questions) -> None:
    """The records that were skipped in the last iteration, on stderr."""
    for problem in questions.problems:
        warn(f"skipped {problem.where}: {problem.reason}")
    if questions.skipped > len(questions.problems):
        warn(f"... {questions.skipped:,} records were skipped in total")


def show_problems(summaries: Mapping[str, Mapping[str, Any]], questions: Questions) -> None:
    """Skipped records, missing gold passages, failures and retried requests, on stderr."""
    show_skipped(questions)
    counts = next(iter(summaries.values()))["counts"]
    if counts["gold_not_found"]:
        lost = f"{counts['gold_not_found']:,} of {counts['questions']:,} questions"
        warn(f"{lost} have gold passages that are not in the index: is it the right one?")
    for name, summary in summaries.items():
        if missing := summary.get("not_returned"):
            warn(f"{name} returns no {' and no '.join(missing)}: not scored")
        for cause in summary["failures"]:
            warn(f"{name}: {cause['count']} failed: {cause['message']}")
        if summary["incidents"]:
            listed = ", ".join(f"{incident} {number:,} times" for incident, number in summary["incidents"].items())
            warn(f"{name}: {listed}")


def warn_of_training(name: str, questions: Questions) -> None:
    """Warn where an artifact is evaluated on what it was tuned on."""
    artifact = artifact_of(name)
    if artifact is None:
        return
    from ..eval.settings import content

    file = questions.file.name if questions.file else questions.split
    for split, known in artifact.manifest.provenance.splits.items():
        if split != "test" and known.file == file:
            same = known.hash == content(questions)[1]
            which = "these questions" if same else f"{known.count:,} questions of {plain(file or '')}"
            warn(f"{name} was tuned on {which} ({split}): its scores here are not those on new questions")


# --- tables ----------------------------------------------------------------------------------------------------------


def summary_table(summaries: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """The means of one or several runs; of a single run with 95% intervals."""
    from ..eval.metrics import COSTS, METRICS

    single = next(iter(summaries.values())) if len(summaries) == 1 else None
    shown = new_table(title, "", *map(label, summaries), *(["95% interval"] if single else []))
    for quantity in (*METRICS.values(), *COSTS.values()):
        values = [summary["metrics"].get(quantity.name) for summary in summaries.values()]
        if quantity.shown and any(value is not None for value in values):
            ends = [" to ".join(map(quantity.text, single["intervals"][quantity.name]))] if single else []
            shown.add_row(_heading(quantity, summaries), *map(quantity.text, values), *ends)
    for percent in (50, 95):
        times = [f"{1000 * summary['metrics'][f'seconds_p{percent}']:.1f}" for summary in summaries.values()]
        shown.add_row(f"ms per question, p{percent}", *times)
    shown.add_row("failed questions", *(str(summary["counts"]["failed"]) for summary in summaries.values()))
    return shown


def _heading(quantity: Quantity, summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """The name of a metric, with the number of questions that it has values for if these are not all."""
    sizes = {
        (summary.get("scored", {}).get(quantity.name), summary["counts"]["questions"]) for summary in summaries.values()
    }
    fewer = sorted({str(some) for some, every in sizes if some is not None and some < every})
    return quantity.heading + (f", of {' / '.join(fewer)}" if fewer else "")


def costs_table(by_agent: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """The costs of each agent, and their total."""
    from rich.text import Text

    from ..engines.costs import sum_costs

    shown = new_table(title, "", "LM calls", "tokens in", "tokens out", "dollars")
    for name, costs in (*by_agent.items(), ("total", sum_costs(by_agent.values()))):
        counts = (compact(costs.get(each, 0)) for each in ("lm_calls", "tokens_in", "tokens_out"))
        shown.add_row(Text(plain(name)), *counts, dollars(costs["cost_usd"]) if "cost_usd" in costs else "?")
    return shown
