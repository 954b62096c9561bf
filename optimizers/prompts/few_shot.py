"""The optimizers that choose demos and need no prompt model."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import dspy
import optuna
from dspy.teleprompt import BootstrapFewShotWithOptuna

from ...data.errors import PolyhopError
from .costs import Cost, Estimate
from .gold import gold_demos
from .optimizer import PromptOptimizer, Size, Task, in_presets


class Labeled(PromptOptimizer):
    """`dspy.LabeledFewShot`, agent by agent: DSPy would show all agents the questions themselves, which hold nothing
    that an agent in the middle of a program says, and so are not shown at all."""

    name = "labeled"
    about = "demos for each agent from what the dataset knows: decompositions, supporting facts, answers"
    changes = "demos"
    presets = in_presets(train=(100, 200, 200), val=(0, 0, 0), demos=(2, 3, 4))

    def estimate(self, size: Size) -> Estimate:
        return Estimate()

    def compile(self, task: Task) -> dspy.Module:
        known = gold_demos(task.student, task.trainset)
        if not any(known.values()):
            raise PolyhopError("the questions have no annotations that an agent's demos could be made from")
        for name, predictor in task.student.named_predictors():
            labeled = dspy.LabeledFewShot(k=task.numbers["demos"]).compile(predictor, trainset=known[name])
            predictor.demos = labeled.demos if known[name] else []
        return task.student


class Bootstrap(PromptOptimizer):
    """`dspy.BootstrapFewShot`: the first questions that go well. Asks until there are enough, at most all."""

    name = "bootstrap"
    about = "demos from the program's own successes"
    changes = "demos"
    presets = in_presets(train=(20, 50, 100), val=(0, 0, 0), demos=(2, 3, 4))

    def estimate(self, size: Size) -> Estimate:
        return Estimate(bootstrapping=bootstrapping(size, [size.numbers["demos"]]))

    def compile(self, task: Task) -> dspy.Module:
        return bootstrap(task, task.numbers["demos"]).compile(task.student, trainset=task.trainset)


class RandomSearch(PromptOptimizer):
    """`dspy.BootstrapFewShotWithRandomSearch`: no demos, the first successes, and ``candidates`` random ones, of which
    the best on the validation set is taken; of equals the one before."""

    name = "random_search"
    about = "several sets of demos from successes, the best of them"
    changes = "demos"
    presets = in_presets(train=(20, 50, 100), val=(20, 40, 80), demos=(2, 3, 4), candidates=(3, 6, 12))

    def estimate(self, size: Size) -> Estimate:
        sizes = self._sizes(size.numbers)
        evaluating = [size.probe.asked(size.val, demos) for demos in (0, *sizes)]
        return Estimate(bootstrapping(size, sizes), sum(evaluating, Cost()))

    def compile(self, task: Task) -> dspy.Module:
        return self.teleprompter(task).compile(
            task.student, trainset=task.trainset, valset=task.valset, **self.arguments(task)
        )

    def teleprompter(self, task: Task) -> dspy.BootstrapFewShotWithRandomSearch:
        return dspy.BootstrapFewShotWithRandomSearch(
            metric=task.metric,
            max_bootstrapped_demos=task.numbers["demos"],
            max_labeled_demos=0,
            num_candidate_programs=task.numbers["candidates"],
            num_threads=task.threads,
        )

    def arguments(self, task: Task) -> dict[str, Any]:
        """Of `compile`. Candidate -2 has labeled demos only, which are none, as -3 has."""
        return {"restrict": [-3, -1, *range(task.numbers["candidates"])]}

    @staticmethod
    def _sizes(numbers: Any) -> list[int]:
        """How many demos each candidate is to have, as DSPy draws it."""
        drawn = (random.Random(seed).randint(1, numbers["demos"]) for seed in range(numbers["candidates"]))
        return [numbers["demos"], *drawn]


class BootstrapOptuna(PromptOptimizer):
    """`dspy.BootstrapFewShotWithOptuna`: one demo an agent, chosen by TPE from ``pool`` successes."""

    name = "bootstrap_optuna"
    about = "one demo an agent from a pool of successes, chosen by TPE"
    changes = "demos"
    presets = in_presets(train=(20, 50, 100), val=(20, 40, 80), pool=(4, 8, 12), trials=(5, 10, 20))

    def estimate(self, size: Size) -> Estimate:
        evaluating = size.probe.asked(size.val * size.numbers["trials"], demos=1)
        return Estimate(bootstrapping(size, [size.numbers["pool"]]), evaluating)

    def compile(self, task: Task) -> dspy.Module:
        teleprompter = _Optuna(
            metric=task.metric,
            max_bootstrapped_demos=1,
            max_labeled_demos=0,
            num_candidate_programs=task.numbers["trials"],
            num_threads=task.threads,
        )
        teleprompter.bootstrap, teleprompter.seed = bootstrap(task, task.numbers["pool"]), task.seed
        return teleprompter.compile(
            task.student, max_demos=task.numbers["pool"], trainset=task.trainset, valset=task.valset
        )


class _Optuna(BootstrapFewShotWithOptuna):
    """DSPy's, which cannot be seeded, and fails for an agent without demos."""

    bootstrap: dspy.BootstrapFewShot
    seed: int

    def compile(self, student: Any, *, teacher: Any = None, max_demos: int, trainset: Any, valset: Any = None) -> Any:
        self.trainset, self.valset = trainset, valset or trainset
        self.student = student.reset_copy()
        self.compiled_teleprompter = self.bootstrap.compile(self.student, teacher=teacher, trainset=trainset)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=self.seed))
        study.optimize(self.objective, n_trials=self.num_candidate_sets)
        return study.best_trial.user_attrs["program"]

    def objective(self, trial: optuna.Trial) -> Any:
        whole = self.compiled_teleprompter
        bare = [predictor for predictor in whole.predictors() if not predictor.demos]
        for predictor in bare:
            predictor.demos = [{}]  # a demo with no field is not shown
        try:
            return super().objective(trial)
        finally:
            for predictor in bare:
                predictor.demos = []


def bootstrap(task: Task, demos: int) -> dspy.BootstrapFewShot:
    """DSPy's bootstrap, without labeled demos: those are the questions themselves."""
    return dspy.BootstrapFewShot(metric=task.metric, max_bootstrapped_demos=demos, max_labeled_demos=0)


def bootstrapping(size: Size, demos: Iterable[int]) -> Cost:
    """What it costs to collect so many demos, one bootstrap after the other."""
    return size.probe.asked(sum(size.probe.bootstrapped(each, size.train) for each in demos))
