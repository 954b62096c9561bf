"""The page of a report: one HTML file that loads nothing, from sections and the data of the question browser.

Tables are plain HTML, with intervals in SVG; a script shows the questions. A content security policy allows only this
script and no requests, and templates escape every text, so no question, passage or reply can run or load anything.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel

from ...data.text import count
from ...programs.prediction import UNKNOWN
from ..folder import DIAGNOSIS, SAMPLING, flat, read_model, replacing
from ..metrics import METRICS
from ..statistics import Interval
from . import between, lower, name, number, p_value
from .runs import CHUNK, COMPARED, EvaluationRun, Group, Outcome

GENERATOR = '<!doctype html>\n<meta name="generator" content="polyhop report">'
"""The first bytes of every report."""

QUALITY = ("answer_em", "answer_f1", "evidence_precision", "evidence_recall", "evidence_f1", "joint_f1",
           "passage_recall@5", "search_recall@5", "all_gold@5")  # fmt: skip
COST = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50", "seconds_p95")

_HERE = Path(__file__).parent
_SCRIPTS = ("page.js", "trace.js", "question.js", "list.js")
_SECTIONS = {
    "overview": "Overview",
    "outcomes": "Outcomes",
    "parts": "Hops and types",
    "agents": "Which agent costs the points",
    "questions": "Questions",
    "about": "About",
}


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    Attributes:
        body: From `render`.
    """

    name: str  # its anchor: lower-case letters, digits and hyphens
    title: str
    body: Markup
    of: str = ""  # the optimization that it is about, if there are several


def render(template: str, folder: Path | None = None, **context: Any) -> Markup:
    """Render a template; all texts are escaped.

    Args:
        folder: Where templates are looked up besides those of this package.
    """
    return Markup(_environment(folder).get_template(template).render(**context))


@cache
def _environment(folder: Path | None = None) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([*([folder] if folder else []), _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": count,
        "lower_name": lower,
        "metric_name": name,
        "diagnosed": _diagnosis,
        "settings_of": _settings,
        "number": number,
        "p_value": p_value,
        "share": "{:.1%}".format,
        "thousands": "{:,}".format,
    }
    return environment


def write_page(
    path: Path, title: str, lead: str, sections: Sequence[Section], groups: Sequence[Group], chunks: Sequence[str]
) -> None:
    """Write a report.

    Args:
        lead: What the report is about.
        groups: The sets of questions that the page shows one at a time.
        chunks: Their packed details.
    """
    script = "(() => {\n" + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    outcomes = [{"key": kind.name, "name": kind.value} for kind in Outcome]
    index = {"size": CHUNK, "outcomes": outcomes, "groups": [group.index() for group in groups]}
    page = (
        _environment()
        .get_template("page.html.j2")
        .generate(
            title=title,
            lead=lead,
            sections=sections,
            by_run=[(of, list(members)) for of, members in groupby(sections, lambda section: section.of)],
            groups=[group.title for group in groups],
            index=Markup(json.dumps(index, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")),
            style=Markup(_asset("colors.css") + _asset("page.css")),
            script=Markup(script),
            hash=b64encode(sha256(script.encode()).digest()).decode(),
            chunks=chunks,
        )
    )
    with replacing(path) as file:
        file.write(GENERATOR + "\n")
        for text in page:  # no character that UTF-8 or HTML cannot hold
            file.write(text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


# --- evaluation runs -------------------------------------------------------------------------------------------------


def heading(groups: Sequence[Group], optimized: Iterable[str]) -> tuple[str, str]:
    """The title of a report, and what it is about in a few words. ``optimized`` are names of optimization runs."""
    runs = [run for group in groups for run in group.runs]
    names = [*dict.fromkeys([*(run.name for run in runs), *optimized])]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    lead = [f"optimization {name}" for name in optimized]
    if runs:
        questions = count(sum(len(group.questions) for group in groups), "question")
        titles = ", ".join(group.title for group in groups[:3])
        lead.insert(0, f"{count(len(runs), 'run')} over {questions}: {titles}")
    return ", ".join(names[:3]) + more, ", ".join(lead)


def evaluation_sections(groups: Sequence[Group]) -> list[Section]:
    """The sections of runs, from one template; the last one is about what was measured."""
    diagnosed = any((run.path / DIAGNOSIS).exists() for group in groups for run in group.runs)
    context: dict[str, Any] = {
        "groups": groups,
        "quality": QUALITY,
        "costs": COST,
        "compared": COMPARED,
        "outcomes": list(Outcome),
        "unknown": UNKNOWN,
        "scored": _scored,
        "difference": _difference,
    }
    return [
        Section(anchor, title, render("evaluation.html.j2", section=anchor, **context))
        for anchor, title in _SECTIONS.items()
        if diagnosed or anchor != "agents"
    ]


class Chart(NamedTuple):
    """An interval as a chart in a cell: positions from 5 to 95, and what is said of it."""

    low: float
    mean: float
    high: float
    zero: float
    series: int
    note: str


class Cell(NamedTuple):
    """A number of a table, with its interval as a chart and in words."""

    text: str = "–"
    chart: Chart | None = None
    notes: tuple[str, ...] = ()
    bold: bool = True


def charted(value: Interval, metric: str, scale: tuple[float, float], series: int, of: str, sign: str = "") -> Cell:
    """A value with its interval as a chart on a scale."""
    text, ends = number(value.mean, metric, sign), between((value.low, value.high), metric, sign)
    first, last = scale

    def at(place: float) -> float:
        return round(5 + 90 * (place - first) / (last - first), 1)

    note = f"{of}: {name(metric)} {text} ({ends})"
    return Cell(text, Chart(at(value.low), at(value.mean), at(value.high), at(0.0), series, note), (ends,))


def around_0(values: Iterable[Interval]) -> tuple[float, float]:
    """A scale for some values."""
    most = max((abs(end) for value in values for end in value), default=0.0) or 1.0
    return -most, most


def _scored(run: EvaluationRun, part: Mapping[str, Any], metric: str, what: str = "") -> Cell:
    """A score of some questions of a run, with its interval on the scale of 0 to 1."""
    if metric not in part.get("metrics", {}):
        return Cell()
    mean, ends = part["metrics"][metric], part["intervals"].get(metric)
    if ends is None or ends[0] == ends[1]:
        return Cell(number(mean, metric))
    if metric not in METRICS or METRICS[metric].kind != "percent":
        return Cell(number(mean, metric), notes=(between(ends, metric),))
    return charted(Interval(mean, *ends), metric, (0, 1), run.series, f"{run.name}{what}")


def _difference(run: EvaluationRun, group: Group, metric: str) -> Cell:
    """A difference from the first run, on the scale of all differences in this metric."""
    rows = group.versus.rows if group.versus else ()
    scale = around_0(row.versus.difference for row in rows if row.metric == metric and row.versus)
    row = group.versus.row(metric, run.name) if group.versus else None
    if row is None or row.versus is None or row.p_holm is None:
        return Cell()
    cell = charted(row.versus.difference, metric, scale, run.series, f"{run.name} against {group.runs[0].name}", "+")
    won = f"p {p_value(row.p_holm)} · {row.versus.wins}:{row.versus.losses}"
    return cell._replace(notes=(*cell.notes, won), bold=row.p_holm < 0.05)


class _Diagnosed(BaseModel):
    """What `polyhop diagnose` found, as its file has it."""

    against: str
    asked: dict[str, int]
    costs: dict[str, dict[str, Interval | None]]


def _diagnosis(run: EvaluationRun) -> tuple[str, list[str], list[tuple[str, list[Cell]]]] | None:
    """A table of what each agent costs, the most expensive first."""
    file = run.path / DIAGNOSIS
    if not file.exists():
        return None
    diagnosed = read_model(_Diagnosed, file)
    costs = {
        role: {metric: cost for metric, cost in by_metric.items() if cost is not None}
        for role, by_metric in diagnosed.costs.items()
    }
    metrics = [metric for metric in METRICS if any(metric in by_metric for by_metric in costs.values())]
    scale = around_0(cost for by_metric in costs.values() for cost in by_metric.values())
    rows = []
    for role in sorted(costs, key=lambda role: -max((cost.mean for cost in costs[role].values()), default=-1.0)):
        cells = [
            charted(costs[role][metric], metric, scale, run.series, role) if metric in costs[role] else Cell("?")
            for metric in metrics
        ]
        rows.append((role, [Cell(f"{diagnosed.asked.get(role, 0):,}"), *cells]))
    return f"{run.name}, against {diagnosed.against}", ["Agent", "Questions", *map(name, metrics)], rows


_SETTINGS: Any = {
    **dict.fromkeys(("dataset", "questions", "timeout", "created", "versions", "python"), True),
    "program": {
        **dict.fromkeys(("name", "class_name", "retriever", "state_hash"), True),
        "lms": {"__all__": {"model", *SAMPLING}},
    },
    "index": {"passages", "corpus", "corpus_hash", "analyzer", "anserini", "lucene", "max_words"},
}


def _settings(run: EvaluationRun) -> dict[str, Any]:
    """The settings of a run; only what is named here gets into the report."""
    settings = run.manifest.model_dump(mode="json", include=_SETTINGS, exclude_none=True)
    settings["models"] = {role: lm for role, lm in settings["program"].pop("lms", {}).items() if lm}
    done = f"{run.done:,} of {run.questions:,} questions"
    return {"folder": run.path.resolve().name, "done": done, **dict(flat(settings))}
