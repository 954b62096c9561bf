"""An upper bound of what an optimization costs, and whether a budget can be enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import dspy

from ..data.errors import PolyhopError
from ..engines.budget import Budget
from ..programs.exemplars import Exemplars
from .pipeline import RESERVE
from .prompts import Cost, Probe
from .prompts import estimate as estimate_prompts
from .settings import OptimizationSettings, Splits, divide
from .stages import EXEMPLAR_TRIALS

Row = tuple[str, Cost]


@dataclass(frozen=True)
class CostBound:
    """The cost of the parts of a run; no question is asked.

    No trial is pruned, and stages run in every round. Replies in DSPy's cache are counted.
    """

    program: dspy.Module
    splits: Splits
    settings: OptimizationSettings
    probe: Probe
    prompt_model: dspy.LM | None = None

    def rows(self) -> list[Row]:
        """The parts in their order."""
        val, test = len(self.splits.val), len(self.splits.test)
        rows: list[Row] = [("start: validation", self.probe.asked(val))]
        for round_ in range(1, self.settings.rounds + 1):
            for stage in self.settings.stages:
                cost = self._stage(stage, self.settings.trials, 1 + EXEMPLAR_TRIALS)
                rows.append((f"round {round_}: {stage}", cost))
                rows.append((f"round {round_}: validation", self.probe.asked(val)))
        return [*rows, ("test, start and result", self.probe.asked(2 * test))]

    def check(self, budget: Budget) -> None:
        val, test = len(self.splits.val), len(self.splits.test)
        shortest = (self._stage(stage, 2, 3) for stage in self.settings.stages)  # plans, the defaults, one more trial
        stage = next((cost for cost in shortest if cost != Cost()), Cost())
        needed = self.probe.asked(val) + stage + self.probe.asked(RESERVE * (val + 2 * test))
        spent = budget.spent
        calls, usd = spent.calls + ceil(needed.lm_calls), ceil(1_000 * (spent.usd + (needed.cost_usd or 0.0))) / 1_000
        why = (
            f"the start on {val:,} validation questions, a first stage, and its measurement on these and on {test:,} "
            "test questions take"
        )
        if budget.calls is not None and calls > budget.calls:
            raise PolyhopError(f"a budget of {budget.calls:,} LM calls is too small: {why} at least about {calls:,}")
        if budget.usd is not None and usd > budget.usd:
            raise PolyhopError(f"a budget of ${budget.usd:,g} is too small: {why} at least about ${usd:,.3f}")

    def _stage(self, stage: str, trials: int, exemplar_trials: int) -> Cost:
        settings, train = self.settings, self.splits.train
        if stage == "tunables":
            return self.probe.asked(trials * len(train))
        if stage == "exemplars":
            has = any(True for _ in self.program.named_sub_modules(Exemplars))
            return self.probe.asked(exemplar_trials * len(train)) if has else Cost()
        first, second = divide(train, (0.5, 0.5), settings.seed)
        return estimate_prompts(
            settings.optimizer,
            self.program,
            first,
            second,
            probe=self.probe,
            preset=settings.auto,
            prompt_model=self.prompt_model,
        )


def total(rows: Sequence[Row]) -> Cost:
    return sum((cost for _, cost in rows), Cost())
