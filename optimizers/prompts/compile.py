"""Running a prompt optimizer, and saying before what it will cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from ...data.errors import PolyhopError
from ...engines.budget import engine_of
from ...engines.lexical import LexicalEngine
from ...engines.models import explain, model_errors
from ...eval.costs import Ledger
from ...eval.simulation.engine import SimulatedEngine
from ..measure import Metric
from .combined import BetterTogether, Ensemble
from .costs import Estimate, Probe
from .few_shot import Bootstrap, BootstrapOptuna, Labeled, RandomSearch
from .instructions import Copro, Gepa, Mipro, Rules, Simba
from .nearest import Knn
from .optimizer import PRESETS, Numbers, PromptOptimizer, Size, Task, drawn
from .quiet import quiet
from .student import is_agent, prepared

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

    meter, watch = _Meter(on_progress, dspy.settings.get("usage_tracker")), _Watch(type(program))
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


class _Meter(Ledger):
    """Counts calls as they are paid, and passes them on to who counted before."""

    def __init__(self, on_progress: Callable[[int], None], outer: Any) -> None:
        super().__init__()
        self._on_progress, self._outer = on_progress, outer
        self._calls, self._lock = 0, Lock()

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        super().add_usage(lm, usage_entry)
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)
        with self._lock:
            self._calls += 1
            self._on_progress(self._calls)


class _Watch(BaseCallback):
    """Sees whether the program runs, and whether proposals are made: DSPy takes a failed run for a bad one, and mostly
    goes on without a proposal that failed."""

    def __init__(self, kind: type[dspy.Module]) -> None:
        self._kind = kind
        self._under_way: dict[str, str] = {}
        self._begun: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._last: dict[str, BaseException] = {}
        self._lock = Lock()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        what = "runs of the program" if isinstance(instance, self._kind) else ""
        if isinstance(instance, dspy.Predict) and not is_agent(instance):
            what = "proposals"
        with self._lock:
            if what:
                self._under_way[call_id] = what
                self._begun[what] += 1

    def on_module_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        with self._lock:
            what = self._under_way.pop(call_id, None)
            if what and exception is not None:
                self._failed[what] += 1
                self._last[what] = exception

    def check(self) -> None:
        """
        Raises:
            PolyhopError: more than half of the runs or of the proposals failed.
        """
        for what, failed in self._failed.items():
            if 2 * failed > self._begun[what]:
                raise PolyhopError(
                    f"{failed} of {self._begun[what]} {what} failed, so that nothing could be learned; the last one: "
                    f"{explain(self._last[what])}"
                ) from self._last[what]
