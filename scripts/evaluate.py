"""`polyhop evaluate`: run programs over a benchmark; runs can be interrupted, resumed and compared."""

from __future__ import annotations

from random import Random
from typing import Any

import dspy
import typer

from ..data.benchmarks import SAMPLE
from ..data.errors import PolyhopError
from ..data.text import plain
from ..eval.metrics import find_metric
from ..eval.questions import Questions
from ..eval.run import evaluate as run
from ..eval.settings import content
from .options import Evaluate
from .program import artifact_of, label, paying
from .source import Source, dataset_of, setting_of
from .tables import costs_table, print_summaries
from .terminal import new_console, warn

_SAMPLE = 5  # questions from which the costs of all are estimated


def evaluate(given: Evaluate) -> None:
    out = given.out
    if out is not None and len(given.program) > 1:
        raise typer.BadParameter("a run has one program: use one --out for each")
    if given.seed is not None and given.limit is None:
        raise typer.BadParameter("--seed selects the questions of --limit N: both are required")
    for name in given.metric:
        find_metric(name)
    dataset = given.dataset or dataset_of(given.questions)
    index, setting = setting_of(dataset, given.setting, given.index, given.questions, given.program)
    asked = Questions(
        dataset,
        given.questions,
        split=given.split or ("dev" if dataset.casefold() == SAMPLE else None),
        setting=setting,
        **given.model_dump(include={"limit", "seed", "strict", "aliases"}),
    )
    source = Source(asked, index)
    names = given.program or (("polyhop", "prism", "naive") if out is None else ("polyhop",))
    programs = {name: source.program(name, given) for name in names}
    for name in names:
        _warn_of_training(name, asked)
    source.check_gold(asked)
    with paying(given, None if given.dry_run else out) as pay:
        for built in programs.values():
            pay(built)
        if given.dry_run:
            _estimate(programs, source, given)
            return
        summaries = {}
        for name, built in programs.items():
            artifact = None if ":" in name else artifact_of(name)
            how = {**given.how, "file": artifact.path if artifact else None, "max_failures": given.max_failures}
            summaries[name] = source.evaluate(built, label(name), out, **how)
    print_summaries(summaries, asked, out, given.as_json)
    if not any(summary["counts"]["answered"] for summary in summaries.values()):
        raise PolyhopError("every question failed")


def _warn_of_training(name: str, questions: Questions) -> None:
    """Warn where an artifact is evaluated on what it was tuned on."""
    artifact = artifact_of(name)
    file = questions.file.name if questions.file else questions.split
    for split, known in artifact.manifest.provenance.splits.items() if artifact else ():
        if split != "test" and known.file == file:
            same = known.hash == content(questions)[1]
            which = "these questions" if same else f"{known.count:,} questions of {plain(file or '')}"
            warn(f"{name} was tuned on {which} ({split}): its scores here are not those on new questions")


def _estimate(programs: dict[str, dspy.Module], source: Source, given: Evaluate) -> None:
    """Run each program over a few random questions, and print the costs of all, extrapolated."""
    count, _ = content(source.questions)
    chosen = set(Random(0).sample(range(count), min(_SAMPLE, count)))
    few = [example for n, example in enumerate(source.questions) if n in chosen]
    for name, program in programs.items():
        how: dict[str, Any] = {each: given.how[each] for each in ("threads", "executor", "timeout")}
        made = run(program, few, look_up=source.look_up, **how)
        counts, agents = made["counts"], made["by_agent"]
        if not counts["answered"]:
            raise PolyhopError(f"all of {len(few)} questions failed: {made['failures'][0]['message']}")
        factor = count / len(few)
        expected = {agent: {key: value * factor for key, value in costs.items()} for agent, costs in agents.items()}
        title = f"{label(name)}: expected costs of {count:,} questions, from a sample of {len(few)}"
        new_console().print(costs_table(expected, title))
        cached = round(made["totals"]["lm_calls"] - sum(costs["lm_calls"] for costs in agents.values()))
        if cached > 0:
            warn(f"{cached:,} calls were answered by DSPy's cache and do not count: --no-cache asks them, too")
        seconds = made["timing"]["seconds_mean"] * count / (given.threads * (given.workers or 1))
        duration = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        typer.echo(f"about {duration}" + (f"; {counts['failed']} of {len(few)} failed" * bool(counts["failed"])))
