"""What `polyhop index` shows of its work and of what it skips."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TYPE_CHECKING

import typer
from rich.progress import ProgressColumn, Task, TaskProgressColumn
from rich.text import Text

from ..data.text import plain
from .text import warn

if TYPE_CHECKING:
    from ..data.errors import Problem
    from ..data.lucene.index import BuildProgress

_SHOWN = 5  # reasons, and kinds of files
_NAMED = 2  # files for each reason
_LONGEST_NAME = 26  # characters of a file in the bar
_LINE_EVERY = 30.0  # seconds, where there is no terminal


class Skipped:
    """Counts what is skipped by reason, and remembers the first of each; for ``on_problem``."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._suffixes = Counter[str]()
        self._damaged = dict[str, list[str]]()  # places by reason
        self._like = Counter[str]()  # places by reason
        self._duplicate = ""

    def __call__(self, problem: Problem) -> None:
        self._counts[problem.kind] += 1
        if problem.kind == "other":
            suffix = PurePosixPath(problem.where).suffix.lower()
            self._suffixes[suffix or "without a suffix"] += 1
        elif problem.kind == "duplicate":
            self._duplicate = self._duplicate or f"{problem.where}: {problem.reason}"
        elif problem.reason in self._damaged or len(self._damaged) < _SHOWN:
            self._like[problem.reason] += 1
            if len(places := self._damaged.setdefault(problem.reason, [])) < _NAMED:
                places.append(problem.where)

    @property
    def summary(self) -> str:
        """One line: "2 damaged; 1 duplicate; 3 without a reader: 2 .py, 1 .png"."""
        parts = [f"{self._counts['damaged']:,} damaged", f"{self._counts['duplicate']:,} duplicate"]
        if count := self._counts["other"]:
            kinds = [f"{number:,} {suffix}" for suffix, number in self._suffixes.most_common(_SHOWN)]
            rest = count - sum(number for _, number in self._suffixes.most_common(_SHOWN))
            parts.append(f"{count:,} without a reader: " + ", ".join([*kinds, *([f"{rest:,} others"] if rest else [])]))
        return "; ".join(parts)

    def tell(self, listed: Path) -> None:
        """Name some of them: the damaged by reason, and a duplicate."""
        for reason, places in self._damaged.items():
            more = self._like[reason] - len(places)
            warn(f"  {', '.join(places)}{f' and {more:,} more' if more else ''}: {reason}")
        if more := self._counts["damaged"] - self._like.total():
            warn(f"  ... and {more:,} more that are damaged")
        if self._duplicate:
            typer.echo(f"  {plain(self._duplicate)}", err=True)
        if self._counts:
            typer.echo(f"  all of them: {listed}", err=True)


class _Left(ProgressColumn):
    """The remaining time, as the share that is done suggests."""

    def render(self, task: Task) -> Text:
        if not task.elapsed or not task.completed or task.elapsed < 2:
            return Text("-:--:--", style="progress.remaining")
        minutes, seconds = divmod(int(task.elapsed * (1 - task.completed) / task.completed), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}", style="progress.remaining")


@contextmanager
def indexing_progress() -> Iterator[Callable[[BuildProgress], None]]:
    """A function that shows how far an index is: as a bar in a terminal, else as a line now and then."""
    from .bar import progress_bar

    started = told = monotonic()
    with progress_bar("indexing", done=TaskProgressColumn(), left=_Left()) as bar:
        task = bar.add_task("", total=1.0)

        def show(built: BuildProgress) -> None:
            nonlocal told
            state = PurePosixPath(built.file).name or "merging"
            short = state if len(state) <= _LONGEST_NAME else "…" + state[1 - _LONGEST_NAME :]
            bar.update(task, completed=built.done, description=f"{built.passages:,} passages, {short}")
            if bar.disable and monotonic() - told >= _LINE_EVERY:
                told = monotonic()
                left = (told - started) * (1 - built.done) / built.done if built.done else 0.0
                about = (
                    f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left" if left else ""
                )
                state = plain(built.file) or "merging"
                line = f"indexing: {built.done:.0%}{about}, {built.passages:,} passages, {state}"
                print(line, file=sys.stderr, flush=True)

        yield show
