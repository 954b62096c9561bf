"""The first table: every run with its scores and what it cost; and each run against the first of its group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..statistics import Comparison, compare
from .figures import bounds, mark, whisker
from .html import Html, details, join, table, tag
from .numbers import between, name, number, p_value
from .runs import Group, Run

QUALITY = (
    "answer_em",
    "answer_f1",
    "evidence_precision",
    "evidence_recall",
    "evidence_f1",
    "joint_f1",
    "passage_recall@5",
    "all_gold@5",
)
COST = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50", "seconds_p95")
COMPARED = ("answer_em", "answer_f1", "evidence_f1", "joint_f1", "lm_calls", "tokens")

FULL = "numbers full"  # as wide as the page

Series = dict[str, int]


def overview(group: Group, series: Series, versus: Sequence[Versus]) -> Html:
    """Everything that has one row a run."""
    return join(
        [
            *map(_unfinished, (run for run in group.runs if not run.finished)),
            *_simulated(group),
            tag("h3", "Quality, in percent, with 95% intervals"),
            _quality(group, series),
            tag("h3", "What a question cost"),
            _costs(group, series),
            *_comparison(group, series, versus),
            _everything(group),
            *_incidents(group),
            *_agents(group),
        ]
    )


def run_name(run: Run, series: Series) -> Html:
    return tag(
        "span",
        tag("svg", mark(series[run.name], 7, 7), width=14, height=14, aria_hidden="true"),
        " ",
        run.name,
        class_="run",
    )


def nothing(group: Group, metric: str) -> set[str]:
    """The runs that score nothing where others do: on one scale with those, no picture would show what differs."""
    scores = {run.name: run.mean(metric) for run in group.runs}
    return {name for name, score in scores.items() if score == 0} if any(scores.values()) else set()


def not_drawn(group: Group, metrics: Iterable[str]) -> Iterable[Html]:
    """Says who is not in the pictures."""
    names = list(dict.fromkeys(name for metric in metrics for name in sorted(nothing(group, metric))))
    if names:
        yield tag("p", f"Not drawn where the score is 0: {', '.join(names)}.", class_="quiet")


def _unfinished(run: Run) -> Html:
    return tag(
        "p",
        tag("strong", run.name),
        f" is not finished: {run.done:,} of {run.asked:,} questions are done, and the numbers are theirs.",
        class_="notice",
    )


def _simulated(group: Group) -> Iterable[Html]:
    named = [run.name for run in group.runs if run.manifest.get("simulation")]
    if named:
        words = " Its models know the gold evidence: these are results of a simulation, and of no system."
        yield tag("p", tag("strong", ", ".join(named)), words, class_="notice")


def _quality(group: Group, series: Series) -> Html:
    metrics = [metric for metric in QUALITY if any(run.mean(metric) is not None for run in group.runs)]
    ranges = {metric: _range(group, metric) for metric in metrics}
    without = {metric: nothing(group, metric) for metric in metrics}
    rows = [
        [
            run_name(run, series),
            _questions(run),
            *(_cell(run, metric, ranges[metric], series, run.name not in without[metric]) for metric in metrics),
        ]
        for run in group.runs
    ]
    return table("Scores of every run", ["Run", "Questions", *map(name, metrics)], rows, class_=FULL)


def _questions(run: Run) -> Html:
    counts = run.summary["counts"]
    failed = tag("small", f"{counts['failed']:,} failed", class_="bad" if counts["failed"] else "quiet")
    done = f"{run.done:,}" if run.finished else f"{run.done:,} of {run.asked:,}"
    return tag("td", done, tag("br"), failed)


def _range(group: Group, metric: str) -> tuple[float, float]:
    drawn = [run for run in group.runs if run.name not in nothing(group, metric)]
    return bounds((end for run in drawn for end in run.interval(metric) or ()), least=0.05)


def _cell(run: Run, metric: str, among: tuple[float, float], series: Series, drawn: bool) -> Html:
    mean, found = run.mean(metric), run.interval(metric)
    if mean is None or found is None:
        return tag("td", "–")
    interval = between(metric, *found)
    note = f"{run.name}: {name(metric)} {number(metric, mean)} ({interval})"
    if not drawn:
        return tag("td", tag("b", number(metric, mean)))
    picture = whisker(mean, *found, among, series[run.name], note)
    return tag("td", tag("b", number(metric, mean)), picture, tag("small", interval, class_="quiet"))


def _costs(group: Group, series: Series) -> Html:
    metrics = [metric for metric in COST if any(run.mean(metric) is not None for run in group.runs)]
    rows = []
    for run in group.runs:
        cells = [_cost(run, metric) for metric in metrics]
        counts, timing = run.summary["counts"], run.summary.get("timing", {})
        total = timing.get("seconds_total")
        cells.append(tag("td", "–" if total is None else f"{total:,.0f}"))
        cells.append(tag("td", f"{counts['answered']:,}"))
        cells.append(tag("td", f"{counts['failed']:,}", class_="bad" if counts["failed"] else None))
        rows.append([run_name(run, series), *cells])
    return table(
        "Costs of every run", ["Run", *map(name, metrics), "Seconds, all", "Answered", "Failed"], rows, class_=FULL
    )


def _cost(run: Run, metric: str) -> Html:
    mean, found = run.mean(metric), run.interval(metric)
    varies = mean is not None and found is not None and found[0] < found[1]
    interval = tag("small", between(metric, *found), class_="quiet") if varies and found else ""
    return tag("td", tag("b", number(metric, mean)), tag("br"), interval)


# --- against the first -----------------------------------------------------------------------------------------------


class Versus(NamedTuple):
    """A run against the first of its group, in one metric, over the questions that are done in both."""

    run: str
    metric: str
    questions: int
    found: Comparison


def compare_group(group: Group, on_comparison: Callable[[], None] = lambda: None) -> list[Versus]:
    """Every run against the first: what `polyhop compare` prints of two of them."""
    first = group.runs[0]
    found = []
    for run in group.runs[1:]:
        here = {n: row for row, n in enumerate(run.numbers)}
        pairs = np.array([(here[n], row) for row, n in enumerate(first.numbers) if n in here]).reshape(-1, 2)
        for metric in COMPARED:
            ours, theirs = run.columns[metric][pairs[:, 0]], first.columns[metric][pairs[:, 1]]
            both = ~np.isnan(ours) & ~np.isnan(theirs)
            if both.any():
                result = compare(ours[both].tolist(), theirs[both].tolist())
                found.append(Versus(run.name, metric, int(both.sum()), result))
            on_comparison()
    return found


def comparisons(group: Group) -> int:
    """How many there are to make."""
    return (len(group.runs) - 1) * len(COMPARED)


def _comparison(group: Group, series: Series, versus: Sequence[Versus]) -> Iterable[Html]:
    if not versus:
        return
    first = group.runs[0].name
    metrics = list(dict.fromkeys(each.metric for each in versus))
    ranges = {
        metric: _around_zero(
            end
            for each in versus
            if each.metric == metric and each.run not in nothing(group, metric)
            for end in each.found.difference
        )
        for metric in metrics
    }
    rows = []
    for run in group.runs[1:]:
        known = {each.metric: each for each in versus if each.run == run.name}
        cells = [
            _difference(known[metric], first, ranges[metric], series) if metric in known else tag("td", "–")
            for metric in metrics
        ]
        rows.append([run_name(run, series), *cells])
    yield tag("h3", "Against ", tag("em", first))
    yield tag(
        "p",
        "Paired differences over the questions that are done in both, with 95% bootstrap intervals; p is two-sided, of "
        "a permutation test. Wins and losses are the questions with the higher and the lower value.",
        class_="quiet",
    )
    yield table(f"Every run against {first}", ["Run", *map(name, metrics)], rows, class_=FULL)


def _around_zero(values: Iterable[float]) -> tuple[float, float]:
    most = max(map(abs, values), default=0.0) or 1.0
    return -most, most


def _difference(versus: Versus, first: str, among: tuple[float, float], series: Series) -> Html:
    (mean, low, high), p = versus.found.difference, versus.found.p_permutation
    told = f"{number(versus.metric, mean, '+')} ({between(versus.metric, low, high, '+')})"
    fits = among[0] <= low and high <= among[1]
    note = f"{versus.run} against {first}: {name(versus.metric)} {told}"
    return tag(
        "td",
        tag("b", number(versus.metric, mean, "+"), class_=None if p < 0.05 else "faint"),
        whisker(mean, low, high, among, series[versus.run], note) if fits else tag("br"),
        tag("small", between(versus.metric, low, high, "+"), class_="quiet"),
        tag("br"),
        tag("small", f"p {p_value(p)} · {versus.found.wins}:{versus.found.losses}", class_="quiet"),
    )


# --- in full ---------------------------------------------------------------------------------------------------------


def _everything(group: Group) -> Html:
    metrics = dict.fromkeys(metric for run in group.runs for metric in run.summary["metrics"])
    rows = [
        [name(metric), *(f"{number(metric, run.mean(metric))}{_interval(run, metric)}" for run in group.runs)]
        for metric in metrics
    ]
    return details(
        "All metrics, with intervals", table("All metrics", ["Metric", *(run.name for run in group.runs)], rows)
    )


def _interval(run: Run, metric: str) -> str:
    found = run.interval(metric)
    return f" ({between(metric, *found)})" if found else ""


def _incidents(group: Group) -> Iterable[Html]:
    """What went wrong on the way without a question being lost, and what failed."""
    kinds = list(dict.fromkeys(kind for run in group.runs for kind in run.summary.get("incidents") or {}))
    if kinds:
        yield tag("h3", "What happened")
        rows = [
            [kind, *(f"{(run.summary.get('incidents') or {}).get(kind, 0):,}" for run in group.runs)] for kind in kinds
        ]
        yield table("What happened on the way", ["Incident", *(run.name for run in group.runs)], rows)
    failures = [
        [run.name, failure["cause"], tag("td", failure["message"], class_="words"), f"{failure['count']:,}"]
        for run in group.runs
        for failure in run.summary["failures"]
    ]
    if failures:
        yield tag("h3", "Failures")
        yield table("Why questions failed", ["Run", "Cause", "Message", "Questions"], failures)


def _agents(group: Group) -> Iterable[Html]:
    rows = [
        [run.name, role, *(f"{costs.get(name, 0):,}" for name in ("lm_calls", "tokens_in", "tokens_out")), _paid(costs)]
        for run in group.runs
        for role, costs in (run.summary.get("by_agent") or {}).items()
    ]
    if rows:
        yield tag("h3", "Costs by agent, over all questions")
        yield table("Costs by agent", ["Run", "Agent", "LM calls", "Tokens in", "Tokens out", "Dollars"], rows)


def _paid(costs: Mapping[str, float]) -> str:
    return number("cost_usd", costs.get("cost_usd"))
