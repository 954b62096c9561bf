"""`python -m polyhop.scripts.studies.throughput`: model calls per second of an evaluation against a slow server.

A local server replies after a fixed latency: to ``naive`` with a canned reply, to ``polyhop`` with the embedded
engine, on the same cores. With no other overhead, T threads make ``T / latency`` calls per second: the ideal. Calls
are counted while all threads have questions; a call at the edge of that time counts in proportion.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any
from urllib.request import urlopen

import dspy
from dspy import lm15
from rich.console import Console
from rich.table import Table

from ...data.errors import PolyhopError
from ...data.pool import PassagePool
from ...data.sample import load_sample, sample_passages
from ...engines.budget import Budget
from ...engines.endpoint import Endpoint, Limits
from ...eval.run import evaluate
from ...programs import new_program

_QUESTIONS = {"naive": 20, "polyhop": 5}
"""Questions per thread for each program, for similar numbers of calls."""
_CANNED = ("naive",)
"""Programs whose agents all accept the canned reply."""
_CLIENTS = {"lm15": "DSPy's own", "litellm": "LiteLLM"}
_SLOTS, _PER_MINUTE = 4, 120


class _Noted(Budget):
    """A budget without limits that records when requests begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[float, float]] = []

    def paid(self, send: Callable[[lm15.Request], lm15.Response], request: lm15.Request) -> lm15.Response:
        begun = perf_counter()
        try:
            return send(request)
        finally:
            self.sent.append((begun, perf_counter()))


class _NotedProgram(dspy.Module):
    """A program that records when its questions start."""

    def __init__(self, program: dspy.Module) -> None:
        super().__init__()
        self.program, self.begun = program, list[float]()

    def forward(self, **inputs: Any) -> Any:
        self.begun.append(perf_counter())
        return self.program(**inputs)


@dataclass(frozen=True)
class Measured:
    """The calls of a run.

    Attributes:
        calls: Calls in the ``seconds`` while all threads had questions.
        cpu: CPU seconds of this process per call.
        begun: When each call was sent, including the warm-up.
        at_once: The largest number of concurrent requests.
    """

    calls: float
    seconds: float
    cpu: float
    begun: Sequence[float]
    at_once: int

    @property
    def rate(self) -> float:
        return self.calls / self.seconds

    @property
    def busiest_minute(self) -> int:
        """The largest number of calls within 60 seconds."""
        return max(sum(first <= each < first + 60.0 for each in self.begun) for first in self.begun)


@contextmanager
def served(latency: float, canned: bool) -> Iterator[str]:
    """The URL of a server in its own process."""
    command = [sys.executable, "-m", "polyhop.scripts.studies.faults.server", "--latency", str(latency)]
    if canned:
        command.append("--canned")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.communicate()


def measure(
    name: str, count: int, latency: float, threads: int, client: str = "lm15", limits: Limits | None = None
) -> Measured:
    """Evaluate a program over ``count`` questions.

    Raises:
        PolyhopError: a question failed.
    """
    sample = [*load_sample("dev"), *load_sample("test")]
    questions = [_example(n, sample[n % len(sample)].question) for n in range(count)]
    with served(latency, name in _CANNED) as url:
        lm = dspy.LM("openai/behind-http", engine=client, api_base=url, api_key="none", cache=False)
        noted = _Noted()
        program = _NotedProgram(new_program(name, PassagePool(sample_passages()), None))
        program.set_lm(noted.meter(Endpoint(limits).guard(lm)))
        evaluate(program, questions[:threads], threads=threads)  # imports, connections, caches
        program.begun.clear()
        before, cpu = len(noted.sent), process_time()
        summary = evaluate(program, questions, threads=threads)
        cpu = process_time() - cpu
        if summary["failures"]:
            failed = f"{summary['counts']['failed']} of {count} questions failed"
            raise PolyhopError(f"{name}, {latency:g} s: {failed}: {summary['failures'][0]['message']}")
        with urlopen(url.removesuffix("/v1") + "/counts") as reply:
            at_once = json.load(reply)["at_once"]
    start, end = sorted(program.begun)[threads - 1], max(program.begun)
    calls = sum(max(0.0, min(last, end) - max(first, start)) / (last - first) for first, last in noted.sent)
    return Measured(
        calls, end - start, cpu / (len(noted.sent) - before), sorted(first for first, _ in noted.sent), at_once
    )


def _example(n: int, question: str) -> dspy.Example:
    return dspy.Example(id=str(n), question=question, answers=("-",)).with_inputs("question")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m polyhop.scripts.studies.throughput", description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.25, 0.5, 1.0], metavar="SECONDS")
    given = parser.parse_args()
    caption = f"{', '.join(_CANNED)}: canned replies; others: the embedded engine, on the same cores"
    table = Table(box=None, padding=(0, 2, 0, 0), caption=caption, caption_justify="left")
    for title in ("program", "client", "latency", "calls", "calls/s", "ideal", "share", "CPU ms per call"):
        table.add_column(title, justify="left" if title in ("program", "client") else "right")
    console = Console(width=100)
    with Console(stderr=True).status("") as status:
        for latency in given.latency:
            for client in _CLIENTS:
                for name, each in _QUESTIONS.items():
                    status.update(f"{name}, {_CLIENTS[client]}, {latency:g} s")
                    run = measure(name, each * given.threads, latency, given.threads, client)
                    ideal = given.threads / latency
                    cells = (f"{latency:g} s", f"{run.calls:,.0f}", f"{run.rate:.1f}", f"{ideal:.1f}")
                    share = (f"{run.rate / ideal:.1%}", f"{1000 * run.cpu:.1f}")
                    table.add_row(name, _CLIENTS[client], *cells, *share)
        status.update("limits")
        slots = measure("naive", 10 * given.threads, 0.1, given.threads, limits=Limits(concurrency=_SLOTS))
        paced = measure("naive", _PER_MINUTE + 5, 0.1, given.threads, limits=Limits(requests_per_minute=_PER_MINUTE))
    console.print(table)
    console.print(f"concurrency = {_SLOTS}: the server had {slots.at_once} concurrent requests at most")
    console.print(f"requests_per_minute = {_PER_MINUTE}: {paced.busiest_minute} in the busiest 60 seconds")


if __name__ == "__main__":
    main()
