"""`polyhop optimize`: tune a program's exemplars, prompts and tunables, under a budget; runs resume."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os.path import splitdrive
from pathlib import Path
from typing import Any

import dspy
import typer
from rich.console import Console

from ..app.named import NamedProgram, models_of
from ..app.task import Task, dataset_of, setting_of
from ..data.benchmarks import SAMPLE
from ..data.benchmarks.load import PREFIX
from ..data.errors import PolyhopError
from ..data.text import count, plain
from ..engines.budget import BudgetSpent
from ..engines.costs import FREE
from ..engines.models import SUFFIX, chosen_models, language_model, protect_cache
from ..eval.questions import Questions, is_code
from ..eval.report import between, number, p_value
from ..optimizers.forecast import Forecast, forecast
from ..optimizers.optimize import OptimizationSummary, Progress, check_settings
from ..optimizers.optimize import optimize as run
from ..optimizers.settings import Splits, divide, read_settings
from .options import Optimize, Tuning
from .results import tracked, warn_of_skipped
from .terminal import new_console, new_table, progress_bar, warn

_MIN_TRAIN = 4


def optimize(options: Optimize) -> None:
    out, chosen = options.out, options.model_dump(exclude_unset=True, exclude={"out", "config", "as_json"})
    values = read_settings(options.config) if options.config else {}
    if options.config and options.config.suffix == ".json":
        _check_names({name: value for name, value in values.items() if name not in chosen}, options.config)
    settings = Tuning.of(values | chosen, str(options.config or "the command line"))
    named = NamedProgram(settings.program)
    questions, index = _questions(settings, named)
    task = Task(questions["train"], index)
    try:
        splits, sources = _divided(questions, settings.seed)
    finally:
        for asked in questions.values():
            warn_of_skipped(asked)
    for part in splits.named.values():
        task.check_gold(part)
    prompt_model = _prompt_model(settings.prompt_lm, settings.lm) if settings.prompt_lm else None
    program = task.program(named, settings)
    with warnings.catch_warnings(action="ignore"):  # the run tells them
        check_settings(settings, program, prompt_model)
    console = Console(file=sys.stderr)  # stays on the terminal while prompt optimizers write to a file
    paid = [lm for lm in (*models_of(program), prompt_model) if lm is not None and lm.model not in FREE]
    if paid and not settings.budget:
        warn("no budget is set: --budget-calls, --budget-usd and --budget-minutes limit what the run may spend")
    expected = forecast(program, splits, settings)
    typer.echo(f"{expected}, without what is cached", err=True)
    how: dict[str, Any] = {"dataset": task.questions.dataset, "sources": sources, "look_up": task.look_up}
    shown = {**settings.model_dump(mode="json", exclude_none=True), "dataset": task.questions.dataset}
    with tracked(f"optimize {named.label}", shown, out) as record, _bar(console, expected) as show:
        try:
            summary = run(program, splits, out, settings, prompt_model=prompt_model, on_progress=show, **how)
        except BudgetSpent as spent:
            raise PolyhopError(
                f"the budget ({spent}) cannot pay for the program on {len(splits.val)} validation questions"
            ) from None
        except KeyboardInterrupt:
            typer.echo(f"{out}: run the same command again to resume.", err=True)
            raise
        record({"test": summary.test.model_dump() if summary.test else {}, "spent": summary.spent.model_dump()})
    if options.as_json:
        typer.echo(summary.model_dump_json(exclude_none=True))
    else:
        _print(summary, out, settings, named.code)


def _questions(settings: Tuning, named: NamedProgram) -> tuple[dict[str, Questions], Path | None]:
    """The questions of each split that has a file, and what is searched."""
    dataset = settings.dataset or dataset_of(settings.train or settings.val or settings.test)
    files = {name: file for name in ("train", "val", "test") if (file := getattr(settings, name))}
    sources: dict[str, dict[str, Any]] = {name: {"source": file} for name, file in files.items()}
    if dataset.casefold() == SAMPLE:
        if files:
            raise PolyhopError("the sample has its own questions: name the --dataset of your files")
        sources = {"train": {"split": "train"}, "test": {"split": "dev"}}
    elif settings.train is None:
        raise PolyhopError(f"name the training questions: --dataset {dataset} --train FILE")
    index, setting = setting_of(dataset, settings.setting, settings.index, settings.train, named)
    how: dict[str, Any] = {"setting": setting, "limit": settings.limit}
    how["seed"] = settings.seed if settings.limit else None
    return {name: Questions(dataset, **source, **how) for name, source in sources.items()}, index


def _check_names(values: Mapping[str, Any], file: Path) -> None:
    """A manifest, perhaps of another's run, must choose no code and no server."""
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and _opens(name, text):
                raise PolyhopError(f"{file} names {plain(text)}: give it as an option, --{name.replace('_', '-')}")


def _opens(name: str, value: str) -> bool:
    """Whether a setting is code, or a server, or a profile of servers and keys."""
    if name == "cluster":
        return True
    if name in ("lm", "prompt_lm"):
        return value.endswith(SUFFIX)
    is_named = is_code(value) or (":" in splitdrive(value)[1] and not value.startswith(PREFIX))
    return is_named and name not in ("optimizer", "freeze", "set")


def _divided(questions: dict[str, Questions], seed: int) -> tuple[Splits, dict[str, str]]:
    """The splits, and the file of each; those without questions of their own are parts of another."""
    parts = {name: list(asked) for name, asked in questions.items()}
    if len(parts["train"]) < _MIN_TRAIN:
        raise PolyhopError(f"{len(parts['train'])} training questions are too few: at least {_MIN_TRAIN} are needed")
    sources = {name: str(asked.source or asked.split) for name, asked in questions.items()}
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
    protect_cache()
    is_profile = name.endswith(SUFFIX)
    _, default, profile = chosen_models([name] if is_profile else models)
    if is_profile and profile and profile.lm is None:
        raise PolyhopError(f'{name} has no default model: add a line such as lm = "openai/gpt-4o-mini"')
    return language_model(default if is_profile else name, profile)


@contextmanager
def _bar(console: Console, expected: Forecast) -> Iterator[Callable[[Progress], None]]:
    """A progress bar for each part of a stage, with the minutes that all calls take at the present pace; without a
    terminal a line."""
    with progress_bar("tuning", console) as bar:
        task, parts = bar.add_task("", total=None), set[str]()

        def show(now: Progress) -> None:
            part, spent = f"{now.stage}: {now.detail.partition(',')[0]}", now.spent
            paid = f"{count(spent.calls, 'LM call')}, {spent.tokens_in + spent.tokens_out:,} tokens, ${spent.usd:.2f}"
            if spent.calls and expected.calls:
                minutes = spent.seconds / 60
                paid += f", {minutes:,.0f} of about {max(minutes, minutes * expected.calls / spent.calls):,.0f} minutes"
            if part not in parts and not console.is_terminal:
                typer.echo(f"{part}; {paid} so far", err=True)
            parts.add(part)
            bar.tasks[0].total = now.total  # `update` takes None for "as before"
            bar.update(task, completed=now.done, description=plain(f"{now.stage}: {now.detail}; {paid} so far"))

        yield show


def _print(summary: OptimizationSummary, out: Path, settings: Tuning, code: str) -> None:
    """The stages, the test, and the best program; ``code`` is the user's own one, whose code no artifact has."""
    metric, cost, test = settings.scored, settings.cost, summary.test
    headings = ("stage", "score", "gain", "p", *([cost] if cost else []), "")
    shown = new_table(f"{metric} on the validation questions", *headings)
    shown.columns[-1].justify = "left"
    for stage in summary.stages:
        shown.add_row(*map(plain, stage.row(settings)))
    new_console().print(shown)
    spent = summary.spent
    typer.echo(
        f"{summary.ended}; {count(spent.calls, 'LM call')}, {spent.tokens_in + spent.tokens_out:,} tokens, "
        f"${spent.usd:.2f} and {spent.seconds / 60:,.0f} minutes in all"
    )
    if test is None:
        typer.echo("The test questions were not used.")
    else:
        gap = test.difference
        ends = f"95% {between((gap.low, gap.high), metric, '+')}, p {p_value(test.p)}"
        typer.echo(
            f"{test.questions:,} test questions: {metric} {number(test.start.mean, metric)} at the start, "
            f"{number(test.best.mean, metric)} tuned ({number(gap.mean, metric, '+')}, {ends})"
        )
    best = f"{code}={out / 'best'}" if code else out / "best"
    typer.echo(f"{best}: the program, for --program, polyhop.load, polyhop diff and polyhop export")
