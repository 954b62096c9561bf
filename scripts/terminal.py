"""What commands print: warnings, tables, progress bars, and texts and numbers for them."""

from __future__ import annotations

import re
from textwrap import shorten
from typing import Any

import typer
from rich import box, progress
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ..data.text import plain

_LONGEST_MESSAGE = 4_000  # characters: an error may repeat what it is about
MOST_TEXT = 320  # characters of a whole passage in a table


def warn(text: str) -> None:
    """Print a warning to stderr."""
    typer.secho(safe(text), fg=typer.colors.YELLOW, err=True)


def safe(text: str) -> str:
    """A message of several lines, cut in the middle if it is too long, and without what may control the terminal."""
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[: _LONGEST_MESSAGE // 2]} ... {text[-_LONGEST_MESSAGE // 2 :]}"
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def new_console(*, err: bool = False) -> Console:
    """A terminal, or a file, that takes texts as they are."""
    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def new_table(title: str, *headings: str, no_wrap: bool = False) -> Table:
    """A table with names in its first column and numbers in the others, which may be kept on one line."""
    shown = Text(plain(title)) if title else None
    made = Table(title=shown, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for n, heading in enumerate(headings):
        is_name, lines = n == 0, "\n".join(map(plain, heading.splitlines()))
        made.add_column(
            Text(lines), justify="left" if is_name else "right", overflow="fold", no_wrap=no_wrap and not is_name
        )
    return made


def progress_bar(name: str, console: Console | None = None) -> progress.Progress:
    """A transient bar on stderr: name, progress, elapsed and remaining time, description. Without a terminal there is
    none."""
    console = console or new_console(err=True)
    last = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # in a narrow terminal, it alone is cut
    columns = (
        progress.TextColumn(plain(name).replace("{", "{{").replace("}", "}}"), markup=False),
        progress.BarColumn(20),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False, table_column=last),
    )
    options: Any = {"expand": True, "transient": True, "disable": not console.is_terminal}
    return progress.Progress(*columns, console=console, speed_estimate_period=600, **options)  # steps may take minutes


def short(text: str) -> str:
    return shorten(plain(text[: 9 * MOST_TEXT]), MOST_TEXT, placeholder=" …")  # `shorten` takes minutes for megabytes


def in_markdown(text: str) -> str:
    """A text as Markdown that shows it, in a cell of a table too."""
    return re.sub(r"([\\`*\[\]<>|!])", r"\\\1", plain(text))


def file_name(text: str) -> str:
    """A file name without suffix: ``polyhop-runs-tuned`` for ``polyhop (runs/tuned)``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
