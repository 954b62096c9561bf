"""`polyhop diagnose`: which agent of a run costs the points."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os.path import splitdrive
from pathlib import Path
from random import Random
from typing import Any

import dspy
import typer

from ..app.named import NamedProgram
from ..app.options import ProgramOptions
from ..app.task import Task
from ..data.errors import PolyhopError
from ..data.retrievers import OTHER, described_name
from ..engines.budget import Budget, BudgetSpent
from ..engines.models import language_model, role_groups
from ..eval.folder import DIAGNOSIS, MANIFEST, RunManifest, read_manifest, write_json
from ..eval.metrics import Metric, find_metric
from ..eval.questions import Questions, is_code
from ..optimizers.diagnose import Diagnosis, QuestionCosts, Reference, roles_of, training_pairs, write_pairs
from ..optimizers.diagnose import diagnose as repeat
from ..programs import PROGRAMS
from ..programs.tunable import tunables
from .options import Diagnose
from .terminal import new_console, new_table, warn

_METRICS = ("answer_f1", "evidence_f1", "joint_f1")


def diagnose(options: Diagnose) -> None:
    metrics = [find_metric(name) for name in options.metric or _METRICS]
    try:
        task, program = _repeated(options, read_manifest(options.run))
    except ValueError as error:  # a setting that no run has
        raise PolyhopError(f"{options.run / MANIFEST} is damaged: {str(error)[:200]}") from error
    examples = list(task.questions)
    if options.limit and options.limit < len(examples):
        examples = Random(0).sample(examples, options.limit)
    reference: Reference = "gold" if options.against == "gold" else language_model(options.against)
    roles, groups = roles_of(program, reference), role_groups(program)
    if unknown := [name for name in options.agent if name not in roles and name not in groups]:
        raise PolyhopError(f"no agent {unknown[0]!r}: the agents are {', '.join([*roles, *groups])}")
    wanted = {role for name in options.agent for role in groups.get(name, (name,))}
    among = [role for role in roles if role in wanted or not options.agent]
    budget = Budget(**options.budget)
    budget.meter_program(program)
    if not isinstance(reference, str):
        reference = budget.meter(reference)
    done: list[QuestionCosts] = []
    how: dict[str, Any] = {"against": reference, "among": among, "threads": options.threads, "look_up": task.look_up}
    try:
        repeat(program, examples, metrics, **how, on_progress=done.append)
    except BudgetSpent as spent:
        if not done:
            raise PolyhopError(f"the budget ({spent}) is spent before the first question is done") from None
        warn(f"the budget ({spent}) is spent after {len(done)} of {len(examples)} questions")
    failures = [one.error for one in done if one.error]
    if len(failures) == len(done):
        raise PolyhopError(f"every question failed: {failures[0]}")
    if failures:
        warn(f"{len(failures)} of {len(done)} questions failed and do not count: {failures[0]}")
    result = Diagnosis(done, metrics, among)
    if options.rollouts is not None:
        count = write_pairs(options.rollouts, training_pairs(examples, result, metrics[0], reference == "gold"))
        typer.echo(f"{options.rollouts}: {count} replies that gain points, and the replies that they replace", err=True)
    record = _record(options, metrics, result)
    if options.as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        _print(metrics, result)
    write_json(options.run / DIAGNOSIS, record)


def _repeated(options: Diagnose, manifest: RunManifest) -> tuple[Task, dspy.Module]:
    """The questions of a run, what is searched, and the program as it was. The run may be somebody else's: it chooses
    no code, no profile and no server.

    Raises:
        PolyhopError: the program, the questions or the index have changed since, or must be named.
    """
    asked, was, files = manifest.questions, manifest.program, manifest.files
    stored, name, file = files.get("program"), was.name.partition(" (")[0], files.get("questions")
    specs = [f"{role}={model.get('model')}" for role, model in was.lms.items() if model]
    are_models = all(spec.partition("=")[0].isidentifier() and not spec.endswith(".toml") for spec in specs)
    relative = next((path for path in files.values() if not Path(path).is_absolute()), None)
    is_own = ":" in splitdrive(stored or "")[1] or not (stored or name in PROGRAMS)
    for wrong, why in (
        (manifest.dataset is None, "was not made by `polyhop evaluate`"),
        # such as a prebuilt index, which would be downloaded
        (relative, f"names {relative!r}, which is not the path of a file: evaluate it again"),
        (options.program is None and is_own, f"has a program of its own ({name}): name it with --program FILE.py:NAME"),
        (
            is_code(file) and not options.questions,
            "has Python code for questions: name them with --questions FILE.py:NAME",
        ),
        (not options.lm and not are_models, "names models that are none: name them with --lm"),
    ):
        if wrong:
            raise PolyhopError(f"{options.run} {why}")
    questions = Questions(
        str(manifest.dataset),
        options.questions or file or (asked.source if str(asked.source).startswith("hub:") else None),
        split=asked.split,
        setting=asked.setting,  # type: ignore[arg-type]
        limit=asked.limit,
        seed=asked.seed,
        aliases=Path(files["aliases"]) if "aliases" in files else None,
    )
    task = Task(questions, Path(files["index"]) if "index" in files else None)
    retriever = described_name(was.retriever) if not stored and "search.k" in was.tunables else None
    if retriever == OTHER:
        raise PolyhopError(f"{options.run} has a retriever of its own ({was.retriever}), which a replay cannot open")
    as_was = ProgramOptions(lm=options.lm or tuple(specs), retriever=retriever)
    program = NamedProgram(options.program or stored or name).build(task.source, as_was)
    for parameter, tunable in tunables(program).items():
        tunable.value = was.tunables.get(parameter, tunable.value)
    now = RunManifest.of(program, questions, index=task.index.manifest if task.index else None)
    for what, before, after in (
        ("program (prompts, exemplars or tunables)", was.state_hash, now.program.state_hash),
        ("question file", asked.hash, now.questions.hash),
        ("index", manifest.index, now.index),
    ):
        if before != after:
            raise PolyhopError(f"the {what} of {options.run} has changed since: evaluate it again")
    return task, program


def _record(options: Diagnose, metrics: Sequence[Metric], result: Diagnosis) -> dict[str, Any]:
    def costs(among: Sequence[QuestionCosts]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for role in result.roles:
            intervals = {metric.name: result.costs(role, metric.name, among) for metric in metrics}
            table[role] = {name: cost._asdict() if cost else None for name, cost in intervals.items()}
        return table

    return {
        "run": str(options.run),
        "against": options.against,
        "questions": len(result.questions),
        "failed": sum(bool(one.error) for one in result.questions),
        "lm_calls": sum(one.asked for one in result.questions),
        "asked": {role: sum(role in one.changes for one in result.questions) for role in result.roles},
        "costs": costs(result.questions),
        "by_hops": {name: costs(group) for name, group in result.groups("hops").items()},
        "by_kind": {name: costs(group) for name, group in result.groups("kind").items()},
    }


def _print(metrics: Sequence[Metric], result: Diagnosis) -> None:
    """The costs of each agent in points with their intervals, the highest first; "?" where they are not known."""
    count, calls = len(result.questions), sum(one.asked for one in result.questions)
    title = f"{count} questions, {calls:,} LM calls ({calls / count:.1f} a question)"
    shown = new_table(title, "costs", "calls", *(metric.heading for metric in metrics))
    for role in dict.fromkeys([*result.ranked(metrics[0].name), *result.roles]):
        mean = sum(one.calls.get(role, 0) for one in result.questions) / count
        cells = [f"{mean:.1f}" if mean else ""]
        for metric in metrics:
            interval = result.costs(role, metric.name)
            cost, low, high = map(metric.text, interval) if interval else ("?", "", "")
            cells.append(cost if low == high else f"{cost} ({low} to {high})")
        shown.add_row(role, *cells)
    new_console().print(shown)
