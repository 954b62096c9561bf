"""Time and memory of the evaluator itself.

    python -m bench.overhead 1000 10000

The questions are like HotpotQA's (ten contexts of five sentences, two gold sentences) and generated on the fly; the
program does nothing but return five passages and an answer.
"""

from __future__ import annotations

import argparse
import random
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dspy

from polyhop.data.benchmarks import GoldFact, QuestionRecord
from polyhop.data.passages import Evidence, Hit, Passage
from polyhop.eval.run import evaluate
from polyhop.programs.prediction import conclude
from polyhop.programs.run import Run, running


class _Generated:
    """Generated questions, not kept in memory."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[dspy.Example]:
        chance = random.Random(0)
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2000)]
        for n in range(self.count):
            texts = [[" ".join(chance.choices(words, k=18)) + "." for _ in range(5)] for _ in range(10)]
            pool = tuple(Passage.of(f"Title {n}-{i}", sentences=text, id=f"{n}-{i}") for i, text in enumerate(texts))
            gold = tuple(GoldFact(pool[i].title, 1, pool[i].id, unique_title=True) for i in (0, 7))
            answer = " ".join(texts[0][1].split()[:2])
            yield QuestionRecord(f"q{n}", f"Question {n}?", (answer,), gold, pool, hops=2, kind="bridge").to_example()


class _Nothing(dspy.Module):
    """Returns the first five passages of the pool."""

    def forward(self, question: str, pool: Sequence[Passage]) -> dspy.Prediction:
        hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate(pool[:5], 1)]
        with running(Run(seen=hits)):
            evidence = [Evidence(hit.passage) for hit in hits[:2]]
            return conclude(" ".join(pool[0].sentences[1].split()[:3]), 0.5, evidence=evidence, stop="done")


def measure(count: int) -> str:
    """The time to generate the questions is subtracted."""
    start = perf_counter()
    for _ in _Generated(count):
        pass
    generating = perf_counter() - start
    with TemporaryDirectory() as folder:
        start = perf_counter()
        summary = evaluate(_Nothing(), _Generated(count), Path(folder) / "run")
        seconds = perf_counter() - start
    own = seconds - summary["timing"]["seconds_total"] - 2 * generating
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux
    return f"{count:>9,} questions: {1000 * own / count:.2f} ms per question, peak memory {peak:.0f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=int, nargs="*", default=[1_000, 10_000], help="how many to evaluate")
    for count in parser.parse_args(arguments).questions:
        print(measure(count), flush=True)


if __name__ == "__main__":
    main()
