"""The study of tuning: whether a search over tunables improves on defaults where agents are weak, middling or strong.

    python -m polyhop.scripts.studies.simulation.tuning --train 2wiki:TRAIN --test 2wiki:DEV --out runs/tuning

For each profile of error rates (`PROFILES`), the tunables of `polyhop` that trade calls for points are searched on
train questions for the highest joint F1 at no more tokens than the defaults take: once by TPE, as in `polyhop
optimize`, and once by plain random search with as many trials. Both are measured beside the defaults on other
questions, with errors that no search saw. Simulated agents read neither instructions nor demos. A simulation says
nothing about a real model.

    OUT/PROFILE-SAMPLER.journal   the trials of a search
    OUT/PROFILE-NAME-SEED/        a run on the test questions; the same command resumes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import dspy

    from .agents import Rates

SAMPLERS = ("tpe", "random")
METRIC, COST = "joint_f1", "tokens"
RANGES = {
    "rounds": (2, 6),
    "least_gain": (0.0, 0.3),
    "first": (2, 12),
    "last_round": ("gatherer", "answerer"),
    "last_step": ("answerer", "gatherer"),
    "review": ("doubt", "complete", "never"),
}

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def study(
    train: Annotated[list[str], typer.Option(metavar="DATASET:FILE", help="Questions with contexts. May be repeated.")],
    test: Annotated[list[str], typer.Option(metavar="DATASET:FILE", help="Other questions. May be repeated.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the study.")],
    trials: Annotated[int, typer.Option(min=2, help="Of each search.")] = 30,
    limit: Annotated[int | None, typer.Option(min=1, help="Training questions of each set.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of the test, each with other errors.")] = 1,
    profile: Annotated[list[str] | None, typer.Option(help="[default: weak, middling, strong]")] = None,
) -> None:
    """Print a Markdown table of what tuning gains."""
    from .agents import PROFILES
    from .report import NOTICE
    from .runs import QuestionSet

    learn, asked = (
        [example for text in texts for example in QuestionSet.parse(text, most).read()]
        for texts, most in ((train, limit), (test, None))
    )
    out.mkdir(parents=True, exist_ok=True)
    typer.echo(NOTICE + "\n")
    typer.echo("| agents | search | joint F1, defaults | tuned | difference (95%) | p | tokens | tuned values |")
    typer.echo("|---|---|---:|---:|---:|---:|---:|---|")
    for name, sampler in product(profile or PROFILES, SAMPLERS):
        found = _row(out, learn, asked, name, PROFILES[name], sampler, trials, seeds)
        typer.echo("| " + " | ".join([name, sampler, *found]) + " |")


def _row(
    out: Path,
    learn: Sequence[dspy.Example],
    asked: Sequence[dspy.Example],
    profile: str,
    rates: Rates,
    sampler: str,
    trials: int,
    seeds: int,
) -> Iterator[str]:
    import numpy as np

    from ....eval.metrics import joint_f1
    from ....eval.statistics import compare
    from ....optimizers.measure import measure
    from ....optimizers.tunables import TunableSearch
    from ....optimizers.tunables.result import shown
    from ....programs import PolyHop, tunables
    from .engine import simulated_lm

    start = PolyHop(None)
    start.set_lm(simulated_lm(learn, rates))
    most = ceil(measure(start, learn, joint_f1).cost(COST))
    search = TunableSearch(
        joint_f1,
        trials,
        sampler,
        at_most={COST: most},
        freeze=[name for name in tunables(start) if name not in RANGES],
        ranges=RANGES,
        storage=out / f"{profile}-{sampler}.journal",
    )
    tuned = search.compile(start, valset=learn)
    runs = [
        [_measured(each, asked, rates, seed, out / f"{profile}-{name}-{seed}") for seed in range(1, seeds + 1)]
        for each, name in ((start, "defaults"), (tuned, sampler))
    ]
    (before, cost), (after, less) = np.mean(runs, axis=1).transpose(0, 2, 1)  # of each question, over the seeds
    gain = compare(list(after), list(before))
    mean, low, high = (100 * value for value in gain.difference)
    yield f"{100 * before.mean():.1f}"
    yield f"{100 * after.mean():.1f}"
    yield f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
    yield f"{gain.p_permutation:.3f}"
    yield f"{cost.mean():,.0f} to {less.mean():,.0f} ({100 * (less.mean() / cost.mean() - 1):+.0f}%)"
    assert search.result is not None
    new = {name: value for name, value in search.result.best.values.items() if value != tunables(start)[name].value}
    yield shown(new, "=") or "defaults"


def _measured(
    program: dspy.Module, asked: Sequence[dspy.Example], rates: Rates, seed: int, folder: Path
) -> list[tuple[float, float]]:
    """Score and cost of each question."""
    from ....eval.records import read_records
    from ....eval.run import evaluate
    from .engine import simulated_lm

    program = program.deepcopy()
    program.set_lm(simulated_lm(asked, rates, seed))
    evaluate(program, list(asked), folder, max_failures=1)
    return [(record.scores[METRIC], record.costs[COST]) for record in read_records(folder)]


if __name__ == "__main__":
    app(prog_name="python -m polyhop.scripts.studies.simulation.tuning")
