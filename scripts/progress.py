"""What a program does while a command waits for its answer, on stderr in a terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ..data.text import plain
from ..programs.trace import Event, following
from .text import short

_STEPS = 8  # lines
_SOON = 0.3  # seconds; a faster answer is not preceded by anything


@contextmanager
def showing_progress() -> Iterator[None]:
    """Inside, the latest steps and what the program waits for are shown. They are removed afterwards.

    Nothing is shown if stderr is not a terminal.
    """
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        yield
        return
    start, done, waiting = perf_counter(), deque[str](maxlen=_STEPS), ""

    def tell(event: Event) -> None:
        nonlocal waiting
        text = short(plain(event.text))
        if event.step is None:
            waiting = text
        else:
            done.append("".join(f"{n}. " for n in event.branch) + text)
            waiting = ""

    def shown() -> Group:
        seconds = perf_counter() - start
        if seconds < _SOON:
            return Group()
        now = Text(f"  {waiting or 'working'} ... {seconds:.0f} s", style="cyan")
        steps = (Text(f"  {text}", style="dim", no_wrap=True, overflow="ellipsis") for text in done)
        return Group(*steps, now)

    with Live(get_renderable=shown, console=console, refresh_per_second=8, transient=True), following(tell):
        yield
