"""`polyhop ask`: answers one question."""

from __future__ import annotations

from typing import Annotated

import typer

from ..data.errors import PolyhopError
from .options import (
    AdaptiveOption,
    DepthOption,
    IndexOption,
    ModelsOption,
    PresetOption,
    RetrieverOption,
    SettingsOption,
    build_program,
    open_source,
    source_name,
)
from .text import warn


def ask(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    index: IndexOption = None,
    program: Annotated[
        str,
        typer.Option(
            metavar="NAME|DIR",
            help="A program, the folder of an artifact, or your own MODULE:CLASS; its artifact is MODULE:CLASS=DIR.",
        ),
    ] = "polyhop",
    lm: ModelsOption = None,
    k: DepthOption = None,
    retriever: RetrieverOption = None,
    adaptive: AdaptiveOption = False,
    preset: PresetOption = None,
    settings: SettingsOption = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step, and the costs by agent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Answer a question, with its chain of evidence."""
    from time import perf_counter

    import dspy

    from ..engines.costs import Ledger
    from ..engines.models import model_errors
    from ..programs.prediction import check_question
    from .progress import showing_progress

    question = check_question(question)
    run = build_program(
        program,
        open_source(index) if index else None,
        lm or (),
        k,
        retriever=retriever,
        adaptive=adaptive,
        preset=preset,
        settings=settings or (),
    )
    searches = hasattr(run, "search")
    if searches and index is None:
        raise PolyhopError(
            "nothing to search: name an index with --index DIR or POLYHOP_INDEX (polyhop index FILES --out DIR makes "
            "one), or try the sample corpus with --index sample"
        )
    start, ledger = perf_counter(), Ledger(on_incident=lambda incident: warn(f"{incident} ..."))
    with showing_progress(), model_errors(), dspy.context(usage_tracker=ledger, disable_history=True):
        prediction = run(question=question)
    seconds = perf_counter() - start

    from . import view

    if as_json:
        view.print_json(question, prediction, seconds, ledger, index=source_name(index) if searches else None)
    else:
        view.print_answer(
            question, prediction, seconds, ledger, index=source_name(index) if searches else None, trace=trace
        )
