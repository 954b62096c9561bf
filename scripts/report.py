"""`polyhop report`: an HTML page about evaluation and optimization runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..data.errors import PolyhopError
from .text import warn


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders; the others are compared with the first."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page; an existing report is replaced.")] = Path(
        "report.html"
    ),
) -> None:
    """Write an HTML page about runs; it needs no network.

    Runs of `polyhop evaluate` get scores with intervals, by number of hops and type, costs, outcomes, and every
    question with its trace; runs over the same questions are compared with the first. Runs of `polyhop optimize` get
    their own sections. Unfinished runs are included as far as they are.
    """
    from ..eval.records import read_manifest
    from ..eval.report.page import GENERATOR, evaluation_sections, heading, write_page
    from ..eval.report.runs import Details, read_groups
    from ..optimizers.report import is_optimization, sections
    from .bar import progress_bar

    if out.is_dir():
        raise PolyhopError(f"{out} is a folder: give --out the name of a file, such as {out / 'report.html'}.")
    if out.exists():
        with out.open("rb") as file:
            if file.read(len(GENERATOR)) != GENERATOR.encode():
                raise PolyhopError(f"{out} exists and is not a report: give --out another name.")
    paths = list(dict.fromkeys(runs))
    optimized = {path: path.resolve().name for path in paths if is_optimization(path)}
    if len(set(optimized.values())) < len(optimized):
        optimized = {path: str(path) for path in optimized}
    evaluated = [path for path in paths if path not in optimized]
    details = Details()
    with progress_bar("report") as bar:
        task = bar.add_task("reading", total=sum(read_manifest(path).questions.count for path in evaluated))
        groups = read_groups(evaluated, details, lambda: bar.advance(task))
        page = evaluation_sections(groups) if groups else []
        page[-1:-1] = [replace(each, of=name) for path, name in optimized.items() for each in sections(path)]
        title, lead = heading(groups, list(optimized.values()))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_page(out, title, lead, page, groups, details.chunks)
        except OSError as error:
            raise PolyhopError(f"{out} cannot be written: {error.strerror}") from error
    for run in (run for group in groups for run in group.runs if not run.finished):
        warn(f"{run.path} is not finished: {run.missing}")
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")
