"""`python -m polyhop.scripts.studies.overhead`: time and memory of the evaluator itself.

Questions like HotpotQA's (ten contexts of five sentences, two gold sentences) are generated on the fly; the program
does nothing but return five passages and an answer.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dspy

from ...data.benchmarks import GoldFact, QuestionRecord
from ...data.passages import Evidence, Hit, Passage
from ...eval.run import evaluate
from ...programs.prediction import conclude
from ...programs.run import Run, running
from ...programs.trace import Searched, Trace


class Generated:
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
            question = QuestionRecord(f"q{n}", f"Question {n}?", (answer,), gold, pool, hops=2, kind="bridge")
            yield question.to_example()


class Nothing(dspy.Module):
    """Returns the first five passages of the pool."""

    def forward(self, question: str, pool: Sequence[Passage]) -> dspy.Prediction:
        hits = [Hit(passage, 1.0, rank) for rank, passage in enumerate(pool[:5], 1)]
        trace = Trace([Searched(question, tuple((hit.passage.id, hit.passage.title, hit.score) for hit in hits))])
        answer, evidence = " ".join(pool[0].sentences[1].split()[:3]), [Evidence(hit.passage) for hit in hits[:2]]
        with running(Run(trace=trace, seen=hits)):
            return conclude(answer, 0.5, evidence=evidence, stop="done")


def measure(count: int) -> str:
    """Run over ``count`` questions and report in a line; the time to generate them is subtracted."""
    questions = Generated(count)
    start = perf_counter()
    for _ in questions:
        pass
    generating = perf_counter() - start
    with TemporaryDirectory() as folder:
        start = perf_counter()
        summary = evaluate(Nothing(), questions, Path(folder) / "run")
        seconds = perf_counter() - start
        size = (Path(folder) / "run" / "predictions.jsonl").stat().st_size
    program = summary["timing"]["seconds_total"]
    ours = seconds - program - 2 * generating
    return (
        f"{count:>9,} questions: {1000 * ours / count:.2f} ms per question, {size / count / 1000:.1f} kB per record, "
        f"peak memory {_peak_memory():.0f} MB"
    )


def _peak_memory() -> float:
    """MB of this process so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ("1000", "10000")):
        print(measure(size), flush=True)
