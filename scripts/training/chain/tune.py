"""Tunes the weights of `ChainRetriever` on benchmark questions, as a run that can be resumed.

    python -m polyhop.scripts.training.chain.tune --out runs/weights \\
        --on 2wiki:2wiki_dev.json.gz:indexes/2wiki --on musique:musique_dev.jsonl.gz:indexes/musique:0.5

CMA-ES (Hansen, arXiv 1604.00772) moves all weights at once, by factors, from the shipped ones. It maximizes Recall@5 +
all-gold@5 / 2, minus a small penalty for every weight that leaves its start, since the sets are small. The report is
cross-validated: every question is scored by weights that were tuned without it. The stop threshold is tuned afterwards,
by a sweep over chains of up to 6 passages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ....data.chain.weights import ChainWeights
from ....data.errors import PolyhopError
from ..command import new_app, run_command
from .run import F1, RESULT, Settings, tune
from .workers import ALL_GOLD, RECALL, QuestionSet

app = new_app()


@app.command()
def tune_weights(
    on: Annotated[
        list[str],
        typer.Option(
            metavar="DATASET:QUESTIONS:INDEX[:WEIGHT]",
            help="Tune on these questions over this index; sample::INDEX for the sample. WEIGHT says how much the set "
            "counts (1); with 0 it is only scored. May be repeated.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the run. An interrupted run resumes.")],
    trials: Annotated[int, typer.Option(min=1, help="Sets of weights tried in each search.")] = 200,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each set.")] = None,
    reach: Annotated[float, typer.Option(help="The factor by which a weight may change.")] = 2.5,
    seed: Annotated[int, typer.Option(help="Random seed of sample, folds and search.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Weights to start from, as JSON; 0 leaves one out.  [default: the shipped]"),
    ] = None,
) -> None:
    """Tune the weights of the chain retriever on benchmark questions, with cross-validation.

    The result is in DIR/tuning.json. An interrupted run resumes with the same command, to the same result.
    """
    from rich.console import Console

    from ...bar import progress_bar

    try:
        sets = tuple(QuestionSet.parse(text) for text in on)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from error
    settings = Settings(sets, _read_weights(start) if start else ChainWeights(), folds, seed, limit, reach)
    console = Console(stderr=True)
    with progress_bar("trials", console) as bar:
        task = bar.add_task("reading the questions", total=trials * (folds + 1))
        best: dict[str, float] = {}

        def show(part: str, value: float) -> None:
            best[part] = max(value, best.get(part, value))
            bar.update(task, advance=1, description=f"{part}: best {best[part]:.4f}")

        try:
            record = tune(settings, out, trials, jobs, show)
        except KeyboardInterrupt:
            typer.echo(f"{out}: run the same command again to resume", err=True)
            raise
    _print(record)
    typer.echo(f"{out / RESULT}: everything else")


def _read_weights(file: Path) -> ChainWeights:
    try:
        return ChainWeights(**json.loads(file.read_bytes()))
    except OSError as error:
        raise PolyhopError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise PolyhopError(f"{file} does not contain the weights of a chain as a JSON object: {error}") from error


def _print(record: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    kept = record["kept"]
    table = Table(title="Cross-validated, before and after", title_justify="left", header_style="bold")
    for heading in ("", "questions", "Recall@5", "all gold@5", "F1 of the chain"):
        table.add_column(heading, justify="right" if heading else "left")
    scores = record["cross_validation"]["scores"]
    for name, before in scores["before"].items():
        after = scores[kept][name]
        cells = (f"{100 * before[metric]:.1f} {100 * after[metric]:.1f}" for metric in (RECALL, ALL_GOLD, F1))
        table.add_row(name, str(before["questions"]), *cells)
    Console().print(table)
    if kept == "start":
        typer.echo("No tuned weights were better in cross-validation: only the threshold was tuned.")
    started = record["settings"]["start"]
    typer.echo("  ".join(f"{name} {started[name]:g} -> {value:g}" for name, value in record["weights"].items()))


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.training.chain.tune")
