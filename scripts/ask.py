"""`polyhop ask`: one question, its answer, and the evidence for it."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import (
    AdaptiveOption,
    DepthOption,
    IndexOption,
    ModelsOption,
    RetrieverOption,
    SettingsOption,
    build_program,
    open_source,
)


def ask(
    question: Annotated[str, typer.Argument(help="A question in plain words.", show_default=False)],
    index: IndexOption = None,
    program: Annotated[
        str, typer.Option(metavar="NAME|DIR|FILE", help="A program, an artifact (DIR), or a saved state (FILE.json).")
    ] = "polyhop",
    lm: ModelsOption = None,
    k: DepthOption = None,
    retriever: RetrieverOption = None,
    adaptive: AdaptiveOption = False,
    settings: SettingsOption = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show every step: what was asked, found, kept, added.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Ask a question and see the answer with its chain of evidence.

    Without --index it is asked of the sample corpus that comes with polyhop.
    """
    from time import perf_counter

    import dspy

    from ..engines.costs import Ledger
    from ..engines.models import model_errors
    from ..programs.prediction import check_question

    question = check_question(question)
    run = build_program(
        program, open_source(index), lm or (), k, retriever=retriever, adaptive=adaptive, settings=settings or ()
    )
    start, ledger = perf_counter(), Ledger(on_incident=_tell)
    with model_errors(), dspy.context(usage_tracker=ledger, disable_history=True):
        prediction = run(question=question)
    seconds = perf_counter() - start

    from . import view

    if as_json:
        view.print_json(question, prediction, seconds, ledger)
    else:
        view.print_answer(question, prediction, seconds, ledger, trace=trace)


def _tell(incident: str) -> None:
    """Say what happens while somebody waits for the answer."""
    typer.secho(f"{incident} ...", fg=typer.colors.YELLOW, err=True)
