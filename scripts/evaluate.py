"""`polyhop evaluate`: run programs over a benchmark; runs can be interrupted, resumed and compared."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from ..eval.options import Limits, ProgramOptions, Resources
from .evaluation_view import print_summaries, show_estimate, show_problems, warn_of_training
from .options import RetryOption, TimeoutOption, artifact_of, build_program, label, paying
from .source import Setting, Source, dataset_of, setting_of

if TYPE_CHECKING:
    import dspy


_DEFAULT_PROGRAMS = ("polyhop", "prism", "naive")
_SAMPLE = 5  # questions from which the costs of all are estimated


def evaluate(
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="hotpotqa, 2wiki, musique, multihoprag, nq, squad, triviaqa, hover, frames, bamboogle, popqa, "
            "browsecomp-plus; own, for your own questions; or sample.  "
            "[default: recognized from --questions; sample without them]",
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|hub:NAME",
            help="The questions; FILE.py:NAME for a list of dspy.Example.  [default: the benchmark on the hub]",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Split of a dataset on the hub or of the sample.  [default for the sample: dev]")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Search this index (setting open); sample for the sample corpus.  [default for questions without "
            "contexts: $POLYHOP_INDEX, or that of the current folder]",
        ),
    ] = None,
    setting: Annotated[
        Setting | None,
        typer.Option(
            help="distractor: search the questions' own contexts; open: search the index.  [default: open with "
            "--index, else distractor]"
        ),
    ] = None,
    program: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|DIR",
            help="As for 'ask'; may be repeated without --out.  [default: polyhop; without --out also prism and naive]",
        ),
    ] = None,
    *,
    options: ProgramOptions,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py:NAME", help="Add a metric of your own, or any of DSPy; may be repeated."),
    ] = None,
    resources: Resources,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: N random questions instead.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a malformed record instead of skipping it.")
    ] = False,
    aliases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="2wiki: the official id_aliases.json, with more names of answers."),
    ] = None,
    timeout: TimeoutOption = None,
    max_failures: Annotated[
        int | None, typer.Option(min=1, help="Stop after N failed questions; the run can be resumed.")
    ] = None,
    retry_failed: RetryOption = False,
    limits: Limits,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Execute five questions, print the expected costs of all, and stop.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The folder of the run. An existing run with these settings is resumed."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run a program over a benchmark's questions and score it.

    With --out the run is saved: manifest, one record per question, summary, official prediction files. Run the same
    command again to resume an interrupted run. Without --out, several programs are compared.
    """
    from ..eval.metrics import find_metric
    from ..eval.questions import Questions

    if out is not None and program and len(program) > 1:
        raise typer.BadParameter("a run has one program: use one --out for each")
    if seed is not None and limit is None:
        raise typer.BadParameter("--seed selects the questions of --limit N: both are required")
    for name in metric or ():
        find_metric(name)
    dataset = dataset or dataset_of(questions)
    index, chosen = setting_of(dataset, setting, index, questions, program or ())
    asked = Questions(
        dataset,
        questions,
        split=split or ("dev" if dataset.casefold() == "sample" else None),
        setting=chosen,
        limit=limit,
        seed=seed,
        strict=strict,
        aliases=aliases,
    )
    source = Source(asked, index)
    programs = {
        name: build_program(name, source.searched, options)
        for name in program or (_DEFAULT_PROGRAMS if out is None else _DEFAULT_PROGRAMS[:1])
    }
    for name, built in programs.items():
        source.check(name, built, options.set)
        warn_of_training(name, asked)
    source.check_gold(asked)

    threads, executor, summaries = resources.threads, resources.executor, {}
    with paying(limits, None if dry_run else out) as pay:
        for built in programs.values():
            pay(built)
        if dry_run:
            _estimate({label(name): built for name, built in programs.items()}, source, resources, timeout)
            return
        for name, built in programs.items():
            summaries[name] = source.evaluate(
                built,
                label(name),
                out,
                file=artifact.path if (artifact := artifact_of(name)) and ":" not in name else None,
                timeout=timeout,
                threads=threads,
                executor=executor,
                max_failures=max_failures,
                retry_failed=retry_failed,
            )
    print_summaries(summaries, asked, out, as_json)
    show_problems(summaries, asked)
    if not any(summary["counts"]["answered"] for summary in summaries.values()):
        raise PolyhopError("every question failed")


def _estimate(programs: dict[str, dspy.Module], source: Source, resources: Resources, timeout: float | None) -> None:
    """Run each program over a few random questions, and print the expected costs of all."""
    from ..eval.run import evaluate as run
    from ..eval.settings import content

    count, _ = content(source.questions)
    chosen = set(Random(0).sample(range(count), min(_SAMPLE, count)))
    few = [example for n, example in enumerate(source.questions) if n in chosen]
    threads, executor = resources.threads, resources.executor
    parallel = threads * (resources.workers or 1)
    for name, program in programs.items():
        made = run(program, few, threads=threads, executor=executor, timeout=timeout, look_up=source.look_up)
        show_estimate(name, made, count, parallel)
