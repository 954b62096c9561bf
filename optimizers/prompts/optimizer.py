"""What a prompt optimizer is: a name, presets, an estimate, and a way to compile."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import dspy

from ..measure import Metric
from .costs import Estimate, Probe
from .student import transplanted

Changes = Literal["demos", "instructions", "both"]
Numbers = Mapping[str, int]

PRESETS = ("light", "medium", "heavy")


@dataclass(frozen=True)
class Size:
    """All that an estimate goes by.

    Attributes:
        agents: The predictors of the program.
        train, val: Questions that are used, at most those of the preset.
        numbers: The preset.
    """

    agents: int
    train: int
    val: int
    numbers: Numbers
    probe: Probe
    seed: int = 0
    prompt_model: dspy.LM | None = None


@dataclass(frozen=True)
class Task:
    """All that a compilation needs.

    Attributes:
        student: A copy of the program, which may be changed, with a model for each predictor.
        trainset, valset: The questions to use: drawn already, and in the order of the seed.
        numbers: The preset.
        prompt_model: Writes instructions; None for optimizers that need none.
        log_dir: Where an optimizer that can be resumed keeps its state.
    """

    student: dspy.Module
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    metric: Metric
    numbers: Numbers
    seed: int = 0
    threads: int = 1
    prompt_model: dspy.LM | None = None
    log_dir: Path | None = None


class PromptOptimizer(ABC):
    """One of DSPy's prompt optimizers.

    Attributes:
        name: By which it is asked for.
        about: What it does, in one line.
        changes: What of a program's prompts it changes.
        needs_prompt_model: Whether it has a model write instructions or rules.
        presets: Its settings by preset; ``train`` and ``val`` are the most questions that it uses.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    changes: ClassVar[Changes]
    needs_prompt_model: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Numbers]]

    @abstractmethod
    def estimate(self, size: Size) -> Estimate:
        """What `compile` is expected to cost."""

    @abstractmethod
    def compile(self, task: Task) -> dspy.Module:
        """The compiled student, as DSPy returns it."""

    def result(self, program: dspy.Module, compiled: dspy.Module) -> dspy.Module:
        """What is left of that: the program with new prompts."""
        return transplanted(program, compiled)


def in_presets(**numbers: tuple[int, int, int]) -> Mapping[str, Numbers]:
    """Settings by preset, from the values of each setting in light, medium and heavy."""
    return {preset: {name: values[at] for name, values in numbers.items()} for at, preset in enumerate(PRESETS)}


def merged(*several: Mapping[str, Numbers]) -> Mapping[str, Numbers]:
    """The settings of several optimizers together; of the same setting the last counts."""
    return {preset: {name: each[preset][name] for each in several for name in each[preset]} for preset in PRESETS}


def drawn(questions: Sequence[dspy.Example], most: int, seed: int) -> list[dspy.Example]:
    """At most so many of some questions, in an order that the seed decides."""
    return random.Random(seed).sample(list(questions), min(most, len(questions)))
