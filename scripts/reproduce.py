"""`polyhop reproduce`: the experiments of a paper, and its published figures beside ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.errors import PolyhopError
from .options import (
    BudgetCallsOption,
    BudgetDollarsOption,
    BudgetMinutesOption,
    ModelsOption,
    RetrieverOption,
    ThreadsOption,
    build_program,
)
from .papers import PAPERS, Paper, Row
from .source import Source, setting_of
from .table import TableSetting, print_table
from .text import compact, confirm, dollars, file_name, new_table

if TYPE_CHECKING:
    import dspy

    from ..eval.questions import Questions


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"{', '.join(PAPERS)}.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the runs; interrupted runs resume.")],
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET:FILE[:INDEX]",
            help="A dataset of the paper; or sample. May be repeated.  [default: all of the paper, from the hub]",
        ),
    ] = None,
    lm: ModelsOption = None,
    retriever: RetrieverOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="N random questions of each dataset.  [default: as many as the paper]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses the questions.")] = 0,
    threads: ThreadsOption = 1,
    budget_calls: BudgetCallsOption = None,
    budget_usd: BudgetDollarsOption = None,
    budget_minutes: BudgetMinutesOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the expected cost and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Run the experiments of a paper, and print its figures beside ours.

    Each row of a table is a run in DIR, for `polyhop compare` and `polyhop report`. A model that may cost something is
    asked a few questions first, and the expected cost has to be confirmed.
    """
    from ..engines.budget import Budget, BudgetSpent
    from ..eval.folder import account

    if paper not in PAPERS:
        raise typer.BadParameter(f"{paper!r} is none of {', '.join(PAPERS)}")
    published = PAPERS[paper]
    datasets = [_Dataset(text, limit or published.questions or _QUESTIONS, seed) for text in on or published.datasets]
    cells = [_Cell(dataset, row, published, lm or (), retriever) for dataset in datasets for row in published.rows]
    free = all(cell.is_free for cell in cells)
    budget = Budget(budget_calls, budget_usd, budget_minutes, file=None if dry_run else account(out))
    for cell in cells:
        budget.meter_program(cell.program)
    try:
        if dry_run or not free:
            _confirm(cells, threads, dry_run=dry_run, yes=yes)
        if dry_run:
            return
        summaries = {(cell.dataset, cell.row.name): cell.run(out, threads) for cell in cells}
    except BudgetSpent as spent:
        raise PolyhopError(f"the budget ({spent}) is spent; resume with a larger one: {out}") from None
    finally:
        budget.close()
    for dataset in datasets:
        rows = [[row.name, *_cells(published, dataset, row, summaries[dataset, row.name])] for row in published.rows]
        title = f"{dataset.name}, {dataset.count:,} questions: ours (published)"
        print_table(title, published.metrics, rows, markdown)
    for line in _differences(published, cells, free):
        typer.echo(line)


_QUESTIONS = 500  # of each dataset, where a paper does not say


class _Dataset:
    """A dataset of the command: its questions, and what is searched."""

    def __init__(self, text: str, limit: int, seed: int) -> None:
        from ..eval.questions import Questions
        from ..eval.settings import content

        sample = text == "sample"
        given = TableSetting.parse(text) if ":" in text else None
        name, file, index = (given.dataset, given.questions, given.index) if given else (text, None, None)
        self.questions: Questions = Questions(
            name,
            str(file) if file else None,
            split="dev" if sample else None,
            setting=setting_of(name, None, index),
            limit=None if sample else limit,
            seed=None if sample else seed,
        )
        self.name = self.questions.dataset
        self.count, _ = content(self.questions)
        self.source = Source(self.questions, index)
        self.folder = "-".join(
            part for part in (self.name, file and file.name.split(".")[0], index and index.name) if part
        )


@dataclass(frozen=True)
class _Cell:
    """A row of a paper on a dataset."""

    dataset: _Dataset
    row: Row
    paper: Paper
    models: Sequence[str]
    retriever: str | None

    @cached_property
    def program(self) -> dspy.Module:
        from ..programs import PROGRAMS

        kind = PROGRAMS[self.row.program]
        settings = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in self.row.set.items()
        ]
        program = build_program(
            self.row.program,
            self.dataset.source.searched,
            self.models,
            retriever=(self.retriever or self.paper.retriever) if kind.searches else None,
            settings=settings,
        )
        self.dataset.source.check(self.row.program, program, settings)
        return program

    @property
    def is_free(self) -> bool:
        from ..engines.costs import FREE

        return all(predictor.lm.model in FREE for predictor in self.program.predictors())

    def run(self, out: Path, threads: int) -> dict[str, Any]:
        folder = out / f"{file_name(self.row.name)}-{self.dataset.folder}"
        return self.dataset.source.evaluate(self.program, self.row.name, folder, threads=threads)


def _confirm(cells: Sequence[_Cell], threads: int, *, dry_run: bool, yes: bool) -> None:
    """Ask a few questions of each row, print the expected cost, and ask whether to go on."""
    from rich.console import Console

    from ..engines.costs import sum_costs
    from ..eval.run import ESTIMATE_SAMPLE, estimate

    shown = new_table("Expected cost", "", "questions", "LM calls", "tokens", "dollars")
    costs: list[Mapping[str, float]] = []
    for cell in cells:
        count, few = cell.dataset.count, list(islice(cell.dataset.questions, ESTIMATE_SAMPLE))
        expected = estimate(cell.program, few, count, threads=threads, look_up=cell.dataset.source.look_up)
        costs.append(sum_costs(expected.by_agent.values()))
        shown.add_row(f"{cell.row.name} on {cell.dataset.name}", f"{count:,}", *_amounts(costs[-1]))
    total = sum_costs(costs)
    shown.add_row("in all", "", *_amounts(total))
    Console(file=None if dry_run else sys.stderr, markup=False, emoji=False).print(shown)
    if dry_run or yes:
        return
    confirm(total.get("lm_calls", 0), "use --limit")


def _amounts(costs: Mapping[str, float]) -> Iterator[str]:
    yield compact(costs.get("lm_calls", 0))
    yield compact(costs.get("tokens_in", 0) + costs.get("tokens_out", 0))
    yield dollars(costs["cost_usd"]) if "cost_usd" in costs else "?"


def _cells(paper: Paper, dataset: _Dataset, row: Row, summary: Mapping[str, Any]) -> Iterator[str]:
    from ..eval.metrics import quantity

    means = {**summary["metrics"], "seconds": summary["timing"]["seconds_mean"]}
    for name in paper.metrics:
        ours = quantity(name).text(means.get(name)) or "-"
        theirs = row.published.get(dataset.name, {}).get(name)
        yield f"{ours} ({theirs})" if theirs else ours


def _differences(paper: Paper, cells: Sequence[_Cell], free: bool) -> Iterator[str]:
    """What differs from the paper, a sentence per line."""
    yield f"{paper.title} (arXiv {paper.arxiv})"
    models = sorted({predictor.lm.model for cell in cells for predictor in cell.program.predictors()})
    yield f"Models: here {', '.join(models)}; published with {paper.models}."
    if free:
        yield "The embedded engine is not a language model: its figures say nothing about the paper."
    searched = sorted({"an index" if cell.dataset.source.index else "the questions' own passages" for cell in cells})
    used = cells[0].retriever or paper.retriever
    yield f"Searched: {' and '.join(searched)}, with {used}; published with {paper.retriever}."
    counts = ", ".join(
        f"{n:,} of {name}" for name, n in {cell.dataset.name: cell.dataset.count for cell in cells}.items()
    )
    theirs = (
        f"{paper.questions} of each dataset, which are not known" if paper.questions else "a number that is not known"
    )
    yield f"Questions: here {counts}; published on {theirs}."
    yield from paper.notes
