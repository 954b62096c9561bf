"""The sections of a report on evaluation runs: their data, and the templates that show it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from markupsafe import Markup

from ...data.errors import PolyhopError
from ...data.text import count
from ..folder import DIAGNOSIS
from ..metrics import METRICS
from ..settings import SAMPLING, QuestionSettings
from ..statistics import Interval
from . import figures
from .calibration import STEADY, calibration
from .numbers import lower, name, number, share
from .page import Section, render
from .runs import COMPARED, EvaluationRun, Group
from .traces import Mean, Outcome, by_round, by_search

QUALITY = ("answer_em", "answer_f1", "evidence_precision", "evidence_recall", "evidence_f1", "joint_f1",
           "passage_recall@5", "search_recall@5", "all_gold@5")  # fmt: skip
COST = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50", "seconds_p95")

Context = Mapping[str, Any]


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
    """The sections of runs that were compared (`Group.compare`); the last one is about what was measured."""

    def each(template: str, context: Callable[[Group], Context]) -> Markup:
        bodies = [render(template, group=group, figures=figures, **context(group)) for group in groups]
        return render("groups.html.j2", parts=list(zip([group.title for group in groups], bodies, strict=True)))

    return [
        Section("overview", "Overview", _matrix(groups) + each("overview.html.j2", _overview)),
        Section(
            "outcomes-section",
            "Outcomes",
            each("outcomes.html.j2", _outcomes) + render("definitions.html.j2", kinds=list(Outcome)),
        ),
        Section("parts", "Hops and types", each("parts.html.j2", _parts)),
        Section("cost", "Cost and quality", each("tradeoff.html.j2", _tradeoff)),
        *(
            [Section("agents", "Which agent costs the points", each("diagnosis.html.j2", _diagnosis))]
            if any((run.path / DIAGNOSIS).exists() for group in groups for run in group.runs)
            else []
        ),
        Section("convergence", "Convergence", each("convergence.html.j2", _convergence)),
        Section("calibration", "Calibration", each("calibration.html.j2", _calibration)),
        Section("questions", "Questions", render("questions.html.j2")),
        Section("about", "About", each("about.html.j2", _about) + render("terms.html.j2", kinds=list(Outcome))),
    ]


def _matrix(groups: Sequence[Group]) -> Markup:
    """All runs on all sets of questions."""
    if len(groups) < 2:
        return Markup("")
    runs = {run.name: run for group in groups for run in group.runs}

    def cells(group: Group, metric: str) -> list[tuple[str, bool]]:
        means = {run.name: run.mean(metric) for run in group.runs}
        best = max((mean for mean in means.values() if mean is not None), default=None)
        return [(number(means.get(name), metric), best is not None and means.get(name) == best) for name in runs]

    tables = [
        (f"{name(metric)} on all sets of questions", [(group.title, cells(group, metric)) for group in groups])
        for metric in ("answer_f1", "evidence_f1")
    ]
    return render("matrix.html.j2", runs=list(runs.values()), tables=tables)


def _overview(group: Group) -> Context:
    runs = group.runs
    kinds = dict.fromkeys(kind for run in runs for kind in run.summary.get("incidents") or {})
    return {
        "quality": group.known(QUALITY),
        "costs": group.known(COST),
        "compared": [metric for metric in COMPARED if any(metric in run.versus for run in runs)],
        "simulated": [run.name for run in runs if run.manifest.simulation],
        "metrics": list(dict.fromkeys(metric for run in runs for metric in run.summary["metrics"])),
        "incidents": [
            [kind, *(f"{(run.summary.get('incidents') or {}).get(kind, 0):,}" for run in runs)] for kind in kinds
        ],
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
            for role, costs in (run.summary.get("by_agent") or {}).items()
        ],
    }


def _outcomes(group: Group) -> Context:
    counts = [Counter(run.outcomes) for run in group.runs]
    return {"counts": counts, "kinds": [kind for kind in Outcome if any(found[kind] for found in counts)]}


def _parts(group: Group) -> Context:
    """The number of hops and the type, with the metrics that are drawn and listed."""
    drawn = ("answer_f1", "evidence_f1", "joint_f1")
    found = []
    for key, title, heading in (("by_hops", "By hops", "Hops"), ("by_kind", "By type", "Type")):
        if parts := group.parts(key):
            known = [
                metric
                for metric in ("answer_em", *drawn)
                if any(part.mean(run, metric) is not None for part in parts for run in group.runs)
            ]
            found.append((title, heading, parts, [metric for metric in drawn if metric in known], known))
    return {"parts": found, "drawn": drawn}


def _tradeoff(group: Group) -> Context:
    costs, qualities = ["lm_calls", "tokens", "cost_usd"], ["answer_f1", "evidence_f1"]

    def known(cost: str, quality: str) -> list[EvaluationRun]:
        runs = [run for run in group.runs if run.mean(cost) is not None and run.mean(quality) is not None]
        return runs if any(run.mean(cost) for run in runs) else []

    pairs = [(cost, quality) for quality in qualities for cost in costs if known(cost, quality)]
    width = 392 if len({cost for cost, _ in pairs}) > 2 else 440
    fronts: dict[str, list[str]] = {run.name: [] for run in group.runs}
    for cost, quality in pairs:
        runs = known(cost, quality)
        for n in figures.front([(run.mean(cost) or 0.0, run.mean(quality) or 0.0) for run in runs]):
            fronts[runs[n].name].append(f"{name(quality)} / {lower(cost)}")

    def chart(cost: str, quality: str) -> tuple[str, Markup]:
        runs = [run for run in known(cost, quality) if run.name not in group.negligible(quality)]
        return f"{name(quality)} against {lower(cost)}", figures.tradeoff(runs, cost, quality, width)

    rows = [[chart(*pair) for pair in pairs if pair[1] == quality] for quality in qualities]
    return {"rows": rows if pairs else [], "costs": costs, "qualities": qualities, "fronts": fronts}


def _diagnosis(group: Group) -> Context:
    """What each agent costs, the most expensive first."""
    found = []
    for run in group.runs:
        if not (run.path / DIAGNOSIS).exists():
            continue
        against, asked, costs = _costs(run.path / DIAGNOSIS)
        metrics = [name for name in METRICS if any(name in cost for cost in costs.values())]
        order = sorted(costs, key=lambda role: -max((cost.mean for cost in costs[role].values()), default=-1.0))
        most = max((abs(end) for each in costs.values() for cost in each.values() for end in cost), default=0.0) or 1.0
        rows = []
        for role in order:
            known = [(metric, costs[role].get(metric)) for metric in metrics]
            cells = [figures.cost_cell(run, role, name, cost, most) if cost else ("", "?") for name, cost in known]
            rows.append((role, asked.get(role, 0), cells))
        found.append((run, against, metrics, rows))
    return {"diagnosed": found}


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


def _convergence(group: Group) -> Context:
    """Recall by search, recall and precision by round, and the reasons to stop."""
    rounds = 12  # and searches; later ones are not shown
    curves = {
        run.name: (
            by_search(run.courses),
            by_round(run.courses, lambda each: each.recall),
            by_round(run.courses, lambda each: each.precision),
            by_round(run.courses, lambda each: each.required),
        )
        for run in group.runs
    }
    charts = []
    for n, (title, step) in enumerate(
        [("Gold passages found", "search"), ("Evidence recall", "round"), ("Evidence precision", "round")]
    ):
        lines = [(run, curves[run.name][n][:rounds]) for run in group.runs]
        if any(curve for _, curve in lines):
            charts.append((title, figures.over_time(title, step, lines)))

    def cells(n: int, run: EvaluationRun) -> list[str]:
        def after(points: Sequence[Mean], shown: Callable[[float], str] = share) -> list[str]:
            return [shown(points[n].mean), f"{points[n].reached:,}"] if n < len(points) else ["", ""]

        found, recall, precision, required = curves[run.name]
        open = after(required, "{:.2f}".format)[:1]
        return [str(n + 1), *after(found), *after(recall), *after(precision)[:1], *open]

    lengths = {run.name: min(rounds, max(map(len, curves[run.name][:2]))) for run in group.runs}
    stops = [
        Counter(
            "failed" if kind is Outcome.failed else stop or "none"
            for kind, stop in zip(run.outcomes, run.stops, strict=True)
        )
        for run in group.runs
    ]
    total = sum(stops, Counter[str]())
    return {
        "charts": charts,
        "rows": [(run, cells(n, run)) for run in group.runs for n in range(lengths[run.name])],
        "stops": stops,
        "reasons": sorted(total, key=lambda reason: (-total[reason], reason)),
    }


def _calibration(group: Group) -> Context:
    found = [(run, calibration(*run.stated(), questions=run.done)) for run in group.runs]
    checked = [
        [
            run.name,
            status,
            f"{len(stated):,}",
            share(stated.mean()),
            share(right.mean()),
            f"{at.ece:.3f}",
            f"{at.aurc:.3f}",
        ]
        for run in group.runs
        for status in dict.fromkeys(run.statuses)
        for stated, right in [run.stated(status)]
        if status and (at := calibration(stated, right, questions=len(stated)))
    ]
    return {"known": [(run, each) for run, each in found if each], "steady": STEADY, "checked": checked}


# --- about -----------------------------------------------------------------------------------------------------------

_INDEX = ("passages", "corpus", "corpus_hash", "analyzer", "anserini", "lucene", "max_words")


def _about(group: Group) -> Context:
    """What the manifests say; only what is named here gets into the report."""
    facts = [_facts(run) for run in group.runs]
    tunables = [run.manifest.program.tunables for run in group.runs]
    headings = dict.fromkeys(heading for found in facts for heading in found)
    return {
        "names": [run.name for run in group.runs],
        "facts": [(heading, _merged([found.get(heading, "") for found in facts])) for heading in headings],
        "tunables": [
            (each, _merged([str(found.get(each, "")) for found in tunables]))
            for each in dict.fromkeys(each for found in tunables for each in found)
        ],
        "commands": [command(run) for run in group.runs],
    }


def _merged(values: list[str]) -> list[tuple[str, int]]:
    """Cells with their number of columns: a value that all runs share is one cell."""
    return [(values[0], len(values))] if len(set(values)) == 1 else [(value, 1) for value in values]


def _facts(run: EvaluationRun) -> dict[str, str]:
    manifest = run.manifest
    asked, program, index = manifest.questions, manifest.program, manifest.index or {}
    found = {
        "Folder": run.path.resolve().name,
        "Created": manifest.created,
        "Program": f"{program.name} ({program.class_name})",
        "State": program.state_hash,
        "Retriever": program.retriever,
        "Models": "; ".join(_models(program.lms)),
        "Dataset": manifest.dataset,
        "Questions": " · ".join(part for part in (asked.source, asked.split, asked.setting) if part),
        "Number of questions": f"{run.done:,} of {run.total:,} done, {asked.skipped:,} records skipped",
        "Limit and seed": _limit(asked),
        "Hash of the questions": asked.hash,
        "Time limit": f"{manifest.timeout:g} s" if manifest.timeout else None,
        "Index": "; ".join(f"{key.replace('_', ' ')} {_value(index[key])}" for key in _INDEX if index.get(key)),
        "Versions": ", ".join(f"{package} {version}" for package, version in manifest.versions.items()),
        "Python": manifest.python,
        "Simulation": "yes" if manifest.simulation else None,
    }
    return {heading: value for heading, value in found.items() if value}


def _models(lms: Mapping[str, Any]) -> Iterable[str]:
    """Models with their roles; a model for all roles comes without."""
    roles: dict[str, list[str]] = {}
    for role, lm in lms.items():
        roles.setdefault(_model(lm), []).append(role)
    for model, members in roles.items():
        yield model if len(roles) == 1 else f"{model} ({', '.join(members)})"


def _model(lm: Mapping[str, Any] | None) -> str:
    if lm is None:
        return "none"
    sampling = ", ".join(f"{key} {lm[key]}" for key in SAMPLING if lm.get(key) is not None)
    return f"{lm.get('model')}" + (f", {sampling}" if sampling else "")


def _limit(asked: QuestionSettings) -> str | None:
    if not asked.limit:
        return None
    return f"{asked.limit:,} questions" + (f", seed {asked.seed}" if asked.seed is not None else "")


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


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
