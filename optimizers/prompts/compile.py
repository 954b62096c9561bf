"""Running a prompt optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Lock
from typing import Any

import dspy
import optuna
from dspy.utils.callback import BaseCallback

from ...data.errors import PolyhopError
from ...engines.costs import Ledger
from ...engines.limits import unlimited
from ...engines.replies import explain, model_errors
from ..measure import Metric
from .registry import OPTIMIZERS, CompileJob, PromptOptimizer, find, sampled
from .student import StudentPredictor, prepared


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
    """Return a copy of a DSPy program with better prompts.

    Only instructions and demos differ; each agent keeps its model. "ensemble" and "knn" return a program around such
    copies. DSPy re-runs the last three questions of an evaluation if they take longer than two minutes.

    Args:
        name: One of `OPTIMIZERS`.
        trainset, valset: Questions to learn from and to choose by, sampled down to the sizes of the preset. Keep them
            apart from the questions that the result is scored on.
        metric: A DSPy metric, such as one of `polyhop.eval.metrics`; with a trace, it returns whether the prediction
            is good enough to learn from.
        preset: "light", "medium" or "heavy".
        numbers: Settings that differ from the preset, such as ``{"demos": 1}``.
        seed: Decides what is sampled and in which order; also the seed of optimizers that take one.
        threads: Number of parallel questions.
        prompt_model: Writes instructions; by default the program's own model, if all agents share one.
        log_dir: Where everything that DSPy prints and logs is written (``output.txt``). By default DSPy prints to the
            terminal.
        on_progress: Called with the number of LM calls so far, after each, from any thread; without cached replies.

    Raises:
        PolyhopError: unknown names or settings, missing questions, no prompt model, all before the first call; or more
            than half of the program's runs failed.
        ModelError: the prompt model fails.
        BaseException: anything that is not an `Exception`, such as a spent budget, stops the optimizer at once.
    """
    optimizer = find(name)
    settings = optimizer.settings(preset, numbers)
    student = prepared(program, brief=optimizer.changes != "instructions")
    train, val = sampled(optimizer, settings, trainset, valset, seed)
    writer = _writer(optimizer, student, prompt_model) if optimizer.needs_prompt_model else None
    job = CompileJob(student, train, val, metric, settings, seed, threads, writer)

    meter, watch = CallCounter(on_progress, dspy.settings.get("usage_tracker")), FailureWatch(student)
    context = {
        "usage_tracker": meter,
        "callbacks": [*(dspy.settings.get("callbacks") or []), watch],
        "disable_history": True,
        "max_errors": 1_000_000,  # a failed question scores 0; `watch` checks whether too many failed
    }
    try:
        with _output_in(log_dir), model_errors(), dspy.context(**context):
            compiled = optimizer.compile(job)
    except BaseException:
        meter.abandoned.set()  # stops threads that DSPy leaves behind at their next call
        raise
    watch.check()
    return optimizer.finish(program, compiled)


def check(name: str, program: dspy.Module, *, preset: str = "light", prompt_model: dspy.LM | None = None) -> None:
    """Check whether `optimize_prompts` with these arguments can start."""
    optimizer = find(name)
    optimizer.settings(preset)
    if optimizer.needs_prompt_model:
        _writer(optimizer, prepared(program), prompt_model)


def can_write(lm: Any) -> bool:
    """Whether a model can write instructions; engines that only play agents have ``writes_prompts = False``."""
    return bool(getattr(getattr(unlimited(lm), "engine", None), "writes_prompts", True))


def _writer(optimizer: PromptOptimizer, student: dspy.Module, given: dspy.LM | None) -> dspy.LM:
    """The model that writes instructions."""
    models = list({id(predictor.lm): predictor.lm for predictor in student.predictors()}.values())
    writer = given or models[0]
    if can_write(writer) and (given is not None or len(models) == 1):
        return writer
    why = "the agents have different models" if can_write(writer) else f"{writer.model} cannot write instructions"
    free = ", ".join(name for name, other in OPTIMIZERS.items() if not other.needs_prompt_model)
    raise PolyhopError(f"{optimizer.name}: {why}. Choose a prompt model (--prompt-lm), or use {free}.")


@contextmanager
def _output_in(folder: Path | None) -> Iterator[None]:
    """Write what DSPy and Optuna print and log to a file, if there is a folder for it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with (folder / "output.txt").open("a", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


class CallCounter(Ledger):
    """Counts calls and passes them on to the usage tracker that was active before."""

    def __init__(self, on_progress: Callable[[int], None], outer: Any) -> None:
        super().__init__()
        self._on_progress, self._outer = on_progress, outer
        self._count, self._counting = 0, Lock()

    def add_usage(self, lm: str, usage_entry: dict[str, Any]) -> None:
        super().add_usage(lm, usage_entry)
        if self._outer is not None:
            self._outer.add_usage(lm, usage_entry)
        with self._counting:
            self._count += 1
            self._on_progress(self._count)

    def record(self, incident: str) -> None:
        super().record(incident)
        if isinstance(self._outer, Ledger):
            self._outer.record(incident)


class FailureWatch(BaseCallback):
    """Counts failed runs of the program and failed proposals: DSPy scores runs 0 and mostly ignores proposals."""

    def __init__(self, student: dspy.Module) -> None:
        self._kind = type(student)
        self._agents = {id(predictor.run.func) for predictor in student.predictors()}
        self._active: dict[str, str] = {}
        self._started: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._last: dict[str, BaseException] = {}
        self._lock = Lock()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        what = "runs of the program" if isinstance(instance, self._kind) else ""
        if isinstance(instance, dspy.Predict) and not isinstance(instance, StudentPredictor):
            what = "" if id(instance) in self._agents else "proposals"
        if what:
            with self._lock:
                self._active[call_id] = what
                self._started[what] += 1

    def on_module_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        with self._lock:
            what = self._active.pop(call_id, None)
            if what and exception is not None:
                self._failed[what] += 1
                self._last[what] = exception

    def check(self) -> None:
        for what, failed in self._failed.items():
            if 2 * failed > self._started[what]:
                raise PolyhopError(
                    f"{failed} of {self._started[what]} {what} failed; the last one: {explain(self._last[what])}"
                ) from self._last[what]
