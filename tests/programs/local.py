"""Model servers of one's own machine, as people have them: on loopback, with what each does to schemas, long prompts,
thinking and parallel requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..faults.completions import completion_of, with_content
from ..faults.exchange import Exchange
from ..faults.listening import Listening

Answer = tuple[str, str] | dict[str, Any]
"""The content of a reply and why it ended; or the body of an error 400."""


class Local(Listening):
    """``most`` is the highest number of requests at a time.

    Args:
        reply: From the body of a request, and the number of requests so far, makes an answer.
        window: Tokens of the longest prompt; the beginning of a longer one is dropped without a word.
    """

    def __init__(self, reply: Callable[[dict[str, Any], int], Answer], window: int = 1_000_000) -> None:
        super().__init__(self._answered)
        self.reply, self.window = reply, window
        self.most = self._open = 0
        self._counting = threading.Lock()

    def _answered(self, exchange: Exchange) -> None:
        with self._counting:
            self._open += 1
            self.most = max(self.most, self._open)
        try:
            answer = self.reply(exchange.body, len(self.seen))
        finally:
            with self._counting:
                self._open -= 1
        if isinstance(answer, dict):
            exchange.reply(answer, 400)
            return
        content, finish = answer
        words = sum(len(message["content"].split()) for message in exchange.body["messages"])
        completion = completion_of("local", content, min(words, self.window), len(content.split()))
        exchange.reply(with_content(completion, content, finish))
