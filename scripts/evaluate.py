"""`polyhop evaluate`: how good a program is on a benchmark, as a run that can be stopped, continued and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .evaluation_view import evaluation_bar, print_summaries, show_expected, show_problems
from .options import (
    AdaptiveOption,
    BudgetCallsOption,
    BudgetDollarsOption,
    BudgetMinutesOption,
    DepthOption,
    ModelsOption,
    RetrieverOption,
    SettingsOption,
    build_program,
    label,
)
from .source import Setting, Source, dataset_of, setting_of
from .tracking import tracked

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..engines.budget import Budget

_DEFAULT_PROGRAMS = ("polyhop", "prism", "naive")


def evaluate(
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="hotpotqa, 2wiki, musique, multihoprag, nq, squad, triviaqa; own, for your own questions; or sample.  "
            "[default: what --questions looks like; without them sample]",
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|hub:NAME", help="Where the questions are.  [default: the benchmark's place on the hub]"
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Of a dataset on the hub; or of the sample.  [default for the sample: dev]")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Search this index, made by 'polyhop index' (setting open).")
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
            metavar="NAME|DIR|FILE",
            help="As for 'ask'; without --out repeatable.  [default: polyhop; without --out prism and naive too]",
        ),
    ] = None,
    lm: ModelsOption = None,
    k: DepthOption = None,
    retriever: RetrieverOption = None,
    adaptive: AdaptiveOption = False,
    settings: SettingsOption = None,
    threads: Annotated[int, typer.Option(min=1, help="Questions asked at once; pays with remote models.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: ask N random questions instead.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a malformed record instead of skipping it.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds a question may take; one that takes longer has failed.")
    ] = None,
    max_failures: Annotated[
        int | None, typer.Option(min=1, help="Stop when N questions have failed; the run can be continued.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="When continuing: ask questions again that have failed.")
    ] = False,
    budget_calls: BudgetCallsOption = None,
    budget_usd: BudgetDollarsOption = None,
    budget_minutes: BudgetMinutesOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask five questions, print what all would cost, and stop.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The folder of the run. If it holds this run already, the run is continued."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run a program over a benchmark's questions and score it.

    With --out the run is kept: manifest, one line a question, summary, official prediction files. A run that was
    stopped, however, goes on when the same command is started again. Without --out programs are shown side by side.
    """
    from rich.console import Console

    from ..engines.budget import BudgetSpent
    from ..eval.questions import Questions

    if out is not None and program and len(program) > 1:
        raise typer.BadParameter("a run is of one program: give --out once for each")
    dataset = dataset or dataset_of(questions)
    if seed is not None and limit is None:
        raise typer.BadParameter("--seed draws the questions of --limit N: name both")
    names = program or (_DEFAULT_PROGRAMS if out is None else _DEFAULT_PROGRAMS[:1])
    split = split or ("dev" if dataset.casefold() == "sample" else None)
    asked = Questions(
        dataset,
        questions,
        split=split,
        setting=setting_of(dataset, setting, index),
        limit=limit,
        seed=seed,
        strict=strict,
    )
    source = Source(asked, index)
    programs = {
        name: build_program(
            name, source.searched, lm or (), k, retriever=retriever, adaptive=adaptive, settings=settings or ()
        )
        for name in names
    }
    for name, built in programs.items():
        source.check(name, built)
    source.warn_of_gold(asked)

    progress = Console(stderr=True)
    limits = {"calls": budget_calls, "usd": budget_usd, "minutes": budget_minutes}
    limited = any(limit is not None for limit in limits.values())
    budget = _budget(limits, None if dry_run else out) if limited else None
    if dry_run:
        try:
            _estimate(programs, source, threads, timeout, budget)
        except BudgetSpent as spent:
            raise PolyhopError(f"the budget ({spent}) does not suffice to ask five questions") from None
        return
    summaries = {}
    for name, built in programs.items():
        if budget is not None:
            budget.meter_program(built)
        try:
            summaries[name] = _run(name, built, source, progress, out, threads, timeout, max_failures, retry_failed)
        except BudgetSpent as spent:
            kept = f"with a larger one the same command goes on from there: {out}" if out else "--out would keep them"
            raise PolyhopError(f"the budget ({spent}) is spent before all questions are asked; {kept}") from None
        finally:
            if budget is not None:
                budget.close()
    print_summaries(summaries, asked, out, as_json)
    show_problems(summaries, asked)
    if not any(summary["counts"]["answered"] for summary in summaries.values()):
        raise PolyhopError("every question failed")


def _budget(limits: dict[str, Any], out: Path | None) -> Budget:
    """The account of a run; in its folder if it has one, so that a run that is continued has one budget."""
    from ..engines.budget import Budget
    from ..eval.folder import account

    return Budget(**limits, file=account(out) if out else None)


def _estimate(
    programs: dict[str, dspy.Module], source: Source, threads: int, timeout: float | None, budget: Budget | None
) -> None:
    """Ask a few random questions with each program, and print what all would cost."""
    from random import Random

    from ..eval.estimate import ASKED, expect
    from ..eval.manifest import content

    count, _ = content(source.questions)
    chosen = set(Random(0).sample(range(count), min(ASKED, count)))
    few = [example for n, example in enumerate(source.questions) if n in chosen]
    for name, program in programs.items():
        if budget is not None:
            budget.meter_program(program)
        expected = expect(program, few, count, threads=threads, timeout=timeout, look_up=source.look_up)
        show_expected(label(name), expected)


def _run(
    name: str,
    program: dspy.Module,
    source: Source,
    console: Console,
    out: Path | None,
    threads: int,
    timeout: float | None,
    max_failures: int | None,
    retry_failed: bool,
) -> dict[str, Any]:
    from ..eval.folder import read_lines
    from ..eval.manifest import describe
    from ..eval.run import evaluate
    from ..programs.registry import PROGRAMS

    called, file = label(name), Path(name)
    manifest = describe(
        program,
        source.questions,
        name=called,
        timeout=timeout,
        index=source.index.manifest if source.index else None,
        files={
            "questions": source.questions.file,
            "index": source.path,
            "program": None if name in PROGRAMS else file,
        },
    )
    with tracked(called, manifest, out, traces=True) as record, evaluation_bar(called, console) as show:
        try:
            summary = evaluate(
                program,
                source.questions,
                out,
                threads=threads,
                timeout=timeout,
                max_failures=max_failures,
                retry_failed=retry_failed,
                look_up=source.look_up,
                manifest=manifest,
                on_progress=show,
            )
            record({**summary["metrics"], "counts": summary["counts"], "totals": summary["totals"]})
            return summary
        except KeyboardInterrupt:
            if out is not None:
                done, count = sum(1 for _ in read_lines(out)), manifest["questions"]["count"]
                typer.echo(
                    f"{out}: {done} of {count} questions are done; the same command goes on from there.", err=True
                )
            raise
