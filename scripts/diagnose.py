"""`polyhop diagnose`: which agent of a run costs the points."""

from __future__ import annotations

import json
from os.path import splitdrive
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..eval.options import Limits, ProgramOptions
from .options import build_program
from .source import Source
from .text import new_table, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy

    from ..eval.metrics import Metric
    from ..eval.settings import RunManifest
    from ..optimizers.diagnose import Diagnosis, QuestionCosts

_METRICS = ("answer_f1", "evidence_f1", "joint_f1")


def diagnose(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run of `polyhop evaluate`.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="May be repeated.  [default: answer_f1, evidence_f1, joint_f1]"),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="gold|absent|SPEC",
            help="What each agent is compared with: the reply that the annotations ask for, an empty reply, or another "
            "model in its place.",
        ),
    ] = "gold",
    lm: Annotated[
        list[str] | None, typer.Option(metavar="[ROLE=]SPEC", help="Other models than those of the run, as for 'ask'.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this agent, or group of agents. May be repeated.  [default: all]"),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME[=DIR]", help="The program, if the run has one of your own."),
    ] = None,
    questions: Annotated[
        str | None, typer.Option(metavar="FILE.py:NAME", help="The questions, if those of the run are Python code.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only N random questions of the run.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Questions executed in parallel; for remote models.")] = 1,
    rollouts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the replies that gain points of the first metric, beside those that lose them, as training "
            "data for OpenAI and TRL.",
        ),
    ] = None,
    *,
    limits: Limits,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show which agent costs the points, by repeating a run with better replies of its agents.

    An agent costs the points that the program gains if the agent gives the best reply to what it saw. Agents are
    replaced in the order of their first calls and stay replaced, so that an agent is not to blame for what those before
    it spoiled; other references than gold replace one agent at a time. "retrieval" costs what is lost because searches
    do not find the gold passages first. Replies that a change does not reach are not asked for again.
    `polyhop report RUN` shows what was found.
    """
    from random import Random

    from ..engines.budget import Budget, BudgetSpent
    from ..engines.models import language_model
    from ..eval.folder import DIAGNOSIS, MANIFEST, write_json
    from ..eval.metrics import find_metric
    from ..eval.settings import RunManifest
    from ..optimizers.diagnose import Diagnosis, roles_of, training_pairs, write_pairs
    from ..optimizers.diagnose import diagnose as repeat
    from ..optimizers.replay import REFERENCES

    metrics = [find_metric(name) for name in metric or _METRICS]
    try:
        source, repeated = _repeated(run, RunManifest.read(run), lm or (), program, questions)
    except ValueError as error:  # a setting that no run has
        raise PolyhopError(f"{run / MANIFEST} is damaged: {str(error)[:200]}") from error
    examples = list(source.questions)
    if limit and limit < len(examples):
        examples = Random(0).sample(examples, limit)
    reference = against if against in REFERENCES else language_model(against)
    among = chosen_roles(repeated, roles_of(repeated, reference), agent or ())
    budget = Budget(**limits.budget)
    budget.meter_program(repeated)
    if not isinstance(reference, str):
        reference = budget.meter(reference)
    found: list[QuestionCosts] = []
    options: dict[str, Any] = {"against": reference, "among": among, "threads": threads, "look_up": source.look_up}
    try:
        repeat(repeated, examples, metrics, **options, on_progress=found.append)
    except BudgetSpent as spent:
        if not found:
            raise PolyhopError(f"the budget ({spent}) is spent before the first question is done") from None
        warn(f"the budget ({spent}) is spent after {len(found)} of {len(examples)} questions")
    failures = [one.error for one in found if one.error]
    if len(failures) == len(found):
        raise PolyhopError(f"every question failed: {failures[0]}")
    if failures:
        warn(f"{len(failures)} of {len(found)} questions failed and do not count: {failures[0]}")
    result = Diagnosis(found, metrics, among)
    if rollouts is not None:
        count = write_pairs(rollouts, training_pairs(examples, result, metrics[0], reference == "gold"))
        typer.echo(f"{rollouts}: {count} replies that gain points, and the replies that they replace", err=True)
    record = _record(run, against, metrics, result)
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        _print(metrics, result)
    write_json(run / DIAGNOSIS, record)


def _repeated(
    run: Path, manifest: RunManifest, models: Sequence[str], own: str | None, named: str | None
) -> tuple[Source, dspy.Module]:
    """The questions of a run, what is searched, and the program as it was. The run may be somebody else's: it chooses
    no code, no profile and no server.

    Raises:
        PolyhopError: the program, the questions or the index have changed since, or must be named.
    """
    from ..eval.questions import Questions, is_code
    from ..eval.settings import RunManifest
    from ..programs import PROGRAMS
    from ..programs.tunable import tunables

    asked, was, files = manifest.questions, manifest.program, manifest.files
    if manifest.dataset is None:
        raise PolyhopError(f"{run} was not made by `polyhop evaluate`: use polyhop.optimizers.diagnose")
    for path in files.values():
        if not Path(path).is_absolute():  # such as a prebuilt index, which would be downloaded
            raise PolyhopError(f"{run} names {path!r}, which is not the path of a file: evaluate it again")
    stored, name, file = files.get("program"), was.name.partition(" (")[0], files.get("questions")
    if own is None and (":" in splitdrive(stored or "")[1] or not (stored or name in PROGRAMS)):
        raise PolyhopError(f"{run} has a program of its own ({name}): name it with --program FILE.py:NAME[=DIR]")
    if is_code(file) and named is None:
        raise PolyhopError(f"the questions of {run} are Python code: name them with --questions FILE.py:NAME")
    specs = [f"{role}={model.get('model')}" for role, model in was.lms.items() if model]
    if not models and not all(spec.partition("=")[0].isidentifier() and not spec.endswith(".toml") for spec in specs):
        raise PolyhopError(f"{run} names models that are none: name them with --lm")
    questions = Questions(
        manifest.dataset,
        named or file or (asked.source if str(asked.source).startswith("hub:") else None),
        split=asked.split,
        setting=asked.setting,  # type: ignore[arg-type]
        limit=asked.limit,
        seed=asked.seed,
    )
    source = Source(questions, Path(files["index"]) if "index" in files else None)
    searches = not stored and "search.k" in was.tunables
    retriever = was.retriever_name if searches else None
    options = ProgramOptions(lm=tuple(models or specs), retriever=retriever)
    program = build_program(own or stored or name, source.searched, options)
    for name, tunable in tunables(program).items():
        tunable.value = was.tunables.get(name, tunable.value)
    now = RunManifest.of(program, questions, index=source.index.manifest if source.index else None)
    for what, before, after in (
        ("program (prompts, exemplars or tunables)", was.state_hash, now.program.state_hash),
        ("question file", asked.hash, now.questions.hash),
        ("index", manifest.index, now.index),
    ):
        if before != after:
            raise PolyhopError(f"the {what} of {run} has changed since: evaluate it again")
    return source, program


def chosen_roles(program: dspy.Module, known: Sequence[str], names: Sequence[str]) -> list[str]:
    """The agents of some names and groups; all without a name."""
    from ..engines.models import role_groups

    groups = role_groups(program)
    if unknown := [name for name in names if name not in known and name not in groups]:
        raise PolyhopError(f"no agent {unknown[0]!r}: the agents are {', '.join([*known, *groups])}")
    named = {role for name in names for role in groups.get(name, (name,))}
    return [role for role in known if role in named or not names]


def _record(run: Path, against: str, metrics: Sequence[Metric], result: Diagnosis) -> dict[str, Any]:
    def costs(among: Sequence[QuestionCosts]) -> dict[str, Any]:
        return {
            role: {
                metric.name: found._asdict() if (found := result.costs(role, metric.name, among)) else None
                for metric in metrics
            }
            for role in result.roles
        }

    return {
        "run": str(run),
        "against": against,
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
    from rich.console import Console

    count, calls = len(result.questions), sum(one.asked for one in result.questions)
    title = f"{count} questions, {calls:,} LM calls ({calls / count:.1f} a question)"
    shown = new_table(title, "costs", "calls", *(metric.heading for metric in metrics))
    for role in dict.fromkeys([*result.ranked(metrics[0].name), *result.roles]):
        mean = sum(one.calls.get(role, 0) for one in result.questions) / count
        cells = [f"{mean:.1f}" if mean else ""]
        for metric in metrics:
            found = result.costs(role, metric.name)
            cost, low, high = (f"{100 * value:.1f}" for value in found) if found else ("?", "", "")
            cells.append(cost if low == high else f"{cost} ({low} to {high})")
        shown.add_row(role, *cells)
    Console(highlight=False, markup=False, emoji=False).print(shown)
