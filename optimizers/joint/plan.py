"""What a joint run does, and on which questions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import dspy

from ...data.errors import PolyhopError

StageName = Literal["exemplars", "prompts", "tunables"]
_UNSAVED = ("ensemble", "knn")
STAGES: tuple[StageName, ...] = get_args(StageName)


@dataclass(frozen=True)
class Plan:
    """What is tuned, how, and what counts as better.

    Attributes:
        stages: In the order in which they are played.
        rounds: How often; a round in which no stage helps is the last.
        metric: The name of a metric (`polyhop.eval.metrics`).
        cost: What a program should have less of, such as "lm_calls"; None if only the score counts.
        level: A stage's program is kept if the paired test on the validation questions gives a lower p-value.
        optimizer, preset: Of the prompts (`polyhop.optimizers.prompts`).
        trials, sampler, freeze, ranges: Of the search over the tunables (`polyhop.optimizers.tunables`).
        exemplars: The most exemplars of each number of hops that the memory takes from the train questions.

    Raises:
        PolyhopError: an unknown or missing stage, or a number that makes no sense.
    """

    stages: tuple[StageName, ...] = STAGES
    rounds: int = 1
    metric: str = "joint_f1"
    cost: str | None = None
    level: float = 0.05
    optimizer: str = "random_search"
    preset: str = "light"
    trials: int = 40
    sampler: str = "tpe"
    freeze: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    exemplars: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        for stage in self.stages:
            if stage not in STAGES:
                raise PolyhopError(f"no stage {stage!r}: choose from {', '.join(STAGES)}")
        if not self.stages or len(set(self.stages)) < len(self.stages):
            raise PolyhopError("name each stage once, and at least one")
        for name, least in (("rounds", 1), ("trials", 2), ("exemplars", 1)):
            if getattr(self, name) < least:
                raise PolyhopError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.optimizer in _UNSAVED and "prompts" in self.stages:
            raise PolyhopError(
                f"{self.optimizer} makes a program around programs, which no artifact holds: use it from Python "
                "(polyhop.optimizers.prompts), and another one here"
            )
        if not 0 < self.level <= 1:
            raise PolyhopError(f"the level of a test is above 0 and at most 1, got {self.level}")

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Splits:
    """Questions by what they are for; no question is in two of them.

    Attributes:
        train: What programs are tuned on.
        val: What decides whether a stage's program is kept.
        test: What the result is measured on; no stage sees them.

    Raises:
        PolyhopError: one is empty, or two share a question.
    """

    train: Sequence[dspy.Example]
    val: Sequence[dspy.Example]
    test: Sequence[dspy.Example]

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for name, questions in self.named.items():
            if not questions:
                raise PolyhopError(f"there are no {name} questions")
            for example in questions:
                other = seen.setdefault(example.question, name)
                if other != name:
                    raise PolyhopError(
                        f"a question is among the {other} and the {name} questions: {example.question[:80]!r}"
                    )

    @property
    def named(self) -> dict[str, Sequence[dspy.Example]]:
        return {"train": self.train, "val": self.val, "test": self.test}


def divide(questions: Sequence[dspy.Example], shares: Sequence[float], seed: int = 0) -> list[list[dspy.Example]]:
    """Questions dealt out at random, in shares that add up to 1, each in the order in which they came.

    Questions of the same words stay together.
    """
    texts = sorted({example.question for example in questions})
    random.Random(seed).shuffle(texts)
    ends, total = [], 0.0
    for share in shares:
        total += share
        ends.append(round(total * len(texts)))
    part = {text: next(n for n, end in enumerate(ends) if place < end) for place, text in enumerate(texts)}
    return [[example for example in questions if part[example.question] == n] for n in range(len(shares))]
