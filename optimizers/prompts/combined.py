"""The optimizers that put several programs or optimizers together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy
from dspy.teleprompt import BetterTogether as DSPyBetterTogether

from ...data.errors import PolyhopError
from ...engines.models import explain
from ...eval.metrics import normalize_answer
from .costs import Estimate
from .few_shot import RandomSearch
from .optimizer import PromptOptimizer, Size, Task, in_presets, merged
from .reflection import Gepa
from .student import transplanted, with_steps


class Ensemble(PromptOptimizer):
    """`dspy.Ensemble` of the best programs of a random search, which `vote`.

    Every question costs as many times the calls from then on.
    """

    name = "ensemble"
    about = "the best programs of a random search, which vote"
    changes = "demos"
    presets = merged(RandomSearch.presets, in_presets(members=(3, 3, 5)))

    def estimate(self, size: Size) -> Estimate:
        members = min(size.numbers["members"], size.numbers["candidates"] + 2)
        return replace(RandomSearch().estimate(size), later=size.probe.question.lm_calls * members)

    def compile(self, task: Task) -> dspy.Module:
        best = RandomSearch().compile(task).candidate_programs[: task.numbers["members"]]
        return dspy.Ensemble(reduce_fn=vote).compile([candidate["program"] for candidate in best])

    def result(self, program: dspy.Module, compiled: dspy.Module) -> dspy.Module:
        compiled.programs = [transplanted(program, member) for member in compiled.programs]
        return compiled


class BetterTogether(PromptOptimizer):
    """`dspy.BetterTogether` without its weights: GEPA's instructions first, then the demos of a random search on top.

    What is best on the validation set of the program as it was, after one and after both, is taken.
    """

    name = "better_together"
    about = "gepa's instructions, then the demos of a random search"
    changes = "both"
    needs_prompt_model = True
    presets = merged(RandomSearch.presets, Gepa.presets)

    def estimate(self, size: Size) -> Estimate:
        evaluating = size.probe.asked(2 * size.val) + size.probe.asked(size.val, size.numbers["demos"])
        return Gepa().estimate(size) + RandomSearch().estimate(size) + Estimate(evaluating=evaluating)

    def compile(self, task: Task) -> dspy.Module:
        teleprompter = _BetterTogether(
            metric=task.metric, instructions=Gepa().teleprompter(task), demos=RandomSearch().teleprompter(task)
        )
        compiled = teleprompter.compile(
            task.student,
            trainset=task.trainset,
            valset=task.valset,
            num_threads=task.threads,
            seed=task.seed,
            strategy="instructions -> demos",
            optimizer_compile_args={"demos": RandomSearch().arguments(task)},
        )
        if teleprompter.failure is not None:
            raise PolyhopError(f"better_together failed: {explain(teleprompter.failure)}") from teleprompter.failure
        return compiled


class _BetterTogether(DSPyBetterTogether):
    """DSPy's, which goes on without a step that fails; this one remembers why."""

    failure: Exception | None = None

    def _run_and_evaluate_step(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._run_and_evaluate_step(*args, **kwargs)
        except Exception as error:
            self.failure = error
            raise


def vote(predictions: Sequence[Any]) -> Any:
    """The prediction whose answer the most confidence is for, of several programs; of equals the first.

    Answers are compared as exact match does; a prediction without a confidence counts 1. Its trace is that of all
    programs, one after the other, so that it shows what the question cost.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for prediction in predictions:
        weights[_key(prediction)] += prediction.get("confidence", 1.0)
    best = max(predictions, key=lambda each: (weights[_key(each)], each.get("confidence", 1.0)))
    return with_steps(best, predictions)


def _key(prediction: dspy.Prediction) -> str:
    return normalize_answer(str(prediction.get("answer", list(prediction.values())[-1])))
