"""The first table: every run with its scores and what it cost; and each run against the first of its group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .against import Versus, against_first
from .figures import bounds, whisker
from .html import Html, details, join, table, tag
from .marks import FULL, Series, nothing, run_name
from .numbers import between, name, number
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
            *against_first(group, series, versus),
            _everything(group),
            *_incidents(group),
            *_agents(group),
        ]
    )


def _unfinished(run: Run) -> Html:
    return tag(
        "p",
        tag("strong", run.name),
        f" is not finished: {run.missing}. The numbers are those of the questions that are done.",
        class_="notice",
    )


def _simulated(group: Group) -> Iterable[Html]:
    named = [run.name for run in group.runs if run.manifest.get("simulation")]
    if named:
        words = ": the models know the gold evidence. These are results of a simulation, and of no system."
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
    scores = table("Scores of every run", ["Run", "Questions", *map(name, metrics)], rows, class_=FULL)
    if len(group.runs) < 2:
        return scores
    said = "Each column is drawn on a scale of its own, the same for all runs."
    return join([scores, tag("p", said, class_="small")])


def _questions(run: Run) -> Html:
    counts = run.summary["counts"]
    failed = tag("small", f"{counts['failed']:,} failed", class_="bad" if counts["failed"] else "quiet")
    done = f"{run.done:,}" if run.finished else f"{run.done:,} of {run.asked:,}"
    return tag("td", done, tag("br"), failed)


def _range(group: Group, metric: str) -> tuple[float, float]:
    """Where the runs differ; of a single one the whole scale."""
    ends = [run.interval(metric) or () for run in group.runs if run.name not in nothing(group, metric)]
    if len(ends) < 2:
        return 0.0, 1.0
    low, high = bounds((end for interval in ends for end in interval), least=0.05)
    return min(low, 0.95), min(high, 1.0)


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
    head = ["Run", *map(name, metrics), "Seconds, whole run", "Answered", "Failed"]
    return table("Costs of every run", head, rows, class_=FULL)


def _cost(run: Run, metric: str) -> Html:
    mean, found = run.mean(metric), run.interval(metric)
    varies = mean is not None and found is not None and found[0] < found[1]
    interval = tag("small", between(metric, *found), class_="quiet") if varies and found else ""
    return tag("td", tag("b", number(metric, mean)), tag("br"), interval)


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
