"""Index time, index size, memory and latency of retrieval by corpus size, compared with other BM25 libraries.

    python -m bench.benchmark --passages 10000 1000000 --systems bm25 chain bm25s

Corpora and two-hop questions are generated (`bench.generated`). Every index is built in its own process and searched in
another one, on one CPU: the top 5 passages, one question at a time. bm25 and chain share an index. The share
of gold passages in the top 5 is a sanity check, not a measure of quality.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import ujson

from .generated import GeneratedCorpus

K = 5
"""How many passages a search returns."""

Search = Callable[[str], list[str]]
"""From a question to the ids of the best passages; a system that stores passages also reads them."""


class System(NamedTuple):
    """``build`` takes the corpus and the folder of the index, which systems may share; ``open`` takes the folder."""

    open: Callable[[Path], Search]
    build: Callable[[Path, Path], None]
    folder: str
    module: str = "polyhop"


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one at a time."""
    with file.open(encoding="utf-8") as lines:
        yield from map(ujson.loads, lines)


def _build_bm25(corpus: Path, folder: Path) -> None:
    from polyhop.data.lucene.index import build_index

    build_index([corpus], folder)


def _open_bm25(chain: bool, folder: Path) -> Search:
    from polyhop.data.chain import ChainRetriever
    from polyhop.data.lucene.bm25 import BM25Index

    index: Any = BM25Index(folder)
    retriever = ChainRetriever(index) if chain else index
    return lambda question: [hit.passage.id for hit in retriever.search(question, K)]


_QUIET = {"show_progress": False}


def _bm25s_terms(texts: Iterable[str]) -> Any:
    """The library's own analysis, with our stop words and stemmer."""
    from polyhop.data.text import LUCENE_STOP_WORDS

    stemmer = import_module("Stemmer").Stemmer("porter")
    tokenize = import_module("bm25s").tokenize
    return tokenize(texts, stopwords=sorted(LUCENE_STOP_WORDS), stemmer=stemmer, **_QUIET)


def _build_bm25s(corpus: Path, folder: Path) -> None:
    retriever = import_module("bm25s").BM25(method="lucene", k1=0.9, b=0.4)
    retriever.index(_bm25s_terms(f"{record['title']}\n{record['text']}" for record in read_records(corpus)), **_QUIET)
    retriever.save(folder, corpus=read_records(corpus), show_progress=False)


def _open_bm25s(folder: Path) -> Search:
    # Mapped, as its documentation advises for large collections.
    retriever = import_module("bm25s").BM25.load(folder, mmap=True, load_corpus=True, **_QUIET)
    return lambda question: [
        record["id"] for record in retriever.retrieve(_bm25s_terms([question]), k=K, **_QUIET).documents[0]
    ]


SYSTEMS = {
    "bm25": System(partial(_open_bm25, False), _build_bm25, "index"),
    "chain": System(partial(_open_bm25, True), _build_bm25, "index"),
    "bm25s": System(_open_bm25s, _build_bm25s, "bm25s", "bm25s"),
}


def write_records(file: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines, unless the file exists."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as lines:
            lines.writelines(ujson.dumps(record) + "\n" for record in records)
        part.replace(file)
    return file


def measure_build(build: Callable[[Path, Path], None], corpus: Path, folder: Path) -> dict[str, float]:
    """Wall and CPU seconds, peak of the process's own memory, and size on disk (MB)."""
    peak, done = [0.0], Event()

    def sample() -> None:
        while not done.wait(0.1):
            peak.append(max(peak.pop(), _memory("RssAnon")))

    started, worked = perf_counter(), process_time()
    sampler = Thread(target=sample, daemon=True)
    sampler.start()
    build(corpus, folder)
    seconds, work = perf_counter() - started, process_time() - worked
    done.set()
    sampler.join()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"build s": seconds, "CPU s": work, "peak MB": max(*peak, _memory("RssAnon")), "disk MB": size / 1e6}


def measure_search(name: str, folder: Path, asked: Path, count: int) -> dict[str, float]:
    """Seconds to open the index and answer a first question; after a warm-up wall and CPU milliseconds of questions,
    memory in MB, and gold passages found."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before Java or a BLAS starts threads
    questions = list(read_records(asked))
    middle = len(questions) // 2
    warm_up, questions = questions[middle - count : middle], questions[middle : middle + count]
    system, started = SYSTEMS[name], perf_counter()
    search = system.open(folder)
    search(warm_up[0]["text"])
    opened = perf_counter() - started
    for question in warm_up:
        search(question["text"])
    walls, works, shares = list[float](), list[float](), list[float]()
    for question in questions:
        begun, worked = perf_counter(), process_time()
        ids = search(question["text"])
        works.append(1000 * (process_time() - worked))
        walls.append(1000 * (perf_counter() - begun))
        gold = {*question["gold"]}
        shares.append(len(gold & {*ids}) / len(gold))
    figures = {"open s": opened, "own MB": _memory("RssAnon"), "mapped MB": _memory("RssFile")}
    for label, times in (("", walls), ("CPU ", works)):
        figures |= {f"{label}p{level} ms": float(np.percentile(times, level)) for level in (50, 95)}
    figures |= {f"recall@{K}": float(np.mean(shares)), f"all gold@{K}": float(np.mean(np.array(shares) == 1))}
    return figures


def _memory(kind: str) -> float:
    """MB of this process: its own (RssAnon), of mapped files (RssFile)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{kind}:"))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="*", default=[100_000], help="to generate; 100 or more")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark"), help="where corpora and indexes stay")
    parser.add_argument("--questions", type=int, default=500, help="of a measurement, after as many to warm up")
    parser.add_argument("--systems", nargs="*", default=[*SYSTEMS], choices=[*SYSTEMS])
    options = parser.parse_args(arguments)
    systems = [name for name in options.systems if find_spec(SYSTEMS[name].module)]
    processes = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)  # a new one for each
    for size in sorted({*options.passages}):
        made, count, builds = GeneratedCorpus(size), options.questions, dict[str, dict[str, float]]()
        corpus = write_records(options.out / f"corpus-{size}.jsonl", made)
        asked = write_records(options.out / f"questions-{size}-{count}.jsonl", made.questions(2 * count))
        for name in systems:
            system = SYSTEMS[name]
            folder = options.out / f"{system.folder}-{size}"
            if system.folder not in builds:
                builds[system.folder] = processes.submit(measure_build, system.build, corpus, folder).result()
            figures = builds[system.folder] | processes.submit(measure_search, name, folder, asked, count).result()
            print(f"{size:,} {name}:", *(f"{label} {value:,.2f}" for label, value in figures.items()), flush=True)
    processes.shutdown()


if __name__ == "__main__":
    main()
