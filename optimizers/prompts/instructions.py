"""The optimizers that have a prompt model write instructions, and choose among them by score."""

from __future__ import annotations

from typing import Any

import dspy

from .costs import Estimate, proposed
from .few_shot import bootstrapping
from .optimizer import PromptOptimizer, Size, Task, in_presets


class Copro(PromptOptimizer):
    """`dspy.COPRO`: ``breadth`` instructions for each agent in each of ``depth`` rounds, all of them scored again in
    every round.

    It scores on train questions, and has no seed: what the prompt model says, at temperature 1.4, decides. The order of
    the questions is that of ours.
    """

    name = "copro"
    about = "instructions, agent by agent, better ones from those that scored well"
    changes = "instructions"
    needs_prompt_model = True
    presets = in_presets(train=(10, 12, 20), val=(0, 0, 0), breadth=(2, 3, 4), depth=(1, 2, 2))

    def estimate(self, size: Size) -> Estimate:
        breadth, depth = size.numbers["breadth"], size.numbers["depth"]
        # A program of one agent has only the latest instructions scored.
        batches = sum(range(1, depth + 1)) if size.agents > 1 else depth
        evaluating = size.probe.asked(size.agents * breadth * batches * size.train)
        return Estimate(evaluating=evaluating, proposing=proposed(size.agents * depth, size.prompt_model))

    def compile(self, task: Task) -> dspy.Module:
        # With a prompt model of its own, COPRO prints that model's history.
        teleprompter = dspy.COPRO(
            metric=task.metric, breadth=task.numbers["breadth"], depth=task.numbers["depth"], init_temperature=1.4
        )
        with dspy.context(lm=task.prompt_model):
            return teleprompter.compile(
                task.student, trainset=task.trainset, eval_kwargs={"num_threads": task.threads, "display_table": False}
            )


class Mipro(PromptOptimizer):
    """`dspy.MIPROv2`: ``candidates`` instructions and sets of demos for each agent, combined in ``trials`` by TPE.

    Trials are scored on ``minibatch`` validation questions, if there are more, and the best so far on all, every
    ``full_every`` trials. Its study is in memory: it cannot be resumed.
    """

    name = "mipro"
    about = "instructions and demos together, combined by TPE"
    changes = "both"
    needs_prompt_model = True
    presets = in_presets(
        train=(20, 50, 100),
        val=(20, 40, 80),
        demos=(2, 3, 4),
        candidates=(3, 5, 8),
        trials=(8, 16, 30),
        minibatch=(8, 15, 25),
        full_every=(4, 5, 6),
    )

    def estimate(self, size: Size) -> Estimate:
        numbers = size.numbers
        trials, candidates, small = numbers["trials"], numbers["candidates"], min(numbers["minibatch"], size.val)
        # The default program first. Of each agent's sets of demos one is empty, one has all, the others up to all.
        full = 1 + (_full_evaluations(trials, numbers["full_every"]) if small < size.val else 0)
        mean = (1 + numbers["demos"]) / 2
        asked = size.probe.asked(size.val) + size.probe.asked(size.val * (full - 1) + small * trials, mean)
        described = min(10, -(-size.train // 10)) + 1  # a look at ten questions each, at most ten, and a summary
        written = size.agents * candidates * 3  # the program, the agent, the instruction
        sets = [numbers["demos"], *(round(mean) for _ in range(candidates - 2))]
        return Estimate(bootstrapping(size, sets), asked, proposed(described + written, size.prompt_model))

    def compile(self, task: Task) -> dspy.Module:
        numbers = task.numbers
        teleprompter = _Mipro(
            metric=task.metric,
            prompt_model=task.prompt_model,
            task_model=task.student.predictors()[0].lm,  # not used: every agent has its model
            max_bootstrapped_demos=numbers["demos"],
            max_labeled_demos=0,
            auto=None,
            num_candidates=numbers["candidates"],
            num_threads=task.threads,
            seed=task.seed,
        )
        return teleprompter.compile(
            task.student,
            trainset=[_Brief(example).with_inputs(*example.inputs().keys()) for example in task.trainset],
            valset=task.valset,
            num_trials=numbers["trials"],
            minibatch=numbers["minibatch"] < len(task.valset),
            minibatch_size=numbers["minibatch"],
            minibatch_full_eval_steps=numbers["full_every"],
        )


class _Mipro(dspy.MIPROv2):
    """DSPy's, which fails where all that it tried has been scored on all questions, as in programs of one agent."""

    def _perform_full_evaluation(
        self, trial_num: int, trials: int, scores: Any, scored: Any, evaluate: Any, valset: Any, logs: Any, calls: int,
        score_data: Any, best_score: Any, best_program: Any, *others: Any,
    ) -> Any:  # fmt: skip
        if scores.keys() <= scored.keys():
            return best_score, best_program, calls
        return super()._perform_full_evaluation(
            trial_num, trials, scores, scored, evaluate, valset, logs, calls, score_data, best_score, best_program,
            *others,
        )  # fmt: skip


class _Brief(dspy.Example):
    """A question that shows itself without its passages and annotations, which fill a prompt model's context."""

    def __repr__(self) -> str:
        answer = self.get("answer") or next(iter(self.get("answers") or ()), None)
        return f"Example({ {'question': self.get('question'), 'answer': answer} })"


def _full_evaluations(trials: int, every: int) -> int:
    """How often MIPROv2 scores the best of the minibatches on all questions; these count as trials, too."""
    last = trials + trials // every + 1 + (trials % every > 0) - 1
    number, times = 1, 0
    for _ in range(trials):
        number += 1
        if number % (every + 1) == 0 or number == last:
            number, times = number + 1, times + 1
    return times
