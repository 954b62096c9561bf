"""`polyhop evaluate`: how good a program is on a benchmark, as a run that can be stopped, continued and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .options import (
    AdaptiveOption,
    DepthOption,
    ModelsOption,
    RetrieverOption,
    SettingsOption,
    build_program,
    label,
)
from .source import Setting, Source, setting_of
from .tracking import tracked

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..eval.questions import Questions
    from ..eval.run import Progress

_DEFAULT_PROGRAMS = ("polyhop", "prism", "naive")


def evaluate(
    dataset: Annotated[
        str,
        typer.Option(metavar="NAME", help="hotpotqa, 2wiki, musique, multihoprag, nq, squad, triviaqa, or sample."),
    ] = "sample",
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

    from ..eval.questions import Questions

    if out is not None and program and len(program) > 1:
        raise typer.BadParameter("a run is of one program: give --out once for each")
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

    progress = Console(stderr=True)
    summaries = {
        name: _run(name, built, source, progress, out, threads, timeout, max_failures, retry_failed)
        for name, built in programs.items()
    }
    _print(summaries, asked, out, as_json)
    _show_problems(summaries, asked)
    if not any(summary["counts"]["answered"] for summary in summaries.values()):
        raise PolyhopError("every question failed")


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
    with tracked(called, manifest, out, traces=True) as record, _bar(called, console) as show:
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


@contextmanager
def _bar(name: str, console: Console) -> Iterator[Callable[[Progress], None]]:
    """A progress bar with the running scores."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None, state="")

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.questions, state=_state(progress))

        yield show


def _state(progress: Progress) -> str:
    scores = {"answer F1": progress.mean("answer_f1"), "evidence F1": progress.mean("evidence_f1")}
    parts = [f"{name} {100 * value:.1f}" for name, value in scores.items() if value is not None]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.2f}")
    return ", ".join(parts)


def _print(summaries: dict[str, dict[str, Any]], questions: Questions, out: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from .tables import summary_table

    if as_json:
        one = {"dataset": questions.dataset, "split": questions.split, "programs": summaries}
        typer.echo(json.dumps(next(iter(summaries.values())) if out else one, ensure_ascii=False))
        return
    count = next(iter(summaries.values()))["counts"]["questions"]
    where = ", ".join(part for part in (questions.dataset, questions.split, questions.setting) if part)
    Console().print(summary_table(summaries, f"{where}: {count} questions"))
    if out is not None:
        typer.echo(f"{out}: summary.json, predictions.jsonl and the official files")


def _show_problems(summaries: dict[str, dict[str, Any]], questions: Questions) -> None:
    """What went wrong, on stderr."""

    def warn(text: str) -> None:
        typer.secho(text, fg=typer.colors.YELLOW, err=True)

    for problem in questions.problems:
        warn(f"skipped {problem.where}: {problem.reason}")
    if questions.skipped > len(questions.problems):
        warn(f"... {questions.skipped:,} records were skipped in all")
    counts = next(iter(summaries.values()))["counts"]
    if counts["gold_not_found"]:
        lost = f"{counts['gold_not_found']:,} of {counts['questions']:,} questions"
        warn(f"{lost} have gold passages that are not in what is searched: is it the right index?")
    for name, summary in summaries.items():
        for cause in summary["failures"]:
            warn(f"{name}: {cause['count']} failed: {cause['message']}")
