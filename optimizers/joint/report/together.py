"""Several joint runs beside one another: what each tuned, and what the test says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ....eval.report.html import table, tag
from ....eval.report.numbers import p_value
from ....eval.report.page import Section
from .reading import Line, Run, read_run
from .words import around, mean_of, named, percent


def together(runs: Mapping[str, Path]) -> Section:
    """One row a run.

    Raises:
        RunError: one of the folders is not that of a joint run, or is damaged.
    """
    head = ["run", "start, %", "tuned, %", "gain (95%)", "p", "LM calls a question"]
    words = (tag("th", name, class_="words", scope="col") for name in ("result", "tuned for", "program", "dataset"))
    body = table("Every optimization", [*head, *words], [_row(name, read_run(path)) for name, path in runs.items()])
    said = "Scores are of the test questions, which no stage saw; without a test, of the validation questions."
    return Section("optimizations", "Optimizations", body + tag("p", said, class_="small"))


def _row(name: str, run: Run) -> list[object]:
    metric = named(run.plan.metric) + (f", few {named(run.plan.cost)}" if run.plan.cost else "")
    program = run.program.get("name") or run.program.get("class") or ""
    words = (tag("td", text, class_="words") for text in (_result(run), metric, program, run.dataset or ""))
    return [name, *_scores(run), *words]


def _scores(run: Run) -> list[str]:
    found = run.summary.test if run.summary else None
    if found is None:
        lines = [run.lines[0], run.kept or run.lines[0]] if run.lines else []
        start, kept = [percent(line.score) for line in lines] or ["", ""]
        return [start, kept, "", "", _calls(lines)]
    means = [mean for each in found.runs.values() if (mean := each.metrics.get("lm_calls")) is not None]
    calls = " → ".join(dict.fromkeys(f"{mean:,.2f}" for mean in means))
    scores = [percent(found.start.mean), percent(found.best.mean)]
    if len(found.runs) == 1:
        return [*scores, "", "", calls]
    return [*scores, around(found.difference, sign=True), p_value(found.p), calls]


def _calls(lines: Sequence[Line]) -> str:
    means = (mean_of([costs["lm_calls"] for costs in line.costs if "lm_calls" in costs]) for line in lines)
    return " → ".join(dict.fromkeys(filter(None, means)))


def _result(run: Run) -> str:
    if run.summary is None:
        return "not finished"
    kept = [line.stage for line in run.lines if line.kept and line.n]
    return f"kept: {', '.join(kept)}" if kept else "nothing was kept"
