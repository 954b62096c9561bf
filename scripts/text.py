"""Formatting of texts and numbers for the terminal."""

from __future__ import annotations

import re
import sys
from textwrap import shorten
from typing import TYPE_CHECKING

import typer

from ..data.errors import PolyhopError
from ..data.passages import Fact
from ..data.text import plain, quoted

if TYPE_CHECKING:
    from rich.table import Table

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


def confirm(calls: float, advice: str) -> None:
    """Ask whether to go on with something that may take so many LM calls."""
    if not sys.stdin.isatty():
        raise PolyhopError(f"this may take {calls:,.0f} LM calls: confirm with --yes, or {advice}")
    typer.confirm("Start?", abort=True)


def new_table(title: str, *headings: str) -> Table:
    """A table with names in its first column and numbers in the others."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(plain(title)), title_justify="left", header_style="bold")
    for n, heading in enumerate(headings):
        made.add_column(Text(plain(heading)), justify="right" if n else "left")
    return made


def short(text: str) -> str:
    return shorten(quoted(text), MOST_TEXT, placeholder=" …")


def compact(number: float) -> str:
    """Up to four digits, or three and a unit: 950, 9,500, 12.3k, 4.56M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= max(size, 1e4):
            return f"{number / size:.3g}{unit}"
    return f"{number:,.0f}"


def dollars(amount: float) -> str:
    """Two decimals, or four below one dollar."""
    return f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4f}"


def address(fact: Fact) -> str:
    """``passage-id:3`` for a sentence (numbered from 0), ``passage-id`` for a whole passage."""
    id = quoted(fact.passage_id)
    return id if fact.sentence is None else f"{id}:{fact.sentence}"


def in_markdown(text: str) -> str:
    """A text as Markdown that shows it, in a cell of a table too."""
    return re.sub(r"([\\`*\[\]<>|!])", r"\\\1", plain(text))


def file_name(text: str) -> str:
    """A file name without suffix: ``polyhop-runs-tuned`` for ``polyhop (runs/tuned)``."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
