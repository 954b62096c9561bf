"""The optimizers that have a prompt model look at runs of the program, and write rules or instructions from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import dspy
from dspy.teleprompt import InferRules

from ...data.errors import PolyhopError
from ...eval.feedback import with_feedback
from ...eval.objectives import Objective
from ..measure import Metric
from .costs import Estimate, proposed
from .few_shot import bootstrapping
from .optimizer import PromptOptimizer, Size, Task, in_presets

_ACCEPTED = 0.3
"""The share of GEPA's proposals that go on to the validation set, for estimates."""


class Simba(PromptOptimizer):
    """`dspy.SIMBA`: in each of ``steps``, questions on which the program's answers vary give demos or rules.

    Rules are written by the prompt model. It works on train questions alone.
    """

    name = "simba"
    about = "demos and rules from what goes well one time and badly another"
    changes = "both"
    needs_prompt_model = True
    presets = in_presets(
        train=(20, 40, 80), val=(0, 0, 0), demos=(2, 3, 4), candidates=(2, 4, 6), steps=(2, 4, 6), batch=(8, 12, 16)
    )

    def estimate(self, size: Size) -> Estimate:
        numbers = size.numbers
        batch, candidates = min(numbers["batch"], size.train), numbers["candidates"]
        made = min(candidates + 1, batch)  # in each step
        sampled = numbers["steps"] * batch * candidates
        scored = numbers["steps"] * batch * made + size.train * (1 + min(numbers["steps"], candidates))
        return Estimate(
            size.probe.asked(sampled, demos=1),
            size.probe.asked(scored, demos=1),
            proposed(numbers["steps"] * made / 2, size.prompt_model),  # half of the strategies are demos
        )

    def compile(self, task: Task) -> dspy.Module:
        if len({id(predictor.lm) for predictor in task.student.predictors()}) > 1:
            raise PolyhopError("simba samples with one model for the whole program: give all agents the same")
        numbers = task.numbers
        teleprompter = dspy.SIMBA(
            metric=task.metric,
            bsize=min(numbers["batch"], len(task.trainset)),
            num_candidates=numbers["candidates"],
            max_steps=numbers["steps"],
            max_demos=numbers["demos"],
            prompt_model=task.prompt_model,
            num_threads=task.threads,
        )
        return teleprompter.compile(task.student, trainset=task.trainset, seed=task.seed)


class Gepa(PromptOptimizer):
    """`dspy.GEPA`: instructions evolve by reflection on feedback, up to ``runs`` runs of the program.

    Of our objectives the feedback is that of `polyhop.eval.feedback`. With a folder for its log it continues there
    after it scored the program as it is once more, and keeps a pickle in it. The last round may go over ``runs`` by
    one look at the validation set.
    """

    name = "gepa"
    about = "instructions by reflection on what went wrong, in words"
    changes = "instructions"
    needs_prompt_model = True
    presets = in_presets(train=(20, 50, 100), val=(10, 20, 40), runs=(100, 300, 900), minibatch=(3, 3, 4))

    def estimate(self, size: Size) -> Estimate:
        runs, val, minibatch = size.numbers["runs"], size.val, size.numbers["minibatch"]
        # A round is a minibatch before and after, and the validation set where that is better. It is begun as long as
        # there is a run left.
        a_round = 2 * minibatch + _ACCEPTED * val
        rounds = max(0.0, (runs - val) / a_round)
        return Estimate(
            evaluating=size.probe.asked(max(runs, val) + a_round / 2),
            proposing=proposed(rounds, size.prompt_model),
        )

    def compile(self, task: Task) -> dspy.Module:
        return self.teleprompter(task).compile(task.student, trainset=task.trainset, valset=task.valset)

    def teleprompter(self, task: Task) -> dspy.GEPA:
        return dspy.GEPA(
            metric=_feedback(task.metric),
            max_metric_calls=task.numbers["runs"],
            reflection_minibatch_size=min(task.numbers["minibatch"], len(task.trainset)),
            reflection_lm=task.prompt_model,
            num_threads=task.threads,
            log_dir=str(task.log_dir) if task.log_dir else None,
            seed=task.seed,
            warn_on_score_mismatch=False,
        )


class Rules(PromptOptimizer):
    """`dspy.InferRules`: demos by bootstrap, and rules that the prompt model reads off them, ``candidates`` times."""

    name = "infer_rules"
    about = "demos from successes, and rules that are read off them"
    changes = "both"
    needs_prompt_model = True
    presets = in_presets(train=(20, 50, 100), val=(20, 40, 80), demos=(2, 3, 4), candidates=(2, 4, 8), rules=(4, 6, 8))

    def estimate(self, size: Size) -> Estimate:
        demos, candidates = size.numbers["demos"], size.numbers["candidates"]
        return Estimate(
            bootstrapping(size, [demos]),
            size.probe.asked(candidates * size.val, demos),
            proposed(size.agents * candidates, size.prompt_model),
        )

    def compile(self, task: Task) -> dspy.Module:
        teleprompter = _InferRules(
            num_candidates=task.numbers["candidates"],
            num_rules=task.numbers["rules"],
            num_threads=task.threads,
            teacher_settings={"lm": task.prompt_model},
            metric=task.metric,
            max_bootstrapped_demos=task.numbers["demos"],
            max_labeled_demos=0,
        )
        return teleprompter.compile(task.student, trainset=task.trainset, valset=task.valset)


class _InferRules(InferRules):
    """DSPy's, which reads rules off the questions instead of the demos, and writes all candidates' rules into the one
    signature that they share with the program."""

    def get_predictor_demos(self, trainset: Any, predictor: Any) -> list[dict[str, Any]]:
        fields = predictor.signature.fields
        return [{name: demo[name] for name in fields if name in demo} for demo in predictor.demos]

    def induce_natural_language_rules(self, predictor: Any, trainset: Any) -> str:
        if not predictor.demos:
            return ""
        try:
            return str(super().induce_natural_language_rules(predictor, trainset))
        except AssertionError as error:
            raise error.__context__ or error from None  # it asserts that only too long a prompt can fail

    def update_program_instructions(self, predictor: Any, natural_language_rules: str) -> None:
        signature = predictor.signature
        if natural_language_rules:
            predictor.signature = signature.with_instructions(
                f"{signature.instructions}\n\nKeep to these rules:\n{natural_language_rules}"
            )


def _feedback(metric: Metric) -> Callable[..., Any]:
    """A metric as GEPA calls it."""
    if isinstance(metric, Objective):
        return with_feedback(metric)
    try:
        inspect.signature(metric).bind(None, None, None, None, None)
    except TypeError:
        return lambda gold, pred, trace=None, pred_name=None, pred_trace=None: metric(gold, pred)
    return metric
