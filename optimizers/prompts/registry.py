"""The registry of prompt optimizers: what each does, its presets, and an upper bound of its cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dspy

from ...data.errors import PolyhopError
from ...engines.costs import Ledger
from ..measure import Metric, measure
from .student import transplanted

Changes = Literal["demos", "instructions", "both"]
Numbers = Mapping[str, int]
Bound = Callable[[Numbers], float]
"""A count from the settings of an optimizer, with the sizes of the splits (``train``, ``val``) and of the program
(``agents``)."""

PRESETS = ("light", "medium", "heavy")
OPTIMIZERS: dict[str, PromptOptimizer] = {}
"""Every prompt optimizer by name; those that need no prompt model first."""

_PROPOSAL = {"prompt_tokens": 2000, "completion_tokens": 400}
"""Assumed size of a call of the prompt model."""


@dataclass(frozen=True)
class CompileJob:
    """The arguments of an optimizer: the student has a model for each predictor; questions are sampled and in the order
    of the seed.
    """

    student: dspy.Module
    trainset: list[dspy.Example]
    valset: list[dspy.Example]
    metric: Metric
    numbers: Numbers
    seed: int = 0
    threads: int = 1
    prompt_model: dspy.LM | None = None


@dataclass(frozen=True)
class PromptOptimizer:
    """One of DSPy's prompt optimizers.

    Attributes:
        about: What it does, in one line.
        changes: What it changes in a program's prompts.
        presets: Its settings by preset; ``train`` and ``val`` are the largest numbers of questions it uses.
        compile: Runs it and returns the compiled student.
        runs: At most how often it runs the program.
        proposals: At most how often it calls the prompt model; None if it needs none.
        later: How many times the LM calls of the program its result needs for a question.
        finish: Makes the result from the program and the compiled student.
    """

    name: str
    about: str
    changes: Changes
    presets: Mapping[str, Numbers]
    compile: Callable[[CompileJob], dspy.Module]
    runs: Bound
    proposals: Bound | None = None
    later: Bound | None = None
    finish: Callable[[dspy.Module, dspy.Module], dspy.Module] = transplanted

    @property
    def needs_prompt_model(self) -> bool:
        return self.proposals is not None

    def settings(self, preset: str, numbers: Mapping[str, int] | None = None) -> Numbers:
        """The settings of a preset, updated with ``numbers``."""
        if preset not in self.presets:
            raise PolyhopError(f"unknown preset {preset!r}: choose from {', '.join(self.presets)}")
        known = self.presets[preset]
        for name, value in (numbers or {}).items():
            if name not in known or value < 1:
                raise PolyhopError(f"{self.name} has no setting {name}={value}: it has {', '.join(known)}, each >= 1")
        return {**known, **(numbers or {})}


def register(
    name: str, about: str, changes: Changes, presets: Mapping[str, Numbers], **options: Any
) -> Callable[[Callable[[CompileJob], Any]], Callable[[CompileJob], Any]]:
    """Register the decorated function as the prompt optimizer ``name``; ``options`` are attributes of
    `PromptOptimizer`."""

    def add(compile: Callable[[CompileJob], Any]) -> Callable[[CompileJob], Any]:
        OPTIMIZERS[name] = PromptOptimizer(name, about, changes, presets, compile, **options)
        return compile

    return add


def by_preset(**settings: tuple[int, int, int]) -> Mapping[str, Numbers]:
    """Presets from the values of each setting in light, medium and heavy."""
    return {preset: {name: values[n] for name, values in settings.items()} for n, preset in enumerate(PRESETS)}


def find(name: str) -> PromptOptimizer:
    if name not in OPTIMIZERS:
        raise PolyhopError(f"unknown prompt optimizer {name!r}: choose from {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]


def sampled(
    optimizer: PromptOptimizer,
    numbers: Numbers,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    seed: int,
) -> tuple[list[dspy.Example], list[dspy.Example]]:
    """The train and validation questions that an optimizer uses, in the order of the seed."""
    if not trainset or (numbers["val"] and not valset):
        raise PolyhopError(f"{optimizer.name} needs {'validation' if trainset else 'train'} questions")
    used = ((trainset, numbers["train"]), (valset, numbers["val"]))
    train, val = (random.Random(seed).sample(list(all_), min(most, len(all_))) for all_, most in used)
    return train, val


# --- cost ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """LM calls, tokens and dollars; ``cost_usd`` is None if a price is unknown."""

    lm_calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    cost_usd: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Cost(
            self.lm_calls + other.lm_calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def __mul__(self, times: float) -> Cost:
        if not times:
            return Cost()
        dollars = None if self.cost_usd is None else self.cost_usd * times
        return Cost(self.lm_calls * times, self.tokens_in * times, self.tokens_out * times, dollars)


@dataclass(frozen=True)
class Probe:
    """The mean cost of a question, measured on ``questions`` of them."""

    question: Cost
    questions: int

    @classmethod
    def of(cls, program: dspy.Module, questions: Sequence[dspy.Example], *, most: int = 5, threads: int = 1) -> Probe:
        """Run the program on the first questions, at most ``most``."""
        asked = list(questions)[:most]
        measured = measure(program, asked, lambda example, prediction: 0.0, threads=threads)
        if len(measured.failures) == len(asked):
            raise PolyhopError(f"the program failed on every question: {next(iter(measured.failures.values()))}")
        priced = all("cost_usd" in costs for costs in measured.costs.values())
        calls, given, taken = (measured.cost(name) for name in ("lm_calls", "tokens_in", "tokens_out"))
        return cls(Cost(calls, given, taken, measured.cost("cost_usd") if priced else None), len(asked))

    def asked(self, questions: float) -> Cost:
        """The cost of so many questions."""
        return self.question * questions


def estimate(
    name: str,
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    *,
    probe: Probe,
    preset: str = "light",
    numbers: Mapping[str, int] | None = None,
    prompt_model: dspy.LM | None = None,
) -> Cost:
    """An upper bound of the LM calls of `optimize_prompts` with these arguments, without a cache. Makes no call.

    It is the largest number of program runs that the settings allow, times the calls that the program makes for a
    question now, plus the calls of the prompt model. Runs that stop at enough successes need fewer. Tokens and dollars
    assume prompts as long as now; demos make them longer.
    """
    optimizer = find(name)
    settings = optimizer.settings(preset, numbers)
    train, val = sampled(optimizer, settings, trainset, valset, 0)
    sizes = {**settings, "train": len(train), "val": len(val), "agents": len(program.predictors())}
    proposals = optimizer.proposals(sizes) if optimizer.proposals else 0
    return probe.asked(optimizer.runs(sizes)) + _proposal(prompt_model) * proposals


def estimates(
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    *,
    probe: Probe,
    names: Iterable[str] = OPTIMIZERS,
    presets: Iterable[str] = PRESETS,
    prompt_model: dspy.LM | None = None,
) -> list[tuple[str, str, str, str, str, str]]:
    """Rows of a table, as text: optimizer, preset, LM calls, tokens in, tokens out, dollars ("?" if unknown)."""
    rows = []
    for name in names:
        later = OPTIMIZERS[name].later
        for preset in presets:
            cost = estimate(name, program, trainset, valset, probe=probe, preset=preset, prompt_model=prompt_model)
            calls = f"{cost.lm_calls:,.0f}"
            if later is not None:
                calls += f", then {probe.question.lm_calls * later(OPTIMIZERS[name].presets[preset]):,.1f} a question"
            dollars = "?" if cost.cost_usd is None else f"{cost.cost_usd:,.2f}"
            rows.append((name, preset, calls, f"{cost.tokens_in:,.0f}", f"{cost.tokens_out:,.0f}", dollars))
    return rows


def _proposal(prompt_model: dspy.LM | None) -> Cost:
    """A call of the prompt model, at its own price."""
    dollars = None
    if prompt_model is not None:
        ledger = Ledger()
        ledger.add_usage(prompt_model.model, _PROPOSAL)
        dollars = ledger.costs().get("cost_usd")
    return Cost(1, _PROPOSAL["prompt_tokens"], _PROPOSAL["completion_tokens"], dollars)
