"""The sections of a report on evaluation runs: their data, and the templates that show it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from markupsafe import Markup

from ...data.errors import PolyhopError
from ...data.text import count
from ..folder import DIAGNOSIS, flat
from ..metrics import METRICS
from ..settings import SAMPLING
from ..statistics import Interval
from . import between, lower, name, number, p_value
from .charts import Plot, Point, bounds, front, mark, whisker
from .page import Section, render
from .runs import COMPARED, EvaluationRun, Group, Outcome

QUALITY = ("answer_em", "answer_f1", "evidence_precision", "evidence_recall", "evidence_f1", "joint_f1",
           "passage_recall@5", "search_recall@5", "all_gold@5")  # fmt: skip
COST = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50", "seconds_p95")

Context = Mapping[str, Any]


class Cell(NamedTuple):
    """A number of a table, with its interval as a chart and in words."""

    text: str = "–"
    chart: Markup = Markup("")
    notes: tuple[str, ...] = ()
    bold: bool = True


def heading(groups: Sequence[Group], optimized: Sequence[str]) -> tuple[str, str]:
    """The title of a report, and what it is about in one sentence.

    Args:
        optimized: Names of optimization runs.
    """
    if not groups:
        return f"Optimization: {_some(optimized)}", "What was tried, what it gained, and what was kept."
    names = _some(dict.fromkeys(run.name for group in groups for run in group.runs))
    runs = count(sum(len(group.runs) for group in groups), "run")
    if len(groups) == 1:
        lead = [f"{runs} over {count(len(groups[0].questions), 'question')}: {groups[0].title}"]
    else:
        questions = count(sum(len(group.questions) for group in groups), "question")
        lead = [runs, questions, f"{len(groups)} sets of questions, compared separately"]
    if optimized:
        lead.append(f"and {count(len(optimized), 'optimization')}: {_some(optimized)}")
    return f"{names} on {_some(dict.fromkeys(group.dataset for group in groups))}", ", ".join(lead)


def _some(names: Iterable[str]) -> str:
    *most, last = known = list(names)
    if len(known) > 3:
        return f"{', '.join(known[:3])} and {len(known) - 3} more"
    return f"{', '.join(most)} and {last}" if most else last


def evaluation_sections(groups: Sequence[Group]) -> list[Section]:
    """The sections of runs; the last one is about what was measured."""
    diagnosed = any((run.path / DIAGNOSIS).exists() for group in groups for run in group.runs)
    titles = [group.title for group in groups]

    def section(name: str, title: str, context: Callable[[Group], Context], before: str = "") -> Section:
        bodies = [render(f"{name}.html.j2", group=group, **context(group)) for group in groups]
        return Section(
            name, title, Markup(before) + render("groups.html.j2", parts=list(zip(titles, bodies, strict=True)))
        )

    return [
        section("overview", "Overview", _overview, _matrix(groups)),
        section("outcomes", "Outcomes", _outcomes),
        section("parts", "Hops and types", _parts),
        section("cost", "Cost and quality", _cost),
        *([section("agents", "Which agent costs the points", _agents)] if diagnosed else []),
        Section("questions", "Questions", render("questions.html.j2")),
        section("about", "About", _about),
    ]


def run_name(run: EvaluationRun) -> Markup:
    """A run with its number in its color, as charts and tables show it."""
    ring = Markup('<svg width="18" height="18" aria-hidden="true">{}</svg>').format(mark(run.series))
    return Markup('<span class="run">{} {}</span>').format(ring, run.name)


def _matrix(groups: Sequence[Group]) -> Markup:
    """All runs on all sets of questions."""
    if len(groups) < 2:
        return Markup("")
    runs = {run.name: run for group in groups for run in group.runs}

    def cells(group: Group, metric: str) -> list[Cell]:
        means = {run.name: run.mean(metric) for run in group.runs}
        best = max((mean for mean in means.values() if mean is not None), default=None)
        found = [means.get(name) for name in runs]
        return [Cell(number(mean, metric), bold=mean is not None and mean == best) for mean in found]

    tables = [
        (f"{name(metric)} on all sets of questions", [(group.title, cells(group, metric)) for group in groups])
        for metric in ("answer_f1", "evidence_f1")
    ]
    return render("matrix.html.j2", heads=["Questions", *map(run_name, runs.values())], tables=tables)


def _scored(run: EvaluationRun, part: Mapping[str, Any], metric: str, what: str = "") -> Cell:
    """A score of some questions of a run, with its interval on the scale of 0 to 1."""
    if metric not in part.get("metrics", {}):
        return Cell()
    mean, ends = part["metrics"][metric], part["intervals"].get(metric)
    if ends is None or ends[0] == ends[1]:
        return Cell(number(mean, metric))
    if metric not in METRICS or METRICS[metric].kind != "percent":
        return Cell(number(mean, metric), notes=(between(ends, metric),))
    return _charted(Interval(mean, *ends), metric, (0, 1), run.series, f"{run.name}{what}")


def _charted(value: Interval, metric: str, scale: tuple[float, float], series: int, of: str, sign: str = "") -> Cell:
    """A value with its interval as a chart on a scale."""
    text, ends = number(value.mean, metric, sign), between((value.low, value.high), metric, sign)
    return Cell(text, whisker(*value, scale, series, f"{of}: {name(metric)} {text} ({ends})"), (ends,))


def _around_0(values: Iterable[Interval]) -> tuple[float, float]:
    """A scale for some values."""
    most = max((abs(end) for each in values for end in each), default=0.0) or 1.0
    return -most, most


def _overview(group: Group) -> Context:
    runs, quality, costs = group.runs, group.known(QUALITY), group.known(COST)
    versus = group.versus.rows if group.versus else ()
    compared = [metric for metric in COMPARED if any(row.versus and row.metric == metric for row in versus)]
    kinds = dict.fromkeys(kind for run in runs for kind in run.summary["incidents"])
    errors = {run.name: run.calibration_error for run in runs}
    calibrated = any(error is not None for error in errors.values())

    def scores(run: EvaluationRun) -> list[Cell]:
        failed, error = run.summary["counts"]["failed"], errors[run.name]
        notes = (() if run.finished else (f"of {run.total:,}",)) + ((f"{failed:,} failed",) if failed else ())
        found = [Cell(f"{run.done:,}", notes=notes, bold=False)]
        found += [_scored(run, run.summary, each) for each in quality]
        return found + [Cell("–" if error is None else f"{error:.3f}", bold=False)] * calibrated

    def spent(run: EvaluationRun) -> list[Cell]:
        total = Cell(f"{run.summary['timing']['seconds_total']:,.0f}")
        return [*(_scored(run, run.summary, each) for each in costs), total]

    names = [run.name for run in runs]
    return {
        "simulated": [run.name for run in runs if run.manifest.simulation],
        "score_heads": ["Run", "Questions", *map(name, quality), *["Calibration error"] * calibrated],
        "scores": [(run_name(run), scores(run)) for run in runs],
        "cost_heads": ["Run", *map(name, costs), "Seconds, whole run"],
        "costs": [(run_name(run), spent(run)) for run in runs],
        "difference_heads": ["Run", *map(name, compared)],
        "differences": [(run_name(run), [_difference(run, group, each) for each in compared]) for run in runs[1:]],
        "metric_heads": ["Metric", *names],
        "metrics": [
            (name(metric), [_scored(run, run.summary, metric) for run in runs])
            for metric in dict.fromkeys(metric for run in runs for metric in run.summary["metrics"])
        ],
        "incident_heads": ["Incident", *names],
        "incidents": [[kind, *(f"{run.summary['incidents'].get(kind, 0):,}" for run in runs)] for kind in kinds],
        "failures": [
            [run.name, each["cause"], each["message"], f"{each['count']:,}"]
            for run in runs
            for each in run.summary["failures"]
        ],
        "agents": [
            [
                run.name,
                role,
                *(f"{costs.get(name, 0):,}" for name in ("lm_calls", "tokens_in", "tokens_out")),
                number(costs.get("cost_usd"), "cost_usd"),
            ]
            for run in runs
            for role, costs in run.summary["by_agent"].items()
        ],
    }


def _difference(run: EvaluationRun, group: Group, metric: str) -> Cell:
    """A difference from the first run, on the scale of all differences in this metric."""
    assert group.versus is not None
    scale = _around_0(row.versus.difference for row in group.versus.rows if row.metric == metric and row.versus)
    row = group.versus.row(metric, run.name)
    if row is None or row.versus is None or row.p_holm is None:
        return Cell()
    cell = _charted(row.versus.difference, metric, scale, run.series, f"{run.name} against {group.runs[0].name}", "+")
    won = f"p {p_value(row.p_holm)} · {row.versus.wins}:{row.versus.losses}"
    return cell._replace(notes=(*cell.notes, won), bold=row.p_holm < 0.05)


def _outcomes(group: Group) -> Context:
    counts = [Counter(run.outcomes) for run in group.runs]
    kinds = [kind for kind in Outcome if any(found[kind] for found in counts)]
    return {"counts": counts, "kinds": kinds, "every": list(Outcome), "run_name": run_name}


def _parts(group: Group) -> Context:
    """A table per metric: the runs by number of hops or type."""
    tables = []
    for key, title in (("by_hops", "hops"), ("by_kind", "type")):
        found = [run.summary.get(key, {}) for run in group.runs]
        parts = sorted({part for each in found for part in each})
        sizes = {part: max(each[part]["counts"]["questions"] for each in found if part in each) for part in parts}
        for metric in ("answer_f1", "evidence_f1"):
            rows = [
                (run_name(run), [_scored(run, each.get(part, {}), metric, f", {title} {part}") for part in parts])
                for run, each in zip(group.runs, found, strict=True)
            ]
            if any(cell.text != "–" for _, cells in rows for cell in cells):
                heads = ["Run", *(f"{part} ({count(sizes[part], 'question')})" for part in parts)]
                tables.append((f"{name(metric)} by {title}", heads, rows))
    return {"tables": tables}


def _cost(group: Group) -> Context:
    """Charts of quality against cost, and the runs on their Pareto fronts."""
    fronts: dict[str, list[str]] = {run.name: [] for run in group.runs}
    charts = []
    for quality in ("answer_f1", "evidence_f1"):
        for cost in ("lm_calls", "tokens", "cost_usd"):
            runs = [run for run in group.runs if run.mean(cost) is not None and run.mean(quality) is not None]
            if any(run.mean(cost) for run in runs):
                charts.append((f"{name(quality)} against {lower(cost)}", _tradeoff(runs, cost, quality)))
                for n in front([(run.mean(cost) or 0.0, run.mean(quality) or 0.0) for run in runs]):
                    fronts[runs[n].name].append(f"{name(quality)} / {lower(cost)}")
    rows = [(run_name(run), ", ".join(fronts[run.name]) or "none") for run in group.runs]
    return {"charts": charts, "rows": rows}


def _tradeoff(runs: Sequence[EvaluationRun], cost: str, quality: str) -> Markup:
    points = [(run.mean(cost) or 0.0, run.mean(quality) or 0.0) for run in runs]
    intervals = [run.summary["intervals"][quality] for run in runs]
    plot = Plot(
        f"{name(quality)} in percent against {lower(cost)} per question",
        f"{name(cost)} per question",
        f"{name(quality)}, %",
        bounds([0.0, *(1.04 * x for x, _ in points)]),
        bounds(end for ends in intervals for end in ends),
    )
    best = sorted(points[n] for n in front(points))
    steps = [place for (x, y), (_, before) in zip(best[1:], best, strict=False) for place in ((x, before), (x, y))]
    plot.line([*best[:1], *steps], "front")
    for run, (x, y), ends in zip(runs, points, intervals, strict=True):
        note = f"{run.name}: {number(y, quality)} ({between(ends, quality)}) for {number(x, cost)} {lower(cost)}"
        plot.mark(Point(x, y, note, *ends), run.series)
    return plot.svg()


def _agents(group: Group) -> Context:
    """What each agent costs, the most expensive first."""
    tables = []
    for run in group.runs:
        if (run.path / DIAGNOSIS).exists():
            against, asked, costs = _costs(run.path / DIAGNOSIS)
            metrics = [metric for metric in METRICS if any(metric in cost for cost in costs.values())]
            scale = _around_0(cost for each in costs.values() for cost in each.values())
            rows = []
            for role in sorted(
                costs, key=lambda role: -max((cost.mean for cost in costs[role].values()), default=-1.0)
            ):
                known = {
                    metric: _charted(cost, metric, scale, run.series, role) for metric, cost in costs[role].items()
                }
                rows.append(
                    (role, [Cell(f"{asked.get(role, 0):,}"), *(known.get(each, Cell("?")) for each in metrics)])
                )
            tables.append((f"{run.name}, against {against}", ["Agent", "Questions", *map(name, metrics)], rows))
    return {"tables": tables}


def _costs(file: Path) -> tuple[str, dict[str, int], dict[str, dict[str, Interval]]]:
    """The reference of a diagnosis, its questions by role, and the costs by role and metric."""
    try:
        known = json.loads(file.read_bytes())
        costs = {
            str(role): {metric: Interval(**cost) for metric, cost in by_metric.items() if cost is not None}
            for role, by_metric in known["costs"].items()
        }
        return str(known["against"]), dict(known["asked"]), costs
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolyhopError(f"{file} is damaged: run `polyhop diagnose {file.parent}` again") from error


# --- about -----------------------------------------------------------------------------------------------------------

_INDEX = ("passages", "corpus", "corpus_hash", "analyzer", "anserini", "lucene", "max_words")


def _about(group: Group) -> Context:
    def rows(columns: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        names = dict.fromkeys(name for column in columns for name in column)
        return [[name, *(str(column.get(name, "")) for column in columns)] for name in names]

    return {
        "names": [run.name for run in group.runs],
        "facts": rows([_facts(run) for run in group.runs]),
        "tunables": rows([run.manifest.program.tunables for run in group.runs]),
        "commands": [command(run) for run in group.runs],
    }


def _facts(run: EvaluationRun) -> dict[str, Any]:
    """The settings of a run; of models and the index, only what is named here gets into the report."""
    manifest = run.manifest
    index, lms = manifest.index or {}, manifest.program.lms
    models = {role: {key: lm[key] for key in ("model", *SAMPLING) if key in lm} for role, lm in lms.items() if lm}
    told = manifest.model_dump(mode="json", include=_SETTINGS, exclude_none=True, exclude_defaults=True)
    told |= {"index": {key: index[key] for key in _INDEX if key in index}, "models": models}
    return {"folder": run.path.resolve().name, "done": f"{run.done:,} of {run.total:,} questions", **dict(flat(told))}


_SETTINGS: Any = {
    **dict.fromkeys(("dataset", "questions", "timeout", "simulation", "created", "versions", "python"), True),
    "program": {"name", "class_name", "retriever", "state_hash"},
}


def command(run: EvaluationRun) -> str:
    """The `polyhop evaluate` that repeats a run; files are given by their names only."""
    manifest = run.manifest
    asked, program = manifest.questions, manifest.program
    files = {kind: PurePath(path).name for kind, path in manifest.files.items() if path}
    options = [
        ("--program", files.get("program") or program.name),
        ("--dataset", manifest.dataset),
        ("--questions", files.get("questions")),
        ("--split", asked.split),
        ("--index", files.get("index")),
        ("--setting", asked.setting),
        ("--limit", asked.limit),
        ("--seed", asked.seed),
        ("--timeout", manifest.timeout),
        ("--retriever", program.retriever_name if "program" not in files and "search.k" in program.tunables else None),
        *(("--lm", f"{role}={lm['model']}") for role, lm in program.lms.items() if lm and lm["model"] != "lexical"),
        *(
            ("--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
            for name, value in program.tunables.items()
        ),
    ]
    given = (f"{name} {shlex.quote(str(value))}" for name, value in options if value is not None)
    return f"polyhop evaluate {' '.join(given)} --out RUN"
