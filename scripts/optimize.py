"""`polyhop optimize`: tune exemplars, prompts and thresholds under a budget, as a run that can be stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .options import (
    AdaptiveOption,
    DepthOption,
    ModelsOption,
    RetrieverName,
    RetrieverOption,
    SettingsOption,
    build_program,
)
from .source import Setting, Source, setting_of
from .text import p_value

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from ..engines.budget import Budget
    from ..optimizers.joint.estimate import Row
    from ..optimizers.joint.plan import Plan, Splits
    from ..optimizers.joint.run import Told
    from ..optimizers.tuning import Outcome, TunableSearch

_FEWEST = 4
ASKED_FROM = 1_000
"""LM calls of a model that may cost something, from which on the run has to be confirmed."""


@dataclass(frozen=True)
class _Setup:
    """What is tuned, on what, with what: all that another process needs to make it again."""

    program: str
    dataset: str
    train: str | None
    val: str | None
    test: str | None
    index: Path | None
    setting: str | None
    models: tuple[str, ...]
    k: int | None
    retriever: RetrieverName | None
    adaptive: bool
    settings: tuple[str, ...]
    limit: int | None
    seed: int


class _Opened:
    """The questions and the program of a setup, in this process."""

    def __init__(self, setup: _Setup) -> None:
        from ..eval.questions import Questions

        self.setup = setup
        self.sample = setup.dataset.casefold() == "sample"
        if self.sample and (setup.train or setup.val or setup.test):
            raise PolyhopError("the sample brings its own questions: name the --dataset that your files are of")
        if not setup.train and not self.sample:
            raise PolyhopError(f"name the questions to tune on: --dataset {setup.dataset} --train FILE")
        named = {"train": setup.train, "val": setup.val, "test": setup.test}
        if self.sample:
            named = {"train": "train", "test": "dev"}
        self.files = {name: file for name, file in named.items() if file}
        setting = setting_of(setup.dataset, Setting(setup.setting) if setup.setting else None, setup.index)
        self.source = Source(Questions(setup.dataset, setup.train, setting=setting), setup.index)

    def program(self) -> dspy.Module:
        setup = self.setup
        program = build_program(
            setup.program,
            self.source.searched,
            setup.models,
            setup.k,
            retriever=setup.retriever,
            adaptive=setup.adaptive,
            settings=setup.settings,
        )
        self.source.check(setup.program, program)
        return program

    def splits(self) -> Splits:
        """The questions by what they are for. What is not named is dealt out of what is."""
        from ..optimizers.joint.plan import Splits, divide

        setup = self.setup
        train, val, test = self._read("train"), self._read("val"), self._read("test")
        if len(train) < _FEWEST:
            raise PolyhopError(f"{len(train)} train questions are too few: at least {_FEWEST} are needed")
        if not val and not test:
            train, val, test = divide(train, (0.5, 0.25, 0.25), setup.seed)
        elif not val:
            train, val = divide(train, (0.6, 0.4), setup.seed)
        elif not test:
            val, test = divide(val, (0.5, 0.5), setup.seed)
        return Splits(train, val, test)

    def _read(self, name: str) -> list[dspy.Example]:
        from ..eval.questions import Questions

        if name not in self.files:
            return []
        limit = self.setup.limit
        return list(
            Questions(
                self.setup.dataset,
                None if self.sample else self.files[name],
                split=self.files[name] if self.sample else None,
                setting=self.source.questions.setting,
                limit=limit,
                seed=self.setup.seed if limit else None,
            )
        )


@dataclass(frozen=True)
class _Make:
    """Makes the program of an artifact, and the train questions, in a worker's process, on the run's account."""

    setup: _Setup
    folder: Path
    budget: Budget

    def __call__(self) -> tuple[dspy.Module, Sequence[dspy.Example]]:
        from multiprocessing.util import Finalize

        from ..optimizers.artifacts import load

        opened = _Opened(self.setup)
        program = load(self.folder, program=opened.program())
        self.budget.meter_program(program)
        Finalize(None, self.budget.close, exitpriority=0)  # a worker's process ends without its exit handlers
        return program, opened.splits().train


def optimize(
    out: Annotated[
        Path,
        typer.Option(metavar="RUN", help="The folder of the run. If it holds this run already, the run is continued."),
    ],
    program: Annotated[str, typer.Option(metavar="NAME|DIR", help="As for 'ask'.")] = "polyhop",
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="hotpotqa, 2wiki, musique, multihoprag, squad, or sample.")
    ] = "sample",
    train: Annotated[str | None, typer.Option(metavar="FILE", help="Questions to tune on.")] = None,
    val: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Questions that decide what is kept.  [default: a part of --train]"),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Questions that the result is measured on, once.  [default: a part of --val or --train; of the "
            "sample: dev]",
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Search this index, made by 'polyhop index' (setting open).")
    ] = None,
    setting: Annotated[Setting | None, typer.Option(help="As for 'evaluate'.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take N random questions of each file.")] = None,
    lm: ModelsOption = None,
    prompt_lm: Annotated[
        str | None, typer.Option(metavar="SPEC", help="A model that writes instructions, for optimizers that need one.")
    ] = None,
    k: DepthOption = None,
    retriever: RetrieverOption = None,
    adaptive: AdaptiveOption = False,
    settings: SettingsOption = None,
    stages: Annotated[
        str, typer.Option(metavar="LIST", help="What is tuned, in this order.")
    ] = "exemplars,prompts,tunables",
    rounds: Annotated[int, typer.Option(min=1, help="How often the stages are played, as long as one helps.")] = 1,
    metric: Annotated[
        str, typer.Option(help="What is to be high: answer_em, answer_f1, evidence_f1, fact_f1 or joint_f1.")
    ] = "joint_f1",
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What is to be low as well: lm_calls, lm_calls_critical_path, searches, seconds, ..."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.0001, max=1, help="A change is kept if the paired test says p < LEVEL.")
    ] = 0.05,
    optimizer: Annotated[
        str, typer.Option(metavar="NAME", help="Of the prompts: labeled, bootstrap, random_search, mipro, gepa, ...")
    ] = "random_search",
    preset: Annotated[str, typer.Option(help="How much it may ask: light, medium or heavy.")] = "light",
    trials: Annotated[int, typer.Option(min=2, help="Of the search over the tunables.")] = 40,
    sampler: Annotated[str, typer.Option(help="Of that search: tpe, cmaes, random or grid.")] = "tpe",
    freeze: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tunables that keep their values, such as 'search.*'. May be repeated."),
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="NAME=LOW..HIGH", help="A narrower range, or NAME=A,B for some choices."),
    ] = None,
    exemplars: Annotated[int, typer.Option(min=1, help="The most new exemplars of each number of hops.")] = 25,
    budget_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="LM calls that may be made.")] = None,
    budget_usd: Annotated[float | None, typer.Option(min=0, metavar="X", help="Dollars that may be spent.")] = None,
    budget_minutes: Annotated[float | None, typer.Option(min=0, metavar="M", help="Minutes it may take.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Questions asked at once; pays with remote models.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that search tunables; pays with the lexical engine.")] = 1,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask five questions, print what it would cost at most, and stop.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Start without asking, whatever it costs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Tune a program: its exemplars, its prompts and its thresholds, for quality and cost, under a budget.

    Stages tune on the train questions; what they come to is kept if it is better on the validation questions, by a
    paired test; the result is measured on the test questions. RUN/best is the tuned program, for --program RUN/best and
    polyhop.load. A run that was stopped, however, goes on when the same command is started again.
    """
    from rich.console import Console

    from ..engines.budget import Budget, BudgetSpent
    from ..engines.models import language_model
    from ..eval.folder import RunError
    from ..optimizers.joint.checkpoint import account
    from ..optimizers.joint.checks import check_plan
    from ..optimizers.joint.plan import Plan
    from ..optimizers.joint.run import optimize as run

    setup = _Setup(
        program,
        dataset,
        train,
        val,
        test,
        index,
        setting.value if setting else None,
        tuple(lm or ()),
        k,
        retriever,
        adaptive,
        tuple(settings or ()),
        limit,
        seed,
    )
    plan = Plan(
        stages=tuple(stage.strip() for stage in stages.split(",")),  # type: ignore[misc]  # the plan looks at them
        rounds=rounds,
        metric=metric,
        cost=cost,
        level=level,
        optimizer=optimizer,
        preset=preset,
        trials=trials,
        sampler=sampler,
        freeze=tuple(freeze or ()),
        ranges=dict(map(_range, range_ or ())),
        exemplars=exemplars,
        seed=seed,
    )
    opened = _Opened(setup)
    splits = opened.splits()
    prompt_model = language_model(prompt_lm) if prompt_lm else None
    check_plan(plan, opened.program(), prompt_model)
    console = Console(stderr=True)
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file: name another --out.")
    budget = Budget(budget_calls, budget_usd, budget_minutes, file=None if dry_run else account(out))
    try:
        if dry_run or not (out / "stages.jsonl").exists():
            estimating = opened.program()
            budget.meter_program(estimating)
            told = Console() if dry_run else console
            _estimate(estimating, splits, plan, prompt_model, threads, told, dry_run, yes, budget_calls)
    except BudgetSpent as spent:
        raise PolyhopError(f"the budget ({spent}) does not suffice to ask five questions") from None
    if dry_run:
        return
    with _bar(console) as show:
        try:
            summary = run(
                opened.program,
                splits,
                out,
                plan=plan,
                budget=budget,
                threads=threads,
                prompt_model=prompt_model,
                workers=_workers(setup, jobs) if jobs > 1 else None,
                sources=opened.files,
                dataset=opened.source.questions.dataset,
                look_up=opened.source.look_up,
                on_told=show,
            )
        except BudgetSpent as spent:
            raise PolyhopError(
                f"the budget ({spent}) does not suffice to measure the program on the {len(splits.val)} validation "
                "questions: --dry-run says what is needed"
            ) from None
        except KeyboardInterrupt:
            typer.echo(f"{out}: the same command goes on from here.", err=True)
            raise
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        _print(summary, out, plan)


def _range(text: str) -> tuple[str, tuple[Any, ...]]:
    """``rounds=1..3`` or ``stop=stable,complete``."""
    name, equals, values = text.partition("=")
    parts = values.split("..") if ".." in values else values.split(",")
    if not equals or not all(parts):
        raise typer.BadParameter(f"{text!r} is neither NAME=LOW..HIGH nor NAME=A,B", param_hint="--range")
    return name, tuple(map(_value, parts))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _workers(setup: _Setup, jobs: int) -> Callable[[TunableSearch, Path, Budget], Outcome | None]:
    def search(search: TunableSearch, folder: Path, budget: Budget) -> Outcome | None:
        from ..optimizers.tuning import tune_in_processes

        tune_in_processes(_Make(setup, folder, budget), search, jobs)
        return search.outcome

    return search


# --- before ----------------------------------------------------------------------------------------------------------


def _estimate(
    program: dspy.Module,
    splits: Splits,
    plan: Plan,
    prompt_model: dspy.LM | None,
    threads: int,
    console: Console,
    dry_run: bool,
    yes: bool,
    budget: int | None,
) -> None:
    """Show what the run will cost, where it may cost something, and ask whether to go on."""
    from ..engines.prices import FREE
    from ..optimizers.joint.checks import metric_named
    from ..optimizers.joint.estimate import estimate, total
    from ..optimizers.prompts import Probe

    models = [predictor.lm for predictor in program.predictors()]
    free = all(lm is None or lm.model in FREE for lm in [*models, prompt_model])
    if free and not dry_run:
        return
    probe = Probe.of(program, splits.val, metric_named(plan.metric), threads=threads)
    rows = estimate(program, splits, plan, probe, prompt_model)
    _show(rows, console, splits)
    calls = round(total(rows).lm_calls)
    if dry_run or yes or min(calls, budget or calls) < ASKED_FROM:
        return
    if not sys.stdin.isatty():
        raise PolyhopError(f"this may take {calls:,} LM calls: say --yes, or set --budget-calls")
    typer.confirm("Start?", abort=True)


def _show(rows: Sequence[Row], console: Console, splits: Splits) -> None:
    from rich.table import Table

    from ..optimizers.joint.estimate import total

    counts = ", ".join(f"{len(part):,} {name}" for name, part in splits.named.items())
    table = Table(title=f"At most, over {counts} questions", title_justify="left", header_style="bold")
    table.add_column("")
    for name in ("LM calls", "tokens in", "tokens out", "dollars"):
        table.add_column(name, justify="right")
    for name, cost in [*rows, ("in all", total(rows))]:
        dollars = "?" if cost.cost_usd is None else f"{cost.cost_usd:,.2f}"
        table.add_row(name, *(f"{value:,.0f}" for value in (cost.lm_calls, cost.tokens_in, cost.tokens_out)), dollars)
    console.print(table)


# --- while it runs ---------------------------------------------------------------------------------------------------


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Told], None]]:
    """A bar for each thing that a stage does; without a terminal a line."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[stage]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, stage="")
        before = ""

        def show(told: Told) -> None:
            nonlocal before
            report = told.report
            what = f"{told.stage}: {report.detail.partition(',')[0]}"
            if what != before:
                before = what
                bar.reset(task)
                if not console.is_terminal:
                    typer.echo(what, err=True)
            detail = f"{report.detail}, {told.calls:,} LM calls in all"
            bar.update(task, completed=report.done, total=report.total, stage=told.stage, description=detail)

        yield show


# --- after -----------------------------------------------------------------------------------------------------------


def _print(summary: dict[str, Any], out: Path, plan: Plan) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{plan.metric} on the validation questions", title_justify="left", header_style="bold")
    table.add_column("stage")
    for name in ("score", "gain", "p", *([plan.cost] if plan.cost else [])):
        table.add_column(name, justify="right")
    table.add_column("")
    for line in summary["stages"]:
        cells = [f"{100 * line['score']:.1f}" if "score" in line else ""]
        cells += [f"{100 * line['gain']:+.1f}", p_value(line["p"])] if "gain" in line else ["", ""]
        cells += [f"{line['cost']:.2f}" if line.get("cost") is not None else ""] if plan.cost else []
        word = "" if line["stage"] == "start" else f"{'kept' if line['kept'] else 'not kept'}: {line['why']}"
        note = f" ({line['note']})" if line.get("note") else ""
        table.add_row(f"{line['stage']}", *cells, word + note)
    console = Console()
    console.print(table)
    console.print(f"{summary['ended']}; {summary['spent']['calls']:,} LM calls, ${summary['spent']['usd']:.2f}")
    test = summary["test"]
    if test is None:
        console.print("The test questions were not asked.")
    else:
        start, best, gap = test["start"], test["best"], test["difference"]
        between = f"95% {100 * gap['low']:+.1f} to {100 * gap['high']:+.1f}, p {p_value(test['p'])}"
        console.print(
            f"test questions: {plan.metric} {100 * start['mean']:.1f} at the start, {100 * best['mean']:.1f} tuned "
            f"({100 * gap['mean']:+.1f}, {between})"
        )
    console.print(f"{out / 'best'}: the program, for --program, polyhop.load, polyhop diff and polyhop export")
