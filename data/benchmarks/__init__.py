"""Benchmarks: their questions as DSPy examples of one shape, and their corpora.

    for question in load_questions("hotpotqa", "hotpot_dev_distractor_v1.json", limit=100, seed=0):
        program(**question.inputs())

`formats` and `own` have a function for each format, which makes a `QuestionRecord` of a record.
"""

from __future__ import annotations

from .corpora import passages_of
from .formats import BENCHMARKS, SAMPLE, find_benchmark
from .load import PREFIX, Setting, load_questions, recognize_file, sample
from .question import GoldFact, QuestionRecord

__all__ = [
    "BENCHMARKS",
    "PREFIX",
    "SAMPLE",
    "GoldFact",
    "QuestionRecord",
    "Setting",
    "find_benchmark",
    "load_questions",
    "passages_of",
    "recognize_file",
    "sample",
]
