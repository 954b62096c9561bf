"""The progress bars of long work, which all look alike."""

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
    """What is done, how far it is, for how long and how long still, and what its task's description says.

    Nothing stays of it in the end, and without a terminal there is none.

    Args:
        done: How far it is, if not as a number of things.
    """
    columns = (
        TextColumn(name.replace("{", "{{").replace("}", "}}"), markup=False),  # it is formatted
        BarColumn(),
        done or MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
