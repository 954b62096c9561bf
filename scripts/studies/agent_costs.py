"""KAIR's table of costs: agents, steps until it converges, cost units (steps x agents x price), retrieval F1.

python -m polyhop.scripts.studies.agent_costs --on musique:musique_ans_dev.jsonl.gz:indexes/musique \
    --lm openai/gpt-4o-mini --price 1 --lm openai/gpt-4o --price 10 --out DIR
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...data.benchmarks import SAMPLE
from ...data.errors import PolyhopError
from ...eval.metrics import quantity
from ...eval.questions import Questions
from ...eval.run import evaluate
from ..options import build_program
from ..source import Source, setting_of
from ..text import file_name
from ..training.command import QuestionFile, new_app, run_command

AGENTS = (1, 2, 3)


def cost_units(steps: float, agents: int, price: float) -> float:
    """The paper's unit: a step of one agent with a model of price 1."""
    return steps * agents * price


def rows(source: Source, models: Sequence[tuple[str, float]], out: Path | None) -> Iterator[list[str]]:
    """A row for each model and number of agents, with the published settings of KAIR."""
    for model, price in models:
        for agents in AGENTS:
            program = build_program("kair", source.searched, [model], retriever="bm25", settings=[f"agents={agents}"])
            folder = out and out / f"{file_name(model)}-{agents}"
            metrics: dict[str, Any] = evaluate(program, source.questions, folder, look_up=source.look_up)["metrics"]
            steps = metrics["rounds"]
            shown = [quantity(name).text(metrics.get(name)) for name in ("token_f1", "answer_f1")]
            yield [model, str(agents), f"{steps:.2f}", f"{cost_units(steps, agents, price):.2f}", *shown]


app = new_app()


@app.command()
def agent_costs(
    on: Annotated[
        str, typer.Option(metavar="DATASET:QUESTIONS[:INDEX]", help="The questions; sample: for the sample.")
    ],
    lm: Annotated[list[str] | None, typer.Option(metavar="SPEC", help="A model.  [default: lexical]")] = None,
    price: Annotated[list[float] | None, typer.Option(help="Relative price of each --lm.  [default: 1]")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only N questions.")] = None,
    seed: Annotated[int | None, typer.Option(help="With --limit: N random questions.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the runs, to resume them.")] = None,
) -> None:
    """Evaluate KAIR as published with one, two and three agents, and print a Markdown table."""
    models, prices = lm or ["lexical"], price or [1.0] * len(lm or ["lexical"])
    if len(models) != len(prices):
        raise PolyhopError("name one --price for each --lm")
    file = QuestionFile.parse(on)
    asked = Questions(
        file.dataset,
        str(file.questions) if file.questions else None,
        split="dev" if file.dataset == SAMPLE else None,
        setting=setting_of(file.dataset, None, file.index),
        limit=limit,
        seed=seed,
    )
    typer.echo("| Model | Agents | Steps | Cost units | Retrieval F1 | Answer F1 |\n|---|---:|---:|---:|---:|---:|")
    for row in rows(Source(asked, file.index), list(zip(models, prices, strict=True)), out):
        typer.echo(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    run_command(app, "polyhop.scripts.studies.agent_costs")
