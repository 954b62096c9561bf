"""Benchmarks: their questions as DSPy examples of one shape, and their corpora.

    for question in load_questions("hotpotqa", "hotpot_dev_distractor_v1.json", limit=100, seed=0):
        program(**question.inputs())

`formats` and `own` declare the formats, one function each: it makes a `QuestionRecord` of a record.
"""

from __future__ import annotations

from . import formats, own  # noqa: F401  # registers them
from .corpora import passages_of, windows
from .load import PREFIX, Setting, load_questions, recognize_file, sample
from .question import GoldFact, QuestionRecord
from .registry import BENCHMARKS, SAMPLE, find_benchmark

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
    "windows",
]
