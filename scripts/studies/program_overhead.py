"""The overhead of programs: CPU milliseconds per call outside the model and the search, DSPy's included.

    python -m polyhop.scripts.studies.program_overhead

Every program answers questions of the sample with the embedded engine and the chain retriever, whose time is
subtracted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import process_time, thread_time
from typing import Any

import dspy
from dspy import lm15

from ...data.chain import ChainRetriever
from ...data.passages import Hit
from ...data.pool import PassagePool
from ...data.sample import load_sample, sample_passages
from ...engines.lexical import LexicalEngine
from ...programs import C3PO, Direct, IRCoT, Kair, Naive, ParRag, PolyHop, Prism

PROGRAMS = (Direct, Naive, IRCoT, Prism, Kair, ParRag, C3PO, PolyHop)


@dataclass
class _Timed:
    """An engine and a retriever that add up the seconds spent in them."""

    engine: LexicalEngine = field(default_factory=LexicalEngine)
    source: ChainRetriever = field(default_factory=lambda: ChainRetriever(PassagePool(sample_passages())))
    seconds: float = 0.0
    calls: int = 0
    lock: Lock = field(default_factory=Lock)

    def complete(self, request: lm15.Request) -> lm15.Response:
        start = thread_time()
        response = self.engine.complete(request)
        self._add(thread_time() - start, 1)
        return response

    def search(self, query: str, k: int, offset: int = 0) -> list[Hit]:
        start = thread_time()
        hits = self.source.search(query, k, offset)
        self._add(thread_time() - start, 0)
        return hits

    def _add(self, seconds: float, calls: int) -> None:
        with self.lock:  # programs call from several threads
            self.seconds, self.calls = self.seconds + seconds, self.calls + calls


def measure(kind: type[Any], questions: Sequence[str]) -> tuple[float, float]:
    """Milliseconds of overhead per call, and calls per question."""
    timed = _Timed()
    program = kind() if kind is Direct else kind(timed)
    with dspy.context(lm=dspy.LM("timed", engine=timed, cache=False), num_threads=1):
        program(question=questions[0])  # imports, caches
        timed.seconds, timed.calls = 0.0, 0
        start = process_time()
        for question in questions:
            program(question=question)
        total = process_time() - start
    return 1000 * (total - timed.seconds) / timed.calls, timed.calls / len(questions)


if __name__ == "__main__":
    asked = [example.question for example in load_sample("dev")][: int((sys.argv[1:] or ["55"])[0])]
    for each in PROGRAMS:
        overhead, calls = measure(each, asked)
        print(f"{each.__name__:8} {overhead:.2f} ms per call, {calls:.1f} calls per question", flush=True)
