"""Running a prompt optimizer, and saying before what it will cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy

from ...data.errors import PolyhopError
from ...engines.connection import engine_of
from ...engines.lexical import LexicalEngine
from ...engines.models import model_errors
from ...scripts.studies.simulation.engine import SimulatedEngine
from ..measure import Metric
from .combined import BetterTogether, Ensemble
from .costs import Estimate, Probe
from .few_shot import Bootstrap, BootstrapOptuna, Labeled, RandomSearch
from .instructions import Copro, Mipro
from .nearest import Knn
from .optimizer import PRESETS, Numbers, PromptOptimizer, Size, Task, drawn
from .quiet import quiet
from .reflection import Gepa, Rules, Simba
from .student import prepared
from .watch import Meter, Watch

OPTIMIZERS: Mapping[str, PromptOptimizer] = {
    optimizer.name: optimizer
    for optimizer in (
        Labeled(), Bootstrap(), RandomSearch(), BootstrapOptuna(), Knn(), Ensemble(),
        Copro(), Mipro(), Simba(), Gepa(), Rules(), BetterTogether(),
    )
}  # fmt: skip
"""Every prompt optimizer by name: first those that need no prompt model."""


def optimize_prompts(
    name: str,
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    metric: Metric,
    *,
    preset: str = "light",
    numbers: Mapping[str, int] | None = None,
    seed: int = 0,
    threads: int = 1,
    prompt_model: dspy.LM | None = None,
    log_dir: Path | None = None,
    on_progress: Callable[[int], None] = lambda calls: None,
) -> dspy.Module:
    """Give a copy of a program better prompts.

    Works on any DSPy program. The program itself is not changed, and of its copy nothing but instructions and demos;
    each agent keeps its model. "ensemble" and "knn" return a program around such copies.

    Args:
        name: One of `OPTIMIZERS`.
        trainset, valset: Questions to learn from and to choose by; of each at most as many as the preset says are
            drawn. They must have no question in common with what the result is scored on.
        metric: A DSPy metric, best one of `polyhop.eval.objectives`: called with a trace it must tell whether a
            prediction is good enough to learn from.
        preset: "light", "medium" or "heavy".
        numbers: What is different from the preset, such as ``{"demos": 1}``.
        seed: Decides what is drawn and in which order, and is the optimizer's own where it takes one.
        threads: Questions asked at the same time.
        prompt_model: Writes instructions; by default the program's own model, if it has one for all agents.
        log_dir: Where "gepa" keeps its state and continues.
        on_progress: Told the calls that were made so far, after each, from any thread. Replies from a cache are none.

    Raises:
        PolyhopError: unknown names or numbers, missing questions, no model that can write where one is needed: before
            anything runs; or more than half of the runs of the program failed.
        ModelError: the prompt model fails, or does not answer what it is asked.
        BaseException: what is no `Exception`, such as a spent budget, comes through at once from any thread.
    """
    optimizer, chosen = _chosen(name, preset, numbers)
    student = prepared(program, brief=optimizer.changes != "instructions")
    train, val = _questions(optimizer, chosen, trainset, valset, seed)
    writer = _writer(optimizer, student, prompt_model) if optimizer.needs_prompt_model else None
    task = Task(student, train, val, metric, chosen, seed, threads, writer, log_dir)

    meter, watch = Meter(on_progress, dspy.settings.get("usage_tracker")), Watch(type(program))
    settings = {
        "usage_tracker": meter,
        "callbacks": [*(dspy.settings.get("callbacks") or []), watch],
        "disable_history": True,
        # A failed question counts as wrong, as it does in an evaluation; whether too many failed is seen at the end.
        "max_errors": 1_000_000,
    }
    try:
        with quiet(), model_errors(), dspy.context(**settings):
            compiled = optimizer.compile(task)
    except BaseException:
        meter.abandoned.set()  # threads that DSPy leaves behind stop at their next call
        raise
    watch.check()
    return optimizer.result(program, compiled)


def estimate(
    name: str,
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    *,
    probe: Probe,
    preset: str = "light",
    numbers: Mapping[str, int] | None = None,
    seed: int = 0,
    prompt_model: dspy.LM | None = None,
) -> Estimate:
    """What `optimize_prompts` with these arguments is expected to cost. Asks nothing.

    It counts what DSPy's loops do with the calls that the program made in the probe. Where a loop ends at enough
    successes, the expected number of questions at the probe's share of successes counts. Prompts that get better or
    worse may make more or fewer calls.

    Raises:
        PolyhopError: as `optimize_prompts` for unknown names and missing questions.
    """
    optimizer, chosen = _chosen(name, preset, numbers)
    train, val = _questions(optimizer, chosen, trainset, valset, seed)
    agents = len(program.predictors())
    return optimizer.estimate(Size(agents, len(train), len(val), chosen, probe, seed, prompt_model))


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
    """Rows of a table, as text: optimizer, preset, calls, tokens in, tokens out, dollars ("?" if not known)."""
    rows = []
    for name in names:
        for preset in presets:
            cost = estimate(name, program, trainset, valset, probe=probe, preset=preset, prompt_model=prompt_model)
            dollars = "?" if cost.cost_usd is None else f"{cost.cost_usd:,.2f}"
            calls = f"{cost.lm_calls:,}" + (f", then {cost.later:,.1f} a question" if cost.later else "")
            rows.append((name, preset, calls, f"{cost.tokens_in:,}", f"{cost.tokens_out:,}", dollars))
    return rows


def check(name: str, program: dspy.Module, *, preset: str = "light", prompt_model: dspy.LM | None = None) -> None:
    """Whether `optimize_prompts` with these arguments can start.

    Raises:
        PolyhopError: an unknown name, or no model that can write where one is needed.
    """
    optimizer, _ = _chosen(name, preset, None)
    if optimizer.needs_prompt_model:
        _writer(optimizer, prepared(program), prompt_model)


def can_write(lm: Any) -> bool:
    """Whether a language model can write instructions; the embedded and the simulated one only play agents."""
    return not isinstance(engine_of(lm), LexicalEngine | SimulatedEngine)


def _chosen(name: str, preset: str, numbers: Mapping[str, int] | None) -> tuple[PromptOptimizer, Numbers]:
    if name not in OPTIMIZERS:
        raise PolyhopError(f"no prompt optimizer {name!r}: choose {', '.join(OPTIMIZERS)}")
    optimizer = OPTIMIZERS[name]
    if preset not in optimizer.presets:
        raise PolyhopError(f"no preset {preset!r}: choose {', '.join(optimizer.presets)}")
    chosen = optimizer.presets[preset]
    for number, value in (numbers or {}).items():
        if number not in chosen or value < 1:
            raise PolyhopError(f"{name} has no {number}={value}: its numbers, from 1, are {', '.join(chosen)}")
    return optimizer, {**chosen, **(numbers or {})}


def _questions(
    optimizer: PromptOptimizer, numbers: Numbers, trainset: Sequence[dspy.Example], valset: Sequence[dspy.Example],
    seed: int,
) -> tuple[list[dspy.Example], list[dspy.Example]]:  # fmt: skip
    """The questions that are used, in the order in which they are."""
    if not trainset or (numbers["val"] and not valset):
        raise PolyhopError(f"{optimizer.name} needs questions to {'learn from' if not trainset else 'choose by'}")
    return drawn(trainset, numbers["train"], seed), drawn(valset, numbers["val"], seed)


def _writer(optimizer: PromptOptimizer, student: dspy.Module, given: dspy.LM | None) -> dspy.LM:
    """The model that writes instructions."""
    models = list({id(predictor.lm): predictor.lm for predictor in student.predictors()}.values())
    writer = given or models[0]
    if not can_write(writer) or (given is None and len(models) > 1):
        free = ", ".join(name for name, other in OPTIMIZERS.items() if not other.needs_prompt_model)
        why = (
            f"{writer.model} cannot write instructions"
            if not can_write(writer)
            else "the agents have different models, and none of them is said to write instructions"
        )
        raise PolyhopError(f"{optimizer.name}: {why}. Name a prompt model (--prompt-lm), or use {free}.")
    return writer
