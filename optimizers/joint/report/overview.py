"""What was tuned and how, what became of every stage, what the test says, and what was spent."""

from __future__ import annotations

from collections.abc import Sequence

from ....eval.chart import Axis, dot, inline, line, text
from ....eval.report.html import Html, join, table, tag
from ....eval.report.numbers import count, p_value
from ....eval.report.page import Section
from .reading import Line, Mean, Measured, Run, Test
from .words import around, mean_of, named, number, percent

_SCORES = (
    "answer_em",
    "answer_f1",
    "evidence_precision",
    "evidence_recall",
    "evidence_f1",
    "fact_f1",
    "joint_f1",
    "passage_recall@5",
)
_COSTS = ("lm_calls", "lm_calls_critical_path", "searches", "tokens", "cost_usd", "seconds_p50")
_LEFT, _WIDTH, _ROW = 90, 480, 34  # of the picture of the test: its names, its axis, the height of a line
_ONE, _OTHER = "var(--series-1, #3b528b)", "var(--series-2, #c0392b)"


def plan(run: Run) -> Section:
    """The plan and its stages."""
    body = [tag("p", _planned(run)), tag("p", _outcome(run))]
    if run.lines:
        cost = run.plan.cost or "lm_calls"
        verdict = tag("th", "", class_="words", scope="col")
        head = ["stage", _percent_of(run.plan.metric), "gain", "p", f"{named(cost)} a question", verdict]
        rows = [
            [
                _stage(each, run.plan.rounds),
                percent(each.score),
                percent(each.gain, sign=True),
                "" if each.p is None else p_value(each.p),
                mean_of([costs[cost] for costs in each.costs if cost in costs]),
                tag("td", _verdict(each), class_="words"),
            ]
            for each in run.lines
        ]
        body.append(table("What became of each stage, on the validation questions", head, rows))
    return Section("optimization", "Optimization", join(body))


def _planned(run: Run) -> Html:
    plan, program = run.plan, run.program
    details = {
        "prompts": f" ({plan.optimizer}, {plan.preset})",
        "tunables": f" ({count(plan.trials, 'trial')}, {plan.sampler})",
    }
    stages = ", then ".join(stage + details.get(stage, "") for stage in plan.stages)
    questions = f" on {count(run.splits['train'], 'question')}" if "train" in run.splits else ""
    dataset = f" of {run.dataset}" if run.dataset else ""
    cost = f" and few {named(plan.cost)}" if plan.cost else ""
    validation = count(len(run.lines[0].scores), "validation question") if run.lines else "the validation questions"
    times = "" if plan.rounds == 1 else f", for {plan.rounds} rounds as long as one helps"
    return join(
        [
            tag("strong", program.get("name") or program.get("class") or "A program"),
            f" over {program.get('retriever')}" if program.get("retriever") else "",
            f" was tuned{questions}{dataset} for {named(plan.metric)}{cost}: {stages}{times}; seed {plan.seed}. What a "
            f"stage proposes is kept if a paired test on {validation} gives p < {plan.level:g}.",
        ]
    )


def _outcome(run: Run) -> Html:
    if run.summary is not None:
        kept = run.kept
        best = "the program as it was at the start" if kept is None or kept.n == 0 else f"that of {_told(kept)}"
        return join([tag("strong", "It ended: "), f"{run.summary.ended}. The result is {best}."])
    if not run.lines:
        doing = "the program at its start is being measured"
    elif run.under_way is not None:
        doing = f"{run.under_way.partition('-')[2]} (stage {run.under_way.partition('-')[0]}) is played"
    else:
        doing = "the result is being measured, or the next stage has not begun"
    stages = len(run.plan.stages) * run.plan.rounds
    return join(
        [
            tag("strong", "This run is not finished: "),
            f"{max(len(run.lines) - 1, 0)} of at most {count(stages, 'stage')} are over, {doing}. "
            "If it was stopped, the same command goes on with it.",
        ]
    )


def _told(line: Line) -> str:
    return f"{line.stage} (stage {line.n})"


def _stage(line: Line, rounds: int) -> str:
    return line.stage if line.n == 0 or rounds == 1 else f"{line.stage}, round {line.round}"


def _verdict(line: Line) -> str:
    if line.n == 0:
        said = "what the others are compared with"
    else:
        said = f"{'kept' if line.kept else 'not kept'}: {line.why}"
    said += f" ({line.note})" if line.note else ""
    return said + (f"; {line.failures} failed" if line.failures else "")


def _percent_of(metric: str) -> str:
    return f"{named(metric)}, %"


# --- the test --------------------------------------------------------------------------------------------------------


def test(run: Run) -> Section | None:
    """The start against the result, on questions that no stage saw; None as long as they were not asked."""
    found = run.summary.test if run.summary else None
    if found is None:
        if run.summary is None:
            return None
        return Section("test", "Test", tag("p", "The test questions were not asked."))
    runs = list(found.runs.values())
    asked = count(runs[0].counts.questions, "question")
    if len(runs) == 1:
        said = (
            f"Nothing was kept, so that start and result are one program: {named(found.metric)} "
            f"{around(found.start)} over {asked} that no stage saw."
        )
        return Section("test", "Test", join([tag("p", said), _measures(found, runs)]))
    said = (
        f"Over {asked} that no stage saw, {named(found.metric)} is {percent(found.start.mean)} at the start and "
        f"{percent(found.best.mean)} tuned: {around(found.difference, sign=True)}, p {p_value(found.p)} by a paired "
        "permutation test. Intervals are of 95%."
    )
    return Section("test", "Test", join([tag("p", said), _picture(found), _measures(found, runs)]))


def _picture(found: Test) -> Html:
    """Both means with their intervals, on one axis."""
    ends = [100 * end for each in (found.start, found.best) for end in (each.low, each.high)]
    if min(ends) == max(ends):
        return Html("")  # no axis is needed to tell one value
    axis = Axis(ends, _LEFT, _LEFT + _WIDTH)
    bottom = 10 + 2 * _ROW
    parts = []
    for tick in axis.ticks:
        parts += [
            line(axis.place(tick), 10, axis.place(tick), bottom),
            text(axis.place(tick), bottom + 18, f"{tick:g}", "middle"),
        ]
    for n, (name, mean, colour) in enumerate((("start", found.start, _ONE), ("tuned", found.best, _OTHER))):
        parts += _whisker(axis, 10 + _ROW * (n + 0.5), name, mean, colour)
    drawn = inline(_LEFT + _WIDTH + 30, bottom + 30, parts)
    caption = f"{_percent_of(found.metric)}: the mean and its 95% interval"
    return tag("figure", Html(drawn), tag("figcaption", caption))


def _whisker(axis: Axis, y: float, name: str, mean: Mean, colour: str) -> list[str]:
    low, high = axis.place(100 * mean.low), axis.place(100 * mean.high)
    return [
        text(_LEFT - 12, y + 4, name, "end"),
        line(low, y, high, y, colour),
        line(low, y - 5, low, y + 5, colour),
        line(high, y - 5, high, y + 5, colour),
        dot(axis.place(100 * mean.mean), y, colour, around(mean)),
    ]


def _measures(found: Test, runs: Sequence[Measured]) -> Html:
    """The usual metrics and costs of both."""
    names = dict.fromkeys([found.metric, *_SCORES, *_COSTS])
    rows = [
        [named(name), *(_measure(each, name) for each in runs)]
        for name in names
        if any(each.metrics.get(name) is not None for each in runs)
    ]
    head = ["", "start", *(["tuned"] if len(runs) > 1 else [])]
    said = "Scores in %, costs a question, with 95% intervals"
    return join([tag("p", f"{said}:", class_="small"), table(said, head, rows)])


def _measure(run: Measured, name: str) -> str:
    mean, ends = run.metrics.get(name), run.intervals.get(name)
    if mean is None:
        return ""
    if name not in _COSTS:
        return around(Mean(mean=mean, low=ends[0], high=ends[1])) if ends else percent(mean)
    return f"{number(mean)} ({number(ends[0])} to {number(ends[1])})" if ends else number(mean)


# --- the account -----------------------------------------------------------------------------------------------------


def spent(run: Run) -> Section | None:
    """What the run has cost by now, the replies from DSPy's cache left out."""
    account = run.spent
    if account is None:
        return None
    rows = [
        ["LM calls", f"{account.calls:,}"],
        ["tokens in", f"{account.tokens_in:,}"],
        ["tokens out", f"{account.tokens_out:,}"],
        ["dollars", f"{account.usd:,.2f}"],
        ["minutes", f"{account.seconds / 60:,.1f}"],
    ]
    said = "By all processes of the run, the test included; replies from DSPy's cache are free and not counted."
    return Section("spent", "What was spent", join([tag("p", said), table("In all", ["", "spent"], rows)]))
