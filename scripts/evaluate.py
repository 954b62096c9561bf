"""`polyhop evaluate`: how good programs are on the sample's questions, side by side."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.errors import PolyhopError
from .options import DepthOption, IndexOption, ModelsOption, build_program, open_retriever

if TYPE_CHECKING:
    from rich.table import Table

    from ..eval.run import Result


class Split(StrEnum):
    train = "train"
    dev = "dev"
    test = "test"


def evaluate(
    dataset: Annotated[str, typer.Option(metavar="NAME", help="The questions; for now only 'sample'.")] = "sample",
    split: Annotated[Split, typer.Option(help="Which part of them.")] = Split.dev,
    program: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE", help="As for 'ask'; may be repeated.  [default: prism naive]"),
    ] = None,
    index: IndexOption = None,
    lm: ModelsOption = None,
    k: DepthOption = None,
    threads: Annotated[int, typer.Option(min=1, help="Questions asked at once; pays with remote models.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first N questions.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run programs over questions with known answers and compare their scores."""
    import json

    from rich.console import Console
    from rich.progress import track

    from ..data.sample import load_sample
    from ..eval.run import run, summarize

    if dataset != "sample":
        raise PolyhopError(f"no dataset {dataset!r}: the only one is 'sample'")
    questions = load_sample(split.value)[:limit]
    retriever = open_retriever(index)
    programs = {name: build_program(name, retriever, lm or (), k) for name in program or ("prism", "naive")}

    progress = Console(stderr=True)
    results: dict[str, list[Result]] = {}
    for name, runnable in programs.items():
        running = run(runnable, questions, threads)
        results[name] = list(
            track(running, name, len(questions), console=progress, transient=True, disable=not progress.is_terminal)
        )
    summaries = {name: summarize(rows) for name, rows in results.items()}
    if as_json:
        typer.echo(json.dumps({"dataset": dataset, "split": split.value, "programs": summaries}))
    else:
        Console().print(_table(summaries, f"{dataset}, {split.value}: {len(questions)} questions"))
    _show_failures(results)
    if all(row.failure for rows in results.values() for row in rows):
        raise PolyhopError("every question failed")


# Row heading and what a value is multiplied by. The unit of evidence scores is in their name.
_ROWS = {
    "evidence_precision": ("evidence precision (passages)", 100),
    "evidence_recall": ("evidence recall (passages)", 100),
    "evidence_f1": ("evidence F1 (passages)", 100),
    "fact_f1": ("fact F1 (sentences)", 100),
    "passage_recall@5": ("Recall@5 (passages)", 100),
    "answer_em": ("answer EM", 100),
    "answer_f1": ("answer F1", 100),
    "lm_calls": ("LM calls a question", 1),
    "searches": ("searches a question", 1),
    "seconds": ("ms a question", 1000),
    "failed": ("failed questions", 1),
}


def _table(summaries: dict[str, dict[str, float]], title: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("")
    for name in summaries:
        table.add_column(Path(name).name, justify="right")
    for key, (heading, factor) in _ROWS.items():
        digits = 0 if key == "failed" else 1
        table.add_row(heading, *(f"{factor * summary[key]:.{digits}f}" for summary in summaries.values()))
    return table


def _show_failures(results: dict[str, list[Result]]) -> None:
    """What went wrong, on stderr, the most frequent cause first."""
    from collections import Counter

    for name, rows in results.items():
        for cause, number in Counter(row.failure for row in rows if row.failure).most_common():
            typer.secho(f"{name}: {number} failed: {cause}", fg=typer.colors.YELLOW, err=True)
