"""The benchmarks: their questions as DSPy examples of one shape, and the corpora that come with them.

    for question in load_questions("hotpotqa", "hotpot_dev_distractor_v1.json", limit=100, seed=0):
        program(**question.inputs())

One file a benchmark says what its records look like; `Question` says what they become.
"""

from __future__ import annotations

from .corpora import benchmark_passages, holds_passages, pooled_passages, windows
from .load import Setting, load_questions, recognised
from .question import GoldFact, Question
from .registry import BENCHMARKS, find_benchmark
from .sampling import in_dev, sample, split_by_id

__all__ = [
    "BENCHMARKS",
    "GoldFact",
    "Question",
    "Setting",
    "benchmark_passages",
    "find_benchmark",
    "holds_passages",
    "in_dev",
    "load_questions",
    "pooled_passages",
    "recognised",
    "sample",
    "split_by_id",
    "windows",
]
