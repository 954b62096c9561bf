"""`polyhop optimize`: tune a program's exemplars, prompts and tunables, under a budget; runs resume."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from ..data.text import plain
from ..optimizers.settings import OptimizationSettings, read_settings
from .evaluation_view import show_skipped
from .options import build_program, label, models_of
from .source import Setting, Source, dataset_of, setting_of
from .text import new_table, warn
from .tracking import tracked

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..eval.questions import Questions
    from ..optimizers.optimize import OptimizationSummary, Progress
    from ..optimizers.settings import Splits

_MIN_TRAIN = 4


def optimize(
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder of the run. An interrupted run resumes.")],
    *,
    given: OptimizationSettings,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read settings from a TOML file or a run's manifest.json; options override."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Tune a program: its exemplars, prompts and tunables, for quality and cost, under a budget.

    Each stage tunes on the training split; its candidate replaces the incumbent only if it is better on the validation
    split, by a paired test. The result is measured on the test split. RUN/best is the tuned program, for --program
    RUN/best and polyhop.load. An interrupted run resumes with the same command.
    """
    from rich.console import Console

    from ..engines.budget import BudgetSpent
    from ..engines.costs import FREE
    from ..optimizers.optimize import check_settings
    from ..optimizers.optimize import optimize as run

    settings = given
    if config is not None:
        settings = OptimizationSettings.of(read_settings(config) | given.model_dump(exclude_unset=True), str(config))
    source, questions = _opened(settings)
    try:
        splits, sources = _divided({name: list(each) for name, each in questions.items()}, questions, settings.seed)
    finally:
        for each in questions.values():
            show_skipped(each)
    for part in splits.named.values():
        source.check_gold(part)
    prompt_model = _prompt_model(settings.prompt_lm, settings.lm) if settings.prompt_lm else None
    program = build_program(settings.program, source.searched, settings)
    source.check(settings.program, program, settings.set)
    check_settings(settings, program, prompt_model)
    console = Console(file=sys.stderr)  # stays on the terminal while prompt optimizers write to a file
    models = [*models_of(program), prompt_model]
    if all(each is None for each in settings.budget.values()) and any(
        lm is not None and lm.model not in FREE for lm in models
    ):
        warn("no budget is set: --budget-calls, --budget-usd and --budget-minutes limit what the run may spend")
    dataset = source.questions.dataset
    shown_settings = {**settings.model_dump(mode="json", exclude_none=True), "dataset": dataset}
    with (
        warnings.catch_warnings(),
        tracked(f"optimize {label(settings.program)}", shown_settings, out) as record,
        _bar(console) as show,
    ):
        warnings.showwarning = lambda message, *_: warn(str(message))
        try:
            summary = run(
                program,
                splits,
                out,
                settings,
                prompt_model=prompt_model,
                sources=sources,
                dataset=dataset,
                look_up=source.look_up,
                on_progress=show,
            )
        except BudgetSpent as spent:
            raise PolyhopError(
                f"the budget ({spent}) cannot pay for the program on {len(splits.val)} validation questions"
            ) from None
        except KeyboardInterrupt:
            typer.echo(f"{out}: run the same command again to resume.", err=True)
            raise
        record({"test": summary.test.model_dump() if summary.test else {}, "spent": asdict(summary.spent)})
    if as_json:
        typer.echo(summary.model_dump_json(exclude_none=True))
    else:
        _print(summary, out, settings)


def _opened(settings: OptimizationSettings) -> tuple[Source, dict[str, Questions]]:
    """What is searched, and the questions of each split that has a file."""
    from ..eval.questions import Questions

    dataset = settings.dataset or dataset_of(settings.train or settings.val or settings.test)
    files = {name: file for name in ("train", "val", "test") if (file := getattr(settings, name))}
    named: dict[str, dict[str, Any]] = {name: {"source": file} for name, file in files.items()}
    if dataset.casefold() == "sample":
        if files:
            raise PolyhopError("the sample has its own questions: name the --dataset of your files")
        named = {"train": {"split": "train"}, "test": {"split": "dev"}}
    elif settings.train is None:
        raise PolyhopError(f"name the training questions: --dataset {dataset} --train FILE")
    given = Setting(settings.setting) if settings.setting else None
    index, setting = setting_of(dataset, given, settings.index, settings.train, [settings.program])
    seed = settings.seed if settings.limit else None
    chosen: dict[str, Any] = {"setting": setting, "limit": settings.limit, "seed": seed}
    questions = {name: Questions(dataset, **each, **chosen) for name, each in named.items()}
    return Source(questions["train"], index), questions


def _divided(
    parts: dict[str, list[dspy.Example]], questions: dict[str, Questions], seed: int
) -> tuple[Splits, dict[str, str]]:
    """The splits, and the file of each; those without questions of their own are parts of another."""
    from ..optimizers.settings import Splits, divide

    if len(parts["train"]) < _MIN_TRAIN:
        raise PolyhopError(f"{len(parts['train'])} training questions are too few: at least {_MIN_TRAIN} are needed")
    sources = {name: str(each.source or each.split) for name, each in questions.items()}
    whole, shares = "train", {"train": 0.5, "val": 0.25, "test": 0.25}
    if "test" in parts:
        shares = {"train": 0.6, "val": 0.4}
    elif "val" in parts:
        whole, shares = "val", {"val": 0.5, "test": 0.5}
    if len(parts) < len(sources | shares):
        parts |= dict(zip(shares, divide(parts[whole], list(shares.values()), seed), strict=True))
        sources |= dict.fromkeys(shares, sources[whole])
    return Splits(**parts), sources


def _prompt_model(name: str, models: Sequence[str]) -> dspy.LM:
    """The model that writes instructions, reached as the profile of the program's models says."""
    from ..engines.models import SUFFIX, chosen_models, language_model, protect_cache

    protect_cache()
    _, default, profile = chosen_models([name] if name.endswith(SUFFIX) else models)
    if not name.endswith(SUFFIX):
        return language_model(name, profile)
    if profile and profile.lm is None:
        raise PolyhopError(f'{name} has no default model: add a line such as lm = "openai/gpt-4o-mini"')
    return language_model(default, profile)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A progress bar for each part of a stage; without a terminal a line."""
    from .bar import progress_bar

    with progress_bar("tuning", console) as bar:
        task, before = bar.add_task("", total=None), ""

        def show(each: Progress) -> None:
            nonlocal before
            part = f"{each.stage}: {each.detail.partition(',')[0]}"
            if part != before:
                before = part
                bar.reset(task)
                if not console.is_terminal:
                    typer.echo(part, err=True)
            bar.tasks[0].total = each.total  # `update` takes None for "as before"
            spent = f"{each.spent.calls:,} LM calls, ${each.spent.usd:.2f}"
            bar.update(task, completed=each.done, description=f"{each.stage}: {each.detail}; {spent} in all")

        yield show


def _print(summary: OptimizationSummary, out: Path, settings: OptimizationSettings) -> None:
    from rich.console import Console

    from ..eval.report import p_value

    metric, cost = settings.scored, settings.cost
    shown = new_table(f"{metric} on the validation questions", "stage", "score", "gain", "p", *([cost] if cost else []))
    shown.add_column("")
    for stage in summary.stages:
        cells = ["" if stage.score is None else f"{100 * stage.score:.1f}"]
        cells.append("" if stage.gain is None else f"{100 * stage.gain:+.1f}")
        cells.append("" if stage.p is None else p_value(stage.p))
        cells += ["" if stage.cost is None else f"{stage.cost:.2f}"] if cost else []
        verdict = "" if stage.stage == "start" else f"{'kept' if stage.kept else 'not kept'}: {stage.why}"
        shown.add_row(stage.stage, *cells, plain(verdict + (f" ({stage.note})" if stage.note else "")))
    console = Console(markup=False, emoji=False)
    console.print(shown)
    console.print(f"{summary.ended}; {summary.spent.calls:,} LM calls and ${summary.spent.usd:.2f} in all")
    test = summary.test
    if test is None:
        console.print("The test questions were not used.")
    else:
        gap = test.difference
        between = f"95% {100 * gap.low:+.1f} to {100 * gap.high:+.1f}, p {p_value(test.p)}"
        console.print(
            f"{test.questions:,} test questions: {metric} {100 * test.start.mean:.1f} at the start, "
            f"{100 * test.best.mean:.1f} tuned ({100 * gap.mean:+.1f}, {between})"
        )
    own = f"{settings.program.partition('=')[0]}=" if ":" in settings.program else ""
    console.print(f"{own}{out / 'best'}: the program, for --program, polyhop.load, polyhop diff and polyhop export")
