"""`polyhop demo`: what polyhop finds without a language model, and what a real one makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from ..app.named import NamedProgram
from ..data.lucene.bm25 import BM25Index
from ..data.sample import CORPUS, REPLIES, load_sample
from ..data.text import count
from ..engines.recorded import about
from ..programs.trace import describe
from .index import index
from .options import Demo, Index
from .view import answered, print_answer, print_chain

# Two bridges, a comparison, a question for yes or no over three hops, and a chain of three.
QUESTIONS = ("arts-008", "science-022", "arts-037", "science-050", "places-034")


def demo(options: Demo) -> None:
    with TemporaryDirectory(prefix="polyhop-demo-") as folder:
        out = Path(folder) / "index"
        typer.secho("1. Index the sample corpus.\n", dim=True)
        index(Index(names=(str(CORPUS),), out=out))

        typer.secho(
            "\n2. The chain of evidence for five questions, without a language model (✓ marks gold).\n", dim=True
        )
        _run(BM25Index(out), options.model_copy(update={"lm": ("lexical",), "record": None}), print_chain)

        model = ", ".join(options.lm) or f"{about(REPLIES)}; its replies were recorded"
        typer.secho(f"3. The same questions, answered by a language model: {model}.\n", dim=True)
        options = options if options.lm else options.model_copy(update={"lm": (f"recorded:{REPLIES}",)})
        _run(BM25Index(out), options, print_answer)
    typer.secho(
        "4. Next: polyhop demo --lm MODEL; polyhop index FILES --out DIR; polyhop ask 'QUESTION' --index DIR",
        dim=True,
    )


def _run(source: BM25Index, options: Demo, show: Callable[..., Any]) -> None:
    """Ask the questions, and show how a model's answers came about."""
    program = NamedProgram("polyhop").build(source, options)
    questions = {question.id: question for question in load_sample()}
    for question in (questions[id] for id in QUESTIONS):
        typer.secho(f"{question.kind.replace('_', '/')}, {count(question.hops, 'hop')}", dim=True)
        done = answered(program, question)
        show(done, gold=question)
        if show is print_answer:
            typer.secho(f"  {' → '.join(describe(step)[0] for step in done.prediction.trace.steps)}\n", dim=True)
