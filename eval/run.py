"""Run a program over questions and score what comes back.

A question that fails (an exception in the program, a model that cannot be reached or parsed) is recorded with its
cause. It scores 0 in every mean, as a missing prediction does in the official scripts, and is counted beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter

import dspy

from ..engines.models import explain
from .metrics import answer_f1, exact_match, fact_scores, passage_scores, recall_at

METRICS = (
    "evidence_precision",
    "evidence_recall",
    "evidence_f1",
    "fact_f1",
    "passage_recall@5",
    "answer_em",
    "answer_f1",
)
COSTS = ("lm_calls", "searches", "seconds")


@dataclass(frozen=True)
class Result:
    """One question: its scores and costs by name, or why it failed."""

    question_id: str
    answer: str | None
    values: Mapping[str, float]
    failure: str | None = None


def run(program: dspy.Module, questions: Sequence[dspy.Example], threads: int = 1) -> Iterator[Result]:
    """The results in the order of the questions, each as soon as it and those before it are there.

    Args:
        program: Called with each question's inputs; must be safe to call from several threads, as polyhop's are.
        questions: Examples with ``id``, ``answers``, ``gold_passages`` and ``gold_facts``.
        threads: Questions asked at the same time. Pays with models behind a network.
    """
    with ThreadPoolExecutor(threads) as pool:
        # A thread does not inherit DSPy's settings (dspy.context): each question runs in a copy of this context.
        yield from pool.map(lambda task: task(), [partial(copy_context().run, ask, program, q) for q in questions])


def ask(program: dspy.Module, question: dspy.Example) -> Result:
    """Ask one question and score the prediction."""
    start = perf_counter()
    try:
        prediction = program(**question.inputs())
        seconds = perf_counter() - start
        values = {**score(question, prediction), **_costs(prediction), "seconds": seconds}
        return Result(question.id, prediction.answer, values)
    except Exception as error:  # noqa: BLE001  # whatever it is, it must not take the other questions with it
        values = {**dict.fromkeys((*METRICS, *COSTS), 0.0), "seconds": perf_counter() - start}
        return Result(question.id, None, values, explain(error))


def score(question: dspy.Example, prediction: dspy.Prediction) -> dict[str, float]:
    """Every metric of one prediction, by name."""
    passages = passage_scores(prediction.evidence, question.gold_passages)
    return {
        "evidence_precision": passages.precision,
        "evidence_recall": passages.recall,
        "evidence_f1": passages.f1,
        "fact_f1": fact_scores(prediction.evidence, question.gold_facts).f1,
        "passage_recall@5": recall_at(prediction.ranking, question.gold_passages, 5),
        "answer_em": exact_match(prediction.answer, question.answers),
        "answer_f1": answer_f1(prediction.answer, question.answers),
    }


def summarize(results: Sequence[Result]) -> dict[str, float]:
    """The mean of every value over all questions, and the number of those and of the failures among them."""
    means = {name: fmean(result.values[name] for result in results) for name in (*METRICS, *COSTS)}
    return {**means, "questions": len(results), "failed": sum(result.failure is not None for result in results)}


def _costs(prediction: dspy.Prediction) -> dict[str, float]:
    return {"lm_calls": prediction.trace.lm_calls, "searches": prediction.trace.searches}
