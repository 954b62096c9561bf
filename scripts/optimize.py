"""`polyhop optimize`: tune a program's exemplars, prompts and tunables, under a budget; runs resume."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

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
    from ..optimizers.optimize import Progress
    from ..optimizers.records import OptimizationSummary
    from ..optimizers.settings import Splits

_MIN_TRAIN = 4


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of `OptimizationSettings`."""
    parameters = []
    for name, field in OptimizationSettings.model_fields.items():
        extra: Any = field.json_schema_extra or {}
        flag = extra.get("flag") or f"--{name.replace('_', '-')}"
        default, several = field.default, get_origin(field.annotation) in (tuple, dict) and name != "stages"
        types = get_args(field.annotation) or (field.annotation,)
        kind: Any = list[str] if several else next((each for each in (bool, int, float, Path) if each in types), str)
        shown = ",".join(default) if name == "stages" else default
        suffix = "" if shown in (None, (), {}, False) else f"  [default: {shown}]"
        metavar = extra.get("metavar") or (None if kind is bool else "N" if kind in (int, float) else "TEXT")
        option = typer.Option(flag, metavar=metavar, help=f"{field.description}{suffix}", show_default=False)
        optional: Any = bool if kind is bool else kind | None
        annotation = Annotated[optional, option]
        value = False if kind is bool else None
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=annotation))
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    out, *others = (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)
    command.__signature__ = signature.replace(parameters=[out, *parameters, *others])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in (out, *parameters, *others)}
    return command


@_with_settings
def optimize(
    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder of the run. An interrupted run resumes.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read settings from a TOML file or a run's manifest.json; options override."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
    **options: Any,
) -> None:
    """Tune a program: its exemplars, prompts and tunables, for quality and cost, under a budget.

    Each stage tunes on the training split; its candidate replaces the incumbent only if it is better on the validation
    split, by a paired test. The result is measured on the test split. RUN/best is the tuned program, for --program
    RUN/best and polyhop.load. An interrupted run resumes with the same command.
    """
    from rich.console import Console

    from ..engines.budget import BudgetSpent
    from ..engines.costs import FREE
    from ..eval.folder import RunError
    from ..optimizers.optimize import check_settings
    from ..optimizers.optimize import optimize as run

    settings = _settings(config, options)
    opened = _Opened(settings)
    try:
        splits = opened.splits()
    finally:
        for questions in opened.read:
            show_skipped(questions)
    for part in splits.named.values():
        opened.source.check_gold(part)
    prompt_model = _prompt_model(settings.prompt_lm, settings.lm) if settings.prompt_lm else None
    program = opened.program()
    check_settings(settings, program, prompt_model)
    console = Console(file=sys.stderr)  # stays on the terminal while prompt optimizers write to a file
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file: choose another --out.")
    models = [*models_of(program), prompt_model]
    limits = (settings.budget_calls, settings.budget_usd, settings.budget_minutes)
    if limits == (None, None, None) and any(lm is not None and lm.model not in FREE for lm in models):
        warn("no budget is set: --budget-calls, --budget-usd and --budget-minutes limit what the run may spend")
    shown_settings = {**settings.model_dump(mode="json", exclude_none=True), "dataset": opened.dataset}
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
                sources=opened.sources,
                dataset=opened.source.questions.dataset,
                look_up=opened.source.look_up,
                on_progress=show,
            )
            test = summary.test.model_dump() if summary.test else {}
            record({"test": test, "spent": asdict(summary.spent)})
        except BudgetSpent as spent:
            raise PolyhopError(
                f"the budget ({spent}) cannot pay for the program on {len(splits.val)} validation questions"
            ) from None
        except KeyboardInterrupt:
            typer.echo(f"{out}: run the same command again to resume.", err=True)
            raise
    if as_json:
        typer.echo(summary.model_dump_json(exclude_none=True))
    else:
        _print(summary, out, settings)


def _settings(config: Path | None, options: dict[str, Any]) -> OptimizationSettings:
    """The settings of a file, overridden by options."""
    given = {name: value for name, value in options.items() if value not in (None, False, [])}
    if "ranges" in given:
        given["ranges"] = dict(map(_range, given["ranges"]))
    return OptimizationSettings.of({**(read_settings(config) if config else {}), **given}, str(config or "optimize"))


class _Opened:
    """The program and the questions that settings name."""

    def __init__(self, settings: OptimizationSettings) -> None:
        from ..eval.questions import Questions

        self._settings = settings
        named = {"train": settings.train, "val": settings.val, "test": settings.test}
        self.dataset = settings.dataset or dataset_of(settings.train or settings.val or settings.test)
        self._sample = self.dataset.casefold() == "sample"
        if self._sample and any(named.values()):
            raise PolyhopError("the sample has its own questions: name the --dataset of your files")
        if not settings.train and not self._sample:
            raise PolyhopError(f"name the training questions: --dataset {self.dataset} --train FILE")
        if self._sample:
            named = {"train": "train", "test": "dev"}
        self._files = {name: file for name, file in named.items() if file}
        self.sources = dict(self._files)
        given = Setting(settings.setting) if settings.setting else None
        index, setting = setting_of(self.dataset, given, settings.index, settings.train, [settings.program])
        self.source = Source(Questions(self.dataset, settings.train, setting=setting), index)
        self.read: list[Questions] = []

    def program(self) -> dspy.Module:
        settings = self._settings
        program = build_program(
            settings.program,
            self.source.searched,
            settings.lm,
            settings.k,
            retriever=settings.retriever,
            adaptive=settings.adaptive,
            settings=settings.set,
        )
        self.source.check(settings.program, program, settings.set)
        return program

    def splits(self) -> Splits:
        """The questions. Splits without a file are parts of another one, as ``sources`` says."""
        from ..optimizers.settings import Splits, divide

        seed = self._settings.seed
        train, val, test = self._read("train"), self._read("val"), self._read("test")
        if len(train) < _MIN_TRAIN:
            raise PolyhopError(f"{len(train)} training questions are too few: at least {_MIN_TRAIN} are needed")
        source = self._files["train"]
        if not val and not test:
            self.sources |= {"val": source, "test": source}
            train, val, test = divide(train, (0.5, 0.25, 0.25), seed)
        elif not val:
            self.sources["val"] = source
            train, val = divide(train, (0.6, 0.4), seed)
        elif not test:
            self.sources["test"] = self._files["val"]
            val, test = divide(val, (0.5, 0.5), seed)
        return Splits(train, val, test)

    def _read(self, name: str) -> list[dspy.Example]:
        from ..eval.questions import Questions

        if name not in self._files:
            return []
        limit = self._settings.limit
        questions = Questions(
            self.dataset,
            None if self._sample else self._files[name],
            split=self._files[name] if self._sample else None,
            setting=self.source.questions.setting,
            limit=limit,
            seed=self._settings.seed if limit else None,
        )
        self.read.append(questions)
        return list(questions)


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


def _range(text: str) -> tuple[str, tuple[Any, ...]]:
    """``rounds=1..3``, ``stop=stable,complete`` or ``search.chain*=all``."""
    name, equals, values = text.partition("=")
    if equals and values == "all":
        return name, ()
    parts = values.split("..") if ".." in values else values.split(",")
    if not equals or not all(parts):
        raise typer.BadParameter(f"{text!r} is neither NAME=LOW..HIGH nor NAME=A,B nor NAME=all", param_hint="--range")
    return name, tuple(map(_value, parts))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A progress bar for each part of a stage; without a terminal a line."""
    from .bar import progress_bar

    with progress_bar("tuning", console) as bar:
        task = bar.add_task("", total=None)
        before = ""

        def show(each: Progress) -> None:
            nonlocal before
            part = f"{each.stage}: {each.detail.partition(',')[0]}"
            if part != before:
                before = part
                bar.reset(task)
                if not console.is_terminal:
                    typer.echo(part, err=True)
            dollars = f", ${each.spent.usd:.2f}" if each.spent.usd else ""
            bar.tasks[0].total = each.total  # `update` takes None for "as before"
            description = f"{each.stage}: {each.detail}; {each.spent.calls:,} LM calls{dollars} in all"
            bar.update(task, completed=each.done, description=description)

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
