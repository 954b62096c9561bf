"""A progress bar says how far a command is, to somebody who looks at it."""

from __future__ import annotations

import io
import re

from rich.console import Console

from polyhop.scripts.bar import progress_bar


def drawn(terminal: bool, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    with progress_bar("runs/\x1b[2J{x} [/b]", console) as bar:
        task = bar.add_task("", total=4_000)
        bar.update(task, advance=1_000, description="search.\x1b]0;t\x07chain[bm25]=0.5")
        bar.refresh()
        return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_bar_says_what_is_done_and_how_far_it_is() -> None:
    last = drawn(terminal=True).splitlines()[-1]
    assert re.search(r"runs/ \[2J\{x\} \[/b\] ━+╸? +1000/4000 [\d:]+ [-\d:]+ search\. \]0;t chain\[bm25\]=0\.5", last)
    assert "\x1b[2J" not in drawn(terminal=True)


def test_in_a_narrow_terminal_only_the_description_is_cut() -> None:
    last = drawn(terminal=True, width=76).splitlines()[-1]
    assert re.search(r" 1000/4000 \d:\d\d:\d\d [-\d]:[-\d]{2}:[-\d]{2} search\..*…$", last.rstrip())


def test_without_a_terminal_there_is_none() -> None:
    assert drawn(terminal=False).strip() == ""
