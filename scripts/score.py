"""`polyhop score`: score predictions that were made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .evaluation_view import print_summaries, show_problems
from .source import Source, dataset_of


def score(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help='JSON lines with an id or a question, an answer, and perhaps evidence and a ranking of titles: {"id": '
            '"q1", "answer": "Tarn", "evidence": ["Kestrel Mill", ["berg.md", 0]]}. Also what \'polyhop ask --out\' '
            "writes.",
        ),
    ],
    questions: Annotated[
        str | None, typer.Option(metavar="FILE|hub:NAME", help="The questions and their gold.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="As for 'evaluate'.  [default: recognized from --questions]")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of a dataset on the hub or of the sample.")] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The index that has the passages of evidence and gold.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py:NAME", help="Add a metric of your own; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Keep the run, for 'polyhop compare' and 'polyhop report'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Score predictions as those of a program are scored: metrics, intervals, the official evaluators.

    A question without a prediction counts as failed.
    """
    from ..eval.metrics import find_metric
    from ..eval.questions import GivenPredictions, Questions

    for name in metric or ():
        find_metric(name)
    asked = Questions(dataset or dataset_of(questions), questions, split=split)
    source = Source(asked, index)
    program = GivenPredictions(predictions, asked, source.look_up or (lambda title: []))
    summaries = {predictions.stem: source.evaluate(program, predictions.stem, out, file=predictions)}
    print_summaries(summaries, asked, out, as_json)
    show_problems(summaries, asked)
