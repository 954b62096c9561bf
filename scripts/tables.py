"""Runs side by side in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS: dict[str, tuple[str, float]] = {
    "answer_em": ("answer EM", 100),
    "answer_f1": ("answer F1", 100),
    "evidence_precision": ("evidence precision (passages)", 100),
    "evidence_recall": ("evidence recall (passages)", 100),
    "evidence_f1": ("evidence F1 (passages)", 100),
    "fact_precision": ("fact precision (sentences)", 100),
    "fact_recall": ("fact recall (sentences)", 100),
    "fact_f1": ("fact F1 (sentences)", 100),
    "joint_f1": ("joint F1", 100),
    "passage_recall@5": ("Recall@5 (passages)", 100),
    "all_gold@5": ("all gold@5 (passages)", 100),
    "answer_in_evidence": ("answer in evidence", 100),
    "lm_calls": ("LM calls a question", 1),
    "searches": ("searches a question", 1),
    "tokens": ("tokens a question", 1),
    "cost_usd": ("US cents a question", 100),
}
"""What is shown unless asked for otherwise: the heading, and what a value is multiplied by."""


def summary_table(summaries: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """The means of one or several runs; of one with its 95% intervals."""
    from rich.markup import escape
    from rich.table import Table

    from .options import label

    if any("simulation" in summary for summary in summaries.values()):
        title += " (simulation)"
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("")
    for name in summaries:
        table.add_column(escape(label(name)), justify="right")
    if len(summaries) == 1:
        table.add_column("95% interval", justify="right")
    for metric, (heading, factor) in HEADINGS.items():
        if any(metric in summary["metrics"] for summary in summaries.values()):
            cells = [_cell(summary["metrics"].get(metric), factor) for summary in summaries.values()]
            if len(summaries) == 1:
                (summary,) = summaries.values()
                low, high = summary["intervals"][metric]
                cells.append(f"{factor * low:.1f} to {factor * high:.1f}")
            table.add_row(heading, *cells)
    for percent in (50, 95):
        times = [f"{1000 * summary['metrics'][f'seconds_p{percent}']:.1f}" for summary in summaries.values()]
        table.add_row(f"ms a question, p{percent}", *times)
    table.add_row("failed questions", *(str(summary["counts"]["failed"]) for summary in summaries.values()))
    return table


def costs_table(by_agent: Mapping[str, Mapping[str, float]], title: str) -> Table:
    """What each agent costs, and all of them."""
    from rich.table import Table

    from ..engines.costs import sum_costs
    from .text import compact, dollars

    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("")
    for heading in ("LM calls", "tokens in", "tokens out", "dollars"):
        table.add_column(heading, justify="right")
    for name, costs in (*by_agent.items(), ("in all", sum_costs(by_agent.values()))):
        counts = (compact(costs.get(each, 0)) for each in ("lm_calls", "tokens_in", "tokens_out"))
        table.add_row(name, *counts, dollars(costs["cost_usd"]) if "cost_usd" in costs else "?")
    return table


def _cell(value: float | None, factor: float) -> str:
    return "" if value is None else f"{factor * value:.1f}"
