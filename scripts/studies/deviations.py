"""What each deviation from a paper is worth: the default program with one published value at a time, on the embedded
engine.

python -m polyhop.scripts.studies.deviations --on musique:musique_ans_dev.jsonl.gz --limit 150
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ...eval.metrics import quantity
from ...eval.run import evaluate
from ...programs import PROGRAMS
from ..options import build_program
from ..table import TableSetting
from ..training.command import new_app, run_command

METRICS = ("evidence_precision", "evidence_recall", "evidence_f1", "answer_f1", "lm_calls", "tokens")

app = new_app()


@app.command()
def measure_deviations(
    on: Annotated[list[str], typer.Option(metavar="DATASET:FILE[:INDEX]", help="May be repeated.")],
    program: Annotated[list[str] | None, typer.Option(metavar="NAME", help="[default: all of papers]")] = None,
    limit: Annotated[int, typer.Option(min=1, help="N random questions of each.")] = 150,
    seed: Annotated[int, typer.Option(help="Chooses them.")] = 0,
) -> None:
    """Print one Markdown table for each set: the default, one published value at a time, and all with BM25."""
    names = program or [name for name, kind in PROGRAMS.items() if kind.paper_retriever]
    for text in on:
        given = TableSetting.parse(text)
        source = given.source(limit, seed)
        questions = source.questions
        labels = (quantity(name).label for name in METRICS)
        typer.echo(f"| {given.name}, {len(list(questions))} questions | {' | '.join(labels)} |")
        typer.echo(f"|---|{'---:|' * len(METRICS)}")
        for name in names:
            for label, options in _variants(name):
                built = build_program(name, source.searched, **options)
                means = evaluate(built, questions, look_up=source.look_up)["metrics"]
                typer.echo(f"| {label} | {' | '.join(quantity(each).text(means.get(each)) for each in METRICS)} |")
        typer.echo()


def _variants(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield f"`{name}`", {}
    for tunable, value in PROGRAMS[name].paper_values.items():
        text = f"{tunable}={value if isinstance(value, str) else json.dumps(value)}"
        yield f"`{text}`", {"settings": [text]}
    yield "with BM25", {"retriever": "bm25"}
    yield "all of them", {"retriever": "bm25", "preset": "paper"}


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.studies.deviations")
