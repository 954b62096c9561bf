"""`polyhop report`: runs as one page that can be read, searched, kept and sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError

if TYPE_CHECKING:
    from ..eval.report.section import Section

_STAGES = "stages.jsonl"  # what tells a run of `polyhop optimize` from one of `polyhop evaluate`


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of runs; the others are compared with the first."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page; a report that is there is replaced.")] = Path(
        "report.html"
    ),
) -> None:
    """Write runs into one HTML page that needs no network.

    Runs of `polyhop evaluate` get scores with intervals, by hop and by type, costs, convergence, calibration and every
    question with its trace; those over the same questions are compared with the first of them. Runs of `polyhop
    optimize` get sections of their own. A run that is not finished is shown as far as it is.
    """
    from ..eval.report.against import compare_group, comparisons
    from ..eval.report.chunks import Chunks
    from ..eval.report.page import write_page
    from ..eval.report.runs import count_questions, read_groups

    _check(out)
    paths = list(dict.fromkeys(runs))
    for path in paths:
        _check_run(path)
    optimized = [path for path in paths if (path / _STAGES).exists()]
    evaluated = [path for path in paths if path not in optimized]
    questions = count_questions(evaluated)
    with Chunks() as chunks, _bar() as bar:
        groups = read_groups(evaluated, chunks, bar("reading", questions))
        advance = bar("comparing", sum(map(comparisons, groups)))
        versus = [compare_group(group, advance) for group in groups]
        further = _sections(optimized)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_page(out, groups, versus, chunks, further)
        except OSError as error:
            raise PolyhopError(f"{out} cannot be written: {error.strerror}") from error
    for run in (run for group in groups for run in group.runs if not run.finished):
        typer.secho(f"{run.path} is not finished: {run.missing}", fg=typer.colors.YELLOW, err=True)
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def _check(out: Path) -> None:
    """Before anything is read: that the page can go there, and that nothing but a report would be lost.

    Raises:
        PolyhopError: it cannot, or something would.
    """
    from ..eval.report.page import GENERATOR

    if out.is_dir():
        raise PolyhopError(f"{out} is a folder: give --out the name of a file, such as {out / 'report.html'}.")
    try:
        with out.open("rb") as file:
            if file.read(len(GENERATOR)) != GENERATOR.encode():
                raise PolyhopError(f"{out} is there and is not a report: give --out another name.")
    except (FileNotFoundError, NotADirectoryError):
        pass  # nothing is lost; what cannot be written is told when it is
    except OSError as error:
        raise PolyhopError(f"{out} is there and cannot be read: {error.strerror}") from error


def _check_run(path: Path) -> None:
    """That a folder may be a run's; another kind of folder is told apart, with the runs that are near it.

    Raises:
        PolyhopError: it is another.
    """
    from ..data.lucene.layout import PROBLEMS

    if not path.is_dir():
        raise PolyhopError(f"There is no folder {path}.")
    if _is_run(path):
        return
    inside, beside = (sorted(filter(_is_run, folder.glob("*/"))) for folder in (path, path.resolve().parent))
    if (path / PROBLEMS).exists():
        there = f"; beside it: {_listed(beside)}" if beside else ""
        raise PolyhopError(f"{path} is an index: name the folder of a run over it (--out of `evaluate`){there}.")
    if inside:
        raise PolyhopError(f"{path} is not the folder of a run, but holds some: {_listed(inside)}.")
    if above := next(filter(_is_run, list(path.resolve().parents)[:2]), None):
        raise PolyhopError(f"{path} is a part of the run {above}: name that.")


def _is_run(folder: Path) -> bool:
    from ..eval.folder import MANIFEST, PREDICTIONS

    return (folder / MANIFEST).exists() and any((folder / name).exists() for name in (PREDICTIONS, _STAGES))


def _listed(folders: Sequence[Path]) -> str:
    more = f" and {len(folders) - 3} more" if len(folders) > 3 else ""
    return ", ".join(map(str, folders[:3])) + more


def _sections(paths: Sequence[Path]) -> list[Section]:
    if not paths:
        return []
    from ..optimizers.joint.report import sections, together

    folders = [path.resolve().name for path in paths]
    runs = dict(zip(folders if len(set(folders)) == len(paths) else map(str, paths), paths, strict=True))
    found = [replace(each, of=name) for name, path in runs.items() for each in sections(path)]
    return found if len(runs) == 1 else [together(runs), *found]


@contextmanager
def _bar() -> Iterator[Callable[[str, int], Callable[[], None]]]:
    """A progress bar for each of several things."""
    from rich.console import Console

    from ..eval.bar import progress_bar

    with progress_bar("report", Console(stderr=True)) as bar:

        def start(name: str, total: int) -> Callable[[], None]:
            task = bar.add_task(name, total=total)
            return lambda: bar.advance(task)

        yield start
