"""`polyhop optimize`: tune exemplars, prompts and thresholds under a budget, as a run that can be stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .evaluation_view import show_skipped
from .joint_view import joint_bar, print_summary
from .options import (
    AdaptiveOption,
    BudgetCallsOption,
    BudgetDollarsOption,
    BudgetMinutesOption,
    DepthOption,
    ModelsOption,
    RetrieverOption,
    SettingsOption,
    label,
)
from .source import Setting, dataset_of
from .spending import confirm_cost
from .text import count
from .tracking import tracked
from .tuned import Opened, Setup

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy


def optimize(
    out: Annotated[
        Path,
        typer.Option(metavar="RUN", help="The folder of the run. If it holds this run already, the run is continued."),
    ],
    program: Annotated[str, typer.Option(metavar="NAME|DIR", help="As for 'ask'.")] = "polyhop",
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="hotpotqa, 2wiki, musique, multihoprag, squad; own, for your own questions; or sample.  "
            "[default: what --train looks like; without it sample]",
        ),
    ] = None,
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
        str | None,
        typer.Option(
            metavar="SPEC",
            help="A model that writes instructions, for optimizers that need one; of a profile (FILE.toml) the one for "
            "everything.",
        ),
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
    budget_calls: BudgetCallsOption = None,
    budget_usd: BudgetDollarsOption = None,
    budget_minutes: BudgetMinutesOption = None,
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
    from ..engines.costs import FREE
    from ..eval.folder import RunError, account
    from ..optimizers.joint.checks import check_plan
    from ..optimizers.joint.plan import Plan
    from ..optimizers.joint.run import optimize as run

    setup = Setup(
        program,
        dataset or dataset_of(train or val or test),
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
    opened = Opened(setup)
    try:
        splits = opened.splits()
    finally:
        for asked in opened.read:
            show_skipped(asked)
    for questions in splits.named.values():
        opened.source.warn_of_gold(questions)
    prompt_model = _prompt_model(prompt_lm, lm or ()) if prompt_lm else None
    check_plan(plan, opened.program(), prompt_model)
    console = Console(file=sys.stderr)  # the terminal, also while prompt optimizers print to a file
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file: name another --out.")
    budget = Budget(budget_calls, budget_usd, budget_minutes, file=None if dry_run else account(out))
    if dry_run or not (out / "stages.jsonl").exists():
        told = Console() if dry_run else console
        estimated = (opened.program(), splits, plan, budget, prompt_model, told)
        confirm_cost(*estimated, threads=threads, dry_run=dry_run, yes=yes)
    if dry_run:
        return
    if 2.0 * 0.5 ** len(splits.val) >= level:  # all of them better, by the two-sided permutation test
        few = count(len(splits.val), "validation question")
        typer.secho(f"{few} can never show p < {level:g}: nothing will be kept. Bring more.", fg="yellow", err=True)
    if jobs > 1 and any(each.lm is not None and each.lm.model not in FREE for each in opened.program().predictors()):
        told_jobs = f"each of {jobs} processes keeps the limits of the profile by itself: divide them by {jobs}"
        typer.secho(told_jobs, fg=typer.colors.YELLOW, err=True)
    settings_told = {"program": program, "dataset": setup.dataset, **plan.to_record()}
    with tracked(f"optimize {label(program)}", settings_told, out) as record, joint_bar(console) as show:
        try:
            summary = run(
                opened.program,
                splits,
                out,
                plan=plan,
                budget=budget,
                threads=threads,
                prompt_model=prompt_model,
                jobs=jobs,
                sources=opened.sources,
                dataset=opened.source.questions.dataset,
                look_up=opened.source.look_up,
                on_told=show,
            )
            record({"test": {**(summary["test"] or {}), "runs": {}}, "spent": summary["spent"]})
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
        print_summary(summary, out, plan)


def _prompt_model(name: str, models: Sequence[str]) -> dspy.LM:
    """The model that writes instructions, reached as the profile says that the program's models have."""
    from ..engines.models import chosen_models, language_model
    from ..engines.profile import SUFFIX

    _, default, profile = chosen_models([name] if name.endswith(SUFFIX) else models)
    if not name.endswith(SUFFIX):
        return language_model(name, profile)
    if profile and profile.lm is None:
        raise PolyhopError(f'{name} has no model for everything: give it a line such as lm = "openai/gpt-4o-mini"')
    return language_model(default, profile)


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
