"""The search for better tunables, as a DSPy teleprompter.

    search = TunableSearch(metric=metrics.evidence_f1, trials=60, cost="lm_calls", storage="runs/x/study.journal")
    tuned = search.compile(program, valset=questions)
    search.outcome.best.values, search.outcome.front, search.outcome.importances

It finds the tunables of a program by itself (`polyhop.tunables`), asks the questions with other values of
them, and returns a copy of the program with the best (`polyhop.optimizers.tuning.outcome.choose`). Every trial is on
disk as soon as it is done: the same search over the same storage goes on where it was stopped and comes to what it
would have come to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
from dspy.teleprompt import Teleprompter

from ...data.errors import PolyhopError
from ..measure import Metric
from .outcome import Outcome
from .run import Progress, Run, with_values
from .space import Ranges
from .storage import GRACE

STORAGE = "runs/tuning/{study}.journal"
"""Where a search is kept by default; ``{study}`` stands for a hash of its settings."""


@dataclass
class TunableSearch(Teleprompter):
    """Optuna over the tunables of any DSPy program.

    Attributes:
        metric: Called with an example and a prediction, returns a number that is to be high.
        trials: How many, with the first one, which is the program as it is. A search can be continued with more.
        sampler: ``tpe``, ``cmaes``, ``random`` or ``grid`` (which ends with the last point of the grid).
        cost: A name of `polyhop.optimizers.measure.Measured.costs` (``lm_calls``, ``lm_calls_critical_path``,
            ``seconds``, ``tokens_in``, ``cost_usd``, ``searches``), which is to be low as well. Without a polyhop
            trace a program's ``lm_calls`` and tokens are those that its cache has not answered.
        at_most: Limits of costs, as means over the questions; a program beyond them is never chosen.
        freeze: Names or globs (``"search.*"``) of tunables that keep their values.
        ranges: Narrower ranges by name or glob: ``{"rounds": (1, 3), "stop": ("stable",)}``.
        prune: Give a trial up when it is worse than the best one on the questions so far (Wilcoxon test, every 10
            questions, which each trial asks in an order of its own); not in a search that has a cost. It cannot be
            chosen then; what it came to still tells the sampler where not to look.
        points: Of a grid, for each number.
        seed: Of everything that is drawn.
        threads: Questions asked at the same time.
        storage: The path of a journal file, a database's URL (``sqlite:///study.db``,
            ``postgresql+psycopg://user@host/name``) for workers on many machines, or None to keep nothing.
        study: The name of the search in its storage, which may hold several.
        grace: Seconds without a sign of life after which a worker on a database counts as dead.
        on_trial: Told of each trial as it ends.
        outcome: What was found, after `compile`.
    """

    metric: Metric
    trials: int = 60
    sampler: str = "tpe"
    cost: str | None = None
    at_most: Mapping[str, float] | None = None
    freeze: Sequence[str] = ()
    ranges: Ranges | None = None
    prune: bool = True
    points: int = 5
    seed: int = 0
    threads: int = 1
    storage: str | Path | None = STORAGE
    study: str = "tunables"
    grace: int = GRACE
    on_trial: Callable[[Progress], None] = lambda progress: None
    outcome: Outcome | None = None

    def compile(
        self,
        student: dspy.Module,
        *,
        trainset: Sequence[dspy.Example] | None = None,
        teacher: Any = None,
        valset: Sequence[dspy.Example] | None = None,
    ) -> dspy.Module:
        """Search, or go on with a search, and return a copy of the student with the best values.

        Args:
            trainset: The questions, if there is no valset; else unused.
            teacher: Unused.
            valset: The questions that trials are measured on.

        Raises:
            PolyhopError: there is nothing to tune or no question, a setting is wrong, the storage holds another search
                or fails, the metric fails, every question of a trial fails, or no trial is within the limits.
        """
        questions = list(valset if valset is not None else trainset or ())
        with Run(self, student, questions) as run:
            run.work()
            self.outcome = run.outcome()
        return self.tuned(student)

    def tuned(self, student: dspy.Module) -> dspy.Module:
        """A copy of the student with the values of the outcome.

        Raises:
            PolyhopError: there is no outcome yet.
        """
        if self.outcome is None:
            raise PolyhopError("nothing is tuned before compile")
        return with_values(student, self.outcome.best.values)
