"""Demos from a program's own runs that ended right: what each agent was shown, and what it replied.

runs = successes(program, questions, metrics.answer_em)
TunableSearch(metric, variants=with_demos(program, runs, 8))
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import dspy

from ..engines.costs import Ledger
from ..eval.run import in_order
from .replay import Metric, Replay, shortened


class Success(NamedTuple):
    """A run that ended right: the benchmark's number of hops (0 if it tells none), and of each agent the last call."""

    hops: int
    demos: dict[str, dspy.Example]


def successes(
    program: dspy.Module, questions: Sequence[dspy.Example], metric: Metric, threads: int = 1
) -> list[Success]:
    """The runs of a program that a DSPy metric takes as good enough to learn from. What was asked before comes from
    DSPy's reply cache."""
    replay = Replay(program)

    def run(_: int, example: dspy.Example, ledger: Ledger) -> Success | None:
        done = replay.run(example)
        if done.prediction is None or not metric(example, done.prediction, []):
            return None
        demos = {
            call.key.agent: dspy.Example(**shortened(call.inputs, call.fields), **call.fields) for call in done.calls
        }
        return Success(example.get("hops") or 0, demos)

    return [success for success in in_order(run, list(enumerate(questions)), threads) if success]


def with_demos(program: dspy.Module, runs: Sequence[Success], count: int, seed: int) -> list[dspy.Module]:
    """So many copies of a program with demos from runs that ended right: of one to four runs that differ in their
    hops, beside the program's own demos and in their place."""
    copies = []
    for n in range(count):
        dice, ranked = random.Random(f"{seed} {n}"), list[tuple[int, Success]]()
        seen = Counter[int]()
        for one in dice.sample(runs, len(runs)):
            ranked.append((seen[one.hops], one))
            seen[one.hops] += 1
        chosen = [one for _, one in sorted(ranked, key=lambda pair: pair[0])[: 1 + n // 2 % 4]]
        twin: dspy.Module = program.deepcopy()
        for name, predictor in twin.named_predictors():
            own = [one.demos[name] for one in chosen if name in one.demos]
            predictor.demos = [*(predictor.demos if n % 2 == 0 or not own else []), *own]
        copies.append(twin)
    return copies
