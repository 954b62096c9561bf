"""The simulation study: cost and recall of adaptive rounds when agents make errors.

    python -m polyhop.scripts.studies.simulation.study --on hotpotqa:dev.json.gz --on musique:dev.jsonl.gz \
        --out runs/study

Programs answer the questions over their own contexts (distractor), with all agents at the same error rate of 0, 5, 10
and 20% (`Rates`). A later hop is locked: only a query that names what leads to it finds it, and some are never found
(`annotations.LockedPool`). A row has evidence recall, precision and F1 over passages, and costs. `review` studies the
judges alone. A simulation says nothing about a real model.

    OUT/DATASET-DESIGN-rate-R-seed-S/   one run each; the same command resumes
    OUT/study.json                      all numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from ....data.errors import PolyhopError

RATES = (0.0, 0.05, 0.1, 0.2)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def study(
    on: Annotated[list[str], typer.Option(metavar="DATASET:FILE", help="Questions with contexts. May be repeated.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the study.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions, each with other errors.")] = 3,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run programs with simulated agents at several error rates, and print Markdown tables."""
    from ....eval.folder import write_json
    from .report import NOTICE, markdown, program_rows
    from .runs import QuestionSet, closed_by_a_query

    try:
        sets = [QuestionSet.parse(text, limit) for text in on]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from error
    played = _play(sets, out, seeds, jobs)
    programs = program_rows(played)
    reviews = _review(sets)
    closed = closed_by_a_query(out / each.name for each in played if each.design == "polyhop-always")
    result = {
        "schema": 1,
        "simulation": NOTICE,
        "settings": {
            "sets": [{"dataset": each.dataset, **each.read().settings} for each in sets],
            "rates": RATES,
            "seeds": seeds,
        },
        "programs": programs,
        "reviews": reviews,
        "closed_by_a_query": closed,
    }
    write_json(out / "study.json", result)
    typer.echo(markdown(programs, reviews))
    typer.echo("\nOpen sub-questions: share of the first follow-up queries that close one")
    for count, (tried, done) in closed.items():
        typer.echo(f"{count}{' or more' * (count == max(closed))}: {done / tried:.2f} ({done} of {tried})")
    typer.echo(f"{out}: study.json and the runs", err=True)


def _play(sets: Sequence[Any], out: Path, seeds: int, jobs: int) -> dict[Any, Any]:
    """All conditions, in their order."""
    from rich.console import Console

    from ....eval.bar import progress_bar
    from .designs import DESIGNS
    from .runs import Condition, play_all

    if len({each.dataset for each in sets}) < len(sets):
        raise PolyhopError("two sets have the same dataset: use each dataset once")
    for each in sets:
        each.read()  # report a bad file at once
    conditions = [
        Condition(questions, rate, design, seed)
        for questions, rate, design in product(sets, RATES, DESIGNS)
        for seed in range(seeds)  # also without errors: confidences and lucky answers are random at any rate
    ]
    console, played = Console(stderr=True), {}
    with progress_bar("runs", console) as bar:
        task = bar.add_task("", total=len(conditions))
        try:
            with closing(play_all(conditions, out, jobs)) as playing:
                for condition, values in playing:
                    played[condition] = values
                    bar.update(task, advance=1, description=condition.name)
        except KeyboardInterrupt:
            message = f"{out}: {len(played)} of {len(conditions)} runs are done; run the same command again to resume."
            typer.echo(message, err=True)
            raise
    return {condition: played[condition] for condition in conditions}


def _review(sets: Sequence[Any]) -> list[dict[str, Any]]:
    from .report import review_row
    from .review import ASSUMPTIONS, review

    rows = []
    for each, assumption, rate in product(sets, ASSUMPTIONS, RATES):
        hops = [example.hops or 1 for example in each.read()]
        rows.append(review_row(each.dataset, assumption, rate, hops, review(hops, rate, assumption)))
    return rows


def main() -> None:
    """Errors in one line."""
    try:
        app(prog_name="python -m polyhop.scripts.studies.simulation.study")
    except PolyhopError as error:
        typer.secho(f"error: {error}", fg=typer.colors.RED, err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
