"""`polyhop report`: an HTML page about evaluation and optimization runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from .text import warn

if TYPE_CHECKING:
    from ..eval.report.page import Section


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
    from ..eval.report.page import write_page
    from ..eval.report.runs import Details, read_groups
    from ..eval.report.sections import evaluation_sections, heading
    from .bar import progress_bar

    _check(out)
    paths = list(dict.fromkeys(runs))
    for path in paths:
        _check_run(path)
    optimized = _optimizations(paths)
    evaluated = [path for path in paths if path not in optimized.values()]
    details = Details()
    with progress_bar("report") as bar:
        task = bar.add_task("reading", total=sum(read_manifest(path).questions.count for path in evaluated))
        groups = read_groups(evaluated, details, lambda: bar.advance(task))
        sections = evaluation_sections(groups) if groups else []
        sections[-1:-1] = _sections(optimized)  # before "About"
        title, lead = heading(groups, list(optimized))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_page(out, title, lead, sections, groups, details.chunks)
        except OSError as error:
            raise PolyhopError(f"{out} cannot be written: {error.strerror}") from error
    for run in (run for group in groups for run in group.runs if not run.finished):
        warn(f"{run.path} is not finished: {run.missing}")
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def _check(out: Path) -> None:
    """Refuse an output file that cannot be written, or that is not a report, before anything is read."""
    from ..eval.report.page import GENERATOR

    if out.is_dir():
        raise PolyhopError(f"{out} is a folder: give --out the name of a file, such as {out / 'report.html'}.")
    try:
        with out.open("rb") as file:
            if file.read(len(GENERATOR)) != GENERATOR.encode():
                raise PolyhopError(f"{out} exists and is not a report: give --out another name.")
    except (FileNotFoundError, NotADirectoryError):
        pass  # writing reports what is wrong
    except OSError as error:
        raise PolyhopError(f"{out} exists and cannot be read: {error.strerror}") from error


def _check_run(path: Path) -> None:
    """Refuse a folder that has runs, and name them; reading finds what else is wrong."""
    if not path.is_dir():
        raise PolyhopError(f"{path} is not a folder.")
    if not _is_run(path) and (inside := sorted(filter(_is_run, path.glob("*/")))):
        raise PolyhopError(f"{path} is not a run folder; it contains runs: {', '.join(map(str, inside[:3]))}.")


def _is_run(folder: Path) -> bool:
    from ..eval.folder import MANIFEST, PREDICTIONS
    from ..optimizers.records import is_optimization

    return (folder / MANIFEST).exists() and ((folder / PREDICTIONS).exists() or is_optimization(folder))


def _optimizations(paths: Sequence[Path]) -> dict[str, Path]:
    """Runs of `polyhop optimize` by their names: their folders' names, or their paths where these are not distinct."""
    from ..optimizers.records import is_optimization

    found = [path for path in paths if is_optimization(path)]
    names = [path.resolve().name for path in found]
    return dict(zip(names if len(set(names)) == len(found) else map(str, found), found, strict=True))


def _sections(runs: Mapping[str, Path]) -> list[Section]:
    from ..optimizers.report import comparison, sections

    found = [replace(each, of=name) for name, path in runs.items() for each in sections(path)]
    return found if len(runs) < 2 else [comparison(runs), *found]
