"""The study of tuning: whether `polyhop optimize` improves on defaults where agents are weak, middling or strong.

    python -m polyhop.scripts.studies.simulation.tuning --train 2wiki:TRAIN --test DEV --out runs/tuning

For each profile of error rates (`PROFILES`), `polyhop` is tuned for joint F1 and tokens on train questions, once by TPE
and once by plain random search with as many trials, and measured beside its defaults on questions that no stage saw.
Only tunables of the program's own rules are tuned: simulated agents read neither instructions nor demos. A simulation
says nothing about a real model. The same command resumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

SAMPLERS = ("tpe", "random")
METRIC, COST = "joint_f1", "tokens"
FROZEN = ("search.*", "exemplars.*", "confidence.*", "calibration.*", "abstain_below")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def study(
    train: Annotated[str, typer.Option(metavar="DATASET:FILE", help="Questions with contexts.")],
    test: Annotated[Path, typer.Option(metavar="FILE", help="Other questions of the same dataset.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the study.")],
    trials: Annotated[int, typer.Option(min=2, help="Of each search.")] = 30,
    limit: Annotated[int | None, typer.Option(min=4, help="Training questions.")] = None,
) -> None:
    """Print a Markdown table of what tuning gains."""
    from .agents import PROFILES
    from .report import NOTICE
    from .runs import QuestionSet

    learn = QuestionSet.parse(train, limit)
    sets = learn, QuestionSet(learn.dataset, test)
    typer.echo(NOTICE + "\n")
    typer.echo("| agents | search | joint F1, defaults | tuned | difference (95%) | p | tokens | saved | p |")
    typer.echo("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for profile, sampler in product(PROFILES, SAMPLERS):
        folder = out / f"{profile}-{sampler}"
        typer.echo("| " + " | ".join([profile, sampler, *_row(folder, sets, profile, sampler, trials)]) + " |")


def _row(folder: Path, sets: tuple[Any, Any], profile: str, sampler: str, trials: int) -> Iterator[str]:
    from ....eval.records import read_records
    from ....eval.statistics import compare
    from ....optimizers.pipeline import optimize
    from ....optimizers.settings import OptimizationSettings, Splits, divide
    from ....programs import PolyHop
    from .agents import PROFILES
    from .engine import simulated_lm

    learn, test = ([*each.read()] for each in sets)
    program = PolyHop(None)
    program.set_lm(simulated_lm([*learn, *test], PROFILES[profile]))
    settings = OptimizationSettings(
        stages=("tunables",), metric=METRIC, cost=COST, trials=trials, sampler=sampler, freeze=FROZEN
    )
    first, second = divide(learn, (0.6, 0.4), 0)
    optimize(program, Splits(first, second, test), folder, settings)
    runs = sorted((folder / "test").iterdir(), key=lambda each: each.name == "start")  # the tuned program first, if any
    values = [[_values(record) for record in read_records(run)] for run in (runs[-1], runs[0])]
    (before, after), (cost, less) = ([[value[n] for value in run] for run in values] for n in (0, 1))
    gain, saving = compare(after, before), compare(cost, less)
    mean, low, high = (100 * value for value in gain.difference)
    share = saving.difference.mean / (sum(cost) / len(cost))
    yield f"{100 * sum(before) / len(before):.1f}"
    yield f"{100 * sum(after) / len(after):.1f}" if len(runs) > 1 else "nothing was kept"
    yield f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
    yield f"{gain.p_permutation:.3f}"
    yield f"{sum(cost) / len(cost):,.0f} to {sum(less) / len(less):,.0f}"
    yield f"{100 * share:.0f}%"
    yield f"{saving.p_permutation:.3f}"


def _values(record: Any) -> tuple[float, float]:
    costs: Mapping[str, float] = record.costs
    return record.scores.get(METRIC, 0.0), costs[COST]


if __name__ == "__main__":
    app(prog_name="python -m polyhop.scripts.studies.simulation.tuning")
