"""The searches over tunables: every trial, the front, what matters, and what was chosen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ....eval.chart import inline
from ....eval.report.html import Html, join, table, tag
from ....eval.report.numbers import count
from ....eval.report.page import Section
from ...tunables.result import StudyResult, TrialRecord
from .reading import Going, Run
from .words import named, value


def searches(run: Run) -> Iterator[Section]:
    """A section for each search, in their order."""
    for name, search in run.searches():
        number, _, stage = name.partition("-")
        title = "Search over the exemplars to show" if stage == "exemplars" else "Search over the tunables"
        if run.plan.rounds > 1:
            title += f", round {1 + (int(number) - 1) // len(run.plan.stages)}"
        body = _ended(search) if isinstance(search, StudyResult) else _going(search)
        yield Section(f"search-{name}", title, body)


def _ended(search: StudyResult) -> Html:
    settings, best = search.settings, search.best
    chosen = (
        "The defaults stay: nothing was better by more than a standard error."
        if best.number == search.default.number
        else f"Trial {best.number} was chosen: {_score(best)}, with the defaults {_score(search.default)}."
    )
    said = (
        f"{_states(search)} by {settings.sampler} on {count(int(settings.questions['count']), 'question')}, for "
        f"{named(settings.metric)}{f' and few {named(settings.cost)}' if settings.cost else ''}. {chosen}"
    )
    parts = [tag("p", said), _history(search)]
    if settings.cost and len(search.front) > 0:
        parts += _front(search, settings.cost)
    if search.importances:
        parts.append(_importances(search))
    return join([*parts, _values(search)])


def _going(search: Going) -> Html:
    said = f"This search is not finished. So far: {_states(search)}."
    return join([tag("p", said), _history(search)])


def _states(search: Going | StudyResult) -> str:
    counts = Counter(trial.state for trial in search.trials)
    return f"{count(len(search.trials), 'trial')} ({', '.join(f'{n} {state}' for state, n in counts.most_common())})"


def _score(trial: TrialRecord) -> str:
    return "no score" if trial.score is None else f"{trial.score:.4g}"


def _history(search: Going | StudyResult) -> Html:
    from ...tunables import plots

    scores = {trial.score for trial in search.trials if trial.score is not None}
    if len(scores) < 2:
        return tag("p", f"Every trial with a score has {scores.pop():.4g}.") if scores else Html("")
    caption = (
        "Each dot is a trial, the grey ones were given up early; trial 0 has the defaults. The line is the best score "
        "of a complete one so far."
    )
    return tag("figure", Html(plots.history(search.trials, inline)), tag("figcaption", caption))


def _front(search: StudyResult, cost: str) -> list[Html]:
    from ...tunables import plots

    caption = (
        f"Score against {named(cost)} a question. The line is the Pareto front, listed below; the dot "
        "in a colour of its own was chosen."
    )
    rows = [
        [
            f"trial {trial.number}{', chosen' if trial.number == search.best.number else ''}",
            _score(trial),
            _cost(trial, cost),
        ]
        for trial in search.front
    ]
    listed = table("The front: what no trial beats in both", ["", "score", named(cost)], rows)
    known = [trial for trial in search.trials if trial.score is not None and cost in trial.costs]
    if min(len({trial.score for trial in known}), len({trial.costs[cost] for trial in known})) < 2:
        return [listed]  # a picture would be of one line, whose axis nothing spans
    return [tag("figure", Html(plots.front(search, cost, inline)), tag("figcaption", caption)), listed]


def _cost(trial: TrialRecord, name: str) -> str:
    return f"{trial.costs[name]:,.4g}" if name in trial.costs else ""


def _importances(search: StudyResult) -> Html:
    from ...tunables import plots

    caption = "The share of the difference between good and bad trials that each tunable makes (fANOVA)."
    return tag("figure", Html(plots.importances(search, inline)), tag("figcaption", caption))


def _values(search: StudyResult) -> Html:
    """What was chosen against the defaults, the most important first."""
    space: dict[str, str] = search.settings.space
    names = dict.fromkeys([*search.importances, *space, *search.best.values])
    rows = []
    for name in names:
        before, after = search.default.values.get(name), search.best.values.get(name)
        share = search.importances.get(name)
        rows.append(
            [
                name,
                "" if before is None else value(before),
                value(after) if before == after else tag("strong", value(after)),
                "" if share is None else f"{100 * share:.1f}%",
                tag("td", _range(space.get(name, "")), class_="words"),
            ]
        )
    said = "The values that were chosen; those in bold are not the defaults"
    head = ["tunable", "default", "chosen", "importance", tag("th", "range", class_="words", scope="col")]
    return join([tag("p", f"{said}:", class_="small"), table(said, head, rows)])


def _range(distribution: str) -> str:
    """Optuna's record of a range, to be read."""
    try:
        found: dict[str, Any] = json.loads(distribution)["attributes"]
        if "choices" in found:
            return ", ".join(value(each) for each in found["choices"])
        return f"{value(found['low'])} to {value(found['high'])}{' (log)' if found.get('log') else ''}"
    except (ValueError, KeyError, TypeError):
        return ""
