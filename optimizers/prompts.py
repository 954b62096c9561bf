"""Prompt optimization: two optimizers with sizes for programs of several calls per question, and any other of DSPy.

    better = optimize_prompts("credit", program, trainset, valset, metric)

    credit          replies that change the outcome, also of failed runs, for the agents that cost the most
    gepa            instructions by reflection on feedback in words (`dspy.GEPA`)
    dspy:NAME       any other of DSPy's, with its own defaults

Only instructions and demos are taken from the result. A spent budget (any `BaseException`) stops an optimizer at once.
"""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import dspy
import optuna
from dspy.teleprompt import Teleprompter

from ..data.errors import PolyhopError
from ..engines.models import roles
from ..engines.replies import explain, model_errors
from ..eval.metrics import named
from ..programs.agent import shown_demos
from ..programs.program import as_asked
from .diagnose import diagnose
from .gepa import BriefProposer, MostFaults, feedback_metric
from .replay import Metric, argued, shortened, with_stand_ins


class Size(NamedTuple):
    """At most so many questions, demos of each agent, and runs of the program (GEPA)."""

    train: int
    val: int
    demos: int
    runs: int


SIZES = {"light": Size(20, 20, 2, 100), "medium": Size(50, 40, 3, 300), "heavy": Size(100, 80, 4, 900)}

_SIZE, _SMALL = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b\b"), 8.0  # billions of parameters, in the name of a model


class Job(NamedTuple):
    """The arguments of an optimizer. The student's predictors keep their models; questions are sampled."""

    student: dspy.Module
    train: list[dspy.Example]
    val: list[dspy.Example]
    metric: Metric
    size: Size
    seed: int
    threads: int
    writer: Any  # the prompt model; None if it is not needed


def optimize_prompts(
    name: str,
    program: dspy.Module,
    trainset: Sequence[dspy.Example],
    valset: Sequence[dspy.Example],
    metric: Metric,
    *,
    auto: str = "light",
    seed: int = 0,
    threads: int = 1,
    prompt_model: dspy.LM | None = None,
    log: Path | None = None,
) -> dspy.Module:
    """A copy of a DSPy program with better prompts: only instructions and demos differ.

    Args:
        name: One of `OPTIMIZERS`, or ``dspy:NAME``.
        trainset, valset: Questions to learn from and to choose by. Keep them apart from those that the result is
            scored on.
        metric: A DSPy metric, such as one of `polyhop.eval.metrics`; with a trace, it returns whether the prediction
            is good enough to learn from.
        auto: "light", "medium" or "heavy" (`SIZES`).
        seed: Decides what is sampled and in which order; also the seed of optimizers that take one.
        prompt_model: Writes instructions; by default the program's own model, if all agents share one.
        log: Where everything that DSPy prints and logs is written, instead of the terminal.

    Raises:
        PolyhopError: an unknown optimizer, no prompt model, or half of the questions fail.
        ModelError: the prompt model fails.
    """
    check(name, program, prompt_model)
    size, dice = SIZES[auto], random.Random(seed)

    def sampled(questions: Sequence[dspy.Example], most: int) -> list[dspy.Example]:
        return [as_asked(program, example) for example in dice.sample(list(questions), min(most, len(questions)))]

    train, val = sampled(trainset, size.train), sampled(valset, size.val)
    student = with_stand_ins(program, brief=name != "gepa")
    model = student.predictors()[0].lm
    job = Job(student, train, val, metric, size, seed, threads, prompt_model or model)
    run = OPTIMIZERS.get(name) or partial(_of_dspy, _teleprompter(name))
    most_errors = max(2, (len(train) + len(val)) // 2)
    try:
        with ExitStack() as stack:
            if log is not None:
                optuna.logging.set_verbosity(optuna.logging.WARNING)
                file = stack.enter_context(log.open("a", encoding="utf-8"))
                stack.enter_context(redirect_stdout(file))
                stack.enter_context(redirect_stderr(file))
            stack.enter_context(model_errors())
            # The model is for optimizers that ask the default one.
            stack.enter_context(dspy.context(lm=model, disable_history=True, max_errors=most_errors))
            compiled = run(job)
    except PolyhopError:
        raise
    except Exception as error:  # whatever an optimizer makes of too many failures
        raise PolyhopError(f"{name}: {explain(error)}") from error
    return _transplanted(program, compiled, name)


def check(name: str, program: dspy.Module, prompt_model: dspy.LM | None = None) -> None:
    """Raise why `optimize_prompts` with these arguments cannot start."""
    models = [predictor.lm or dspy.settings.lm for predictor in program.predictors()]
    if not models:
        raise PolyhopError("the program has no agents (dspy.Predict), so there are no prompts to optimize")
    if None in models:
        raise PolyhopError("the program has no language model: call program.set_lm(...) or dspy.configure(lm=...)")
    if name == "credit":
        return
    if name != "gepa" and "prompt_model" not in inspect.signature(_teleprompter(name).__init__).parameters:
        return
    writer = prompt_model or models[0]
    if prompt_model is None and any(model is not writer for model in models):
        raise PolyhopError(f"{name}: the agents have different models: choose a prompt model (--prompt-lm)")
    if not getattr(getattr(writer, "engine", None), "writes_prompts", True):
        raise PolyhopError(
            f"{name}: {writer.model} cannot write instructions: choose a prompt model (--prompt-lm), or use credit"
        )
    size = _SIZE.search(str(writer.model).lower())
    if size and float(size[1]) < _SMALL:
        warnings.warn(
            f"{name}: {writer.model} is small to write instructions: name a larger one (--prompt-lm), or use the stage "
            "exemplars",
            stacklevel=3,
        )


# --- the optimizers --------------------------------------------------------------------------------------------------


def credit(job: Job) -> dspy.Module:
    """An agent costs the points that the program would gain if the agent gave the replies that the annotations ask for
    (`diagnose`). These replies become its demos, those that gain most first. The agents that cost the most get demos in
    turn, and keep them if the program scores better on the validation questions.
    """
    names = list(roles(job.student))
    diagnosis = diagnose(job.student, job.train, [job.metric], alone=True, among=names, threads=job.threads)
    gains: defaultdict[str, list[tuple[float, dspy.Example]]] = defaultdict(list)
    costs: defaultdict[str, float] = defaultdict(float)
    for example, one in zip(job.train, diagnosis.questions, strict=True):
        for role, calls in one.corrected.items():
            gain = one.changes[role][named(job.metric)]
            if not calls or isnan(gain):
                continue
            costs[role] += gain
            call, reply = calls[0]
            fields = argued(example, call.signature, reply)
            if gain > 0 and ("reasoning" in fields or "reasoning" not in reply):
                gains[role].append((gain, dspy.Example(**shortened(call.inputs, reply), **fields)))
    evaluate = dspy.Evaluate(devset=job.val, metric=job.metric, num_threads=job.threads)
    ranked = sorted((role for role in costs if costs[role] > 0), key=lambda role: -costs[role])
    best = evaluate(job.student).score if ranked else 0.0
    for role in ranked[: job.size.demos]:
        chosen = [demo for _, demo in sorted(gains[role], key=lambda pair: -pair[0])][: job.size.demos]
        predictors = roles(job.student)[role]
        before = [predictor.demos for predictor in predictors]
        for predictor in predictors:
            predictor.demos = [demo for demo in chosen if set(predictor.signature.input_fields) <= set(demo)]
        if (score := evaluate(job.student).score) > best:
            best = score
            continue
        for predictor, demos in zip(predictors, before, strict=True):
            predictor.demos = demos
    return job.student


def gepa(job: Job) -> dspy.Module:
    """For polyhop's metrics the feedback is that of `polyhop.eval.oracle`. GEPA gets no folder to resume from: it
    would read a pickle there, which can run anybody's code. What was asked before comes from DSPy's reply cache."""
    optimizer = dspy.GEPA(
        metric=feedback_metric(job.metric),
        reflection_lm=job.writer,
        max_metric_calls=job.size.runs,
        reflection_minibatch_size=min(3, len(job.train)),
        warn_on_score_mismatch=False,
        component_selector=MostFaults(job.student),
        instruction_proposer=BriefProposer(),
        num_threads=job.threads,
        seed=job.seed,
    )
    return optimizer.compile(job.student, trainset=job.train, valset=job.val)


OPTIMIZERS: dict[str, Callable[[Job], dspy.Module]] = {"credit": credit, "gepa": gepa}
"""The prompt optimizers by name."""


def _teleprompter(name: str) -> type[Teleprompter]:
    kind = getattr(dspy.teleprompt, name.removeprefix("dspy:"), None) if name.startswith("dspy:") else None
    if not (isinstance(kind, type) and issubclass(kind, Teleprompter)):
        raise PolyhopError(
            f"unknown prompt optimizer {name!r}: choose from {', '.join(OPTIMIZERS)}, or dspy:NAME for any of DSPy's"
        )
    return kind


def _of_dspy(kind: type[Teleprompter], job: Job) -> dspy.Module:
    """The result of any optimizer of DSPy. Their arguments differ: it gets those of a job that it takes."""
    arguments = {
        "metric": job.metric,
        "prompt_model": job.writer,
        "num_threads": job.threads,
        "seed": job.seed,
        "trainset": job.train,
        "valset": job.val,
        "eval_kwargs": {"num_threads": job.threads, "display_table": False},
    }

    def accepted(function: Any) -> dict[str, Any]:
        return {name: arguments[name] for name in inspect.signature(function).parameters if name in arguments}

    return kind(**accepted(kind.__init__)).compile(job.student, **accepted(kind.compile))


def _transplanted(program: dspy.Module, compiled: dspy.Module, optimizer: str) -> dspy.Module:
    """A copy of the program with the instructions and demos of a compiled one."""
    result, tuned = program.deepcopy(), dict(compiled.named_predictors())
    if tuned.keys() != dict(result.named_predictors()).keys():
        raise PolyhopError(f"{optimizer} returns another program, which no artifact can hold: use it from Python")
    for (name, predictor), before in zip(result.named_predictors(), program.predictors(), strict=True):
        predictor.lm = before.lm
        predictor.demos = shown_demos(before.signature, tuned[name].demos)
        instructions = tuned[name].signature.instructions
        if instructions != before.signature.instructions:
            predictor.signature = before.signature.with_instructions(instructions)
    return result
