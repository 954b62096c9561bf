"""The progress bar of all commands."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from ..data.text import plain


def progress_bar(name: str, console: Console | None = None) -> Progress:
    """A transient bar on stderr: name, progress, elapsed and remaining time, description. Without a terminal there is
    none."""
    console = console or Console(stderr=True)
    columns = (
        TextColumn(plain(name).replace("{", "{{").replace("}", "}}"), markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        _Description(Column(no_wrap=True, overflow="ellipsis", ratio=1)),  # in a narrow terminal, it alone is cut
    )
    return Progress(*columns, console=console, expand=True, transient=True, disable=not console.is_terminal)


class _Description(ProgressColumn):
    """What is being done: it may quote others, so it is shown as text only."""

    def render(self, task: Task) -> Text:
        return Text(plain(task.description))
