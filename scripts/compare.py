"""`polyhop compare`: paired statistical comparison of runs."""

from __future__ import annotations

from ..data.text import count, plain
from ..eval.comparison import compare_runs
from ..eval.metrics import quantity
from ..eval.report import p_value
from .options import Compare
from .terminal import new_console, new_table, warn

_SHOWN = 3  # flipped questions of a kind


def compare(options: Compare) -> None:
    result, console = compare_runs(options.runs, options.metric or None), new_console()
    baseline, *others = result.runs
    for run in result.runs:
        if run.done < run.questions:
            warn(f"{run.path} is not finished: {run.done} of {run.questions}")
    if result.cached:
        warn(
            f"{count(result.cached, 'question')} with replies of DSPy's cache: their tokens, dollars and seconds are "
            "left out; evaluate with --no-cache to compare them"
        )
    sizes = ", ".join(f"{run.questions} in {run.name}" for run in result.runs)
    equal = {run.questions for run in result.runs} == {result.shared}
    console.print(f"{result.shared} questions shared" + ("" if equal else f" of {sizes}"))

    means = new_table("", "", *(run.name for run in result.runs))
    for metric in dict.fromkeys(row.metric for row in result.rows):
        rows = [result.row(metric, run.name) for run in result.runs]
        fewer = [f" of {row.questions}" if row and row.questions < result.shared else "" for row in rows]
        texts = (quantity(metric).text(row.mean) if row else "" for row in rows)
        means.add_row(quantity(metric).heading, *map(str.__add__, texts, fewer))
    console.print(means)
    for run in others:
        headings = ("difference (95%)", "p", "p Holm", "wins /\nlosses", "shows\nfrom")
        shown = new_table(f"{run.name} against {baseline.name}", "", *headings, no_wrap=True)
        for row in result.rows:
            if row.run == run.name and row.versus:
                of = quantity(row.metric)
                difference, low, high = (of.text(value, "+") for value in row.versus.difference)
                shown.add_row(
                    of.heading,
                    f"{difference} ({low} to {high})",
                    p_value(row.versus.p_permutation),
                    p_value(row.p_holm or 0.0),
                    f"{row.versus.wins} / {row.versus.losses}",
                    of.text(row.versus.shown or None),
                )
        console.print(shown)
    for run in others:
        for gained, change in ((True, "wrong before and right now"), (False, "right before and wrong now")):
            flips = [flip for flip in result.flips if (flip.run, flip.gained) == (run.name, gained)]
            if flips:
                console.print(f"\n{run.name}: {len(flips)} {change}", style="green" if gained else "red")
            for flip in flips if options.flips else flips[:_SHOWN]:
                console.print(f"  {plain(flip.id)}  {plain(flip.question)}")
                answers = f"before {plain(flip.before)} | now {plain(flip.after)}"
                console.print(f"    gold {plain(flip.gold)} | {answers}", style="dim")
            if not options.flips and len(flips) > _SHOWN:
                console.print(f"  ... and {len(flips) - _SHOWN} more: --flips", style="dim")
