"""Replies as they come: events for DSPy's streams, and text for whoever listens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from dspy import lm15

from .costs import Abandoned
from .diagnosis import LONGEST_REPLY, OverlongReplyError, encodable

_HEAR: ContextVar[Callable[[str], None] | None] = ContextVar("hear", default=None)


@contextmanager
def hearing(hear: Callable[[str], None]) -> Iterator[None]:
    """Inside, ``hear`` is called with the text of each reply so far, from any thread, where the server streams it.

    A reply that is retried begins again. Replies from a cache and of the embedded engine are not heard.
    """
    token = _HEAR.set(hear)
    try:
        yield
    finally:
        _HEAR.reset(token)


def heard() -> Callable[[Any], None] | None:
    """A function that takes the events of a reply and calls who listens; None if nobody does."""
    hear, text = _HEAR.get(), ""
    if hear is None:
        return None

    def tell(event: Any) -> None:
        nonlocal text
        delta = getattr(event, "delta", None)
        if event.type == "start":
            text = ""
        elif isinstance(delta, lm15.TextDelta):
            text += delta.text
            hear(text)

    return tell


class Told:
    """The events of an attempt, from the first one with text on; the last one comes from the checked reply."""

    def __init__(self) -> None:
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.begun, self.left = False, False
        self._length = 0
        self._before: list[Any] = []  # events before the text, which a retry repeats

    def __call__(self, event: Any) -> None:
        if self.left:
            raise Abandoned  # nobody reads the rest
        if event.type == "start":
            self._before = []
        if event.type == "end":
            return
        delta = getattr(event, "delta", None)
        if isinstance(delta, lm15.TextDelta):
            event = replace(event, delta=encodable(delta))
            self._length += len(delta.text)
            if self._length > LONGEST_REPLY:
                raise OverlongReplyError(f"a reply of more than {LONGEST_REPLY:,} characters")
            self.begun = self.begun or bool(delta.text.strip())
        self._before.append(event)
        if self.begun:
            for each in self._before:
                self.events.put(each)
            self._before = []


def in_words(response: lm15.Response) -> Iterator[Any]:
    """A reply as the events of a stream, its text word by word."""
    for event in lm15.response_to_events(response):
        yield from words(event)


def words(event: Any) -> Iterator[Any]:
    """An event of a stream, its text word by word, as DSPy's stream listeners expect it."""
    delta = getattr(event, "delta", None)
    if isinstance(delta, lm15.TextDelta) and not delta.logprobs:
        for word in re.findall(r"\s*\S+|\s+", delta.text):
            yield replace(event, delta=replace(delta, text=word))
    else:
        yield event
