"""Index time, index size, memory and latency of retrieval by corpus size, compared with other BM25 libraries.

Corpora and two-hop questions are generated (`GeneratedCorpus`). Every index is built in its own process and searched in
another one, on one CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from .systems import SYSTEMS, K, read_records

_TOP = 5  # passages that count for recall
_THREADS = 16

T = TypeVar("T")


@dataclass(frozen=True)
class Build:
    """Building an index: wall and CPU seconds, peak memory until each tenth of the time (MB), and size on disk (MB)."""

    seconds: float
    work: float
    tenths: tuple[float, ...]
    disk: float


@dataclass(frozen=True)
class Searches:
    """Searching an index.

    Attributes:
        opened: Seconds to open it and answer a first question.
        questions: How many questions were measured, after a warm-up.
        p50, p95: Wall milliseconds.
        work50, work95: CPU milliseconds.
        own: Anonymous memory of the process, MB.
        mapped: Mapped files in memory, MB.
        recall: The share of gold passages in the top five.
        all_gold: The share of questions with all gold passages in the top five.
        rate: Questions per second with 16 threads on all CPUs; None without support for threads.
    """

    opened: float
    questions: int
    p50: float
    p95: float
    work50: float
    work95: float
    own: float
    mapped: float
    recall: float
    all_gold: float
    rate: float | None


class Row(NamedTuple):
    passages: int
    system: str
    build: Build | None
    searches: Searches


def benchmark(
    passages: Annotated[
        list[int] | None,
        typer.Option(min=100, help="Passages to generate. Several sizes: give it again.  [default: 100000]"),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where corpora and indexes go; they stay.")] = Path(
        "runs/benchmark"
    ),
    questions: Annotated[int, typer.Option(min=10, help="Questions per measurement, after as many to warm up.")] = 500,
    systems: Annotated[str, typer.Option(help="What to measure.")] = "bm25,chain,bm25s,rank-bm25",
) -> None:
    """Measure index time, size, memory and search latency on generated passages, and compare with other libraries."""
    chosen = [name for name in systems.split(",") if name]
    if unknown := [name for name in chosen if name not in SYSTEMS]:
        raise typer.BadParameter(f"no system {unknown[0]!r}: choose {', '.join(SYSTEMS)}", param_hint="--systems")
    notes = []
    for name in list(chosen):
        if not find_spec(SYSTEMS[name].module):
            chosen.remove(name)
            notes.append(f"{name} is not installed and was skipped: pip install {name}")
    rows = []
    for size in sorted(set(passages or [100_000])):
        corpus, asked = generated(out, size, questions)
        typer.echo(f"{size:,} passages, {corpus.stat().st_size / 1e6:,.0f} MB of JSON")
        builds: dict[str, Build] = {}
        for name in chosen:
            system = SYSTEMS[name]
            if system.most and size > system.most[0]:
                notes.append(f"{name} was skipped at {size:,} passages: it is too slow beyond {system.most[0]:,}")
                continue
            folder = out / f"{system.folder}-{size}"
            if system.build and system.folder not in builds:
                builds[system.folder] = built = _in_new_process(partial(_measure_build, system.build, corpus, folder))
                typer.echo(f"  {system.folder}: {_build_line(size, built)}")
            count = min(questions, system.most[1]) if system.most else questions
            found = _in_new_process(partial(_measure_search, name, corpus, folder, asked, count))
            typer.echo(f"  {name}: {_search_line(found)}")
            rows.append(Row(size, name, builds.get(system.folder), found))
    typer.echo("\n" + table(rows))
    for note in (
        *notes,
        f"Search: the top {K} passages, one question at a time on one CPU. Build: bm25 and chain share an index; "
        "rank-bm25 has none and is rebuilt whenever it is opened.",
        f"Recall and all gold: the gold passages of generated questions in the top {_TOP}: a sanity check, not a "
        "measure of quality.",
    ):
        typer.echo(note)


def generated(out: Path, size: int, count: int) -> tuple[Path, Path]:
    """The files of a corpus and of twice as many questions, generated unless they exist."""
    import ujson

    from .generated import GeneratedCorpus

    corpus = GeneratedCorpus(size)
    contents: dict[Path, Iterable[dict[str, Any]]] = {
        out / f"corpus-{size}.jsonl": corpus,
        out / f"questions-{size}-{count}.jsonl": (question._asdict() for question in corpus.questions(2 * count)),
    }
    out.mkdir(parents=True, exist_ok=True)
    for file, records in contents.items():
        if not file.exists():
            part = file.with_suffix(".part")
            with part.open("w", encoding="utf-8") as lines:
                lines.writelines(ujson.dumps(record) + "\n" for record in records)
            part.replace(file)
    first, second = contents
    return first, second


# --- measuring -------------------------------------------------------------------------------------------------------


def _in_new_process(measure: Callable[[], T]) -> T:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure).result()


def _measure_build(build: Callable[[Path, Path], None], corpus: Path, folder: Path) -> Build:
    from threading import Event, Thread
    from time import perf_counter, process_time

    samples: list[tuple[float, float]] = []  # seconds, MB
    done = Event()

    def sample() -> None:
        while not done.wait(0.1):
            samples.append((perf_counter() - started, _memory("RssAnon")))

    started, worked = perf_counter(), process_time()
    sampler = Thread(target=sample, daemon=True)
    sampler.start()
    build(corpus, folder)
    seconds, work = perf_counter() - started, process_time() - worked
    done.set()
    sampler.join()
    samples.append((0.0, _memory("RssAnon")))  # a tiny build has no other
    tenths = tuple(max(mb for at, mb in samples if at <= seconds * tenth / 10 + 0.2) for tenth in range(1, 11))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Build(seconds, work, tenths, size / 1e6)


def _measure_search(name: str, corpus: Path, folder: Path, asked: Path, count: int) -> Searches:
    from concurrent.futures import ThreadPoolExecutor
    from time import perf_counter, process_time

    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everywhere)})  # before Java or a BLAS counts processors and starts threads
    questions = list(read_records(asked))
    middle = len(questions) // 2
    warm_up = [question["text"] for question in questions[middle - count : middle]]
    questions = questions[middle : middle + count]
    system = SYSTEMS[name]

    started = perf_counter()
    search = system.open(corpus, folder)
    search(warm_up[0])
    opened = perf_counter() - started
    for text in warm_up:
        search(text)
    times: list[float] = []
    found: list[list[str]] = []
    works: list[float] = []
    for question in questions:
        begun, worked = perf_counter(), process_time()
        found.append(search(question["text"]))
        works.append(1000 * (process_time() - worked))
        times.append(1000 * (perf_counter() - begun))
    own, mapped = _memory("RssAnon"), _memory("RssFile")
    shares = [
        len({*question["gold"]} & {*ids[:_TOP]}) / len({*question["gold"]})
        for question, ids in zip(questions, found, strict=True)
    ]
    rate = None
    if system.threads:
        os.sched_setaffinity(0, everywhere)
        started = perf_counter()
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(search, (question["text"] for question in questions)))
        rate = count / (perf_counter() - started)
    times.sort()
    works.sort()
    return Searches(
        opened=opened,
        questions=count,
        p50=times[count // 2],
        p95=times[int(0.95 * count)],
        work50=works[count // 2],
        work95=works[int(0.95 * count)],
        own=own,
        mapped=mapped,
        recall=sum(shares) / count,
        all_gold=sum(share == 1 for share in shares) / count,
        rate=rate,
    )


def _memory(kind: str) -> float:
    """MB of this process: its own (RssAnon), of mapped files (RssFile)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(kind + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel does not report {kind}")


# --- output ---------------------------------------------------------------------------------------------------------


def _build_line(passages: int, build: Build) -> str:
    tenths = " ".join(f"{mb:.0f}" for mb in build.tenths)
    return (
        f"built in {build.seconds:.1f} s ({passages / build.seconds:,.0f}/s), {build.work:.1f} s of processor time; "
        f"own memory at most {build.tenths[-1]:.0f} MB, until each tenth {tenths}"
    )


def _search_line(found: Searches) -> str:
    threads = f", {found.rate:,.0f}/s with {_THREADS} threads" if found.rate else ""
    return (
        f"open and first question {found.opened:.2f} s; {found.questions} questions, p50 {found.p50:.2f} ms, "
        f"p95 {found.p95:.2f} ms; CPU p50 {found.work50:.2f} ms, p95 {found.work95:.2f} ms{threads}"
    )


def table(rows: Sequence[Row]) -> str:
    """One line per system and size; a dash where a system has no index."""
    lines = [list(_COLUMNS)]
    for size, name, build, found in rows:
        made = ("-",) * 4
        if build:
            made = (f"{build.seconds:.1f}", f"{build.work:.1f}", f"{build.tenths[-1]:,.0f}", f"{build.disk:,.0f}")
        times = (f"{ms:.1f}" for ms in (found.p50, found.p95, found.work50, found.work95))
        memory = (f"{mb:,.0f}" for mb in (found.own, found.mapped))
        shares = (f"{share:.2f}" for share in (found.recall, found.all_gold))
        opened = f"{found.opened:.1f}"
        lines.append([f"{size:,}", name, *made, opened, *memory, *times, *shares, f"{found.questions}"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


_COLUMNS = (
    *("passages", "system", "build s", "CPU s", "peak MB", "disk MB", "open s", "own MB", "mapped MB"),
    *("p50 ms", "p95 ms", "CPU p50", "CPU p95", f"recall@{_TOP}", f"all gold@{_TOP}", "questions"),
)


if __name__ == "__main__":
    typer.run(benchmark)
