"""Every run against the first of its group, over the questions that are done in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..statistics import Comparison, compare
from .figures import whisker
from .html import Html, table, tag
from .marks import FULL, Series, nothing, run_name
from .numbers import between, name, number, p_value
from .runs import Group

COMPARED = ("answer_em", "answer_f1", "evidence_f1", "joint_f1", "lm_calls", "tokens")


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


def against_first(group: Group, series: Series, versus: Sequence[Versus]) -> Iterable[Html]:
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
        "a permutation test, and what is bold has p < 0.05. Last come wins and losses: on how many questions the value "
        "is higher and lower.",
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
