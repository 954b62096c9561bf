"""`polyhop ask`: answers one question."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from ..data.errors import PolyhopError
from .options import (
    AdaptiveOption,
    DepthOption,
    IndexOption,
    ModelsOption,
    NoCacheOption,
    RetrieverOption,
    SettingsOption,
    build_program,
    open_source,
)
from .text import warn

_LONGEST = 1 << 20  # bytes of a line of stdin


def ask(
    question: Annotated[
        str, typer.Argument(help="The question; - for questions from stdin, one a line.", show_default=False)
    ],
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
    settings: SettingsOption = None,
    no_cache: NoCacheOption = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step, and the costs by agent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Answer a question, with its chain of evidence."""
    from time import perf_counter

    import dspy

    from ..engines.costs import Ledger
    from ..engines.replies import model_errors
    from ..programs.prediction import check_question
    from .progress import showing_progress

    questions = [check_question(question)] if question != "-" else _questions()
    source = open_source(index) if index else None
    run = build_program(
        program,
        source,
        lm or (),
        k,
        retriever=retriever,
        adaptive=adaptive,
        settings=settings or (),
        no_cache=no_cache,
    )
    searches = hasattr(run, "search")
    if searches and index is None:
        raise PolyhopError(
            "nothing to search: name an index with --index DIR or POLYHOP_INDEX (polyhop index FILES --out DIR makes "
            "one), or try the sample corpus with --index sample"
        )
    from . import view

    searched = str(index) if searches else None
    for asked in questions:
        start, ledger = perf_counter(), Ledger(on_incident=lambda incident: warn(f"{incident} ..."))
        with showing_progress(), model_errors(), dspy.context(usage_tracker=ledger, disable_history=True):
            prediction = run(question=asked)
        seconds = perf_counter() - start
        if as_json:
            view.print_json(asked, prediction, seconds, ledger, index=searched)
            sys.stdout.flush()
        else:
            view.print_answer(asked, prediction, seconds, ledger, index=searched, trace=trace)


def _questions() -> Iterator[str]:
    """The questions on stdin; a line that is none is skipped with a warning."""
    from ..data.files import bounded_lines
    from ..programs.prediction import QuestionError, check_question

    for line in bounded_lines(sys.stdin.buffer, _LONGEST):
        text = "?" if line is None else line.decode("utf-8", "replace").strip()
        try:
            if text:
                yield check_question(text)
        except QuestionError as error:
            warn(str(error))
