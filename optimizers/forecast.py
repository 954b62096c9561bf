"""What a run of `optimize` will ask, told before anything is sent.

forecast(program, splits, settings)  # Forecast(runs=412, calls=1030, tokens=1_190_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import dspy
from pydantic import BaseModel, ConfigDict

from ..data.text import count
from ..engines.models import language_model
from ..eval.metrics import find_metric
from .prompts import SIZES
from .replay import scored_runs
from .settings import OptimizationSettings, Splits
from .stages import EXEMPLAR_TRIALS
from .tunables import FEW

_ASKED = 3  # questions


class Forecast(BaseModel):
    """An estimate: how often the program is run on a question, its LM calls, and their tokens (read and written). Calls
    and tokens are 0 where the keyless engine cannot play the program, or none are counted."""

    model_config = ConfigDict(frozen=True)

    runs: int
    calls: int = 0
    tokens: int = 0

    def __str__(self) -> str:
        calls = f", {count(self.calls, 'LM call')}, {self.tokens:,} tokens" if self.calls else ""
        return f"about {count(self.runs, 'question')} to answer{calls}"


def forecast(program: dspy.Module, splits: Splits, settings: OptimizationSettings) -> Forecast:
    """What a run will ask, without what is in DSPy's cache. Calls and tokens are those of the keyless engine on three
    validation questions; a model may need more rounds."""
    train, val = len(splits.train), len(splits.val)
    runs = val + 2 * len(splits.test)
    for stage in settings.stages:
        runs += val
        if stage == "prompts":
            size = SIZES[settings.auto]
            runs += size.runs if settings.optimizer == "gepa" else size.train + size.val * (1 + size.demos)
        else:
            trials = EXEMPLAR_TRIALS if stage == "exemplars" else settings.trials
            runs += train + (trials - 1) * (train if settings.cost else _of_trial(train))
    twin = program.deepcopy()
    twin.set_lm(language_model("lexical"))
    metric = find_metric(settings.metric)
    asked = [run.costs for run in scored_runs(twin, splits.val[:_ASKED], metric, range(min(_ASKED, val)))]
    calls, tokens = (
        fmean(sum(costs.get(name, 0.0) for name in names) for costs in asked)
        for names in (("lm_calls",), ("tokens_in", "tokens_out"))
    )
    return Forecast(runs=runs, calls=round(runs * calls), tokens=round(runs * tokens))


def _of_trial(train: int) -> int:
    """The questions of a trial on average, if half of the trials go on at `FEW`, a quarter at twice as many, and so
    on."""
    ends: Sequence[int] = [0, *(FEW << n for n in range(32) if FEW << n < train), train]
    return round(sum((end - start) / (1 << n) for n, (start, end) in enumerate(pairwise(ends))))
