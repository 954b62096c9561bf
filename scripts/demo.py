"""`polyhop demo`: indexes the sample corpus and answers questions over it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import dspy
import typer

from ..data.lucene.bm25 import BM25Index
from ..data.sample import CORPUS, load_sample
from ..data.text import count
from ..engines.costs import Ledger
from ..engines.replies import model_errors
from ..programs.program import ask
from .index import index
from .options import Demo, Index
from .program import build_program
from .view import print_answer

# Two bridges, a comparison, a yes/no question over three hops, and one that is too hard for the lexical engine.
QUESTIONS = ("arts-008", "science-022", "arts-037", "science-050", "places-034")


def demo(given: Demo) -> None:
    with TemporaryDirectory(prefix="polyhop-demo-") as folder:
        out = Path(folder) / "index"
        typer.secho("1. Index the sample corpus.\n", dim=True)
        index(Index(names=(str(CORPUS),), out=out))

        typer.secho("\n2. Answer five of its 165 questions (✓ marks gold evidence).\n", dim=True)
        program = build_program("polyhop", BM25Index(out), given)
        questions = {question.id: question for question in load_sample()}
        for question in (questions[id] for id in QUESTIONS):
            typer.secho(f"{question.kind.replace('_', '/')}, {count(question.hops, 'hop')}", dim=True)
            start, ledger = perf_counter(), Ledger()
            with model_errors(), dspy.context(usage_tracker=ledger):
                prediction = ask(program, question)
            print_answer(question.question, prediction, perf_counter() - start, ledger, gold=question)
    typer.secho(
        "3. Next: polyhop index FILES --out DIR, polyhop ask 'QUESTION' --index DIR --trace, polyhop evaluate", dim=True
    )
