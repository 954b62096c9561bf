"""The progress bar of all commands."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def progress_bar(name: str, console: Console, done: ProgressColumn | None = None) -> Progress:
    """A transient bar: name, progress, elapsed and remaining time, description. Without a terminal there is none.

    Args:
        done: Shows the progress, by default as "n/total".
    """
    columns = (
        TextColumn(name.replace("{", "{{").replace("}", "}}"), markup=False),
        BarColumn(),
        done or MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
