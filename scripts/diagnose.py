"""`polyhop diagnose`: which agent of a run costs the points."""

from __future__ import annotations

from os.path import splitdrive
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .options import BudgetCallsOption, ModelsOption, ThreadsOption, build_program
from .source import Source
from .text import warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import dspy

    from ..eval.metrics import Metric
    from ..eval.questions import Questions
    from ..eval.settings import RunManifest
    from ..eval.statistics import Interval
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
    lm: ModelsOption = None,
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
    threads: ThreadsOption = 1,
    rollouts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the replies that gain points of the first metric, beside those that lose them, as training "
            "data for OpenAI and TRL.",
        ),
    ] = None,
    budget_calls: BudgetCallsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show which agent costs the points, by repeating a run with better replies of its agents.

    An agent costs the points that the program gains if the agent gives the best reply to what it saw. Agents are
    replaced in the order of their first calls and stay replaced, so that an agent is not to blame for what those before
    it spoiled; other references than gold replace one agent at a time. "retrieval" costs what is lost because searches
    do not find the gold passages first. Replies that a change does not reach are not asked for again.
    `polyhop report RUN` shows what was found.
    """
    from ..engines.budget import Budget, BudgetSpent
    from ..engines.models import language_model
    from ..eval.folder import DIAGNOSIS
    from ..eval.metrics import find_metric
    from ..eval.official import write_object
    from ..optimizers.diagnose import Diagnosis, roles_of, training_pairs, write_pairs
    from ..optimizers.diagnose import diagnose as repeat
    from ..optimizers.replay import REFERENCES

    metrics = [find_metric(name) for name in metric or _METRICS]
    asked, source, repeated = repeated_run(run, lm or (), program, questions)
    examples = _chosen(asked, limit)
    reference = against if against in REFERENCES else language_model(against)
    among = chosen_roles(repeated, roles_of(repeated, reference), agent or ())
    budget = Budget(calls=budget_calls)
    budget.meter_program(repeated)
    if not isinstance(reference, str):
        reference = budget.meter(reference)
    found: list[QuestionCosts] = []
    try:
        repeat(
            repeated,
            [example for _, example in examples],
            metrics,
            against=reference,
            among=among,
            threads=threads,
            look_up=source.look_up,
            on_progress=found.append,
        )
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
        order = {str(example.get("id") or example.question): example for _, example in examples}
        pairs = training_pairs([order[one.id] for one in found], result, metrics[0], reference == "gold")
        count = write_pairs(rollouts, pairs)
        typer.echo(f"{rollouts}: {count} replies that gain points, and the replies that they replace", err=True)
    record = _record(run, against, metrics, result)
    try:
        write_object(run / DIAGNOSIS, record)
    except OSError as error:
        warn(f"{run / DIAGNOSIS} cannot be written ({error.strerror}): reports will not show this diagnosis")
    if as_json:
        import json

        typer.echo(json.dumps(record, indent=2))
    else:
        _print(metrics, result)


def repeated_run(
    run: Path, models: Sequence[str], own: str | None, named: str | None = None
) -> tuple[Questions, Source, dspy.Module]:
    """The questions of a run, what is searched, and the program as it was.

    Args:
        models: Instead of those of the run.
        own: The program, if it is one of your own.
        named: The questions, if they are code of your own.

    Raises:
        PolyhopError: the folder is not that of a run, or the program, the questions or the index have changed since.
    """
    from ..eval.folder import MANIFEST
    from ..eval.settings import RunManifest

    try:
        return _repeated(run, RunManifest.read(run), models, own, named)
    except ValueError as error:  # a setting that no run has
        raise PolyhopError(f"{run / MANIFEST} is damaged: {str(error)[:200]}") from error


def _repeated(
    run: Path, manifest: RunManifest, models: Sequence[str], own: str | None, named: str | None
) -> tuple[Questions, Source, dspy.Module]:
    from ..eval.questions import Questions, is_code
    from ..eval.settings import RunManifest
    from ..programs.tunable import tunables

    if manifest.simulation:
        raise PolyhopError(f"{run} is a simulation")
    asked, was = manifest.questions, manifest.program
    if manifest.dataset is None:
        raise PolyhopError(f"{run} was not made by `polyhop evaluate`: use polyhop.optimizers.diagnose")
    for path in manifest.files.values():
        if not Path(path).is_absolute():  # such as a prebuilt index, which would be downloaded
            raise PolyhopError(f"{run} names {path!r}, which is not the path of a file: evaluate it again")
    file = manifest.files.get("questions")
    if is_code(file) and named is None:  # which a run of somebody else's must not choose
        raise PolyhopError(f"the questions of {run} are Python code: name them with --questions FILE.py:NAME")
    questions = Questions(
        manifest.dataset,
        named or file or (asked.source if str(asked.source).startswith("hub:") else None),
        split=asked.split,
        setting=asked.setting,  # type: ignore[arg-type]
        limit=asked.limit,
        seed=asked.seed,
    )
    index = manifest.files.get("index")
    source = Source(questions, Path(index) if index else None)
    searches = "program" not in manifest.files and "search.k" in was.tunables
    program = build_program(
        own or _program(run, manifest),
        source.searched,
        models or _models(run, was.lms),
        retriever=was.retriever_name if searches else None,
    )
    known = tunables(program)
    for name, value in was.tunables.items():
        if name in known:
            known[name].value = value
    now = RunManifest.of(program, questions, index=source.index.manifest if source.index else None)
    for what, before, after in (
        ("program (prompts, exemplars or tunables)", was.state_hash, now.program.state_hash),
        ("question file", asked.hash, now.questions.hash),
        ("index", manifest.index, now.index),
    ):
        if before != after:
            raise PolyhopError(f"the {what} of {run} has changed since: evaluate it again")
    return questions, source, program


def chosen_roles(program: dspy.Module, known: Sequence[str], names: Sequence[str]) -> list[str]:
    """The agents of some names and groups; all without a name."""
    from ..engines.models import role_groups

    groups = role_groups(program)
    if unknown := [name for name in names if name not in known and name not in groups]:
        raise PolyhopError(f"no agent {unknown[0]!r}: the agents are {', '.join([*known, *groups])}")
    named = {role for name in names for role in groups.get(name, (name,))}
    return [role for role in known if role in named or not names]


def _program(run: Path, manifest: RunManifest) -> str:
    """The program of a run, if it needs no code that the run names: the run may be somebody else's."""
    from ..programs import PROGRAMS

    stored, name = manifest.files.get("program"), manifest.program.name.partition(" (")[0]
    if ":" in splitdrive(stored or "")[1] or not (stored or name in PROGRAMS):
        raise PolyhopError(f"{run} has a program of its own ({name}): name it with --program FILE.py:NAME[=DIR]")
    return stored or name


def _models(run: Path, lms: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """The models of a run; not a profile, which names keys and addresses."""
    specs = [f"{role}={model.get('model')}" for role, model in lms.items() if model]
    if any(not role.isidentifier() for role in lms) or any(spec.endswith(".toml") for spec in specs):
        raise PolyhopError(f"{run} names models that are none: name them with --lm")
    return specs


def _chosen(questions: Questions, limit: int | None) -> list[tuple[int, dspy.Example]]:
    from random import Random

    numbered = list(enumerate(questions))
    return sorted(Random(0).sample(numbered, limit)) if limit and limit < len(numbered) else numbered


def _record(run: Path, against: str, metrics: Sequence[Metric], result: Diagnosis) -> dict[str, Any]:
    def costs(among: Any = None) -> dict[str, Any]:
        return {
            role: {
                metric.name: found._asdict() if (found := result.costs(role, metric.name, among)) else None
                for metric in metrics
            }
            for role in result.roles
        }

    groups = {
        f"by_{name}": {key: costs(among) for key, among in result.groups(name).items()} for name in ("hops", "kind")
    }
    return {
        "run": str(run),
        "against": against,
        "questions": len(result.questions),
        "failed": sum(bool(one.error) for one in result.questions),
        "lm_calls": sum(one.asked for one in result.questions),
        "asked": {role: sum(role in one.changes for one in result.questions) for role in result.roles},
        "costs": costs(),
        **groups,
    }


def _print(metrics: Sequence[Metric], result: Diagnosis) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    count, main = len(result.questions), metrics[0]
    calls = sum(one.asked for one in result.questions)
    console.print(f"{count} questions, {calls:,} LM calls ({calls / max(1, count):.1f} a question)")
    shown = Table("costs", "calls", *(metric.heading for metric in metrics), header_style="bold")
    order = [*result.ranked(main.name), *(role for role in result.roles if role not in result.ranked(main.name))]
    for role in order:
        mean = sum(one.calls.get(role, 0) for one in result.questions) / max(1, count)
        cells = [_text(result.costs(role, metric.name)) for metric in metrics]
        shown.add_row(role, f"{mean:.1f}" if mean else "", *cells)
    console.print(shown)
    for name in ("hops", "kind"):
        groups = result.groups(name)
        if len(groups) < 2:
            continue
        by_group = Table(f"{main.heading}, by {name}", *(f"{key} ({len(among)})" for key, among in groups.items()))
        for role in order:
            by_group.add_row(role, *(_text(result.costs(role, main.name, among)) for among in groups.values()))
        console.print(by_group)


def _text(found: Interval | None) -> str:
    """A cost in points with its interval; "?" if it is not known."""
    if found is None or found.low == found.high:
        return "?" if found is None else f"{100 * found.mean:.1f}"
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * value for value in found))
