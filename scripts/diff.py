"""`polyhop diff`: what changed between two programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.text import plain
from .options import artifact_of, label, open_prompts, searches
from .text import MOST_TEXT, new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from ..optimizers.artifact import Artifact, State
    from ..optimizers.diff import Difference, Piece

_MARKS = {"=": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}
_STYLES = {"=": "", "-": "red", "+": "green"}
_CONTEXT = 60  # unchanged characters shown before and after a change
_MOST = 40  # lines of provenance


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A program, or the folder of an artifact.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The same.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what changed from A to B: instructions, demos, exemplars, tunables, scores, versions.

    In instructions, text removed from A is marked [-so-] and text added in B {+so+}. --json includes everything.
    """
    from ..optimizers.diff import diff as compare

    artifacts = {name: artifact for name in (before, after) if (artifact := artifact_of(name))}
    first, second = (artifacts[name].manifest if name in artifacts else None for name in (before, after))
    found = compare(_state(before, artifacts), _state(after, artifacts), (first, second))
    if as_json:
        typer.echo(json.dumps({"a": before, "b": after, "same": found.same, **asdict(found)}, ensure_ascii=False))
    else:
        _print(found, before, after)


def _state(name: str, artifacts: dict[str, Artifact]) -> State:
    """The state of a side; an untuned program is built with the kind of retriever that the other was tuned with."""
    from ..optimizers.artifact import dump

    if name in artifacts:
        return artifacts[name].state
    chained = any(each.startswith("search.chain[") for found in artifacts.values() for each in found.state)
    return dump(open_prompts(name, "bm25" if artifacts and not chained and searches(name) else None)[0])


def _print(found: Difference, before: str, after: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    if found.same:
        console.print("The same instructions, demos, exemplars and tunables.")
    for missing, where in ((found.only_before, before), (found.only_after, after)):
        if missing:
            console.print(f"Only in {plain(where)}: {plain(', '.join(missing))}\n")
    rows = []
    for name, change in found.changes.items():
        if change.values is not None:
            rows.append((name, *map(_value, change.values), change.range))
            continue
        console.print(Text(plain(name), "bold"))
        if change.instructions:
            console.print(_instructions(change.instructions))
        for mark, items in (("-", change.removed), ("+", change.added)):
            for item in items:
                record = plain(json.dumps(item, ensure_ascii=False))
                console.print(Text(f"  {mark} {shorten(record, MOST_TEXT, placeholder=' …')}", _STYLES[mark]))
        console.print()
    names = (plain(label(before)), plain(label(after)))
    _table(console, "Tunables", ("", *names, "range"), rows)
    about = [(name, *map(_value, pair)) for name, pair in found.about.items()]
    more = [(f"and {len(about) - _MOST} more: --json", "", "")] if len(about) > _MOST else []
    _table(console, "Provenance", ("", *names), [*about[:_MOST], *more])


def _table(console: Console, title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.text import Text

    if rows:
        shown = new_table(title, *headings)
        for row in rows:
            shown.add_row(*(Text(plain(cell)) for cell in row))
        console.print(shown, "")


def _instructions(pieces: Sequence[Piece]) -> Text:
    """The changed words with some context."""
    from rich.text import Text

    text = Text("  ")
    for n, (kind, words) in enumerate(pieces):
        words = plain(words) if kind != "=" else _context(words, n == 0, n == len(pieces) - 1)
        if words.strip():
            opening, closing = _MARKS[kind]
            text.append(f"{opening}{words}{closing} ", _STYLES[kind])
    return text


def _context(words: str, first: bool, last: bool) -> str:
    """The ends of an unchanged stretch."""
    words = plain(words)
    if len(words) <= 2 * _CONTEXT:
        return words
    start = "" if first else words[:_CONTEXT].rsplit(" ", 1)[0]
    end = "" if last else words[-_CONTEXT:].split(" ", 1)[-1]
    return f"{start} … {end}".strip()


def _value(value: Any) -> str:
    """A value, a real one with four significant digits."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value)
