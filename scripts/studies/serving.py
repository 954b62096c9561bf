"""`python -m polyhop.scripts.studies.serving`: how fast `polyhop serve` starts, and how it serves many users.

Over the sample corpus, on this machine. Each user asks one question after the other and reads the events; the users
start within a second. The slow model replies after a fixed latency with the embedded engine, on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import environ
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import quantiles
from time import perf_counter

import httpx
from rich.console import Console
from rich.table import Table

from ...data.sample import load_sample
from .throughput import served


@dataclass
class Measured:
    """What users saw, in seconds."""

    first: list[float] = field(default_factory=list)  # event after the question
    answered: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0
    memory: float = 0.0  # MB, the most that the server had


@contextmanager
def started(lm: str, **variables: str) -> Iterator[tuple[str, int]]:
    """The address and the process id of a server."""
    command = [sys.executable, "-m", "polyhop.scripts.main", "serve", "--index", "sample", "--port", "0", "--lm", lm]
    options = {"env": {**environ, **variables}, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*command, "--rate", "100000"], text=True, **options) as process:  # type: ignore[call-overload]
        try:
            found = re.search(r"http://\S+(?=/ )", process.stdout.readline())
            assert found
            yield found[0], process.pid
        finally:
            process.terminate()
            process.wait()


async def ask(client: httpx.AsyncClient, question: str, measured: Measured) -> None:
    start, first = perf_counter(), 0.0
    asked = {"question": question, "stream": True}
    event = ""
    try:
        async with client.stream("POST", "/ask", json=asked) as reply:
            async for line in reply.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])["event"]
                    first = first or perf_counter() - start
    except httpx.HTTPError:
        event = ""
    if event == "answer":
        measured.first.append(first)
        measured.answered.append(perf_counter() - start)
    else:
        measured.errors += 1


async def users(address: str, count: int, each: int) -> Measured:
    """Many users at once."""
    questions = [example.question for example in load_sample("test")]
    measured, limits = Measured(), httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=300, limits=limits) as client:
        await ask(client, questions[0], Measured())  # imports

        async def user(n: int) -> None:
            await asyncio.sleep(n / count)
            for turn in range(each):
                await ask(client, questions[(n * each + turn) % len(questions)], measured)

        start = perf_counter()
        await asyncio.gather(*map(user, range(count)))
        measured.seconds = perf_counter() - start
    return measured


def memory(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else float("nan")


def first_answer() -> tuple[float, float, float, float]:
    """Seconds until a fresh server listens, its first event after that, until its first answer from the start, and the
    seconds of CPU that it took for all."""
    start, measured, before = perf_counter(), Measured(), getrusage(RUSAGE_CHILDREN)
    with started("lexical") as (address, _):
        listening = perf_counter() - start

        async def once() -> None:
            async with httpx.AsyncClient(base_url=address, timeout=60) as client:
                await ask(client, load_sample("test")[0].question, measured)

        asyncio.run(once())
        answered = perf_counter() - start
    used = getrusage(RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return listening, measured.first[0], answered, cpu


def p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m polyhop.scripts.studies.serving", description=__doc__)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--each", type=int, default=4, help="questions of each user")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds of the slow model")
    given = parser.parse_args()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("model", "questions", "errors", "questions/s", "first event p95", "median", "p95", "memory"):
        table.add_column(title, justify="left" if title == "model" else "right")
    listening, first, answered, cpu = first_answer()
    for name in ("embedded", f"{given.latency:g} s"):
        with served(given.latency, canned=False) as url:
            lm = "lexical" if name == "embedded" else "openai/slow"
            with started(lm, OPENAI_BASE_URL=url) as (address, pid):
                found = asyncio.run(users(address, given.users, given.each))
                found.memory = memory(pid)
        times = sorted(found.answered)
        numbers = (f"{len(times) / found.seconds:.1f}", f"{p95(found.first):.3f} s", f"{times[len(times) // 2]:.2f} s")
        of_all = (str(len(times) + found.errors), str(found.errors))
        table.add_row(name, *of_all, *numbers, f"{p95(times):.2f} s", f"{found.memory:.0f} MB")
    console = Console(width=110)
    console.print(f"listens after {listening:.2f} s; first event {first:.3f} s after the question; ", end="")
    console.print(f"first answer {answered:.2f} s after the start ({cpu:.2f} s of CPU)")
    console.print(table)


if __name__ == "__main__":
    main()
