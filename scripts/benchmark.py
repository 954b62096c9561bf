"""`python -m polyhop.scripts.benchmark`: how index and search behave as a corpus grows.

Generates passages whose words follow Zipf's law and whose titles are as ambiguous as an encyclopaedia's (shared titles,
disambiguations, texts that mention other titles), indexes them in a process of its own, and searches them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

import typer

_SYLLABLES = [
    onset + vowel for onset in "b d f g k l m n p r s t v z br st tr".split() for vowel in "a e i o u".split()
]
_FUNCTION = "the of and in a to was is for as on with by he that at from his it an".split()
_KINDS = "film album song novel band river village footballer politician company".split()


def generate(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """``count`` records of about 100 words. Four passages in ten share their title with another, one title in
    eight has a disambiguation in parentheses, and every text mentions two titles, most of which are in the corpus."""
    chance = random.Random(seed)
    vocabulary = _vocabulary(50_000)
    stream = _running_text(vocabulary, 1_000_000)

    def draw(size: int) -> int:
        return int(chance.random() * size)

    for number in range(count):
        words: list[str] = []
        for _ in range(15 + draw(37)):
            start = draw(len(stream) - 3)
            words += stream[start : start + 3]
        for _ in range(2):
            words.insert(draw(len(words)), _title(draw(count), vocabulary).partition(" (")[0])
        lengths = range(0, len(words), 15)
        text = " ".join(" ".join(words[start : start + 15]).capitalize() + "." for start in lengths)
        name = number if chance.random() < 0.75 else draw(count)
        yield {"id": f"p{number}", "title": _title(name, vocabulary), "text": text}


def _vocabulary(size: int) -> list[str]:
    chance = random.Random(1)
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(chance.choices(_SYLLABLES, k=chance.choice((1, 2, 2, 3, 3, 4))))] = None
    return list(words)


def _running_text(vocabulary: list[str], length: int) -> list[str]:
    """Words by Zipf's law, with a function word after two in five."""
    chance = random.Random(2)
    weights = list(accumulate(1 / rank for rank in range(2, len(vocabulary) + 2)))
    words: list[str] = []
    for word in chance.choices(vocabulary, cum_weights=weights, k=length):
        words.append(word)
        if chance.random() < 0.4:
            words.append(chance.choice(_FUNCTION))
    return words


def _title(number: int, vocabulary: list[str]) -> str:
    """The title of a number, without a table of them: its bits choose one to three words, and perhaps a kind."""
    bits = number * 0x9E3779B97F4A7C15 % 2**64 ^ number * 0xC2B2AE3D27D4EB4F << 64
    words = []
    for _ in range((1, 2, 2, 2, 3, 3, 2, 2)[bits % 8]):
        bits >>= 17
        words.append(vocabulary[200 + bits % (len(vocabulary) - 200)].capitalize())
    name = " ".join(words)
    return f"{name} ({_KINDS[number % len(_KINDS)]})" if number % 8 == 0 else name


def benchmark(
    passages: Annotated[int, typer.Option(min=100, help="Passages to generate.")] = 100_000,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where corpus and index go; both stay.")] = Path(
        "runs/benchmark"
    ),
    queries: Annotated[int, typer.Option(min=10, help="Searches per measurement.")] = 2000,
) -> None:
    """Measure index time, size and memory, and search latency, on generated passages."""
    import ujson

    out.mkdir(parents=True, exist_ok=True)
    corpus, index = out / f"generated-{passages}.jsonl", out / f"index-{passages}"
    if not corpus.exists():
        part = corpus.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.writelines(ujson.dumps(record) + "\n" for record in generate(passages))
        part.replace(corpus)
    rows = {"passages": f"{passages:,}", "corpus": f"{corpus.stat().st_size / 1e6:,.0f} MB"}
    rows |= _in_new_process(_measure_build, corpus, index)
    rows |= _in_new_process(_measure_search, corpus, index, queries)
    for name, value in rows.items():
        typer.echo(f"{name:<28}{value}")


def _in_new_process(measure: Any, *arguments: Any) -> dict[str, str]:
    """A fresh process, so that its memory is that of what is measured."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        rows: dict[str, str] = pool.submit(measure, *arguments).result()
    return rows


def _measure_build(corpus: Path, index: Path) -> dict[str, str]:
    from threading import Event, Thread
    from time import perf_counter, process_time

    from ..data.index import build_index

    samples: list[tuple[float, float]] = []  # seconds, MB
    done = Event()

    def sample() -> None:
        while not done.wait(0.1):
            samples.append((perf_counter() - started, _memory("RssAnon")))

    started, worked = perf_counter(), process_time()
    sampler = Thread(target=sample, daemon=True)
    sampler.start()
    manifest = build_index([corpus], index)
    seconds, work = perf_counter() - started, process_time() - worked
    done.set()
    sampler.join()
    size = sum(file.stat().st_size for file in (index / manifest.lucene_folder).iterdir())
    tenths = [max(mb for at, mb in samples if at <= seconds * tenth / 10 + 0.2) for tenth in range(1, 11)]
    return {
        "index time": f"{seconds:.1f} s ({manifest.passages / seconds:,.0f}/s), {work:.1f} s of processor time",
        "index size": f"{size / 1e6:,.0f} MB",
        "peak memory of the build": f"{tenths[-1]:.0f} MB ({_memory('VmHWM'):.0f} MB with mapped files)",
        "  until each tenth of it": " ".join(f"{mb:.0f}" for mb in tenths) + " MB",
    }


def _measure_search(corpus: Path, index: Path, count: int) -> dict[str, str]:
    from concurrent.futures import ThreadPoolExecutor
    from time import perf_counter

    from ..data.bm25 import BM25Index

    started = perf_counter()
    opened = BM25Index(index)
    opened.search("a first query", 10)
    first = perf_counter() - started
    texts = list(_queries(corpus, 2 * count))
    warm_up, texts = texts[:count], texts[count:]
    for text in warm_up:
        opened.search(text, 10)

    def timed(text: str) -> float:
        begun = perf_counter()
        opened.search(text, 10)
        return perf_counter() - begun

    rows = {"open and first search": f"{first:.2f} s"}
    for threads in (1, 16):
        started = perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            times = sorted(pool.map(timed, texts))
        rate = len(texts) / (perf_counter() - started)
        p50, p95 = (1000 * times[int(share * len(times))] for share in (0.5, 0.95))
        rows[f"search, {threads} thread{'s' * (threads > 1)}"] = f"p50 {p50:.2f} ms, p95 {p95:.2f} ms, {rate:,.0f}/s"
    started = perf_counter()
    opened.search_many(texts, 10)
    rows["search_many"] = f"{len(texts) / (perf_counter() - started):,.0f}/s"
    rows["memory while searching"] = f"{_memory('RssAnon'):.0f} MB, and {_memory('RssFile'):.0f} MB of mapped files"
    return rows


def _queries(corpus: Path, count: int) -> Iterator[str]:
    """Ten words of a passage that stand together, of passages spread over the corpus: like a question about it."""
    import ujson

    chance = random.Random(3)
    with corpus.open("rb") as file:
        size = file.seek(0, 2)
        for _ in range(count):
            while True:
                file.seek(chance.randrange(size))
                file.readline()
                if line := file.readline():
                    break
            words = ujson.loads(line)["text"].split()
            start = chance.randrange(max(1, len(words) - 10))
            yield " ".join(words[start : start + 10])


def _memory(kind: str) -> float:
    """MB of this process: resident (VmRSS), at most so far (VmHWM), its own (RssAnon), of mapped files (RssFile)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(kind + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel does not report {kind}")


if __name__ == "__main__":
    typer.run(benchmark)
