"""The results of a study: means with 95% bootstrap intervals over questions, as JSON and Markdown.

Seeds are averaged per question first, since questions are resampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....eval.statistics import Interval, interval, intervals
from .designs import BASELINE, DESIGNS
from .review import ALPHAS, Floats, Review
from .runs import VALUES, Condition, Values

_RESAMPLES = 2_000
NOTICE = "Simulation: agents are simulated from the gold evidence, with stated error rates; not a result of a system."

Row = dict[str, Any]


def program_rows(played: Mapping[Condition, Values]) -> list[Row]:
    """One row per set of questions, error rate and design."""
    groups: dict[tuple[str, float, str], list[Values]] = {}
    for condition, values in played.items():
        groups.setdefault((condition.questions.dataset, condition.rate, condition.design), []).append(values)
    means = {
        key: {name: np.mean([each[name] for each in group], axis=0) for name in VALUES} for key, group in groups.items()
    }
    rows = []
    for (dataset, rate, design), columns in means.items():
        base = means[dataset, rate, BASELINE]
        known = {name: column.tolist() for name, column in columns.items() if not np.isnan(column).all()}
        found = intervals(known, resamples=_RESAMPLES)
        versus = {
            name: interval((columns[name] - base[name]).tolist(), resamples=_RESAMPLES)
            for name in ("evidence_recall", "lm_calls")
        }
        rows.append(
            {
                "dataset": dataset,
                "rate": rate,
                "design": design,
                "questions": len(base["lm_calls"]),
                "seeds": len(groups[dataset, rate, design]),
                "metrics": {name: value.mean for name, value in found.items()},
                "intervals": {name: [value.low, value.high] for name, value in found.items()},
                "versus": {name: value._asdict() for name, value in versus.items()},
                "calls_saved": 1 - found["lm_calls"].mean / float(base["lm_calls"].mean()),
            }
        )
    return rows


def review_row(dataset: str, assumption: str, rate: float, hops: Sequence[int], found: Mapping[str, Review]) -> Row:
    """Both alphas on a set of questions; the errors also by hops."""
    places = {count: [n for n, other in enumerate(hops) if other == count] for count in sorted(set(hops))}
    adaptive, fixed = ({name: np.array(values) for name, values in found[kind]._asdict().items()} for kind in ALPHAS)
    return {
        "dataset": dataset,
        "assumption": assumption,
        "rate": rate,
        "questions": len(hops),
        "auc": _alphas(adaptive["auc"], fixed["auc"]),
        "error": _alphas(adaptive["error"], fixed["error"]),
        "error_by_hops": {
            str(count): _alphas(adaptive["error"][rows], fixed["error"][rows]) for count, rows in places.items()
        },
    }


def _alphas(adaptive: Floats, fixed: Floats) -> dict[str, dict[str, float]]:
    columns = {"adaptive": adaptive, "fixed": fixed, "difference": adaptive - fixed}
    found = intervals({name: values.tolist() for name, values in columns.items()}, resamples=_RESAMPLES)
    return {name: value._asdict() for name, value in found.items()}


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(programs: Iterable[Row], reviews: Iterable[Row]) -> str:
    """The tables: scores in percent with intervals, calls per question."""
    lines = [
        NOTICE,
        "",
        "| questions | errors | program | evidence recall | precision | F1 | LM calls | in sequence | tokens "
        f"| calls saved against {DESIGNS[BASELINE].label} | recall against it, points |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in programs:
        cells = [_mean(row, name, 100, 1) for name in ("evidence_recall", "evidence_precision", "evidence_f1")]
        cells += [_mean(row, name, 1, 2) for name in ("lm_calls", "lm_calls_critical_path")]
        cells.append(_mean(row, "tokens", 1, 0))
        cells += [f"{100 * row['calls_saved']:.0f}%", _points(Interval(**row["versus"]["evidence_recall"]))]
        start = [f"{row['dataset']} ({row['questions']})", f"{100 * row['rate']:g}%", DESIGNS[row["design"]].label]
        lines.append(_line([*start, *cells]))
    lines += [
        "",
        "Review alone: confidence = alpha * accuracy + (1 - alpha) * credibility, accepted from 0.75. How judges of",
        "accuracy err is PAR-RAG's assumption, or its opposite, and not a finding.",
        "",
        "| questions | assumption | errors | AUC, adaptive | AUC, fixed | difference, points "
        "| wrong decisions, adaptive | fixed | difference, points |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in reviews:
        start = [f"{row['dataset']} ({row['questions']})", row["assumption"], f"{100 * row['rate']:g}%"]
        lines.append(_line([*start, *_compared(row["auc"]), *_compared(row["error"])]))
    return "\n".join(lines)


def _mean(row: Row, name: str, factor: float, digits: int) -> str:
    mean, low, high = (f"{factor * value:.{digits}f}" for value in (row["metrics"][name], *row["intervals"][name]))
    return f"{mean} ({low} to {high})"


def _compared(metric: Mapping[str, Mapping[str, float]]) -> list[str]:
    means = [f"{100 * metric[kind]['mean']:.1f}" for kind in ALPHAS]
    return [*means, _points(Interval(**metric["difference"]))]


def _points(value: Interval) -> str:
    return "{:+.1f} ({:+.1f} to {:+.1f})".format(*(100 * number for number in value))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
